// Parses values of a configuration file (`5m`, `500GiB`, `[::]:9997`) into numbers with units.

import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { hostInUrl, hostOfUrl } from '../../base/host.ts';
import { EXPECTED_RTSP_SCHEME, hasRtspScheme, parseRtspUrl } from '../rtsp/url.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';

/** An invalid value. The message says what is expected, and never repeats a secret. */
export class ValueError extends Error {}

const DURATION_UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
};

/** `5m`, `1h30m`, `250ms`, `30d` to milliseconds. */
export function parseDuration(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/gy)];
  if (parts.length === 0 || parts.reduce((length, part) => length + part[0].length, 0) !== text.length) {
    throw new ValueError('expected a duration such as 30s, 5m, 1h30m or 7d');
  }
  const totalMs = parts.reduce(
    (sum, part) => sum + Number(part[1]) * (DURATION_UNITS_MS[part[2] as string] as number),
    0,
  );
  if (!Number.isSafeInteger(Math.round(totalMs))) throw new ValueError('this duration is too long');
  return Math.round(totalMs);
}

const SIZE_PREFIXES = 'KMGTP';

/** `500GiB`, `500Gi` (powers of 1024), `500GB`, `500G` (powers of 1000) or plain bytes to bytes. */
export function parseSize(text: string): number {
  const match = /^(\d+(?:\.\d+)?) ?(?:([KMGTP])(i?))?B?$/i.exec(text);
  if (!match) throw new ValueError('expected a size such as 500GiB or 2TB');
  const power = match[2] === undefined ? 0 : SIZE_PREFIXES.indexOf(match[2].toUpperCase()) + 1;
  const bytes = Math.round(Number(match[1]) * (match[3] ? 1024 : 1000) ** power);
  if (!Number.isSafeInteger(bytes)) throw new ValueError('this size is too large');
  return bytes;
}

/** A part of a file system: a percentage of its size or a number of bytes. */
type SpaceAmount =
  { readonly kind: 'percent'; readonly percent: number } | { readonly kind: 'bytes'; readonly bytes: number };

/** `5%` or a size. */
export function parseSpace(text: string): SpaceAmount {
  const match = /^(\d+(?:\.\d+)?) ?%$/.exec(text);
  if (!match) {
    try {
      return { kind: 'bytes', bytes: parseSize(text) };
    } catch {
      // The message names both forms.
      throw new ValueError('expected a percentage such as 5% or a size such as 20GiB');
    }
  }
  const percent = Number(match[1]);
  if (percent > 90) throw new ValueError('a percentage of more than 90% would keep the disk empty');
  return { kind: 'percent', percent };
}

/** Where to listen. IPv6 addresses are without brackets; `::` accepts IPv4 connections as well. */
export interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** The host is empty where the text has none; undefined for a text that is no address. */
function addressIn(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([\w.-]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  return match && port <= 65_535 ? { host: match[1] ?? match[2] ?? '', port } : undefined;
}

/** `0.0.0.0:9997`, `localhost:9997`, `[::1]:9997`, or `:9997` for every address of IPv6 and IPv4. */
export function parseListen(text: string): ListenAddress {
  const address = addressIn(text);
  if (!address) throw new ValueError('expected host:port such as 0.0.0.0:9997, [::]:9997 or :9997');
  return { ...address, host: address.host || '::' };
}

/** Writes an address as it is written in a URL. */
export const formatListen = ({ host, port }: ListenAddress): string => `${hostInUrl(host)}:${port}`;

/** Whether only programs of this machine can connect to an address. */
export const isLoopback = ({ host }: Pick<ListenAddress, 'host'>): boolean => LOOPBACK.test(host);
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|::ffff:127(\.\d{1,3}){3})$/i;

/** An address with TLS, or on this machine; undefined for any other. */
function safeUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback({ host: hostOfUrl(url) }));
  return isSafe && url.username === '' ? url : undefined;
}

/** The origin of a server that is reached with TLS, or on this machine. */
export function parseEndpoint(text: string): string {
  const url = safeUrl(text);
  if (url?.pathname === '/') return url.origin;
  throw new ValueError('expected https://HOST:PORT, or http:// with an address of this machine');
}

/** The issuer of OpenID Connect, as its tokens have it (Core 1.0 §2, `iss`). */
export function parseIssuer(text: string): string {
  const url = safeUrl(text);
  if (url && url.search === '' && url.hash === '') return text;
  throw new ValueError(
    'expected an address such as https://sso.example/realms/plant, or http:// with one of this machine',
  );
}

/** Where a collector listens that is reached with TLS. */
export function parseCollector(text: string): ListenAddress {
  const address = addressIn(text);
  if (address?.host && address.port > 0) return address;
  throw new ValueError('expected host:port such as logs.example:6514');
}

/** Where a collector of OpenTelemetry takes logs. */
export function parseOtlp(text: string): string {
  if (safeUrl(text)) return text;
  throw new ValueError(
    'expected an address such as https://otel.example:4318/v1/logs, or http:// with one of this machine',
  );
}

/** `22:00-06:00` in minutes after midnight. */
export function parseHours(text: string): { readonly from: number; readonly to: number } {
  const match = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/.exec(text);
  const [from = 0, fromMinute = 0, to = 0, toMinute = 0] = (match?.slice(1) ?? []).map(Number);
  const hours = { from: from * 60 + fromMinute, to: to * 60 + toMinute };
  if (!match || hours.from === hours.to) throw new ValueError('expected two times of a day such as 22:00-06:00');
  return hours;
}

/** `https://nvr.example:8443` as browsers send it, or `*`. */
export function parseOrigin(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : undefined;
  if (text !== '*' && (origin !== text.toLowerCase() || !/^https?:/.test(text))) {
    throw new ValueError('expected an origin such as https://nvr.example:8443, without a path, or *');
  }
  return text.toLowerCase();
}

/** `10.0.0.1`, `10.0.0.0/8`, `fd00::/8`. */
export function parseNetwork(text: string): string {
  const match = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text);
  const version = isIP(match?.[1] ?? '');
  if (!match || version === 0 || Number(match[2] ?? 0) > (version === 4 ? 32 : 128)) {
    throw new ValueError('expected an address or a network such as 10.0.0.1 or 10.0.0.0/8');
  }
  return text;
}

/** In lower case, the form in which it is compared. */
export function parseHostName(text: string): string {
  if (!/^[\w-]+(\.[\w-]+)*$/.test(text))
    throw new ValueError('expected a host name such as nvr.example.com, without a port');
  return text.toLowerCase();
}

/** Refuses what is no address of a camera. */
export function checkSource(source: string): void {
  if (!hasRtspScheme(source)) throw new ValueError(`expected ${EXPECTED_RTSP_SCHEME}`);
  checkHost(source);
}

/** Refuses what is no http:// or https:// address of a camera. */
export function checkCameraUrl(text: string): void {
  const schemes = ['http', 'https'];
  if (!hasScheme(text, schemes)) throw new ValueError(expectedSchemes(schemes));
  if (URL.canParse(text) && new URL(text).port !== '0') return;
  checkHost(text);
  throw new ValueError(HOST_AND_PORT);
}

const HOST_AND_PORT = 'expected an address with a host, and a port from 1 to 65535 if it has one';

/**
 * Refuses an address of a camera without a host, with a port that does not exist, or with an IPv6 address that has no
 * brackets. Cameras that write it about themselves are understood, but a user's `fd00::5:554` could mean two things.
 */
function checkHost(address: string): void {
  let host: string;
  try {
    ({ host } = parseRtspUrl(address.replace(/^\s*http/i, 'rtsp')));
  } catch (err) {
    throw new ValueError(HOST_AND_PORT, { cause: err });
  }
  if (host.includes(':') && !address.includes(`[${host.split('%', 1)[0]}`)) {
    throw new ValueError('expected brackets around the IPv6 address, as in rtsp://[fd00::5]/stream');
  }
}

/**
 * The host of a camera's address of any kind, as it will be connected to: a name, or an address without brackets. Undefined
 * for what is no address, or one that URL parsers read differently.
 */
export function hostOf(address: string): string | undefined {
  const isHttp = /^http/i.test(address);
  try {
    const { host } = parseRtspUrl(address.replace(/^http/i, 'rtsp'));
    const other = isHttp ? hostOfUrl(new URL(address)) : host;
    return other.toLowerCase() === host.toLowerCase() ? host : undefined;
  } catch {
    // One of them is not an address: another check says so.
    return undefined;
  }
}

/** Refuses what is no URL of one of `schemes`. */
export function checkUrl(text: string, schemes: readonly string[]): void {
  if (!hasScheme(text, schemes)) throw new ValueError(expectedSchemes(schemes));
  if (!URL.canParse(text)) throw new ValueError(HOST_AND_PORT);
}

const hasScheme = (text: string, schemes: readonly string[]): boolean =>
  schemes.some((scheme) => text.trimStart().toLowerCase().startsWith(`${scheme}:`));

const expectedSchemes = (schemes: readonly string[]): string =>
  `expected an address that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`;

/** Whether text holds nothing but certificates in PEM, one or more. */
export function isCertificates(text: string): boolean {
  const blocks = text.split(/(?<=-----END CERTIFICATE-----)\s*/).filter((block) => block !== '');
  try {
    return blocks.length > 0 && blocks.every((block) => new X509Certificate(block));
  } catch {
    // It is not a certificate.
    return false;
  }
}

/** Whether text names a time zone of the IANA database. */
export function isTimeZone(text: string): boolean {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions();
    // Offsets such as +01:00 are accepted as well, but know no summer time.
    return /^[A-Za-z]/.test(timeZone);
  } catch {
    // The system does not know this time zone.
    return false;
  }
}

/** Of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. */
export const WEBHOOK_SECRET = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/;
