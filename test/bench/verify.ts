// Compares recorded MP4 files with what the sender sent: which pictures exist, and whether each is complete. It parses sample
// tables (ISO/IEC 14496-12 §8.6-8.7) with separate code, so that the recorder's code does not check itself.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { Media } from './media.ts';
import type { SentStats } from './sender.ts';

interface Box {
  readonly type: string;
  readonly body: Buffer;
}

interface Track {
  readonly kind: 'video' | 'audio';
  readonly offsets: readonly number[];
  readonly sizes: readonly number[];
}

function* boxesIn(bytes: Buffer): Generator<Box> {
  for (let at = 0; at + 8 <= bytes.length;) {
    const size = bytes.readUInt32BE(at) || bytes.length - at;
    if (size < 8) return;
    yield { type: bytes.toString('latin1', at + 4, at + 8), body: bytes.subarray(at + 8, at + size) };
    at += size;
  }
}

function find(bytes: Buffer, path: string): Buffer | undefined {
  const [first, ...rest] = path.split('/');
  for (const box of boxesIn(bytes)) {
    if (box.type === first) return rest.length === 0 ? box.body : find(box.body, rest.join('/'));
  }
  return undefined;
}

function readAt(file: number, position: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  return bytes.subarray(0, readSync(file, bytes, 0, size, position));
}

/** The file's last `moov` with samples: the one appended when it was closed. */
function readMovie(file: number): Buffer | undefined {
  const { size: fileSize } = fstatSync(file);
  let movie: Buffer | undefined;
  for (let at = 0; at + 8 <= fileSize;) {
    const header = readAt(file, at, 16);
    let size = header.readUInt32BE(0);
    if (size === 1) size = Number(header.readBigUInt64BE(8));
    if (size === 0) size = fileSize - at;
    if (size < 8) break;
    if (header.toString('latin1', 4, 8) === 'moov') movie = readAt(file, at + 8, size - 8);
    at += size;
  }
  return movie;
}

function readTrack(trak: Buffer): Track | undefined {
  const handler = find(trak, 'mdia/hdlr')?.toString('latin1', 8, 12);
  const table = find(trak, 'mdia/minf/stbl');
  if (!table || (handler !== 'vide' && handler !== 'soun')) return undefined;
  const stsz = find(table, 'stsz') ?? Buffer.alloc(12);
  const stsc = find(table, 'stsc') ?? Buffer.alloc(8);
  const stco = find(table, 'stco');
  const co64 = find(table, 'co64');
  const sizes = Array.from(
    { length: stsz.readUInt32BE(8) },
    (_, i) => stsz.readUInt32BE(4) || stsz.readUInt32BE(12 + i * 4),
  );
  const chunks = (stco ?? co64)?.readUInt32BE(4) ?? 0;
  const runs = stsc.readUInt32BE(4);
  const offsets: number[] = [];
  for (let chunk = 0, run = 0; chunk < chunks; chunk++) {
    while (run + 1 < runs && stsc.readUInt32BE(8 + (run + 1) * 12) <= chunk + 1) run++;
    let at = stco ? stco.readUInt32BE(8 + chunk * 4) : Number((co64 as Buffer).readBigUInt64BE(8 + chunk * 8));
    for (let i = stsc.readUInt32BE(8 + run * 12 + 4); i > 0; i--) {
      offsets.push(at);
      at += sizes[offsets.length - 1] ?? 0;
    }
  }
  return { kind: handler === 'vide' ? 'video' : 'audio', offsets, sizes };
}

const MARK = Buffer.from('knvr-bench-frame');

/** The content of the bench's SEI message: number and camera of a picture, and when it was sent (CLOCK_MONOTONIC). */
export function readMark(
  bytes: Buffer,
  from = 0,
): { camera: number; frame: number; sentNs: bigint; at: number } | undefined {
  const at = bytes.indexOf(MARK, from);
  if (at < 0) return undefined;
  const [camera, frame, sentNs] = bytes.toString('latin1', at + 16, at + 48).split(/[:;]/);
  return { camera: Number(camera), frame: Number(frame), sentNs: BigInt(sentNs as string), at };
}

/** CRC-32 of the slices of a picture whose NAL units have 4-byte lengths; undefined if the lengths are wrong. */
function sumSlices(picture: Buffer): number | undefined {
  let sum = 0;
  let at = 0;
  while (at + 4 <= picture.length) {
    const end = at + 4 + picture.readUInt32BE(at);
    if (end > picture.length) return undefined;
    const type = (picture[at + 4] as number) & 0x1f;
    if (type === 1 || type === 5) sum = crc32(picture.subarray(at + 4, end), sum);
    at = end;
  }
  return at === picture.length ? sum : undefined;
}

interface Recorded {
  /** Numbers of the pictures found, in file order. */
  readonly frames: number[];
  /** Pictures whose bytes differ from those sent, or that have no mark. */
  torn: number;
  /** Positions of the audio frames in the sender's loop; -1: not a frame that was sent. */
  readonly audio: number[];
}

/** Reads one camera's files in order of time. */
export function readRecorded(paths: readonly string[], media: Media): Recorded {
  const recorded: Recorded = { frames: [], torn: 0, audio: [] };
  const audioIndex = new Map(media.audio.map((sum, i) => [sum, i]));
  for (const path of paths) {
    const file = openSync(path, 'r');
    try {
      const movie = readMovie(file);
      if (!movie) throw new Error(`${path} has no moov`);
      for (const box of boxesIn(movie)) {
        const track = box.type === 'trak' ? readTrack(box.body) : undefined;
        for (const [i, offset] of (track?.offsets ?? []).entries()) {
          const sample = readAt(file, offset, track?.sizes[i] ?? 0);
          if (track?.kind === 'audio') {
            recorded.audio.push(audioIndex.get(crc32(sample)) ?? -1);
            continue;
          }
          const mark = readMark(sample);
          if (!mark || sumSlices(sample) !== media.pictures[mark.frame % media.pictures.length]) recorded.torn++;
          if (mark) recorded.frames.push(mark.frame);
        }
      }
    } finally {
      closeSync(file);
    }
  }
  return recorded;
}

export interface Verdict {
  /** Pictures that had to be recorded: from the first key frame of the connection to the last one sent. */
  sent: number;
  lost: number;
  torn: number;
  /** Pictures recorded twice or out of order. */
  disordered: number;
  /** Audio frames missing between the first and the last recorded one, or at the recorded pictures. */
  audioLost: number;
}

/** Audio and pictures do not start and end in the same millisecond. */
const AUDIO_AT_EDGES = 4;

/** Compares one camera's files with what the sender sent on the camera's connections. */
export function judge(recorded: Recorded, connections: readonly SentStats[], media: Media): Verdict {
  const verdict: Verdict = { sent: 0, lost: 0, torn: recorded.torn, disordered: 0, audioLost: 0 };
  const found = new Set(recorded.frames);
  verdict.disordered = recorded.frames.filter(
    (frame, i) => i > 0 && frame <= (recorded.frames[i - 1] as number),
  ).length;
  for (const { firstKeyFrame, lastFrame } of connections) {
    if (firstKeyFrame < 0) continue;
    for (let frame = firstKeyFrame; frame <= lastFrame; frame++) {
      verdict.sent++;
      if (!found.has(frame)) verdict.lost++;
    }
  }
  let holes = 0;
  for (let i = 1; i < recorded.audio.length; i++) {
    const step = (recorded.audio[i] as number) - (recorded.audio[i - 1] as number);
    holes += (step - 1 + 2 * media.audio.length) % media.audio.length;
  }
  const besidePictures = Math.floor((verdict.sent / media.pictures.length) * media.audio.length) - AUDIO_AT_EDGES;
  verdict.audioLost = Math.max(holes, besidePictures - recorded.audio.length);
  return verdict;
}
