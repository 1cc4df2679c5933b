// Which addresses are of one camera. Behind one host with many ports there may be many cameras, so a camera is a host and a
// port to what a camera says, and a host to what its owner wrote.

export interface Origin {
  /** A name, or an address with or without its zone; without brackets. */
  readonly host: string;
  readonly port: number;
  /** TLS. */
  readonly secure: boolean;
}

/** One form for the spellings of a host: letters, the dot behind a name, forms of an address, its zone. */
export function plainHost(host: string): string {
  const address = host.replace(/%.*$/s, '').replace(/^\[(.*)\]$/, '$1');
  const authority = address.includes(':') ? `[${address}]` : address;
  const url = `http://${authority}/`;
  return (URL.canParse(url) ? new URL(url).hostname : address.toLowerCase()).replace(/\.$/, '');
}

export const isSameHost = (a: string, b: string): boolean => plainHost(a) === plainHost(b);

/** Whether a camera may redirect so, and the login follows: to where it was asked, or to TLS on the same host. */
export function staysAtCamera(from: Origin, to: Origin): boolean {
  if (!isSameHost(from.host, to.host)) return false;
  return from.secure === to.secure ? from.port === to.port : to.secure;
}
