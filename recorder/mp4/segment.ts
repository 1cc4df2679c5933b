// Computes the bytes of one recorded file around its samples, from their sizes and times. No I/O.
//
//   while it grows   ftyp | free | moov(mvex) | moof mdat | moof mdat | …
//   completed        ftyp | mdat ············ hides ················· | moov

import { assert } from '../../base/assert.ts';
import { ownCopy } from '../../base/own-copy.ts';
import type { VideoParameters } from '../codec/access-unit.ts';
import { concat, fourCc, u32, u64, zeros } from './box.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID, buildFragment, type FragmentTrack } from './fragment.ts';
import type { RecordedMeta, SegmentClosing, SegmentMeta, TrackSummary } from './meta.ts';
import { paceOf, userData } from './meta.ts';
import type { Edit, TrackContents, TrackHeader } from './movie.ts';
import {
  MOVIE_TIMESCALE,
  completeMovie,
  fragmentedFileType,
  fragmentedMovie,
  progressiveFileType,
  shownSize,
  trackHeader,
} from './movie.ts';
import { SampleTable, sampleTableBoxes } from './sample-table.ts';
import { TICKS_PER_MS, type TrackParameters } from './sample.ts';

/** How to complete a file: append `tail`, sync, overwrite with `patch.bytes` at `patch.offset`, sync. */
export interface SegmentEnd {
  readonly tail: Buffer;
  readonly patch: { readonly offset: number; readonly bytes: Buffer };
  /** The metadata that the file then has. */
  readonly meta: RecordedMeta;
}

/** A file rewritten with its `moov` first: write `header`, then copy each range of the fragmented file. */
export interface ProgressiveFile {
  readonly header: Buffer;
  readonly ranges: readonly { readonly offset: number; readonly size: number }[];
  readonly meta: RecordedMeta;
}

/**
 * A hybrid MP4. While it grows it is `ftyp | free | moov(mvex) | moof mdat …`, so that every complete fragment survives a crash.
 * `finish` appends a full `moov` and turns `free` into one `mdat` that hides the fragments, which makes the completed file a
 * plain MP4. Times are relative to the file: 0 is the dts of the first video sample, for both tracks.
 *
 * With `record.format: mp4` the growing file is the same and just as safe from crashes. It is not served; when it is closed, the
 * archive writes `progressive` to a new file and renames that over the old one.
 */
export class SegmentWriter {
  readonly #tables = { video: new SampleTable('video'), audio: new SampleTable('audio') };
  #headers: readonly TrackHeader[] = [];
  #meta!: RecordedMeta;
  #headerBytes: Buffer = Buffer.alloc(0);
  #headerSize = 0;
  #size = 0;
  #fragmentCount = 0;
  /** See RecordedMeta; false if it is not known. */
  setsInEntry = true;
  /** For each fragment, where its samples start and end in the file. */
  #fragments = new Float64Array(1024);

  /** Throws Mp4Error for parameter sets that cannot be described. */
  constructor(tracks: readonly TrackParameters[], meta: SegmentMeta) {
    this.reset(tracks, meta);
  }

  /** A writer for an existing file, from what its header says; call `adopt` with each fragment in it. */
  static resume(headers: readonly TrackHeader[], meta: RecordedMeta, headerSize: number): SegmentWriter {
    const writer = new SegmentWriter([], meta);
    writer.#begin(headers, meta);
    writer.setsInEntry = false;
    writer.#headerBytes = Buffer.alloc(0);
    writer.#headerSize = headerSize;
    writer.#size = headerSize;
    return writer;
  }

  /** Starts the next file, reusing the memory of the tables. */
  reset(tracks: readonly TrackParameters[], meta: SegmentMeta): void {
    const summaries = tracks.map(summaryOf);
    const { pace = 1, ...known } = meta;
    const durations = { wallDurationMs: pace * 1000, mediaDurationMs: 1000 };
    const open: RecordedMeta = { ...known, ...durations, lostPackets: 0, tracks: summaries };
    this.#begin(tracks.map(trackHeader), open);
    const movie = fragmentedMovie(this.#headers, meta.wallStartMs, userData(open));
    this.#headerBytes = ownCopy(concat([fragmentedFileType(), PLACEHOLDER, movie]));
    this.#headerSize = this.#headerBytes.length;
    this.#size = this.#headerSize;
  }

  #begin(headers: readonly TrackHeader[], meta: RecordedMeta): void {
    this.#headers = headers;
    this.setsInEntry = true;
    this.#meta = meta;
    this.#fragmentCount = 0;
    this.#tables.video.clear();
    this.#tables.audio.clear();
  }

  /** Takes over newer metadata: that of a final `moov` which a crash left without effect. */
  describe(meta: RecordedMeta): void {
    this.#meta = meta;
  }

  /** The size of the file once everything returned so far, and the samples, are written. */
  get size(): number {
    return this.#size;
  }

  get fragmentCount(): number {
    return this.#fragmentCount;
  }

  /** Samples of both tracks so far. */
  get sampleCount(): number {
    return this.#tables.video.sampleCount + this.#tables.audio.sampleCount;
  }

  /** Duration of what is shown so far, in milliseconds: from the first decodable picture to the end of the last. */
  get mediaDurationMs(): number {
    const { video, audio } = this.#tables;
    if (video.sampleCount > 0) return (video.presentationEndTicks - video.presentationStartTicks) / TICKS_PER_MS;
    const timescale = this.#headers.find((header) => header.kind === 'audio')?.timescale ?? 1;
    return (audio.mediaDuration / timescale) * 1000;
  }

  /** The start of the file. */
  header(): Buffer {
    return this.#headerBytes;
  }

  /**
   * Returns the head of the next fragment. The caller writes it, then all samples of the first track, then those of the second.
   * `sampleChecksum` is the `SampleChecksum` of all these samples in that order; without it, recovery does not trust the
   * fragment.
   */
  append(tracks: readonly FragmentTrack[], sampleChecksum?: number): Buffer {
    const bytes = buildFragment(this.#fragmentCount + 1, tracks, sampleChecksum);
    this.adopt(tracks, this.#size + bytes.length);
    return bytes;
  }

  /** Whether these runs can follow: their tracks are known and their times increase. */
  accepts(tracks: readonly FragmentTrack[]): boolean {
    return tracks.every((track) => this.#tableOf(track.trackId)?.accepts(track.baseDecodeTime) ?? false);
  }

  /** Registers a fragment in the file whose samples start at `payloadOffset`. */
  adopt(tracks: readonly FragmentTrack[], payloadOffset: number): void {
    let offset = payloadOffset;
    for (const track of tracks) {
      if (track.samples.length === 0) continue;
      const table = this.#tableOf(track.trackId);
      assert(table, 'fragment with a track that the file does not have');
      offset = table.append(track, offset);
    }
    const at = this.#fragmentCount * 2;
    if (at === this.#fragments.length) {
      const larger = new Float64Array(at * 2);
      larger.set(this.#fragments);
      this.#fragments = larger;
    }
    this.#fragments[at] = payloadOffset;
    this.#fragments[at + 1] = offset;
    this.#fragmentCount++;
    this.#size = offset;
  }

  #payloadOf(fragment: number): number {
    return this.#fragments[fragment * 2] as number;
  }

  #endOf(fragment: number): number {
    return this.#fragments[fragment * 2 + 1] as number;
  }

  #tableOf(trackId: number): SampleTable | undefined {
    if (!this.#headers.some((header) => header.trackId === trackId)) return undefined;
    if (trackId === VIDEO_TRACK_ID) return this.#tables.video;
    return trackId === AUDIO_TRACK_ID ? this.#tables.audio : undefined;
  }

  /** Audio without video is in the place of the video. */
  #placeOf({ trackId }: TrackHeader): SampleTable {
    return trackId === VIDEO_TRACK_ID ? this.#tables.video : this.#tables.audio;
  }

  /** Call when parameter sets changed in band: the display size of the track is the largest one. */
  change(video: VideoParameters): void {
    this.setsInEntry = false;
    const shown = shownSize(video);
    this.#headers = this.#headers.map((header) =>
      header.kind === 'video'
        ? { ...header, width: Math.max(header.width, shown.width), height: Math.max(header.height, shown.height) }
        : header,
    );
  }

  get isEmpty(): boolean {
    return this.#fragmentCount === 0;
  }

  /** After a failed write, removes fragments that end beyond `fileSize`; returns the size to truncate the file to. */
  rollback(fileSize: number): number {
    while (this.#fragmentCount > 0 && this.#endOf(this.#fragmentCount - 1) > fileSize) {
      this.#fragmentCount--;
    }
    this.#size = this.#fragmentCount === 0 ? this.#headerSize : this.#endOf(this.#fragmentCount - 1);
    this.#tables.video.cutAt(this.#size);
    this.#tables.audio.cutAt(this.#size);
    return this.#size;
  }

  /** Returns the bytes that complete the file as it is on disk. The writer stays valid until `reset`. */
  finish(closing: SegmentClosing = {}): SegmentEnd {
    const meta = this.#closedMeta(closing);
    const tail = completeMovie(this.#contents(), meta.wallStartMs, userData(meta));
    const offset = fragmentedFileType().length;
    const bytes = concat([u32(1), fourCc('mdat'), u64(this.#size - offset)]); // size 1: the 64-bit size follows
    return { tail, patch: { offset, bytes }, meta };
  }

  /** The same samples as a file that starts with its `moov`, which can be played while it is downloaded. */
  progressive(closing: SegmentClosing = {}): ProgressiveFile {
    const meta = this.#closedMeta(closing);
    const fileType = progressiveFileType();
    const ranges: { offset: number; size: number }[] = [];
    let payload = 0;
    for (let i = 0; i < this.#fragmentCount; i++) {
      const offset = this.#payloadOf(i);
      const size = this.#endOf(i) - offset;
      if (size > 0) ranges.push({ offset, size });
      payload += size;
    }
    const mdat = concat([u32(1), fourCc('mdat'), u64(16 + payload)]);
    const movie = (shift: number): Buffer =>
      completeMovie(
        this.#contents((table) => this.#moved(table, shift)),
        meta.wallStartMs,
        userData(meta),
      );
    // The offsets depend on the size of `moov`, which depends on whether the offsets need 64 bits: repeat until both agree.
    let shift = 0;
    let moov = movie(shift);
    while (shift !== fileType.length + moov.length + mdat.length) {
      shift = fileType.length + moov.length + mdat.length;
      moov = movie(shift);
    }
    return { header: concat([fileType, moov, mdat]), ranges, meta };
  }

  /** The chunk offsets when the samples are contiguous from `shift` on. */
  #moved(table: SampleTable, shift: number): Float64Array {
    const offsets = new Float64Array(table.chunkCount);
    let fragment = 0;
    let before = shift;
    for (let i = 0; i < offsets.length; i++) {
      const offset = table.chunkOffsets[i] as number;
      // An empty chunk may start where its fragment ends.
      while (offset > this.#endOf(fragment)) {
        before += this.#endOf(fragment) - this.#payloadOf(fragment);
        fragment++;
      }
      offsets[i] = before + offset - this.#payloadOf(fragment);
    }
    return offsets;
  }

  #closedMeta(closing: SegmentClosing): RecordedMeta {
    const mediaDurationMs = this.mediaDurationMs;
    const known = this.#meta;
    const used = new Set(this.#shownTracks().map(({ header }) => header.kind));
    return {
      ...known,
      ...closing,
      mediaDurationMs,
      wallDurationMs: closing.wallDurationMs ?? mediaDurationMs * paceOf(known),
      tracks: known.tracks.filter((track) => used.has(track.kind)),
      ...(this.setsInEntry && { setsInEntry: true }),
    };
  }

  #contents(chunkOffsets?: (table: SampleTable) => Float64Array): TrackContents[] {
    return this.#shownTracks().map(({ header, table, edits }) => ({
      header,
      mediaDuration: table.mediaDuration,
      edits,
      sampleTables: sampleTableBoxes(table, chunkOffsets?.(table)),
    }));
  }

  /** The tracks that have something to show. */
  #shownTracks(): { header: TrackHeader; table: SampleTable; edits: readonly Edit[] }[] {
    return this.#headers
      .map((header) => ({ header, table: this.#placeOf(header), edits: this.#edits(header) }))
      .filter(({ edits }) => edits.length > 0);
  }

  /**
   * The movie starts with the first decodable picture. A track that starts later gets a leading empty edit; one that starts
   * earlier is skipped to there. At most one edit has media, because Chromium plays only the last one.
   */
  #edits(header: TrackHeader): Edit[] {
    const table = this.#placeOf(header);
    if (table.sampleCount === 0) return [];
    const movieStart = this.#tables.video.presentationStartTicks; // MOVIE_TIMESCALE is the video's
    if (table === this.#tables.video) {
      const mediaTime = Math.max(0, movieStart - table.startTicks);
      return [{ duration: table.presentationEndTicks - movieStart, mediaTime }];
    }
    const perTick = MOVIE_TIMESCALE / header.timescale;
    const late = Math.round(table.startTicks * perTick) - movieStart;
    if (late > 0) {
      const duration = Math.round(table.mediaDuration * perTick);
      return [
        { duration: late, mediaTime: -1 },
        { duration, mediaTime: 0 },
      ];
    }
    const mediaTime = Math.max(0, Math.round(movieStart / perTick) - table.startTicks);
    if (mediaTime >= table.mediaDuration) return [];
    return [{ duration: Math.round((table.mediaDuration - mediaTime) * perTick), mediaTime }];
  }
}

/** A 64-bit `mdat` header will be put here when the file is completed. */
const PLACEHOLDER = concat([u32(16), fourCc('free'), zeros(8)]);
export const PLACEHOLDER_BYTES = PLACEHOLDER.length;

/** Makes a completed file, without the `moov` at its end, one that grows again. */
export const REOPENING: SegmentEnd['patch'] = { offset: fragmentedFileType().length, bytes: PLACEHOLDER };

const summaryOf = (track: TrackParameters): TrackSummary => ({
  kind: track.kind,
  codecString: track.codecString,
  width: track.kind === 'video' ? track.width : 0,
  height: track.kind === 'video' ? track.height : 0,
  sampleRate: track.kind === 'audio' ? track.sampleRate : 0,
  channels: track.kind === 'audio' ? track.channels : 0,
});
