// The metadata of a recorded file: camera, run, wall clock. Stored in `moov/udta/uuid`: in the first `moov` of the growing file
// as far as known, and completely in the final one.

import { assert } from '../../base/assert.ts';
import { box, concat, u16, u24, u32, u64, u8, type Part } from './box.ts';
import { Mp4Error } from './error.ts';
import { Fields } from './parse.ts';
import { TICKS_PER_MS } from './sample.ts';

/**
 * How reliable the wall time of a file is. `settled`: the run's clock had seen enough frames to know the smallest delay;
 * `settling`: the first seconds of a run; `unknown`: completed by recovery, from other clocks.
 */
export type ClockQuality = 'unknown' | 'settling' | 'settled';

/**
 * Which pictures of a file come from the memory of the camera instead of its live stream
 * (docs/design/edge-recovery.md): those from `fromMs` on. `seam`: how their place was found; `bytes`: the pictures
 * before or after them are those of the live stream, byte for byte.
 */
interface EdgeOrigin {
  /** Wall time; not after the start of the file if all of it comes from there. */
  readonly fromMs: number;
  readonly seam: Seam;
}

export type Seam = 'bytes' | 'time';

/** Which pictures of a file come from the memory of the camera: `edge`: all; `mixed`: the last ones. */
export const ORIGINS = ['edge', 'mixed'] as const;
export type Origin = (typeof ORIGINS)[number];

/** Undefined for a file of the live stream. */
export function originOf({ edge, wallStartMs }: Pick<SegmentMeta, 'edge' | 'wallStartMs'>): Origin | undefined {
  if (!edge) return undefined;
  return edge.fromMs <= wallStartMs ? 'edge' : 'mixed';
}

/** Known when the file is opened. */
export interface SegmentMeta {
  readonly cameraId: string;
  /** 16 hex digits. */
  readonly runId: string;
  /** Counts the segments of the camera across all runs, from 0. */
  readonly sequence: number;
  /** Capture time of the first picture shown, milliseconds since 1970; stored in nanoseconds. */
  readonly wallStartMs: number;
  readonly clock: ClockQuality;
  /** Time without recording just before this file, as far as known. */
  readonly gapBeforeMs: number;
  /** Wall milliseconds per media millisecond in the previous file; default 1. */
  readonly pace?: number;
  /** In a cluster: the epoch of the assignment under which it is recorded. Where two nodes recorded the same time, the higher counts. */
  readonly epoch?: number | undefined;
  /** Undefined: all of it was recorded live. */
  readonly edge?: EdgeOrigin | undefined;
}

/** Known when the file is closed; fields left out keep their values from the opening. */
export interface SegmentClosing {
  readonly wallStartMs?: number;
  readonly clock?: ClockQuality;
  readonly gapBeforeMs?: number;
  /** Wall time from the first picture shown to the end of the last; default: the media duration. */
  readonly wallDurationMs?: number;
  readonly lostPackets?: number;
  readonly edge?: EdgeOrigin;
}

/** Wall milliseconds per media millisecond of the file; about 1. */
export const paceOf = ({ wallDurationMs, mediaDurationMs }: RecordedMeta): number =>
  wallDurationMs > 0 && mediaDurationMs > 0 ? wallDurationMs / mediaDurationMs : 1;

/** Wall time at which the picture was captured that is shown `ticks` of video after the first one. */
export const wallAt = (meta: RecordedMeta, ticks: number): number =>
  meta.wallStartMs + (ticks / TICKS_PER_MS) * paceOf(meta);

/** How many ticks of video after the first picture the one captured at `wallMs` is shown. */
export const ticksAt = (meta: RecordedMeta, wallMs: number): number =>
  ((wallMs - meta.wallStartMs) / paceOf(meta)) * TICKS_PER_MS;

/** One track, as needed in a row of the database. */
export interface TrackSummary {
  readonly kind: 'video' | 'audio';
  readonly codecString: string;
  /** Pixels; 0 for audio. */
  readonly width: number;
  readonly height: number;
  /** 0 for video. */
  readonly sampleRate: number;
  readonly channels: number;
}

/** All contents of the `uuid` box. */
export interface RecordedMeta extends Omit<SegmentMeta, 'pace'> {
  /** While the file is open, these two only state its pace: one second of media and its wall time. */
  readonly wallDurationMs: number;
  readonly mediaDurationMs: number;
  readonly lostPackets: number;
  readonly tracks: readonly TrackSummary[];
  /** No key frame brings other parameter sets than those of the sample entry. Undefined: not known. */
  readonly setsInEntry?: true | undefined;
}

/** Extended type of our box (ISO/IEC 14496-12 §11.1): a random UUID. */
const META_UUID = Buffer.from('e1a4b5c06c1d4f0e9f5b7a3d2c86f4b9', 'hex');
const META_VERSION = 1;
const SETS_IN_ENTRY = 1;

/** The index is stored; 0 is for files of the live stream. */
const SEAMS: readonly (Seam | undefined)[] = [undefined, 'bytes', 'time'];

const CLOCK_QUALITIES: readonly ClockQuality[] = ['unknown', 'settling', 'settled'];
const NANOSECONDS_PER_MS = 1_000_000n;
/** Nanoseconds since 1970 fit 64 bits until the year 2554. */
const LAST_MS = Number((2n ** 64n - 1n) / NANOSECONDS_PER_MS);

/** The `udta` box, with our `uuid` box inside. */
export const userData = (meta: RecordedMeta): Buffer =>
  box(
    'udta',
    box('uuid', [
      META_UUID,
      u8(META_VERSION), // version
      u24(meta.setsInEntry ? SETS_IN_ENTRY : 0), // flags; version 0.1.0 ignores them
      nanoseconds(meta.wallStartMs), // wall start, since 1970
      nanoseconds(meta.wallDurationMs), // wall duration; while open, of a second of media
      nanoseconds(meta.mediaDurationMs), // media duration; while open, a second
      runIdBytes(meta.runId), // run
      u32(meta.sequence), // sequence number of the segment
      u64(Math.max(0, Math.round(meta.gapBeforeMs))), // milliseconds without recording before this file
      u32(Math.min(meta.lostPackets, 0xffffffff)), // RTP packets lost
      u8(CLOCK_QUALITIES.indexOf(meta.clock)), // clock quality
      shortText(meta.cameraId), // camera
      u8(meta.tracks.length), // tracks
      meta.tracks.map(trackSummary),
      // Readers of older versions ignore what follows the tracks.
      meta.epoch === undefined && !meta.edge ? [] : u32(meta.epoch ?? 0), // epoch; 0: none
      meta.edge ? [u8(SEAMS.indexOf(meta.edge.seam)), nanoseconds(meta.edge.fromMs)] : [], // pictures from the memory of the camera
    ]),
  );

const trackSummary = (track: TrackSummary): Part => [
  u8(track.kind === 'video' ? 0 : 1), // kind
  u16(track.width), // width in pixels
  u16(track.height), // height in pixels
  u32(track.sampleRate), // samples a second
  u8(track.channels), // channels
  shortText(track.codecString), // codec, RFC 6381
];

function shortText(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8');
  assert(bytes.length <= 255, 'text in the file description is too long');
  return concat([u8(bytes.length), bytes]);
}

function runIdBytes(runId: string): Buffer {
  assert(/^[0-9a-f]{16}$/.test(runId), 'a run id has 16 hex digits');
  return Buffer.from(runId, 'hex');
}

/**
 * Converts milliseconds to nanoseconds without the precision of a double, which would round current times to 256 ns. A time out
 * of range, possible in a damaged file, becomes the last that fits.
 */
function nanoseconds(ms: number): Buffer {
  const possible = Math.min(Math.max(0, ms), LAST_MS);
  const whole = Math.floor(possible);
  const fraction = Math.round((possible - whole) * 1e6);
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64BE(BigInt(whole) * NANOSECONDS_PER_MS + BigInt(fraction));
  return bytes;
}

/** Parses the contents of a `uuid` box; undefined if it is not our box. */
export function parseMeta(contents: Buffer): RecordedMeta | undefined {
  if (contents.length < 16 || !contents.subarray(0, 16).equals(META_UUID)) return undefined;
  const fields = new Fields(contents, { type: 'uuid', start: 16, end: contents.length });
  const version = fields.u8();
  if (version !== META_VERSION) throw new Mp4Error('UNSUPPORTED', `file description of version ${version}`);
  fields.skip(2);
  const flags = fields.u8();
  const wallStartMs = milliseconds(fields);
  const wallDurationMs = milliseconds(fields);
  const mediaDurationMs = milliseconds(fields);
  const runId = fields.bytes(8).toString('hex');
  const sequence = fields.u32();
  const gapBeforeMs = fields.u64();
  const lostPackets = fields.u32();
  const clock = CLOCK_QUALITIES[fields.u8()] ?? 'unknown';
  const cameraId = shortTextOf(fields);
  const tracks: TrackSummary[] = [];
  for (let left = fields.u8(); left > 0; left--) {
    tracks.push({
      kind: fields.u8() === 0 ? 'video' : 'audio',
      width: fields.u16(),
      height: fields.u16(),
      sampleRate: fields.u32(),
      channels: fields.u8(),
      codecString: shortTextOf(fields),
    });
  }
  const epoch = fields.left >= 4 ? fields.u32() : 0;
  const edge = fields.left >= 9 ? edgeOf(fields) : undefined;
  return {
    cameraId,
    runId,
    sequence,
    wallStartMs,
    wallDurationMs,
    mediaDurationMs,
    gapBeforeMs,
    lostPackets,
    clock,
    tracks,
    ...(epoch > 0 && { epoch }),
    ...(edge && { edge }),
    ...(flags & SETS_IN_ENTRY && { setsInEntry: true }),
  };
}

function edgeOf(fields: Fields): EdgeOrigin | undefined {
  const seam = SEAMS[fields.u8()];
  const fromMs = milliseconds(fields);
  return seam && { fromMs, seam };
}

function milliseconds(fields: Fields): number {
  const value = fields.bigU64();
  return Number(value / NANOSECONDS_PER_MS) + Number(value % NANOSECONDS_PER_MS) / 1e6;
}

const shortTextOf = (fields: Fields): string => fields.bytes(fields.u8()).toString('utf8');
