// Hosts in URLs. An IPv6 address has brackets in a URL (RFC 3986 §3.2.2), and none elsewhere.

import { isIPv6 } from 'node:net';

/** A name or an address as it is written in a URL, `[fd00::5]` for `fd00::5`. */
export const hostInUrl = (host: string): string => (isIPv6(host) ? `[${host}]` : host);

/** The host of a URL as sockets and certificates take it, `fd00::5` for `http://[fd00::5]:80/`. */
export const hostOfUrl = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');
