// Pictures that carry their number and the time of their capture in an SEI message of their own, and the same read back
// from recorded files, with the time at which the file says they were captured.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { readMeta } from '../../recorder/mp4/reader.ts';
import { nalType } from '../support/packetize.ts';
import { readFrom } from '../support/recorded-file.ts';
import type { CameraFrame } from '../camera/tracks.ts';

const run = promisify(execFile);

/** What tells the message from others: a UUID's 16 bytes, without zeros. */
const UUID = 'kube-nvr-picture';
const SEI_NAL = 0x06;
const USER_DATA_UNREGISTERED = 5;
const TRAILING_BITS = 0x80;

export interface Stamp {
  /** Position in the camera's stream, from 0. */
  readonly index: number;
  /** Milliseconds since 1970, by the clock of the machine. */
  readonly capturedMs: number;
}

/** H.264 only. Text, so that nothing in it must be escaped (ISO/IEC 14496-10 §7.4.1). */
export function stamped(frame: CameraFrame, capturedMs: number): CameraFrame {
  const text = Buffer.from(`${UUID}${frame.index} ${capturedMs.toFixed(3)}`);
  const message = Buffer.concat([
    Buffer.from([SEI_NAL, USER_DATA_UNREGISTERED, text.length]),
    text,
    Buffer.from([TRAILING_BITS]),
  ]);
  const slice = frame.units.findIndex((unit) => [1, 5].includes(nalType(unit, 'h264')));
  return { ...frame, units: frame.units.toSpliced(slice, 0, message) };
}

interface RecordedPicture {
  /** Undefined where the packet with the message was lost, and those with the slices were not. */
  readonly stamp: Stamp | undefined;
  /** When it was captured, as its file says: linear from the file's start to its end. */
  readonly datedMs: number;
  /** The NAL units of its slices, behind each other. */
  readonly slices: Buffer;
}

export interface RecordedFile {
  readonly path: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** In decoding order. */
  readonly pictures: readonly RecordedPicture[];
}

/** A closed file. Places and times of its samples are ffprobe's, so that the recorder does not vouch for itself. */
export async function readRecorded(path: string): Promise<RecordedFile> {
  const bytes = await readFile(path);
  const state = await readMeta(...readFrom(bytes));
  if (state.kind !== 'finalized') throw new Error(`${path} is ${state.kind}`);
  const { wallStartMs, wallDurationMs, mediaDurationMs } = state.meta;
  const entries = ['-select_streams', 'v:0', '-show_entries', 'packet=pts_time,pos,size', '-of', 'csv=p=0'];
  const { stdout } = await run('ffprobe', ['-v', 'error', ...entries, path], { maxBuffer: 64 * 1024 * 1024 });
  const rows = stdout.split('\n').flatMap((line) => (line === '' ? [] : [line.split(',').map(Number)]));
  const firstSeconds = Math.min(...rows.map(([seconds = 0]) => seconds));
  const pictures = rows.map(([seconds = 0, length = 0, at = 0]) => ({
    ...contentOf(bytes.subarray(at, at + length)),
    datedMs: wallStartMs + (seconds - firstSeconds) * 1000 * (wallDurationMs / mediaDurationMs),
  }));
  return { path, fromMs: wallStartMs, toMs: wallStartMs + wallDurationMs, pictures };
}

function contentOf(sample: Buffer): Pick<RecordedPicture, 'stamp' | 'slices'> {
  let stamp: Stamp | undefined;
  const slices: Buffer[] = [];
  for (let at = 0; at + 4 < sample.length;) {
    const nal = sample.subarray(at + 4, at + 4 + sample.readUInt32BE(at));
    at += 4 + nal.length;
    const type = nalType(nal, 'h264');
    if (type === 1 || type === 5) slices.push(nal);
    if (type !== SEI_NAL || nal.toString('latin1', 3, 3 + UUID.length) !== UUID) continue;
    const [index, capturedMs] = nal.toString('latin1', 3 + UUID.length, nal.length - 1).split(' ');
    stamp = { index: Number(index), capturedMs: Number(capturedMs) };
  }
  return { stamp, slices: Buffer.concat(slices) };
}
