// Fills the gaps of cameras from their memories, as soon as a camera is recorded again: the newest gap first, one replay a camera, and
// a bounded number of them at a time. The remaining work is computed from the gap ledger and the files, so another process, or the
// next node of the camera, continues where this one stopped.

import type { Registry } from 'prom-client';
import { Backoff } from '../../../base/backoff.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Interval } from '../../../base/interval.ts';
import type { Log } from '../../../base/log.ts';
import { DAY_MS, MINUTE_MS } from '../../../base/units.ts';
import type { Archive } from '../../archive/archive.ts';
import type { Gap } from '../../contract/gap-report.ts';
import { MIN_GAP_MS } from '../../mp4/join.ts';
import { isHalted } from '../../contract/gap-cause.ts';
import { isTriedAgain, type NotFilledReason } from '../../contract/gap-fill.ts';
import { IntervalSet } from '../../contract/intervals.ts';
import type { GapLedger } from '../../archive/gaps/ledger.ts';
import type { EdgeOrigin } from '../../archive/segments/camera-archive.ts';
import type { RecordSettings } from '../../archive/segments/segmenter.ts';
import type { VideoParameters } from '../../codec/access-unit.ts';
import { EdgeError, type EdgeMemory } from '../memory.ts';
import { fillGap, type Hole } from './fill-gap.ts';
import { EdgeMetrics } from './metrics.ts';

/** A camera with a memory, as it is now. */
interface EdgeCamera {
  readonly id: string;
  readonly name: string;
  readonly record: RecordSettings;
  /** Pictures arrive and are written. */
  readonly isRecording: boolean;
  readonly memory: EdgeMemory;
  /** Bits per second. */
  readonly maxBitrate: number;
  /** The video of the live stream; undefined while it is not known. */
  readonly video: VideoParameters | undefined;
  /** Its clock minus ours by the sender reports of the live stream, in milliseconds; undefined if there are none. */
  readonly clockAheadMs: number | undefined;
}

interface EdgeRecoveryDeps {
  readonly archive: Pick<Archive, 'list' | 'picturesAt' | 'extend' | 'fillerFor'>;
  readonly gaps: Pick<GapLedger, 'report' | 'notFilled'>;
  /** Cameras with a memory that this node records, or should. */
  readonly cameras: () => Iterable<EdgeCamera>;
  /** Retention removes what is older; undefined: nothing by age. */
  readonly keptMs: (cameraId: string) => number | undefined;
  /** Start of the oldest footage of a camera on this node. */
  readonly oldestMs: (cameraId: string) => number | undefined;
  /** The most that a node which was lost had received and does not have on its disk. */
  readonly unwrittenMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry?: Registry;
}

/** The most replays at a time, of all cameras of the node. */
const MAX_REPLAYS = 2;
/** A camera that replays slowly, or has a long gap, gives way to one that waits; later it continues from there. */
const TURN_MS = 10 * MINUTE_MS;
/** A camera that has just been connected may be lost again, and the first pictures of its file must be on the disk. */
const SETTLE_MS = 5_000;
const LOOK_EVERY_MS = 5_000;
/** A gap ends with a file of at least this length. */
const BEHIND_MS = 2_000;
/** A gap that could not be filled is tried again after a quarter of its age, within these limits. */
const RETRY_SHARE = 1 / 4;
const RETRY_MS = { least: 10_000, most: 30 * MINUTE_MS };
const UNREACHABLE = { firstMs: 5_000, maxMs: 5 * MINUTE_MS };
const LONGEST_MS = 400 * DAY_MS;
/** A file and a gap that are no further apart than this are adjacent. */
const BESIDE_MS = 150;
/** Longer than a group of pictures. */
const SHORTLY_MS = MINUTE_MS;

interface Work {
  readonly sinceMs: number;
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

interface CameraState {
  readonly backoff: Backoff;
  sinceMs: number | undefined;
  notBeforeMs: number;
  endedMs: number;
  work: Work | undefined;
}

export class EdgeRecovery {
  readonly #deps: EdgeRecoveryDeps;
  readonly #states = new Map<string, CameraState>();
  #isClosed = false;
  readonly #metrics: EdgeMetrics;

  constructor(deps: EdgeRecoveryDeps) {
    this.#deps = deps;
    this.#metrics = new EdgeMetrics(deps.registry, () => this.#running);
  }

  get #running(): number {
    return [...this.#states.values()].filter(({ work }) => work !== undefined).length;
  }

  /** To be called a few times a second. */
  tick(): void {
    if (this.#isClosed) return;
    const nowMs = this.#deps.clock.monotonicMs();
    const there = new Set<string>();
    const waiting: { readonly camera: EdgeCamera; readonly state: CameraState }[] = [];
    for (const camera of this.#deps.cameras()) {
      there.add(camera.id);
      const state = this.#stateOf(camera.id);
      state.sinceMs = camera.isRecording ? (state.sinceMs ?? nowMs) : undefined;
      if (state.sinceMs === undefined || nowMs - state.sinceMs < SETTLE_MS) continue;
      if (!state.work && nowMs >= state.notBeforeMs) waiting.push({ camera, state });
    }
    // Those that have waited longest first.
    for (const { camera, state } of waiting.sort((a, b) => a.state.endedMs - b.state.endedMs)) {
      const isFull = this.#running >= MAX_REPLAYS;
      const long = isFull ? this.#longWork(nowMs) : undefined;
      if (isFull && !long) break;
      state.notBeforeMs = nowMs + LOOK_EVERY_MS;
      const gap = this.#newestGap(camera.id);
      if (gap && long) {
        long.abort.abort();
        state.notBeforeMs = nowMs;
      } else if (gap) this.#start(camera, state, gap);
    }
    for (const [id, { work }] of this.#states) {
      if (there.has(id)) continue;
      work?.abort.abort();
      if (!work) this.#states.delete(id);
    }
  }

  /** The work that has had its turn. */
  #longWork(nowMs: number): Work | undefined {
    const works = [...this.#states.values()].flatMap(({ work }) => work ?? []);
    return works.find(({ sinceMs, abort }) => nowMs - sinceMs >= TURN_MS && !abort.signal.aborted);
  }

  /** Ends all replays; resolves when their files are complete. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#stop([...this.#states.keys()]);
  }

  /** Resolves when nothing is written any more for these cameras. */
  async stop(cameraIds: readonly string[]): Promise<void> {
    await this.#stop(cameraIds);
  }

  async #stop(cameraIds: readonly string[]): Promise<void> {
    const working = cameraIds.flatMap((id) => this.#states.get(id)?.work ?? []);
    for (const { abort } of working) abort.abort();
    await Promise.all(working.map(({ done }) => done));
  }

  #stateOf(cameraId: string): CameraState {
    const known = this.#states.get(cameraId);
    if (known) return known;
    const state = {
      backoff: new Backoff(UNREACHABLE),
      sinceMs: undefined,
      notBeforeMs: -Infinity,
      endedMs: -Infinity,
      work: undefined,
    };
    this.#states.set(cameraId, state);
    return state;
  }

  /** The newest time without footage that may be in the memory, up to the footage on both sides: of gaps with several causes all of it. */
  #newestGap(cameraId: string): WantedHole | undefined {
    const nowMs = this.#deps.clock.wallMs();
    const { gaps } = this.#deps.gaps.report(cameraId, this.#fromMs(cameraId, nowMs), nowMs, []);
    return holesOf(gaps).findLast((hole) => isDue(hole, nowMs));
  }

  /** Nothing is fetched that retention would remove at once, or has removed. */
  #fromMs(cameraId: string, nowMs: number): number {
    const { keptMs, oldestMs, gaps } = this.#deps;
    const byAgeMs = nowMs - Math.min(keptMs(cameraId) ?? LONGEST_MS, LONGEST_MS);
    const oldest = oldestMs(cameraId) ?? nowMs;
    // If this node has no older footage, as after the loss of another node, the gap comes before all its footage.
    const hadOlder = gaps.report(cameraId, byAgeMs, oldest, []).recorded.length > 0;
    return hadOlder ? Math.max(byAgeMs, oldest) : byAgeMs;
  }

  #start(camera: EdgeCamera, state: CameraState, gap: WantedHole): void {
    const abort = new AbortController();
    const done = this.#fill(camera, state, gap, abort.signal).finally(() => {
      state.work = undefined;
      state.endedMs = this.#deps.clock.monotonicMs();
    });
    state.work = { sinceMs: this.#deps.clock.monotonicMs(), abort, done };
  }

  /** Never rejects. */
  async #fill(camera: EdgeCamera, state: CameraState, gap: WantedHole, signal: AbortSignal): Promise<void> {
    const { clock, log, gaps } = this.#deps;
    const startedMs = clock.monotonicMs();
    let reason: NotFilledReason | undefined;
    let tried: Interval = gap;
    try {
      const hole = await this.#holeOf(camera.id, gap);
      tried = hole ?? gap;
      if (hole) reason = await this.#fillHole(camera, hole, signal);
      state.backoff.reset();
    } catch (err) {
      if (signal.aborted) return;
      reason = err instanceof EdgeError ? reasonOf(err) : 'disk-failed';
      if (isTriedAgain(reason)) state.notBeforeMs = clock.monotonicMs() + state.backoff.next();
      log.info({ camera: camera.id, reason, err }, 'a gap could not be filled from the memory of the camera');
    }
    const rest = gaps.report(camera.id, tried.fromMs, tried.toMs, []).gaps;
    // Every remaining part gets a reason, so that it is not tried again at once.
    for (const { fromMs, toMs } of rest) {
      gaps.notFilled(camera.id, { fromMs, toMs, reason: reason ?? 'not-recorded' });
    }
    const restMs = rest.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
    this.#metrics.ended(rest.length === 0 ? 'filled' : (reason ?? 'not-recorded'));
    log.info(
      {
        camera: camera.id,
        from: new Date(tried.fromMs).toISOString(),
        seconds: (tried.toMs - tried.fromMs) / 1000,
        missing: restMs / 1000,
        reason,
        tookMs: Math.round(clock.monotonicMs() - startedMs),
      },
      rest.length === 0 ? 'a gap was filled from the memory of the camera' : 'a gap was not filled, or in part',
    );
    if (rest.length === 0 || !reason || !isTriedAgain(reason)) state.notBeforeMs = clock.monotonicMs();
  }

  async #fillHole(camera: EdgeCamera, hole: Hole, signal: AbortSignal): Promise<NotFilledReason | undefined> {
    const { archive, clock } = this.#deps;
    const { id: cameraId, name, record, memory, maxBitrate, video, clockAheadMs } = camera;
    const deps = {
      memory,
      clock,
      maxBitrate,
      like: video,
      clockAheadMs,
      picturesAt: archive.picturesAt.bind(archive),
      extend: archive.extend.bind(archive),
      fillerFor: (edge: EdgeOrigin, earliestMs: number | undefined) =>
        archive.fillerFor({ cameraId, name, ...record, edge }, earliestMs),
    };
    return fillGap(hole, deps, signal);
  }

  /** The part of a gap that no file covers, and the files beside it. Undefined: there is none. */
  async #holeOf(cameraId: string, gap: WantedHole): Promise<Hole | undefined> {
    const { segments } = await this.#deps.archive.list(cameraId, {
      fromMs: gap.fromMs - SHORTLY_MS,
      toMs: gap.toMs + BESIDE_MS,
    });
    // The end of such a file is known once it is completed, or repaired after a full disk left it open.
    const isIncomplete = segments.some(({ startMs, endMs }) => endMs === undefined && startMs < gap.toMs - BESIDE_MS);
    if (isIncomplete) throw new Error('a file beside the gap is not complete');
    const files = segments.map(({ path, startMs, endMs = Infinity }) => ({ path, fromMs: startMs, toMs: endMs }));
    const footage = new IntervalSet(MIN_GAP_MS - 1).with(files);
    const part = [...footage.holes(gap.fromMs, gap.toMs)].findLast(({ fromMs, toMs }) => toMs - fromMs >= MIN_GAP_MS);
    if (!part) return undefined;
    const before = files.findLast(({ toMs }) => Math.abs(toMs - part.fromMs) <= BESIDE_MS);
    const after = files.find(({ fromMs }) => Math.abs(fromMs - part.toMs) <= BESIDE_MS);
    const isOfLostNode = gap.gaps.some(({ cause, fromMs }) => cause === 'moved' && fromMs === part.fromMs);
    const last = files.findLast(({ toMs }) => toMs <= part.fromMs);
    const lostMs = isOfLostNode ? this.#deps.unwrittenMs : 0;
    const fromMs = before?.toMs ?? Math.max(part.fromMs - lostMs, last?.toMs ?? -Infinity);
    return {
      fromMs,
      toMs: after?.fromMs ?? part.toMs,
      before: before?.path,
      after: after?.path,
      earliestMs: before || (last && !isOfLostNode) ? fromMs : last?.toMs,
    };
  }
}

interface WantedHole extends Interval {
  readonly gaps: readonly Gap[];
}

/**
 * Gaps without footage between them, oldest first. They are filled together: where only the cause changes, neither part has pictures
 * that tell its place in the memory, and one that begins there would lack all up to its first key frame.
 */
function holesOf(gaps: readonly Gap[]): WantedHole[] {
  const holes: { fromMs: number; toMs: number; gaps: Gap[] }[] = [];
  for (const gap of gaps) {
    if (isHalted(gap.cause) || (gap.notFilled && !isTriedAgain(gap.notFilled.reason))) continue;
    const { fromMs, toMs } = gap;
    const last = holes.at(-1);
    if (last?.toMs !== fromMs) holes.push({ fromMs, toMs, gaps: [gap] });
    else {
      last.toMs = toMs;
      last.gaps.push(gap);
    }
  }
  return holes;
}

/** It has ended, and a part of it was not tried, or long ago. */
function isDue({ fromMs, toMs, gaps }: WantedHole, nowMs: number): boolean {
  if (toMs - fromMs < MIN_GAP_MS || nowMs - toMs < BEHIND_MS) return false;
  if (gaps.some(({ isOpen, isProvisional }) => isOpen || isProvisional)) return false;
  const { least, most } = RETRY_MS;
  return gaps.some(({ notFilled, toMs: endMs }) => {
    if (!notFilled) return true;
    const waitMs = Math.min(most, Math.max(least, (notFilled.atMs - endMs) * RETRY_SHARE));
    return nowMs - notFilled.atMs >= waitMs;
  });
}

const reasonOf = ({ code }: EdgeError): NotFilledReason => (code === 'nothing-recorded' ? 'not-recorded' : code);
