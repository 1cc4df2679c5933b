// Collects the sizes and times of one track's samples and makes the boxes of its sample table (ISO/IEC 14496-12 §8.5 to §8.7).
// Uses growing typed arrays that are reused for the next file: a recorder keeps some 400 KB per camera here and creates no
// garbage.

import { assert } from '../../base/assert.ts';
import { nestedFullBox, u32, type Part } from './box.ts';
import type { FragmentTrack } from './fragment.ts';

const FIRST_CAPACITY = 1024;
const MAX_DURATION = 0xffffffff;

type Numbers = Uint32Array | Int32Array | Float64Array | Uint8Array;

function grown<T extends Numbers>(array: T, needed: number): T {
  if (needed <= array.length) return array;
  const larger = new (array.constructor as new (length: number) => T)(
    Math.max(FIRST_CAPACITY, needed, array.length * 2),
  );
  larger.set(array);
  return larger;
}

/** All samples of one track of a file in decoding order; each fragment is one chunk. */
export class SampleTable {
  readonly kind: 'video' | 'audio';
  sampleCount = 0;
  chunkCount = 0;
  /** Decoding time of the first sample on the file's timeline, in ticks. */
  startTicks = 0;
  /** Decoding time at which the last sample ends. */
  endTicks = 0;
  /** The latest presentation time of any sample. */
  lastPresentationTicks = 0;
  durations = new Uint32Array(0);
  sizes = new Uint32Array(0);
  /** Video only. */
  compositionOffsets = new Int32Array(0);
  /** Video only; 1 for a sync sample. */
  syncs = new Uint8Array(0);
  chunkOffsets = new Float64Array(0);
  chunkFirstSamples = new Uint32Array(0);

  constructor(kind: 'video' | 'audio') {
    this.kind = kind;
  }

  clear(): void {
    this.sampleCount = 0;
    this.chunkCount = 0;
    this.startTicks = 0;
    this.endTicks = 0;
    this.lastPresentationTicks = 0;
  }

  /** Whether a run that starts at `baseDecodeTime` can follow: that must be after the start of the last sample. */
  accepts(baseDecodeTime: number): boolean {
    if (this.sampleCount === 0) return true;
    const stretched = this.#lastDuration + (baseDecodeTime - this.endTicks);
    return stretched >= 1 && stretched <= MAX_DURATION;
  }

  /** Adds the samples of a fragment, which are contiguous at `fileOffset`, and returns the offset after them. */
  append(track: FragmentTrack, fileOffset: number): number {
    const { samples, baseDecodeTime } = track;
    assert(this.accepts(baseDecodeTime), 'decode times in a file go back');
    // The duration of the previous sample is the distance to this one, whatever was written before this one was known.
    if (this.sampleCount === 0) this.startTicks = baseDecodeTime;
    else this.durations[this.sampleCount - 1] = this.#lastDuration + (baseDecodeTime - this.endTicks);
    this.#reserve(this.sampleCount + samples.length);
    this.chunkOffsets[this.chunkCount] = fileOffset;
    this.chunkFirstSamples[this.chunkCount++] = this.sampleCount;
    let decodeTime = baseDecodeTime;
    let offset = fileOffset;
    for (let i = 0; i < samples.length; i++) {
      const sample = samples[i] as (typeof samples)[number];
      const index = this.sampleCount++;
      this.durations[index] = sample.duration;
      this.sizes[index] = sample.size;
      if (this.kind === 'video') {
        this.compositionOffsets[index] = sample.compositionOffset;
        this.syncs[index] = sample.sync ? 1 : 0;
      }
      const presentation = decodeTime + this.compositionOffset(index);
      if (index === 0 || presentation > this.lastPresentationTicks) this.lastPresentationTicks = presentation;
      decodeTime += sample.duration;
      offset += sample.size;
    }
    this.endTicks = decodeTime;
    return offset;
  }

  /** Removes the chunks at and after `fileOffset`. */
  cutAt(fileOffset: number): void {
    while (this.chunkCount > 0 && (this.chunkOffsets[this.chunkCount - 1] as number) >= fileOffset) {
      this.sampleCount = this.chunkFirstSamples[--this.chunkCount] as number;
    }
    let decodeTime = this.startTicks;
    this.lastPresentationTicks = decodeTime;
    for (let i = 0; i < this.sampleCount; i++) {
      this.lastPresentationTicks = Math.max(this.lastPresentationTicks, decodeTime + this.compositionOffset(i));
      decodeTime += this.durations[i] as number;
    }
    this.endTicks = decodeTime;
  }

  compositionOffset(index: number): number {
    return this.kind === 'video' ? (this.compositionOffsets[index] as number) : 0;
  }

  get #lastDuration(): number {
    return this.durations[this.sampleCount - 1] as number;
  }

  /** Sum of all durations: the length of the media timeline. */
  get mediaDuration(): number {
    return this.endTicks - this.startTicks;
  }

  /** The end of the last picture shown, in ticks of the file's timeline. */
  get presentationEndTicks(): number {
    if (this.sampleCount === 0) return 0;
    return this.kind === 'video' ? this.lastPresentationTicks + this.#lastDuration : this.endTicks;
  }

  /** Presentation time of the first sync sample on the file's timeline; earlier pictures cannot be decoded. */
  get presentationStartTicks(): number {
    if (this.kind === 'audio' || this.sampleCount === 0) return this.startTicks;
    let decodeTime = this.startTicks;
    for (let i = 0; i < this.sampleCount; i++) {
      if (this.syncs[i] === 1) return decodeTime + this.compositionOffset(i);
      decodeTime += this.durations[i] as number;
    }
    return this.startTicks + this.compositionOffset(0);
  }

  #reserve(samples: number): void {
    this.durations = grown(this.durations, samples);
    this.sizes = grown(this.sizes, samples);
    this.chunkOffsets = grown(this.chunkOffsets, this.chunkCount + 1);
    this.chunkFirstSamples = grown(this.chunkFirstSamples, this.chunkCount + 1);
    if (this.kind === 'audio') return;
    this.compositionOffsets = grown(this.compositionOffsets, samples);
    this.syncs = grown(this.syncs, samples);
  }
}

/** The sample table boxes. `chunkOffsets` replaces the table's own offsets if the samples have been moved. */
export const sampleTableBoxes = (
  table: SampleTable,
  chunkOffsets: Float64Array = table.chunkOffsets.subarray(0, table.chunkCount),
): Part => [placelessBoxes(table), chunkOffsetBox(chunkOffsets)];

/** The boxes that do not depend on where the samples are. */
export const placelessBoxes = (table: SampleTable): Part => [
  stts(table),
  ctts(table),
  stss(table),
  stsc(table),
  stsz(table),
];

/** Decoding Time to Sample, §8.6.1.2. */
const stts = ({ durations, sampleCount }: SampleTable): Part =>
  nestedFullBox('stts', 0, 0, runs(durations, sampleCount));

/** Composition Time to Sample, §8.6.1.3; left out if decoding order equals display order. */
function ctts({ kind, compositionOffsets, sampleCount }: SampleTable): Part {
  if (kind === 'audio') return [];
  const used = compositionOffsets.subarray(0, sampleCount);
  if (used.every((offset) => offset === 0)) return [];
  const version = used.some((offset) => offset < 0) ? 1 : 0; // only version 1 is signed
  return nestedFullBox('ctts', version, 0, runs(compositionOffsets, sampleCount));
}

/** Sync Sample, §8.6.2; left out if every sample is a sync sample. */
function stss({ kind, syncs, sampleCount }: SampleTable): Part {
  if (kind === 'audio') return [];
  const bytes = Buffer.allocUnsafe(4 + sampleCount * 4);
  let at = 4;
  for (let i = 0; i < sampleCount; i++) if (syncs[i] === 1) at = bytes.writeUInt32BE(i + 1, at); // sample_number
  const count = (at - 4) / 4;
  if (count === sampleCount) return [];
  bytes.writeUInt32BE(count); // entry_count
  return nestedFullBox('stss', 0, 0, bytes.subarray(0, at));
}

/** Sample to Chunk, §8.7.4: one entry wherever the number of samples per chunk changes. */
function stsc({ chunkFirstSamples, chunkCount, sampleCount }: SampleTable): Part {
  const bytes = Buffer.allocUnsafe(4 + chunkCount * 12);
  let at = 4;
  let previous = 0;
  for (let i = 0; i < chunkCount; i++) {
    const next = i + 1 < chunkCount ? (chunkFirstSamples[i + 1] as number) : sampleCount;
    const samples = next - (chunkFirstSamples[i] as number);
    if (samples === previous) continue;
    at = bytes.writeUInt32BE(i + 1, at); // first_chunk
    at = bytes.writeUInt32BE(samples, at); // samples_per_chunk
    at = bytes.writeUInt32BE(1, at); // sample_description_index
    previous = samples;
  }
  bytes.writeUInt32BE((at - 4) / 12); // entry_count
  return nestedFullBox('stsc', 0, 0, bytes.subarray(0, at));
}

/** Sample Size, §8.7.3.2. */
function stsz({ sizes, sampleCount }: SampleTable): Part {
  const bytes = Buffer.allocUnsafe(sampleCount * 4);
  for (let i = 0; i < sampleCount; i++) bytes.writeUInt32BE(sizes[i] as number, i * 4); // entry_size
  return nestedFullBox('stsz', 0, 0, [
    u32(0), // sample_size: 0, sizes differ
    u32(sampleCount), // sample_count
    bytes,
  ]);
}

/** Chunk Offset, §8.7.5: 64 bits only if needed. */
export function chunkOffsetBox(offsets: Float64Array): Part {
  const wide = offsets.some((offset) => offset > 0xffffffff);
  const width = wide ? 8 : 4;
  const bytes = Buffer.allocUnsafe(offsets.length * width);
  for (let i = 0; i < offsets.length; i++) {
    const offset = offsets[i] as number;
    if (wide) bytes.writeUInt32BE(Math.floor(offset / 0x100000000), i * 8);
    bytes.writeUInt32BE(offset % 0x100000000, i * width + width - 4); // chunk_offset
  }
  return nestedFullBox(wide ? 'co64' : 'stco', 0, 0, [u32(offsets.length), bytes]);
}

/** entry_count, then pairs of sample_count and value for runs of equal values. */
function runs(values: Uint32Array | Int32Array, count: number): Buffer {
  let stretches = 0;
  for (let i = 0; i < count; i++) if (i === 0 || values[i] !== values[i - 1]) stretches++;
  const bytes = Buffer.allocUnsafe(4 + stretches * 8);
  let at = bytes.writeUInt32BE(stretches);
  for (let i = 0; i < count;) {
    let end = i + 1;
    while (end < count && values[end] === values[i]) end++;
    at = bytes.writeUInt32BE(end - i, at);
    at = bytes.writeUInt32BE((values[i] as number) >>> 0, at);
    i = end;
  }
  return bytes;
}
