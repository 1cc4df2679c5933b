// Key frames of a closed file of the archive as a decoder reads them one after the other: a byte stream (ITU-T H.264 and H.265, annex
// B), each with the parameter sets that it needs.

import type { ArchiveFile } from '../footage/archive-file.ts';
import { concat } from '../mp4/box.ts';
import { codedSize, entryCodec, parameterSetsOf } from '../mp4/entry-sets.ts';
import { Mp4Error } from '../mp4/error.ts';
import { readSetsInForce } from '../mp4/in-band-sets.ts';
import { wallAt } from '../mp4/meta.ts';
import { readSampleIndex } from '../mp4/sample-index.ts';
import { MAX_LOOKS } from './day-file.ts';

export type Codec = 'h264' | 'hevc';

export interface KeyFrames {
  /** Undefined: pictures that cannot be decoded here. */
  readonly codec: Codec | undefined;
  readonly timesMs: readonly number[];
  read(i: number): Promise<Buffer>;
}

/** Access unit delimiters: each picture ends where the next one begins. */
const DELIMITERS = {
  h264: Buffer.from('000000010910', 'hex'),
  hevc: Buffer.from('00000001460150', 'hex'),
} as const;
const START_CODE = Buffer.from('00000001', 'hex');

/** Of pictures up to 720p a key frame each two seconds, of larger ones each four. */
const SMALL_HEIGHT = 720;
const APART_MS = { small: 1_900, large: 3_900 };

/** Undefined for a file that is no recording of ours, or damaged. Throws the error of the system. */
export async function keyFramesIn({
  read,
  sizeBytes,
}: Pick<ArchiveFile, 'read' | 'sizeBytes'>): Promise<KeyFrames | undefined> {
  try {
    const { meta, tracks } = await readSampleIndex(read, sizeBytes);
    const video = tracks.find(({ header }) => header.kind === 'video');
    if (!video) return undefined;
    const { header, dts, compositionOffsets, offsets, sizes, syncs } = video;
    const apartMs = codedSize(header.sampleEntry).height <= SMALL_HEIGHT ? APART_MS.small : APART_MS.large;
    const samples: number[] = [];
    const timesMs: number[] = [];
    for (let i = 0; i < syncs.length && samples.length < MAX_LOOKS; i++) {
      if (syncs[i] !== 1) continue;
      const timeMs = wallAt(meta, (dts[i] as number) + (compositionOffsets[i] as number));
      if (timeMs - (timesMs.at(-1) ?? -Infinity) < apartMs) continue;
      samples.push(i);
      timesMs.push(timeMs);
    }
    const codec = ({ avc1: 'h264', hvc1: 'hevc' } as const)[entryCodec(header.sampleEntry)];
    if (!codec) return { codec, timesMs, read: async () => Buffer.alloc(0) };
    const setsAt = await readSetsInForce(read, video);
    const ownSets = parameterSetsOf(header.sampleEntry);
    return {
      codec,
      timesMs,
      async read(i) {
        const sample = samples[i] as number;
        const picture = await read(offsets[sample] as number, sizes[sample] as number);
        const units = byteStream(concat([setsAt?.(sample) ?? ownSets, picture]));
        return concat([DELIMITERS[codec], units]);
      },
    };
  } catch (err) {
    if (!(err instanceof Mp4Error)) throw err;
    return undefined;
  }
}

/** In place: each NAL unit has a length of 4 bytes before it. */
function byteStream(units: Buffer): Buffer {
  for (let at = 0; at + 4 <= units.length;) {
    const size = units.readUInt32BE(at);
    START_CODE.copy(units, at);
    at += 4 + size;
  }
  return units;
}
