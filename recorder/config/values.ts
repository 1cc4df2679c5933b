// Values as people write them in a configuration file (`5m`, `500GiB`, `[::]:9997`) to numbers with their units.

/** A value that cannot be understood; the message says what would be, and never repeats a secret. */
export class ValueError extends Error {}

const DURATION_UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
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

/** A part of a file system: a share of its size or a number of bytes. */
export type SpaceAmount =
  { readonly kind: 'percent'; readonly percent: number } | { readonly kind: 'bytes'; readonly bytes: number };

/** `5%` or a size. */
export function parseSpace(text: string): SpaceAmount {
  const match = /^(\d+(?:\.\d+)?) ?%$/.exec(text);
  if (!match) {
    try {
      return { kind: 'bytes', bytes: parseSize(text) };
    } catch {
      throw new ValueError('expected a share such as 5% or a size such as 20GiB');
    }
  }
  const percent = Number(match[1]);
  if (percent > 90) throw new ValueError('a share of more than 90% would keep the disk empty');
  return { kind: 'percent', percent };
}

/** Where to listen. IPv6 addresses are without brackets; `::` takes IPv4 connections as well. */
export interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** `0.0.0.0:9997`, `localhost:9997`, `[::1]:9997`, or `:9997` for every address of IPv6 and IPv4. */
export function parseListen(text: string): ListenAddress {
  const match = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([\w.-]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) {
    throw new ValueError('expected host:port such as 0.0.0.0:9997, [::]:9997 or :9997');
  }
  const host = match[1] ?? match[2] ?? '';
  return { host: host === '' ? '::' : host, port };
}

/** Writes an address as it is written in a URL. */
export function formatListen(address: ListenAddress): string {
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}

/**
 * What a camera's name becomes in a file name: everything but letters, digits, `.` and `-` of ASCII is replaced, so
 * that `_` only separates the parts of the file name (design: `<name>_<camera_id>_<date>_<time>.mp4`).
 */
export function fileNamePart(name: string): string {
  return name.replace(/[^A-Za-z0-9.-]/gu, '-');
}

/** Refuses what is no camera address. User and password may hold any character, so the last `@` before the host counts. */
export function checkSource(source: string): void {
  const scheme = /^(rtsps?):\/\//i.exec(source);
  if (!scheme) throw new ValueError('expected an address that begins with rtsp:// or rtsps://');
  if (/[\s\p{Cc}]/u.test(source)) throw new ValueError('an address has no spaces or control characters');
  const rest = source.slice(scheme[0].length);
  // A password may contain `/`: the user part ends at the last `@` that a host can follow.
  const authority = rest.slice(rest.lastIndexOf('@') + 1);
  const hasHost = (part: string): boolean =>
    /^(?:\[[0-9A-Fa-f:.]+(?:%25[\w.-]+|%[\w.-]+)?\]|[^\s:/?#@[\]]+)(?::\d{1,5})?(?:[/?#]|$)/.test(part);
  const host = hasHost(authority) ? authority : (rest.split('/', 1)[0] as string).replace(/^.*@/, '');
  if (!hasHost(host)) throw new ValueError('this address names no host');
  const port = /^(?:\[[^\]]*\]|[^:/?#]+):(\d+)/.exec(host)?.[1];
  if (port !== undefined && (Number(port) === 0 || Number(port) > 65_535)) {
    throw new ValueError('a port is a number from 1 to 65535');
  }
}

/** Refuses what is no URL of one of `schemes`. */
export function checkUrl(text: string, schemes: readonly string[]): void {
  const expected = `expected an address that begins with ${schemes.map((s) => `${s}://`).join(' or ')}`;
  if (!URL.canParse(text)) throw new ValueError(expected);
  const { protocol } = new URL(text);
  if (!schemes.some((scheme) => protocol === `${scheme}:`)) throw new ValueError(expected);
}
