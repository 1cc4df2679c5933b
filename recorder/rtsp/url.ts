// Parses RTSP URLs as people type them into camera lists (RFC 2326 §3.2). General URL parsers reject them: passwords with `@`,
// `/`, `#` and bad `%`, IPv6 zones, addresses without brackets. Only `credentials` contains the user part.

import { RtspSyntaxError } from './error.ts';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** How RTSP is tunnelled through HTTP, if it does not use a TCP connection of its own. */
interface Tunnel {
  /** The text before `://`, such as `rtsp+http`. */
  readonly scheme: string;
  /** `http`: RTSP over HTTP as in Apple's QuickTime; `websocket`: as in the ONVIF Streaming Specification. */
  readonly kind: 'http' | 'websocket';
  /** The HTTP request target: path and query. */
  readonly path: string;
}

export interface RtspUrl {
  /** True for TLS. */
  readonly secure: boolean;
  readonly tunnel?: Tunnel;
  /** The host to connect to: a name, or an address without brackets but with its zone. */
  readonly host: string;
  readonly port: number;
  /** There is another `@` after the host: it may be part of the password, so the URL must not be shown. */
  readonly hostIsDoubtful?: true;
  readonly credentials: Credentials | undefined;
  /** The URL in a request line: as written, without user part, zone and fragment. Also used to show it. */
  readonly request: string;
}

interface Scheme {
  readonly secure: boolean;
  readonly port: number;
  readonly tunnel?: Tunnel['kind'];
}

/** Default ports from RFC 2326 §3.2, RFC 7826 §4.2 and HTTP. */
const SCHEMES: ReadonlyMap<string, Scheme> = new Map<string, Scheme>([
  ['rtsp', { secure: false, port: 554 }],
  ['rtsps', { secure: true, port: 322 }],
  ['rtsp+http', { secure: false, port: 80, tunnel: 'http' }],
  ['rtsp+https', { secure: true, port: 443, tunnel: 'http' }],
  ['rtsp+ws', { secure: false, port: 80, tunnel: 'websocket' }],
  ['rtsp+wss', { secure: true, port: 443, tunnel: 'websocket' }],
]);
const EXPECTED = [...SCHEMES.keys()]
  .map((name) => `${name}://`)
  .join(', ')
  .replace(/, (?=[^,]*$)/, ' or ');
/** The expected scheme in words, for error messages. */
export const EXPECTED_RTSP_SCHEME = `an address that begins with ${EXPECTED}`;
/** Characters; the longest URLs of cameras have a few hundred. */
const MAX_LENGTH = 2048;

interface HostPort {
  readonly host: string;
  /** The host as written in a URL: in brackets if needed, without zone. */
  readonly shown: string;
  readonly port: number | undefined;
}

const isIpv6 = (text: string): boolean => /^[0-9a-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]/`);

function parsePort(text: string): number | undefined {
  if (!/^\d{1,5}$/.test(text)) return undefined;
  const port = Number(text);
  return port >= 1 && port <= 65_535 ? port : undefined;
}

/** Parses `host`, `host:port`, `[address%25zone]:port`, or an IPv6 address without brackets; undefined if it is none of these. */
function parseHostPort(text: string): HostPort | undefined {
  const bracketed = /^\[([0-9a-f:.]+)(?:%(?:25)?([^\]\s]+))?\](?::(\d*))?$/i.exec(text);
  if (bracketed) {
    const [, address = '', zone, portText] = bracketed;
    const port = portText ? parsePort(portText) : undefined;
    if ((portText && port === undefined) || !isIpv6(address)) return undefined;
    return { host: zone ? `${address}%${zone}` : address, shown: `[${address}]`, port };
  }
  if (text.split(':').length > 2) {
    // Some cameras write their own address like this in Content-Base: rtsp://::ffff:192.168.1.123/
    return isIpv6(text) ? { host: text, shown: `[${text}]`, port: undefined } : undefined;
  }
  const [host = '', portText] = text.split(':');
  if (!/^[^\s[\]@/?#%"<>\\]+$/.test(host)) return undefined;
  if (portText === undefined) return { host, shown: host, port: undefined };
  const port = parsePort(portText);
  return port === undefined ? undefined : { host, shown: host, port };
}

/** Percent-decodes, but keeps what is not an escape or not UTF-8. */
function decodeTolerantly(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      // These escapes are not UTF-8: they stay as they are.
      return escapes;
    }
  });
}

/** Escapes what is not allowed in a request line: white space, control characters and everything beyond ASCII. */
function encodeForRequestLine(text: string): string {
  return text.replace(/[^\x21-\x7e]+/g, (run) => encodeURIComponent(run.toWellFormed()));
}

/** The parts of an address after `://`. */
interface Split {
  /** The text before the `@`, as written. */
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

/** The start of the text between two of `/?#` that ends at `end`. */
function startOfAuthority(text: string, end: number): number {
  let start = end;
  while (start > 0 && !'/?#'.includes(text[start - 1] as string)) start--;
  return start;
}

/**
 * Splits at the last `@` of the authority. If that gives no valid host and port (because of an unescaped `/`, `?` or `#` in the
 * password), the user part ends at the last `@` that is followed by a host.
 */
export function splitUserPart(text: string): Split | undefined {
  const plainEnd = endOfAuthority(text, 0);
  const plain = splitAt(text, text.lastIndexOf('@', plainEnd - 1), plainEnd);
  const hasLaterAt = text.indexOf('@', plainEnd) >= 0;
  // No camera URL has a fragment before its path: in `u:12#4@host` the `#` is part of the password.
  if (plain && !(hasLaterAt && text[plainEnd] === '#')) return plain;
  // No host contains an `@`: of those before one end of an authority, only the last can be it.
  for (let end = text.length; end > 0;) {
    const start = startOfAuthority(text, end);
    const at = text.lastIndexOf('@', end - 1);
    const split = at >= start ? splitAt(text, at, end) : undefined;
    if (split) return split;
    end = start - 1;
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

/** Whether the text starts with a scheme for cameras. */
export const hasRtspScheme = (text: string): boolean =>
  SCHEMES.has(/^\s*([a-z+]+):\/\//i.exec(text)?.[1]?.toLowerCase() ?? '');

/**
 * Throws `RtspSyntaxError`, whose message does not repeat the input. The WebSocket of a tunnel may be elsewhere on the
 * camera than its streams: then the stream's path follows as a fragment (`rtsp+ws://10.0.0.9/rtsp-over-ws#/stream1`).
 */
export function parseRtspUrl(text: string): RtspUrl {
  if (text.length > MAX_LENGTH) throw new RtspSyntaxError(`a URL of more than ${MAX_LENGTH} characters`);
  const match = /^\s*([a-z+]+):\/\//i.exec(text);
  const name = match?.[1]?.toLowerCase() ?? '';
  const scheme = SCHEMES.get(name);
  if (!match || !scheme) throw new RtspSyntaxError(`not ${EXPECTED_RTSP_SCHEME}`);
  const { secure } = scheme;
  const split = splitUserPart(text.slice(match[0].length).trimEnd());
  if (!split) throw new RtspSyntaxError('a URL without a host, or with a port that does not exist');
  const { hostPort, userPart } = split;
  const [withoutFragment = '', fragment = ''] = split.rest.split('#');
  const path = withoutFragment.startsWith('/') ? withoutFragment : `/${withoutFragment}`;
  const streamPath = scheme.tunnel === 'websocket' && fragment.startsWith('/') ? fragment : path;
  const portText = hostPort.port === undefined ? '' : `:${hostPort.port}`;
  // In a tunnel TLS is the tunnel's.
  const inner = secure && !scheme.tunnel ? 'rtsps' : 'rtsp';
  return {
    secure,
    ...(scheme.tunnel ? { tunnel: { scheme: name, kind: scheme.tunnel, path: encodeForRequestLine(path) } } : {}),
    host: hostPort.host,
    ...(userPart !== undefined && split.rest.includes('@') ? { hostIsDoubtful: true } : {}),
    port: hostPort.port ?? scheme.port,
    credentials: parseUserPart(userPart),
    request: encodeForRequestLine(`${inner}://${hostPort.shown}${portText}${streamPath}`),
  };
}

/** The URL without its user part. */
function withoutUser({ tunnel, request }: RtspUrl): string {
  if (!tunnel) return request;
  const [, authority = '', path = ''] = /^rtsp:\/\/([^/]*)(.*)$/.exec(request) ?? [];
  return `${tunnel.scheme}://${authority}${tunnel.path}${path === tunnel.path ? '' : `#${path}`}`;
}

/** The URL with its user part, every character of it escaped that could be mistaken. */
export function formatRtspUrl(url: RtspUrl): string {
  const shown = withoutUser(url);
  if (!url.credentials) return shown;
  const escape = (text: string): string =>
    encodeURIComponent(text.toWellFormed()).replace(
      /[!'()*]/g,
      (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const { username, password } = url.credentials;
  const userPart = password === '' ? escape(username) : `${escape(username)}:${escape(password)}`;
  return shown.replace('://', `://${userPart}@`);
}
