// RTSP URLs as people type them into camera lists (RFC 2326 §3.2), which no general URL parser accepts: passwords with
// `@`, `/`, `#` and bad `%`, IPv6 zones, addresses without brackets. What leaves never holds the user part by accident.

import { RtspSyntaxError } from './error.ts';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export interface RtspUrl {
  /** True for `rtsps:` (TLS). */
  readonly secure: boolean;
  /** Where to connect: a name or an address without brackets, with its zone. */
  readonly host: string;
  readonly port: number;
  readonly credentials: Credentials | undefined;
  /** What stands in a request line: as written, without user part, zone and fragment. Also the form to show. */
  readonly request: string;
}

/** RFC 2326 §3.2 and RFC 7826 §4.2. */
const DEFAULT_PORT = 554;
const DEFAULT_SECURE_PORT = 322;

interface HostPort {
  readonly host: string;
  /** The address as it stands in a URL, bracketed and without zone. */
  readonly shown: string;
  readonly port: number | undefined;
}

const isIpv6 = (text: string): boolean => /^[0-9a-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]/`);

function parsePort(text: string): number | undefined {
  if (!/^\d{1,5}$/.test(text)) return undefined;
  const port = Number(text);
  return port >= 1 && port <= 65_535 ? port : undefined;
}

/** `host`, `host:port`, `[address%25zone]:port`, or an IPv6 address without brackets; undefined when it is none. */
function parseHostPort(text: string): HostPort | undefined {
  const bracketed = /^\[([0-9a-f:.]+)(?:%(?:25)?([^\]\s]+))?\](?::(\d*))?$/i.exec(text);
  if (bracketed) {
    const [, address = '', zone, portText] = bracketed;
    const port = portText ? parsePort(portText) : undefined;
    if ((portText && port === undefined) || !isIpv6(address)) return undefined;
    return { host: zone ? `${address}%${zone}` : address, shown: `[${address}]`, port };
  }
  if (text.split(':').length > 2) {
    // Some cameras write their own address so in Content-Base: rtsp://::ffff:192.168.1.123/
    return isIpv6(text) ? { host: text, shown: `[${text}]`, port: undefined } : undefined;
  }
  const [host = '', portText] = text.split(':');
  if (!/^[^\s[\]@/?#%"<>\\]+$/.test(host)) return undefined;
  if (portText === undefined) return { host, shown: host, port: undefined };
  const port = parsePort(portText);
  return port === undefined ? undefined : { host, shown: host, port };
}

/** Percent-decoding that leaves alone what is no escape or no UTF-8. */
function decodeTolerantly(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}

/** Escapes what would break a request line: blanks, control characters and everything beyond ASCII. */
function encodeForRequestLine(text: string): string {
  return text.replace(/[^\x21-\x7e]+/g, (run) => encodeURIComponent(run.toWellFormed()));
}

interface Split {
  readonly userPart: string | undefined;
  readonly hostPort: HostPort;
  /** Path and query. */
  readonly rest: string;
}

function splitAt(text: string, at: number, authorityEnd: number): Split | undefined {
  const hostPort = parseHostPort(text.slice(at + 1, authorityEnd));
  if (!hostPort) return undefined;
  return { userPart: at < 0 ? undefined : text.slice(0, at), hostPort, rest: text.slice(authorityEnd) };
}

function endOfAuthority(text: string, from: number): number {
  const length = text.slice(from).search(/[/?#]/);
  return length < 0 ? text.length : from + length;
}

/**
 * Splits at the last `@` of the authority. Where the plain reading gives no host and port (a password with `/`, `?` or
 * `#` that nobody escaped), the last `@` that is followed by a host ends the user part.
 */
function splitUserPart(text: string): Split | undefined {
  const plainEnd = endOfAuthority(text, 0);
  const plain = splitAt(text, text.lastIndexOf('@', plainEnd - 1), plainEnd);
  const hasLaterAt = text.indexOf('@', plainEnd) >= 0;
  // No camera's URL has a fragment before a path: `u:12#4@host` is a password with `#`.
  if (plain && !(hasLaterAt && text[plainEnd] === '#')) return plain;
  for (let at = text.lastIndexOf('@'); at >= 0; at = at === 0 ? -1 : text.lastIndexOf('@', at - 1)) {
    const split = splitAt(text, at, endOfAuthority(text, at + 1));
    if (split) return split;
  }
  return plain ?? splitEmptyPort(text, plainEnd);
}

/** `host:` with nothing after the colon is legal (RFC 3986 §3.2.3). */
function splitEmptyPort(text: string, authorityEnd: number): Split | undefined {
  if (text[authorityEnd - 1] !== ':') return undefined;
  const at = text.lastIndexOf('@', authorityEnd - 1);
  const hostPort = parseHostPort(text.slice(at + 1, authorityEnd - 1));
  if (!hostPort) return undefined;
  return { userPart: at < 0 ? undefined : text.slice(0, at), hostPort, rest: text.slice(authorityEnd) };
}

function parseUserPart(userPart: string | undefined): Credentials | undefined {
  if (userPart === undefined || userPart === '') return undefined;
  const colon = userPart.indexOf(':');
  const username = colon < 0 ? userPart : userPart.slice(0, colon);
  const password = colon < 0 ? '' : userPart.slice(colon + 1);
  return { username: decodeTolerantly(username), password: decodeTolerantly(password) };
}

/** Throws `RtspSyntaxError`, whose message does not repeat the input. */
export function parseRtspUrl(text: string): RtspUrl {
  const scheme = /^\s*(rtsps?):\/\//i.exec(text);
  if (!scheme) throw new RtspSyntaxError('a URL that does not begin with rtsp:// or rtsps://');
  const secure = scheme[1]?.toLowerCase() === 'rtsps';
  const split = splitUserPart(text.slice(scheme[0].length).trimEnd());
  if (!split) throw new RtspSyntaxError('a URL without a host, or with a port that is none');
  const { hostPort, userPart } = split;
  const [withoutFragment = ''] = split.rest.split('#');
  const path = withoutFragment.startsWith('/') ? withoutFragment : `/${withoutFragment}`;
  const portText = hostPort.port === undefined ? '' : `:${hostPort.port}`;
  return {
    secure,
    host: hostPort.host,
    port: hostPort.port ?? (secure ? DEFAULT_SECURE_PORT : DEFAULT_PORT),
    credentials: parseUserPart(userPart),
    request: encodeForRequestLine(`${secure ? 'rtsps' : 'rtsp'}://${hostPort.shown}${portText}${path}`),
  };
}

/** The URL with its user part, every character of it escaped that could be mistaken. */
export function formatRtspUrl(url: RtspUrl): string {
  if (!url.credentials) return url.request;
  const escape = (text: string): string =>
    encodeURIComponent(text.toWellFormed()).replace(
      /[!'()*]/g,
      (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const { username, password } = url.credentials;
  const userPart = password === '' ? escape(username) : `${escape(username)}:${escape(password)}`;
  return url.request.replace('://', `://${userPart}@`);
}

/** A URL to show: without user part and fragment. Never throws; what is no URL comes back as `(not an RTSP URL)`. */
export function redactUrl(text: string): string {
  let url: RtspUrl;
  try {
    url = parseRtspUrl(text);
  } catch {
    return '(not an RTSP URL)';
  }
  // With an `@` behind the host too, host and path may both be the rest of a password with `@` and `/`.
  const hasLaterAt = url.request.includes('@');
  return url.credentials && hasLaterAt ? `${url.secure ? 'rtsps' : 'rtsp'}://…` : url.request;
}
