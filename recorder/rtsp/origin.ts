// Decides which addresses belong to one camera. One host may serve many cameras on different ports: for addresses that a camera
// sends, a camera is a host and a port; for addresses that its owner configured, it is a host.

export interface Origin {
  /** A name, or an address with or without a zone; no brackets. */
  readonly host: string;
  readonly port: number;
  /** TLS. */
  readonly secure: boolean;
}

/** Normalises a host: upper case, a trailing dot, forms of an IP address, the zone. */
export function plainHost(host: string): string {
  const address = host.replace(/%.*$/s, '').replace(/^\[(.*)\]$/, '$1');
  const authority = address.includes(':') ? `[${address}]` : address;
  const url = `http://${authority}/`;
  return (URL.canParse(url) ? new URL(url).hostname : address.toLowerCase()).replace(/\.$/, '');
}

export const isSameHost = (a: string, b: string): boolean => plainHost(a) === plainHost(b);

/** Whether the camera may redirect like this and still get the login: to the same host and port, or to TLS on the same host. */
export function staysAtCamera(from: Origin, to: Origin): boolean {
  if (!isSameHost(from.host, to.host)) return false;
  return from.secure === to.secure ? from.port === to.port : to.secure;
}
