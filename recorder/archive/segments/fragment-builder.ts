// Gathers the samples of up to a second into one fragment: their tables, and their bytes in few long pieces.

import type { MediaData, Slab } from '../../codec/slab.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID, type FragmentSample, type FragmentTrack } from '../../mp4/fragment.ts';
import { SampleChecksum } from '../../mp4/sample-checksum.ts';
import type { Sample } from '../../mp4/sample.ts';
import type { SegmentWriter } from '../../mp4/segment.ts';

/** A fragment on its way to the disk. Call `release` once; it releases the memory of the samples. */
export interface Fragment {
  readonly buffers: Buffer[];
  /** The blocks of memory that contain the samples. */
  readonly slabs: readonly Slab[];
  readonly videoFrames: number;
  /** Wall time of the last picture in it; undefined when it holds audio only. */
  readonly lastVideoMs: number | undefined;
  readonly videoEndMs: number | undefined;
  /** Its first picture, if that is a key frame. */
  readonly key?: Sample | undefined;
  release(): void;
}

interface Row {
  size: number;
  duration: number;
  compositionOffset: number;
  sync: boolean;
}

/** One track's samples. Rows are reused, so that a frame costs no object. */
class TrackRun {
  readonly trackId: number;
  readonly #rows: Row[] = [];
  #count = 0;
  baseDecodeTime = 0;
  bytes = 0;
  /** Contiguous pieces of slabs, in order: slab, start, end. */
  readonly #slabs: Slab[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  constructor(trackId: number) {
    this.trackId = trackId;
  }

  get count(): number {
    return this.#count;
  }

  get slabs(): readonly Slab[] {
    return this.#slabs;
  }

  /** Takes over one hold on `data.slab`. */
  add(data: MediaData, decodeTime: number, duration: number, compositionOffset: number, sync: boolean): void {
    if (this.#count === 0) this.baseDecodeTime = decodeTime;
    const row = (this.#rows[this.#count] ??= { size: 0, duration: 0, compositionOffset: 0, sync: false });
    row.size = data.size;
    row.duration = duration;
    row.compositionOffset = compositionOffset;
    row.sync = sync;
    this.#count++;
    this.bytes += data.size;
    const last = this.#slabs.length - 1;
    if (last >= 0 && this.#slabs[last] === data.slab && this.#ends[last] === data.offset) {
      this.#ends[last] = data.offset + data.size;
      data.slab.release(); // the piece it joins already holds the slab
    } else {
      this.#slabs.push(data.slab);
      this.#starts.push(data.offset);
      this.#ends.push(data.offset + data.size);
    }
  }

  table(): FragmentTrack {
    const rows = this.#rows;
    const samples: ArrayLike<FragmentSample> = this.#count === rows.length ? rows : rows.slice(0, this.#count);
    return { trackId: this.trackId, baseDecodeTime: this.baseDecodeTime, samples };
  }

  /** Moves the pieces out: bytes to `buffers`, holds to `slabs`. */
  take(buffers: Buffer[], slabs: Slab[]): void {
    for (let i = 0; i < this.#slabs.length; i++) {
      const slab = this.#slabs[i] as Slab;
      buffers.push(slab.buffer.subarray(this.#starts[i], this.#ends[i]));
      slabs.push(slab);
    }
    this.#slabs.length = 0;
    this.#starts.length = 0;
    this.#ends.length = 0;
    this.#count = 0;
    this.bytes = 0;
  }
}

export class FragmentBuilder {
  readonly #video = new TrackRun(VIDEO_TRACK_ID);
  readonly #audio = new TrackRun(AUDIO_TRACK_ID);
  #lastVideoMs: number | undefined;
  #videoEndMs: number | undefined;
  #key: Sample | undefined;

  get isEmpty(): boolean {
    return this.#video.count === 0 && this.#audio.count === 0;
  }

  get videoFrames(): number {
    return this.#video.count;
  }

  /** Decoding time of the first picture in it; meaningless without one. */
  get videoStart(): number {
    return this.#video.baseDecodeTime;
  }

  /** Bytes of samples. */
  get bytes(): number {
    return this.#video.bytes + this.#audio.bytes;
  }

  /** The blocks of memory that contain them. */
  get slabs(): readonly Slab[] {
    return [...this.#video.slabs, ...this.#audio.slabs];
  }

  /**
   * Takes over one hold on `data.slab`, like `addAudio`. Times are those of the file; `wallEndMs` is by its map. `key`: the sample, if it
   * is a key frame.
   */
  addVideo(
    data: MediaData,
    decodeTime: number,
    duration: number,
    compositionOffset: number,
    sync: boolean,
    wallMs: number,
    wallEndMs: number,
    key?: Sample,
  ): void {
    if (this.#video.count === 0) this.#key = key;
    this.#video.add(data, decodeTime, duration, compositionOffset, sync);
    this.#lastVideoMs = wallMs;
    this.#videoEndMs = wallEndMs;
  }

  addAudio(data: MediaData, decodeTime: number, duration: number): void {
    this.#audio.add(data, decodeTime, duration, 0, true);
  }

  /** Ends the fragment and enters it in the tables of its file. The builder is empty afterwards. */
  take(tables: Pick<SegmentWriter, 'append'>): Fragment {
    const tracks = [this.#video.table(), this.#audio.table()];
    const videoFrames = this.#video.count;
    const lastVideoMs = this.#lastVideoMs;
    const videoEndMs = this.#videoEndMs;
    const key = this.#key;
    const slabs: Slab[] = [];
    const samples: Buffer[] = [];
    this.#video.take(samples, slabs);
    this.#audio.take(samples, slabs);
    this.#lastVideoMs = undefined;
    this.#videoEndMs = undefined;
    this.#key = undefined;
    const checksum = new SampleChecksum();
    for (const buffer of samples) checksum.add(buffer);
    return {
      buffers: [tables.append(tracks, checksum.value), ...samples],
      slabs,
      videoFrames,
      lastVideoMs,
      videoEndMs,
      key,
      release: () => {
        for (const slab of slabs) slab.release();
      },
    };
  }

  /** Releases what it holds; returns the number of pictures. */
  discard(): number {
    const slabs: Slab[] = [];
    const frames = this.#video.count;
    this.#video.take([], slabs);
    this.#audio.take([], slabs);
    this.#lastVideoMs = undefined;
    this.#videoEndMs = undefined;
    for (const slab of slabs) slab.release();
    return frames;
  }
}
