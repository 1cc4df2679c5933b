// Finds the member of the cluster for an address in a request. Requests always go to the member's own address, never to the
// address that the caller sent.

import type { Member } from '../contract/other-node.ts';

export type Scheme = 'http' | 'https';

/** Host and port of an address, as a URL without path; undefined for an invalid address. */
function originOf(address: string, scheme: Scheme): URL | undefined {
  const text = /^https?:\/\//i.test(address) ? address : `${scheme}://${address}`;
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const bare = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  return bare && url.pathname === '/' && url.hostname !== '' ? url : undefined;
}

/** The member with an address; undefined when there is none. `scheme`: of members whose address has none. */
export const memberAt = (members: readonly Member[], address: string, scheme: Scheme): URL | undefined =>
  findMember(members, address, scheme)?.url;

/** The same, with the member's data for mutual TLS. */
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

/** The member that is the target of a redirect; undefined if the scheme is not that of the member. */
export function memberOf(members: readonly Member[], url: URL, scheme: Scheme): URL | undefined {
  const found = memberAt(members, `${url.protocol}//${url.host}`, scheme);
  return found?.protocol === url.protocol ? found : undefined;
}

/** The address for messages: `host:port`. */
export const hostPort = (url: URL): string => `${url.hostname}:${portOf(url)}`;

const portOf = ({ port, protocol }: URL): string => port || (protocol === 'https:' ? '443' : '80');
