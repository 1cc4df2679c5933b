// The address of Playback, such as `#/playback?c=cam4,cam5&t=2026-11-22T02:13:00+01:00&z=1h`: a link shows the same.

import { MAX_WIDTH_MS, MIN_WIDTH_MS } from './scale.ts';
import type { Zone } from './zone.ts';

export const MAX_CAMERAS = 9;

export interface PlaybackAddress {
  /** At most nine, each once. */
  readonly cameras: readonly string[];
  /** Undefined: the newest footage. */
  readonly atMs: number | undefined;
  /** How much time the timeline shows. */
  readonly widthMs: number | undefined;
  /** The start of the selection, and its end. */
  readonly inMs: number | undefined;
  readonly outMs: number | undefined;
}

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const;

/** `1h`, `90m`, `10s`; whole seconds. */
function formatWidth(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1000)) * 1000;
  const [unit, size] = Object.entries(UNITS).find(([, size]) => seconds % size === 0) as [string, number];
  return `${seconds / size}${unit}`;
}

function parseWidth(text: string | null): number | undefined {
  const [, count, unit] = /^(\d{1,8})([dhms])$/.exec(text ?? '') ?? [];
  if (count === undefined) return undefined;
  return Math.min(MAX_WIDTH_MS, Math.max(MIN_WIDTH_MS, Number(count) * UNITS[unit as keyof typeof UNITS]));
}

/** Requires an offset, so that a link means the same moment everywhere. */
function parseMoment(text: string | null): number | undefined {
  // Some programs write the plus of an offset as a space.
  const written = text?.replace(' ', '+') ?? '';
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(written)) return undefined;
  const atMs = Date.parse(written);
  return Number.isNaN(atMs) ? undefined : atMs;
}

/** Fields that cannot be parsed count as absent. */
export function parseAddress(params: URLSearchParams): PlaybackAddress {
  const moment = (name: string): number | undefined => parseMoment(params.get(name));
  const cameras =
    params
      .get('c')
      ?.split(',')
      .filter((id) => id !== '') ?? [];
  return {
    cameras: [...new Set(cameras)].slice(0, MAX_CAMERAS),
    atMs: moment('t'),
    widthMs: parseWidth(params.get('z')),
    inMs: moment('in'),
    outMs: moment('out'),
  };
}

/** The fields of the address; undefined for one that it does not have. */
export function addressFields({ cameras, atMs, widthMs, inMs, outMs }: PlaybackAddress, zone: Zone) {
  const moment = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : zone.iso(ms));
  return {
    c: cameras.length === 0 ? undefined : cameras.join(','),
    t: moment(atMs),
    z: widthMs === undefined ? undefined : formatWidth(widthMs),
    in: moment(inMs),
    out: moment(outMs),
  };
}
