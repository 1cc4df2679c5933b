// One camera's samples in, segments out: decides where each file begins and ends.
//
// A segment begins at a key frame and ends exactly where the next begins. One video sample is held back until its
// successor tells its duration; audio waits until the video has come as far, so that every audio frame lies in the
// file in which it begins, whichever of the two arrives first.

import type { Clock } from '../../../base/clock.ts';
import type { EndReason, Run, SampleSink } from '../../camera/sink.ts';
import type { SegmentClosing, SegmentMeta } from '../../mp4/meta.ts';
import { TICKS_PER_MS, VIDEO_TIMESCALE, type Sample, type TrackParameters } from '../../mp4/sample.ts';
import type { DiskFault } from '../disk/faults.ts';
import { dayStartMs } from '../disk/names.ts';
import { ClosingSegments, type ClosingSegment } from './closing-segments.ts';
import { OpenSegment } from './open-segment.ts';
import type { SegmentFile } from './segment-file.ts';
import { WallMap } from './wall-map.ts';

/** Chunk offsets of 32 bits end at 4 GiB; from here on the next key frame begins a new file. */
const ROTATE_BYTES = 3 * 1024 ** 3;
/** A file this large, or twice as long as wanted, ends although no key frame comes. */
const MAX_BYTES = 3.5 * 1024 ** 3;
const MAX_EXTRA_MS = 120_000;
/** Nothing that arrived waits longer than this for its successor. */
const MAX_PENDING_MS = 1_000;
const MAX_WAITING_AUDIO = 256;
/** No run of the same connection follows these. */
const LAST: ReadonlySet<EndReason> = new Set(['stopped', 'camera-lost', 'no-key-frame']);
/** A file that ends further ahead than this was written by another clock. */
const MAX_AHEAD_MS = 1_000;

/** Why pictures were not written. */
export type DropCause = DiskFault['code'] | 'no-key-frame' | 'parameters';

/** What a segmenter asks of the disk. */
export interface SegmentTarget {
  /** Whether a new file may be tried now. */
  ready(nowMs: number): boolean;
  /** Undefined when no file can hold these tracks. `failed` is called when the disk stops the file. */
  open(
    tracks: readonly TrackParameters[],
    meta: Omit<SegmentMeta, 'cameraId' | 'sequence' | 'gapBeforeMs'>,
    failed: () => void,
  ): SegmentFile | undefined;
  /** Wall time at which the camera's last file ends, as far as known. */
  readonly lastEndMs: number | undefined;
  /**
   * The video in a file reaches up to here; audio that belongs to it may still come. `goesOn`: the camera is there, and the
   * next file begins with this picture, or with the next run.
   */
  ended(wallEndMs: number, goesOn: boolean): void;
  finish(file: SegmentFile, closing: SegmentClosing): void;
  /** There is no room for what a file should take: it ends early. */
  slow(file: SegmentFile): void;
  dropped(cause: DropCause, videoFrames: number): void;
}

export interface SegmenterOptions {
  readonly clock: Clock;
  /** May change at any time; counts for the segment that is being written as well. */
  readonly segmentDurationMs: () => number;
  readonly target: SegmentTarget;
  /** Why pictures are dropped while `target.ready` is false. */
  readonly dropCause: () => DropCause;
  /** The camera must send a key frame, which a reconnect brings about. Called last in `sample`. */
  readonly needKeyFrame: () => void;
}

export class Segmenter implements SampleSink {
  readonly #o: SegmenterOptions;
  #run: Run | undefined;
  #wall: WallMap | undefined;
  /** Wall milliseconds a media millisecond, lately. */
  #pace = 1;
  #current: OpenSegment | undefined;
  /** The segments before, while audio that belongs to them may still come. */
  readonly #closing = new ClosingSegments((closing) => this.#finish(closing));
  #held: Sample | undefined;
  #last: Sample | undefined;
  #lastDuration = 0;
  #waitingAudio: Sample[] = [];
  #lastVideoMs = 0;
  #rotateNext = false;
  #audioChanged = false;
  #firstOfRun = true;
  /** Run time since which pictures are dropped, and whether a key frame was asked for because of it. */
  #droppingSince: number | undefined;
  #asked = false;
  /** No file is begun before a key frame because the camera sends none (and not because of the disk). */
  #keyFrameMissing = false;

  constructor(options: SegmenterOptions) {
    this.#o = options;
  }

  get #maxTicks(): number {
    const segmentDurationMs = this.#o.segmentDurationMs();
    return Math.max(2 * segmentDurationMs, segmentDurationMs + MAX_EXTRA_MS) * TICKS_PER_MS;
  }

  /** A run is under way. */
  get active(): boolean {
    return this.#run !== undefined;
  }

  begin(run: Run): void {
    if (this.#run) this.end('stopped');
    this.#run = run;
    this.#firstOfRun = true;
  }

  change(run: Run): void {
    const before = this.#run;
    this.#run = run;
    if (!before || !this.#current) return;
    this.#audioChanged = run.audio !== before.audio;
    const { lead } = before;
    const next = run.lead;
    const isSamePicture =
      next.kind === 'video' &&
      lead.kind === 'video' &&
      next.codec === lead.codec &&
      next.codecString === lead.codecString &&
      next.width === lead.width &&
      next.height === lead.height;
    if (this.#audioChanged || !isSamePicture) this.#rotateNext = true;
    // Cameras that send another picture parameter set now and then would cut files at each; in band it does no harm.
    else this.#current.change(next);
  }

  sample(sample: Sample): void {
    if (!this.#run) return;
    if (sample.kind === 'video') this.#video(sample, this.#run);
    else this.#audio(sample, this.#run);
  }

  end(reason: EndReason): void {
    const nowMs = this.#now();
    this.#drainAudio(Infinity, nowMs);
    const held = this.#held;
    if (held && this.#current) {
      this.#held = undefined;
      this.#addVideo(this.#current, held, Math.max(1, held.usualDuration), nowMs);
    }
    this.#closeCurrent(undefined, nowMs, !LAST.has(reason));
    this.#closing.finishAll(undefined, nowMs);
    this.#held?.data.slab.release();
    this.#held = undefined;
    this.#run = undefined;
    this.#wall = undefined;
    this.#rotateNext = false;
    this.#audioChanged = false;
    this.#droppingSince = undefined;
    this.#asked = false;
    this.#keyFrameMissing = false;
  }

  /** What time alone brings about; call it a few times a second. */
  tick(): void {
    const nowMs = this.#now();
    this.#closing.expire(nowMs);
    if (nowMs - this.#lastVideoMs >= MAX_PENDING_MS) this.#drainAudio(Infinity, nowMs);
    if (this.#current && !this.#current.flushOlderThan(MAX_PENDING_MS, nowMs)) this.#stopSlow(nowMs);
  }

  #now(): number {
    return this.#o.clock.monotonicMs();
  }

  #video(sample: Sample, run: Run): void {
    const nowMs = this.#now();
    this.#lastVideoMs = nowMs;
    sample.data.slab.retain();
    this.#drainAudio(sample.dts, nowMs);
    this.#wall?.note(sample, this.#o.clock.wallMs());
    const held = this.#held;
    this.#held = undefined;
    if (held && this.#current) this.#addVideo(this.#current, held, Math.max(1, sample.dts - held.dts), nowMs);
    const tooLong = this.#current !== undefined && !sample.sync && this.#isTooLong(sample, this.#current);
    if (tooLong || (sample.sync && this.#mustRotate(sample))) this.#closeCurrent(sample, nowMs, !tooLong);
    if (tooLong) this.#keyFrameMissing = true;
    if (!this.#current && sample.sync && this.#o.target.ready(nowMs)) this.#start(sample, run);
    this.#closing.expire(nowMs, sample.dts);
    if (this.#current) {
      this.#held = sample;
      return;
    }
    sample.data.slab.release();
    this.#o.target.dropped(this.#keyFrameMissing ? 'no-key-frame' : this.#o.dropCause(), 1);
    this.#askForKeyFrame(sample, nowMs);
  }

  #audio(sample: Sample, run: Run): void {
    if (!run.audio) return;
    const nowMs = this.#now();
    sample.data.slab.retain();
    this.#waitingAudio.push(sample);
    const reachedDts = this.#held?.dts;
    if (reachedDts !== undefined) this.#drainAudio(reachedDts, nowMs);
    else if (!this.#current) this.#drainAudio(Infinity, nowMs);
    // Audio alone goes on: the file has it up to the end of the video that will come.
    if (this.#waitingAudio.length > MAX_WAITING_AUDIO) this.#drainAudio(Infinity, nowMs);
  }

  /** Assigns the audio that begins before a video decoding time. */
  #drainAudio(beforeVideoDts: number, nowMs: number): void {
    const waiting = this.#waitingAudio;
    if (waiting.length === 0) return;
    const rate = this.#run?.audio?.sampleRate ?? VIDEO_TIMESCALE;
    const before = (beforeVideoDts * rate) / VIDEO_TIMESCALE;
    let count = 0;
    while (count < waiting.length && (waiting[count] as Sample).dts < before) {
      this.#assignAudio(waiting[count] as Sample, nowMs);
      count++;
    }
    if (count > 0) waiting.splice(0, count);
  }

  #assignAudio(sample: Sample, nowMs: number): void {
    const current = this.#current;
    if (!current || sample.dts < current.startAudioDts) {
      this.#closing.addAudio(sample, nowMs);
      return;
    }
    this.#closing.finishAll(sample.dts, nowMs);
    current.addAudio(sample, nowMs);
  }

  #addVideo(segment: OpenSegment, sample: Sample, duration: number, nowMs: number): void {
    const wallEndMs = this.#wall?.at(sample, duration) ?? sample.wallMs;
    if (!segment.addVideo(sample, duration, wallEndMs, nowMs)) this.#stopSlow(nowMs);
    this.#last = sample;
    this.#lastDuration = duration;
  }

  #isTooLong(sample: Sample, current: OpenSegment): boolean {
    return sample.dts - current.startDts > this.#maxTicks || current.sizeBytes >= MAX_BYTES;
  }

  #mustRotate(sample: Sample): boolean {
    const current = this.#current;
    if (!current || !this.#wall) return false;
    return (
      this.#rotateNext ||
      this.#wall.isBentAt(sample) ||
      sample.dts - current.startDts >= this.#o.segmentDurationMs() * TICKS_PER_MS ||
      current.sizeBytes >= ROTATE_BYTES ||
      dayStartMs(this.#wall.at(sample)) > dayStartMs(this.#wall.wallMs)
    );
  }

  #start(first: Sample, run: Run): void {
    const wall = (this.#wall ??= new WallMap(first, this.#o.clock.wallMs(), this.#earliestMs()));
    const wallStartMs = wall.advance(first);
    const tracks = run.audio ? [run.lead, run.audio] : [run.lead];
    this.#pace = wall.pace ?? this.#pace;
    const clock = this.#firstOfRun ? 'settling' : 'settled';
    const meta = { runId: run.runId, wallStartMs, clock, pace: this.#pace } as const;
    const file = this.#o.target.open(tracks, meta, () => this.#failed(file));
    this.#rotateNext = false;
    this.#audioChanged = false;
    if (!file) return;
    this.#firstOfRun = false;
    this.#last = undefined;
    this.#current = new OpenSegment(file, first.dts);
    this.#droppingSince = undefined;
    this.#asked = false;
    this.#keyFrameMissing = false;
  }

  /** No file begins before the last one ends, unless the clock has been set back since. */
  #earliestMs(): number {
    const { clock, target } = this.#o;
    const { lastEndMs = -Infinity } = target;
    return lastEndMs - clock.wallMs() <= MAX_AHEAD_MS ? lastEndMs : -Infinity;
  }

  /** Ends the current segment behind its last picture; `next` is the sample at which it ends, when there is one. */
  #closeCurrent(next: Sample | undefined, nowMs: number, goesOn: boolean): void {
    const segment = this.#current;
    const last = this.#last;
    const duration = this.#lastDuration;
    this.#current = undefined;
    if (!segment || !this.#wall) return;
    const startMs = this.#wall.wallMs;
    const endMs = last ? (next ? this.#wall.advance(next) : this.#wall.advance(last, duration)) : startMs;
    this.#o.target.ended(endMs, goesOn);
    const endDts = next?.dts ?? (last ? last.dts + duration : segment.startDts);
    this.#closing.add({ segment, endDts, wallDurationMs: endMs - startMs }, nowMs);
    const audioFollows = next !== undefined && this.#run?.audio !== undefined && !this.#audioChanged;
    if (!audioFollows) this.#closing.finishAll(undefined, nowMs);
    // What waits for audio must not also wait to be written: a crash meanwhile would cost two seconds.
    else segment.flush();
  }

  #finish({ segment, wallDurationMs }: ClosingSegment): void {
    const { target } = this.#o;
    if (!segment.flush()) target.slow(segment.file);
    target.dropped('disk-slow', segment.discard());
    target.finish(segment.file, { wallDurationMs, lostPackets: segment.lostPackets });
  }

  /** The queue is full: the file ends behind what it took, and recording goes on at a key frame when there is room. */
  #stopSlow(nowMs: number): void {
    const segment = this.#current;
    if (!segment || !this.#wall) return;
    this.#current = undefined;
    this.#closing.finishAll(undefined, nowMs);
    this.#o.target.slow(segment.file);
    this.#o.target.dropped('disk-slow', segment.discard() + this.#releaseHeld());
    const last = segment.lastFlushed;
    const startMs = this.#wall.wallMs;
    const endMs = last ? this.#wall.advance(last.sample, last.duration) : startMs;
    const wallDurationMs = endMs - startMs;
    this.#o.target.ended(endMs, false);
    this.#o.target.finish(segment.file, { wallDurationMs, lostPackets: segment.lostPackets });
  }

  /** The disk has stopped a file; what waited in its queue is counted there. */
  #failed(file: SegmentFile | undefined): void {
    const { target, dropCause } = this.#o;
    if (this.#current?.file === file) {
      const segment = this.#current;
      this.#current = undefined;
      target.dropped(dropCause(), (segment?.discard() ?? 0) + this.#releaseHeld());
    } else {
      target.dropped(dropCause(), this.#closing.remove(file)?.discard() ?? 0);
    }
  }

  #releaseHeld(): number {
    const held = this.#held;
    this.#held = undefined;
    held?.data.slab.release();
    return held ? 1 : 0;
  }

  /** Pictures are dropped for want of a key frame: one that is long overdue is asked for, once. */
  #askForKeyFrame(sample: Sample, nowMs: number): void {
    this.#droppingSince ??= sample.dts;
    if (this.#asked) return;
    // While the disk is at fault, a key frame would be of no use.
    const overdue = sample.dts - this.#droppingSince >= this.#maxTicks && this.#o.target.ready(nowMs);
    if (!this.#keyFrameMissing && !overdue) return;
    this.#asked = true;
    this.#o.needKeyFrame();
  }
}
