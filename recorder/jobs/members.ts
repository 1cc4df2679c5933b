// Which other recorders this one may fetch from: addresses that somebody names in, members of the cluster out. What is
// asked is always the member's own address, never the one that was named.

/** A recorder of the cluster, as configuration or membership knows it. */
export interface Member {
  /** `host:port`, or `https://host:port` where it speaks otherwise than this node. */
  readonly address: string;
  /** Where it lets only members in, and who it is there: a URI in its certificate. */
  readonly mutual?: { readonly address: string; readonly identity: string };
}

export type Scheme = 'http' | 'https';

/** Host and port of an address, as a URL without path; undefined for what is none. */
export function originOf(address: string, scheme: Scheme): URL | undefined {
  const text = /^https?:\/\//i.test(address) ? address : `${scheme}://${address}`;
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const bare = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return bare && url.pathname === '/' && url.hostname !== '' ? url : undefined;
}

/** The member at an address; undefined when there is none. `scheme`: of members that do not say. */
export const memberAt = (members: readonly Member[], address: string, scheme: Scheme): URL | undefined =>
  findMember(members, address, scheme)?.url;

/** The same, with what is known of it. */
export function findMember(
  members: readonly Member[],
  address: string,
  scheme: Scheme,
): { readonly url: URL; readonly mutual: Member['mutual'] } | undefined {
  const asked = originOf(address, scheme);
  if (!asked) return undefined;
  for (const { address: known, mutual } of members) {
    const url = originOf(known, scheme);
    if (url && url.hostname === asked.hostname && portOf(url) === portOf(asked)) return { url, mutual };
  }
  return undefined;
}

/** The member that a redirect leads to; it has to speak as the member is known to speak. */
export function memberOf(members: readonly Member[], url: URL, scheme: Scheme): URL | undefined {
  const found = memberAt(members, `${url.protocol}//${url.host}`, scheme);
  return found?.protocol === url.protocol ? found : undefined;
}

/** As people write it: `host:port`. */
export const hostPort = (url: URL): string => `${url.hostname}:${portOf(url)}`;

const portOf = ({ port, protocol }: URL): string => port || (protocol === 'https:' ? '443' : '80');
