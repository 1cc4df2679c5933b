// Decides where each file of one camera begins and ends. It takes samples and returns what has to be done; the archive does it and
// reports which files have failed.
//
// A segment begins at a key frame and ends exactly where the next begins. One video sample is held back until its
// successor shows its duration. Audio waits until the video has reached its time, so that every audio frame is in the
// file in which it begins, whichever of the two arrives first.

import type { Clock } from '../../../base/clock.ts';
import type { EndReason, Run } from '../../contract/sink.ts';
import { Mp4Error } from '../../mp4/error.ts';
import type { Seam, SegmentMeta } from '../../mp4/meta.ts';
import { TICKS_PER_MS, VIDEO_TIMESCALE, type Sample, type TrackParameters } from '../../mp4/sample.ts';
import type { RecordFormat } from '../catalogue/segment.ts';
import { dayStartMs, fileNameOf } from '../disk/names.ts';
import { ClosingSegments } from './closing-segments.ts';
import type { CameraHistory } from './history.ts';
import { OpenSegment } from './open-segment.ts';
import type { SegmentAction, SegmenterDropCause } from './segment-action.ts';
import type { SegmentPlan, TablePool } from './segment-plan.ts';
import { WallMap } from './wall-map.ts';
import type { WriteBudget } from './write-budget.ts';

/** Chunk offsets of 32 bits end at 4 GiB; from here on the next key frame begins a new file. */
const ROTATE_BYTES = 3 * 1024 ** 3;
/** A file this large, or twice as long as wanted, ends although no key frame comes. */
const MAX_BYTES = 3.5 * 1024 ** 3;
const MAX_EXTRA_MS = 120_000;
/** No sample waits longer than this for its successor. */
const MAX_PENDING_MS = 1_000;
const MAX_WAITING_AUDIO = 256;
/** No run of the same connection follows these. */
const LAST: ReadonlySet<EndReason> = new Set(['stopped', 'camera-lost', 'no-key-frame']);
/** A file that ends further ahead than this was written by another clock. */
const MAX_AHEAD_MS = 1_000;
const NOTHING: readonly SegmentAction[] = [];

/** How a camera is recorded. */
export interface RecordSettings {
  readonly format: RecordFormat;
  readonly segmentDurationMs: number;
}

interface SegmenterOptions {
  readonly cameraId: string;
  /** The camera's display name. */
  readonly name: string;
  readonly record: RecordSettings;
  readonly clock: Clock;
  /** The segmenter counts the segments and notes where the last one ends. */
  readonly history: Pick<CameraHistory, 'nextSequence' | 'wallEndMs'>;
  /** For the fragments of all files of the camera. */
  readonly budget: WriteBudget;
  readonly tables: TablePool;
  /** Undefined outside of a cluster. */
  readonly epoch?: () => number | undefined;
  /** The samples come from the memory of the camera. */
  readonly edge?: { readonly seam: Seam } | undefined;
}

/** No file receives the samples. */
interface Dropping {
  readonly kind: 'dropping';
  /** The camera sends no key frame; the disk is not the reason. */
  readonly isKeyFrameMissing: boolean;
  /** Run time of the first picture that was dropped. */
  sinceDts: number | undefined;
  wasAsked: boolean;
}

/** What belongs to one run; the next run has its own. */
interface RunState {
  run: Run;
  place: OpenSegment | Dropping;
  /** The segments before, while audio that belongs to them may still arrive. */
  readonly closing: ClosingSegments;
  /** Begins with the run's first file. */
  wall: WallMap | undefined;
  hasFile: boolean;
  readonly waitingAudio: Sample[];
  lastVideoMs: number;
}

const dropping = (isKeyFrameMissing = false): Dropping => ({
  kind: 'dropping',
  isKeyFrameMissing,
  sinceDts: undefined,
  wasAsked: false,
});

const openIn = ({ place }: RunState): OpenSegment | undefined => (place.kind === 'writing' ? place : undefined);

/** A plan, or why no file can hold the tracks. */
interface PlannedSegment {
  readonly plan?: SegmentPlan;
  readonly error?: Mp4Error;
}

/** Profile and constraints, which decide what a decoder has to do (RFC 6381 §3.3, ISO/IEC 14496-15 annex E). */
const withoutLevel = ({ codecString }: TrackParameters): string =>
  codecString.replace(/(?<=^avc[13]\.[0-9a-f]{4})[0-9a-f]{2}$|(?<=^h[ev][cv]1\..*\.)[LH]\d+/i, '');

export class Segmenter {
  readonly #options: SegmenterOptions;
  #record: RecordSettings;
  #state: RunState | undefined;
  /** What has to be done and was not returned yet; open segments add to it. */
  readonly #actions: SegmentAction[] = [];
  /** Number of the last file; files beside those of the live stream may have later ones. */
  #lastSequence = -1;
  /** Wall milliseconds per media millisecond, lately. */
  #pace = 1;
  #notBeforeMs = -Infinity;

  constructor(options: SegmenterOptions) {
    this.#options = options;
    this.#record = options.record;
  }

  /** A run is under way. */
  get active(): boolean {
    return this.#state !== undefined;
  }

  /** Valid from the next file on. A file that is already longer than that ends at its next key frame. */
  configure(record: RecordSettings): void {
    this.#record = record;
  }

  /** No file begins before this monotonic time. */
  pause(untilMs: number): void {
    this.#notBeforeMs = untilMs;
  }

  begin(run: Run): readonly SegmentAction[] {
    const actions = this.end('stopped');
    this.#state = {
      run,
      place: dropping(),
      closing: new ClosingSegments(),
      wall: undefined,
      hasFile: false,
      waitingAudio: [],
      lastVideoMs: 0,
    };
    return actions;
  }

  change(run: Run): void {
    const state = this.#state;
    if (!state) return;
    const before = state.run;
    state.run = run;
    const segment = openIn(state);
    if (!segment) return;
    segment.audioChanged = run.audio !== before.audio;
    const { lead } = before;
    const next = run.lead;
    const isSamePicture =
      next.kind === 'video' &&
      lead.kind === 'video' &&
      next.codec === lead.codec &&
      withoutLevel(next) === withoutLevel(lead) &&
      next.width === lead.width &&
      next.height === lead.height;
    if (segment.audioChanged || !isSamePicture) segment.endsAtKeyFrame = true;
    // Cameras that send another picture parameter set or level with each key frame would cut files there; in band it does no harm.
    else segment.change(next);
  }

  /** Takes a sample. `mayOpen`: the archive allows new files now. */
  push(sample: Sample, mayOpen: boolean): readonly SegmentAction[] {
    const state = this.#state;
    if (!state) return NOTHING;
    if (sample.kind === 'video') this.#video(state, sample, mayOpen);
    else this.#audio(state, sample);
    return this.#take();
  }

  end(reason: EndReason): readonly SegmentAction[] {
    const state = this.#state;
    if (!state) return NOTHING;
    const nowMs = this.#now();
    this.#drainAudio(state, Infinity, nowMs);
    let segment = openIn(state);
    if (segment?.held) this.#addHeld(state, segment, Math.max(1, segment.held.usualDuration), nowMs);
    segment = openIn(state);
    if (segment) this.#closeCurrent(state, segment, undefined, nowMs, !LAST.has(reason));
    state.closing.closeAll(undefined, nowMs);
    this.#state = undefined;
    return this.#take();
  }

  /** Does what depends only on the time; call it a few times a second. */
  tick(): readonly SegmentAction[] {
    const state = this.#state;
    if (!state) return NOTHING;
    const nowMs = this.#now();
    state.closing.expire(nowMs);
    if (nowMs - state.lastVideoMs >= MAX_PENDING_MS) this.#drainAudio(state, Infinity, nowMs);
    const segment = openIn(state);
    if (segment && !segment.flushOlderThan(MAX_PENDING_MS, nowMs)) this.#stopSlow(state, segment, nowMs);
    return this.#take();
  }

  /**
   * The disk has stopped a file, which has pictures up to `writtenEndMs` (wall time; undefined: none). The archive counts the
   * pictures that waited in its queue; these actions count those that the segmenter still had for it.
   */
  fileFailed(plan: SegmentPlan, writtenEndMs: number | undefined): readonly SegmentAction[] {
    const state = this.#state;
    const current = state && openIn(state);
    const segment = current?.plan === plan ? current : state?.closing.remove(plan);
    if (!state || !segment) return NOTHING;
    const { history } = this.#options;
    // Before the first picture of this file, the last one ended where it did.
    const isNewest = plan.meta.sequence === this.#lastSequence;
    if (isNewest) history.wallEndMs = writtenEndMs ?? history.wallEndMs;
    if (segment === current) state.place = dropping();
    this.#drop('last-fault', segment.discard());
    return this.#take();
  }

  /**
   * The archive gives up all open files, and pushes again what the camera sent since a key frame. The last file ends there, at
   * `wallEndMs`.
   */
  abandon(wallEndMs: number): void {
    const state = this.#state;
    if (state) {
      openIn(state)?.discard();
      state.closing.discard();
      for (const { data } of state.waitingAudio) data.slab.release();
    }
    this.#state = undefined;
    this.#notBeforeMs = -Infinity;
    this.#options.history.wallEndMs = wallEndMs;
  }

  #take(): readonly SegmentAction[] {
    return this.#actions.length === 0 ? NOTHING : this.#actions.splice(0);
  }

  #now(): number {
    return this.#options.clock.monotonicMs();
  }

  #drop(cause: SegmenterDropCause, videoFrames: number): void {
    if (videoFrames > 0) this.#actions.push({ kind: 'drop', cause, videoFrames });
  }

  #video(state: RunState, sample: Sample, mayOpen: boolean): void {
    const nowMs = this.#now();
    state.lastVideoMs = nowMs;
    sample.data.slab.retain();
    this.#drainAudio(state, sample.dts, nowMs);
    state.wall?.note(sample, this.#options.clock.wallMs());
    let segment = openIn(state);
    if (segment?.held) this.#addHeld(state, segment, Math.max(1, sample.dts - segment.held.dts), nowMs);
    segment = openIn(state);
    if (segment) this.#closeIfDue(state, segment, sample, nowMs);
    if (state.place.kind === 'dropping' && sample.sync && this.#mayBegin(mayOpen, nowMs)) this.#start(state, sample);
    state.closing.expire(nowMs, sample.dts);
    if (state.place.kind === 'writing') {
      state.place.held = sample;
      return;
    }
    sample.data.slab.release();
    this.#drop(state.place.isKeyFrameMissing ? 'no-key-frame' : 'last-fault', 1);
    this.#askForKeyFrame(state.place, sample, mayOpen, nowMs);
  }

  #closeIfDue(state: RunState, segment: OpenSegment, next: Sample, nowMs: number): void {
    if (next.sync) {
      if (this.#endsBefore(segment, next)) this.#closeCurrent(state, segment, next, nowMs, true);
    } else if (this.#isTooLong(segment, next)) {
      this.#closeCurrent(state, segment, next, nowMs, false);
      state.place = dropping(true);
    }
  }

  #audio(state: RunState, sample: Sample): void {
    if (!state.run.audio) return;
    const nowMs = this.#now();
    sample.data.slab.retain();
    state.waitingAudio.push(sample);
    const segment = openIn(state);
    if (segment?.held) this.#drainAudio(state, segment.held.dts, nowMs);
    else if (!segment) this.#drainAudio(state, Infinity, nowMs);
    // Audio alone continues: the file gets it up to the end of the video that will follow.
    if (state.waitingAudio.length > MAX_WAITING_AUDIO) this.#drainAudio(state, Infinity, nowMs);
  }

  /** Assigns the audio that begins before a video decoding time. */
  #drainAudio(state: RunState, beforeVideoDts: number, nowMs: number): void {
    const waiting = state.waitingAudio;
    if (waiting.length === 0) return;
    const rate = state.run.audio?.sampleRate ?? VIDEO_TIMESCALE;
    const before = (beforeVideoDts * rate) / VIDEO_TIMESCALE;
    let count = 0;
    while (count < waiting.length && (waiting[count] as Sample).dts < before) {
      this.#assignAudio(state, waiting[count] as Sample, nowMs);
      count++;
    }
    if (count === waiting.length) waiting.length = 0;
    else if (count > 0) waiting.splice(0, count);
  }

  #assignAudio(state: RunState, sample: Sample, nowMs: number): void {
    const segment = openIn(state);
    if (!segment || sample.dts < segment.startAudioDts) {
      state.closing.addAudio(sample, nowMs);
      return;
    }
    state.closing.closeAll(sample.dts, nowMs);
    segment.addAudio(sample, nowMs);
  }

  #addHeld(state: RunState, segment: OpenSegment, duration: number, nowMs: number): void {
    if (!segment.addHeld(duration, nowMs)) this.#stopSlow(state, segment, nowMs);
  }

  #isTooLong(segment: OpenSegment, next: Sample): boolean {
    const isLong = next.dts - segment.startDts > maxTicks(this.#record.segmentDurationMs);
    return isLong || segment.sizeBytes >= MAX_BYTES;
  }

  #endsBefore(segment: OpenSegment, keyFrame: Sample): boolean {
    const { wall } = segment;
    return (
      segment.endsAtKeyFrame ||
      wall.isBentAt(keyFrame) ||
      keyFrame.dts - segment.startDts >= this.#record.segmentDurationMs * TICKS_PER_MS ||
      segment.sizeBytes >= ROTATE_BYTES ||
      dayStartMs(wall.at(keyFrame)) > dayStartMs(wall.wallMs)
    );
  }

  #mayBegin(mayOpen: boolean, nowMs: number): boolean {
    if (!mayOpen) this.#actions.push({ kind: 'refused' });
    return mayOpen && nowMs >= this.#notBeforeMs && this.#options.budget.hasSpace();
  }

  #start(state: RunState, first: Sample): void {
    const { budget, clock, history, cameraId, edge } = this.#options;
    const epoch = this.#options.epoch?.();
    const { run } = state;
    const wall = (state.wall ??= new WallMap(first, clock.wallMs(), this.#earliestMs()));
    const wallStartMs = wall.advance(first);
    this.#pace = wall.pace ?? this.#pace;
    const meta: SegmentMeta = {
      cameraId,
      runId: run.runId,
      sequence: history.nextSequence,
      wallStartMs,
      clock: state.hasFile ? 'settled' : 'settling',
      gapBeforeMs: Math.max(0, wallStartMs - (history.wallEndMs ?? wallStartMs)),
      pace: this.#pace,
      ...(epoch !== undefined && { epoch }),
      ...(edge && { edge: { fromMs: wallStartMs, seam: edge.seam } }),
    };
    const { audio } = run;
    let planned = this.#plan(audio ? [run.lead, audio] : [run.lead], meta);
    const audioFault = audio && planned.error;
    // Bad audio never stops video; if the video is at fault, this fails as well.
    if (audioFault) planned = this.#plan([run.lead], meta);
    const { plan, error } = planned;
    if (error) this.#actions.push({ kind: 'unsupported', error });
    if (!plan) return;
    this.#lastSequence = history.nextSequence++;
    state.hasFile = true;
    const audioRate = audio && !audioFault ? audio.sampleRate : 0;
    const actions = this.#actions;
    actions.push({ kind: 'open', plan, first, audioFault });
    state.place = new OpenSegment({ plan, audioRate, startDts: first.dts, wall, budget, actions });
  }

  #plan(tracks: readonly TrackParameters[], meta: SegmentMeta): PlannedSegment {
    const { cameraId, tables } = this.#options;
    const name = { name: fileNameOf(this.#options.name), cameraId, startMs: Math.floor(meta.wallStartMs) };
    try {
      return { plan: { format: this.#record.format, name, meta, tables: tables.take(tracks, meta) } };
    } catch (error) {
      if (error instanceof Mp4Error) return { error };
      throw error;
    }
  }

  /** No file begins before the last one ends, unless the clock has been set back since. */
  #earliestMs(): number {
    const { clock, history } = this.#options;
    const { wallEndMs = -Infinity } = history;
    return wallEndMs - clock.wallMs() <= MAX_AHEAD_MS ? wallEndMs : -Infinity;
  }

  /** Ends the current segment after its last picture; `next` is the sample at which it ends, if there is one. */
  #closeCurrent(state: RunState, segment: OpenSegment, next: Sample | undefined, nowMs: number, goesOn: boolean): void {
    state.place = dropping();
    const { wall, last } = segment;
    const startMs = wall.wallMs;
    const endMs = last ? (next ? wall.advance(next) : wall.advance(last.sample, last.duration)) : startMs;
    this.#ended(endMs, goesOn);
    const endDts = next?.dts ?? (last ? last.sample.dts + last.duration : segment.startDts);
    state.closing.add(segment, endDts, endMs - startMs, nowMs);
    const audioFollows = next !== undefined && state.run.audio !== undefined && !segment.audioChanged;
    if (!audioFollows) state.closing.closeAll(undefined, nowMs);
    // What waits for audio must not also wait to be written: a crash meanwhile would cost two seconds.
    else segment.flush();
  }

  /** The queue is full: the file ends after what it took, and recording continues at a key frame when there is space. */
  #stopSlow(state: RunState, segment: OpenSegment, nowMs: number): void {
    state.place = dropping();
    state.closing.closeAll(undefined, nowMs);
    const { wall, lastFlushed } = segment;
    const startMs = wall.wallMs;
    const endMs = lastFlushed ? wall.advance(lastFlushed.sample, lastFlushed.duration) : startMs;
    this.#ended(endMs, false);
    segment.close(endMs - startMs, true);
  }

  #ended(wallEndMs: number, goesOn: boolean): void {
    this.#options.history.wallEndMs = wallEndMs;
    this.#actions.push({ kind: 'ended', goesOn });
  }

  /** Pictures are dropped because a key frame is missing. If it is long overdue, it is requested, once. */
  #askForKeyFrame(place: Dropping, sample: Sample, mayOpen: boolean, nowMs: number): void {
    place.sinceDts ??= sample.dts;
    if (place.wasAsked) return;
    const isOverdue = sample.dts - place.sinceDts >= maxTicks(this.#record.segmentDurationMs);
    // While the disk is at fault, a key frame would be of no use.
    if (!place.isKeyFrameMissing && !(isOverdue && this.#mayBegin(mayOpen, nowMs))) return;
    place.wasAsked = true;
    this.#actions.push({ kind: 'askKeyFrame' });
  }
}

const maxTicks = (segmentDurationMs: number): number =>
  Math.max(2 * segmentDurationMs, segmentDurationMs + MAX_EXTRA_MS) * TICKS_PER_MS;
