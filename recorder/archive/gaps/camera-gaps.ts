// Detects the gaps of one camera as they happen. It observes the state of camera and archive a few times a second, writes
// records to the journal, and reports silence and seconds by cause.

import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { SampleSink } from '../../contract/sink.ts';
import type { CameraCondition } from '../../contract/camera-status.ts';
import type { Interval } from '../../../base/interval.ts';
import type { Seam } from '../../mp4/meta.ts';
import type { CameraArchiveStatus } from '../../contract/archive-status.ts';
import { CameraLedger } from './camera-ledger.ts';
import type { GapReport } from '../../contract/gap-report.ts';
import { MIN_GAP_MS } from '../../mp4/join.ts';
import {
  cameraCause,
  diskCause,
  isHalted,
  type GapCause,
  type HaltCause,
  type LedgerState,
} from '../../contract/gap-cause.ts';
import { DegradedMinute, type Degraded } from '../../contract/degraded.ts';
import type { NotFilled } from '../../contract/gap-fill.ts';
import { GapTeller, type GapObserver } from './gap-teller.ts';
import type { LedgerRecord } from './record.ts';
import { RunBreaks } from './run-breaks.ts';
import { Silence } from './silence.ts';

/** The state at one moment of a camera that should be recorded. */
export interface Observation {
  readonly camera: CameraCondition;
  readonly archive: Pick<CameraArchiveStatus, 'state' | 'reason' | 'framesWritten' | 'framesDropped'>;
  /** Intervals of the pictures in files that are not closed yet. */
  readonly written: readonly Interval[];
}

/** When the previous process was last alive, and why it ended. */
export interface Downtime {
  readonly cause: 'process-down' | 'node-down';
  /** Undefined: unknown; the end of the journal counts. */
  readonly aliveMs: number | undefined;
}

interface CameraGapsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly journal: (record: LedgerRecord) => void;
  /** Is notified of silence, and of gaps once they are certain. */
  readonly observer?: GapObserver | undefined;
}

/** Why time is lost for all cameras at once. */
export type LostTimeCause = Extract<GapCause, 'clock-step' | 'machine-frozen'>;

const NOTHING_WRITTEN = { atMs: -Infinity, framesArrived: 0, framesWithoutKey: 0 };

type StateRecord = Extract<LedgerRecord, { kind: 'state' }>;

/** If pictures arrive but none is written for this time, the disk is too slow, even if it reports no error. */
const STALLED_MS = 5_000;
/** Pictures that were held in memory when this node took over are written within this time. */
const HELD_MS = 20_000;
/** Every hole is noticed within this time. */
const EXPLAINED_MS = 60_000;
const MAY_BE_DROPPED: ReadonlySet<LedgerState> = new Set<LedgerState>([
  'packets-lost',
  'no-key-frame',
  'not-decodable',
]);
/** A camera that sends a picture every few seconds does not mean that the disk is slow. */
const STALLED_FRAMES = 10;

export class CameraGaps {
  #ledger = new CameraLedger();
  readonly #deps: CameraGapsDeps;
  readonly #silence: Silence;
  readonly #teller: GapTeller | undefined;
  readonly #breaks = new RunBreaks({
    missed: (fromMs, toMs, cause) => this.#missed(Math.round(fromMs), Math.round(toMs), cause),
    picture: (fromMs, toMs, lost, isDecodable) => {
      this.#lostPictures += lost;
      this.#noteDegraded(this.#minute.picture(fromMs, toMs, lost, isDecodable));
    },
  });
  /** From the last observation. */
  #written: readonly Interval[] = [];
  readonly #minute = new DegradedMinute();
  #lostPictures = 0;
  readonly #seconds = new Map<GapCause, number>();
  readonly #filledSeconds = new Map<GapCause, number>();
  #settledMs: number | undefined;
  /** Since when no node recorded the camera, and this one held it; set by `takeOver`. */
  #vacant: { readonly sinceMs: number; readonly heldSinceMs: number } | undefined;
  /** Time of which pictures are held in memory that are being written: missing if they are not written by then. */
  #held: (Interval & { readonly untilMs: number }) | undefined;
  /** The last sign of life of the previous process, if that should have recorded the camera. */
  #downSinceMs: number | undefined;
  /** When this process last stood still. */
  #frozen: Interval | undefined;
  #begun = false;
  /** The camera should be recorded, so observations count. */
  #observed = false;
  #framesWritten = 0;
  #framesArrived = 0;
  #arrivedAtMs = 0;
  /** At the last picture that arrived. */
  #packetsLost = 0;
  /** Those that the kernel of this machine dropped: now, and at the observation before the last picture. */
  #dropped = 0;
  #droppedBefore = 0;
  /** At the last picture that was written. */
  #last = NOTHING_WRITTEN;

  constructor(deps: CameraGapsDeps) {
    this.#deps = deps;
    const { clock, observer } = deps;
    this.#teller = observer && new GapTeller(observer);
    this.#silence = new Silence(
      deps.log,
      observer && {
        silent: (forMs, cause) => observer.silent(clock.wallMs() - forMs, cause),
        heard: (forMs) => observer.heard(clock.wallMs() - forMs, clock.wallMs()),
      },
    );
  }

  /** Receives the samples of the camera, as archive and live view do. */
  get sink(): SampleSink {
    return this.#breaks;
  }

  get isWanted(): boolean {
    return this.#begun;
  }

  /** The current state: a cause while nothing is written. */
  get state(): LedgerState {
    return this.#ledger.state;
  }

  get ledger(): CameraLedger {
    return this.#ledger;
  }

  /** Number of pictures that are missing within the footage of this process. */
  get lostPictures(): number {
    return this.#lostPictures;
  }

  /**
   * Adds the records of earlier processes. If they could be read only later, such as from a disk that was mounted late, the
   * records of this process follow them, and the journal is written again.
   */
  load(records: Iterable<LedgerRecord>, down: Downtime): void {
    const since = this.#ledger;
    const all = new CameraLedger();
    for (const record of records) all.apply(record);
    let first = true;
    for (const record of since.records()) {
      all.apply(first && record.kind === 'state' ? afterDowntime(record, all, down) : record);
      first = false;
    }
    this.#ledger = all;
  }

  /**
   * The node that recorded the camera was lost, and this one takes over: the gap since `sinceMs` is recorded here. It ends at
   * `heldSinceMs`, since when this node has pictures in memory. To be called before `want`.
   */
  takeOver(sinceMs: number, heldSinceMs = Infinity): void {
    if (this.#ledger.state === 'absent') this.#vacant = { sinceMs, heldSinceMs };
  }

  /**
   * Another node records the gaps of the camera since `sinceMs`, as this node learns only now; undefined: since the last
   * sign of life of the previous process.
   */
  giveUp(sinceMs: number | undefined): void {
    const nowMs = this.#nowMs();
    const atMs = Math.floor(Math.min(nowMs, sinceMs ?? this.#downSinceMs ?? nowMs));
    if (this.#ledger.state !== 'absent') {
      // The cause of a gap before that may be in records that are dropped here.
      const last = this.#ledger.report(atMs - EXPLAINED_MS, atMs, nowMs).gaps.at(-1);
      if (last?.toMs === atMs) this.#note({ kind: 'missed', fromMs: last.fromMs, toMs: atMs, cause: last.cause });
      this.#note({ kind: 'state', state: 'absent', atMs });
    }
    this.#observed = false;
    this.#silence.want(false, this.#deps.clock.ranMs());
  }

  /**
   * Sets whether the camera should be recorded, or is `stopped` by a user, `unlicensed`, or `absent`: no longer on this
   * node. The first call also records the time since the previous process. `detail`: who stopped it, and why.
   */
  want(want: 'recording' | 'absent' | HaltCause, down: Downtime, detail = ''): void {
    const nowMs = this.#nowMs();
    const first = !this.#begun;
    this.#begun = true;
    const observed = want === 'recording';
    if (want === 'absent' && this.#ledger.state !== 'absent') this.#deps.observer?.removed();
    if (observed) this.#fillVacancy(nowMs);
    if (observed && !this.#observed) this.#last = NOTHING_WRITTEN;
    if (first || observed !== this.#observed || !observed)
      this.#enterAsked(observed ? 'starting' : want, nowMs, first ? down : undefined, detail);
    this.#observed = observed;
    this.#silence.want(observed, this.#deps.clock.ranMs());
  }

  observe({ camera, archive, written }: Observation): void {
    const nowMs = this.#nowMs();
    this.#written = written;
    for (const { fromMs, toMs } of written) this.#ledger.wrote(Math.floor(fromMs), Math.round(toMs), nowMs);
    if (!this.#observed) return;
    const ranMs = this.#deps.clock.ranMs();
    this.#settleHeld(ranMs);
    this.#count(camera, archive, ranMs);
    if (camera.state !== 'recording') this.#breaks.interrupted(nowMs);
    const state = this.#blamed(this.#stateOf(camera, archive, ranMs));
    if (state !== this.#ledger.state) this.#enter(state, nowMs);
    if (!camera.isQuiet) this.#silence.tick(ranMs, state);
  }

  /**
   * A segment was closed: its time counts as recorded permanently. It starts at the millisecond in its name. `cause`: why it may have less
   * than was written to it.
   */
  recorded(fromMs: number, toMs: number, cause: GapCause = 'clock-step'): void {
    if (!(toMs > fromMs)) return;
    // A file maps its time to wall time linearly. If the clock of the camera was wrong, the end of the file differs from
    // the arrival time of its last picture.
    const toldMs = this.#written.find((file) => Math.abs(file.fromMs - fromMs) < 1)?.toMs ?? toMs;
    if (toldMs - toMs >= MIN_GAP_MS) {
      this.#ledger.unwrote(Math.round(toMs), Math.round(toldMs));
      this.#note({ kind: 'missed', fromMs: Math.round(toMs), toMs: Math.round(toldMs), cause });
    }
    this.#note({ kind: 'recorded', fromMs: Math.floor(fromMs), toMs: Math.round(toMs) });
  }

  /** A complete file has this time from the memory of the camera: to be called before `recorded`. The gap keeps its cause. */
  filled(fromMs: number, toMs: number, seam: Seam): void {
    // Those seconds were missing until now.
    this.seconds();
    const atMs = this.#nowMs();
    for (const gap of this.#ledger.report(Math.floor(fromMs), Math.round(toMs), atMs).gaps) {
      const filled = { fromMs: gap.fromMs, toMs: gap.toMs, cause: gap.cause, atMs, seam };
      this.#note({ kind: 'filled', ...filled });
      const seconds = (gap.toMs - gap.fromMs) / 1000;
      this.#filledSeconds.set(gap.cause, (this.#filledSeconds.get(gap.cause) ?? 0) + seconds);
      this.#deps.observer?.filled(filled);
    }
  }

  /** Why an interval could not be filled from the memory of the camera. */
  notFilled({ fromMs, toMs, reason }: Omit<NotFilled, 'atMs'>): void {
    const times = { fromMs: Math.floor(fromMs), toMs: Math.round(toMs) };
    if (times.fromMs < times.toMs) this.#note({ kind: 'not-filled', ...times, reason, atMs: this.#nowMs() });
  }

  /** Seconds of gaps that this process has filled, by cause. */
  get filledSeconds(): ReadonlyMap<GapCause, number> {
    return this.#filledSeconds;
  }

  /** The wall clock was set from `untilMs` to `atMs`, or this process stood still in that time. */
  lostTime(cause: LostTimeCause, untilMs: number, atMs: number): void {
    const { state } = this.ledger;
    if (state === 'absent' || (cause === 'machine-frozen' && state !== 'recording')) return;
    const because = isHalted(state) ? state : cause;
    this.#note({ kind: 'state', state, atMs, untilMs, because });
    if (because === 'machine-frozen') this.#frozen = { fromMs: untilMs, toMs: atMs };
  }

  /** Pictures that are missing since this process stood still are not missing because of the camera. */
  #missed(fromMs: number, toMs: number, cause: GapCause): void {
    this.#note({ kind: 'missed', fromMs, toMs, cause: this.#blamed(cause) });
    const frozen = this.#frozen;
    if (!frozen || frozen.toMs <= fromMs || frozen.fromMs >= toMs) return;
    // The last picture before it may have waited, unread, for as long as nobody notices a standstill.
    const sinceMs = frozen.fromMs - fromMs <= STALLED_MS ? fromMs : frozen.fromMs;
    this.#note({ kind: 'missed', fromMs: sinceMs, toMs, cause: 'machine-frozen' });
  }

  /**
   * The wall time of the last written picture, or since when there should have been one, if that is too long ago; undefined
   * otherwise.
   */
  silentSinceMs(): number | undefined {
    const { clock } = this.#deps;
    const forMs = this.#silence.silentForMs(clock.ranMs());
    return forMs === undefined ? undefined : clock.wallMs() - forMs;
  }

  report(fromMs: number, toMs: number, files?: Iterable<Interval>): GapReport {
    const report = this.#ledger.report(fromMs, toMs, this.#nowMs(), files);
    const { current } = this.#minute;
    const isAsked = current !== undefined && current.toMs > fromMs && current.fromMs < toMs;
    return isAsked ? { ...report, degraded: [...report.degraded, current] } : report;
  }

  /** Notifies the observer of gaps that have begun or ended since the last call. To be called about once a second. */
  tellGaps(): void {
    if (this.#held) return;
    this.#teller?.look(this.#nowMs(), (fromMs, toMs) => this.#ledger.report(fromMs, toMs, toMs));
  }

  /** Records the counts that are not recorded yet, at the end of the process. */
  settle(): void {
    this.#noteDegraded(this.#minute.take());
  }

  /** Seconds of certain gaps by cause, since this process records the gaps of the camera. */
  seconds(): ReadonlyMap<GapCause, number> {
    if (this.#settledMs === undefined || this.#held) return this.#seconds;
    const nowMs = this.#nowMs();
    // The clock was set back: this time was counted already.
    if (nowMs <= this.#settledMs) return this.#seconds;
    const { gaps, knownUntilMs } = this.report(this.#settledMs, nowMs);
    let settledMs = knownUntilMs;
    for (const gap of gaps) {
      if (gap.isProvisional) {
        settledMs = gap.fromMs;
        break;
      }
      this.#seconds.set(gap.cause, (this.#seconds.get(gap.cause) ?? 0) + (gap.toMs - gap.fromMs) / 1000);
    }
    this.#settledMs = settledMs;
    return this.#seconds;
  }

  /** Records the time in which no node recorded the camera, until now. */
  #fillVacancy(nowMs: number): void {
    const vacant = this.#vacant;
    this.#vacant = undefined;
    if (vacant === undefined || this.#ledger.state !== 'absent') return;
    // While it was not absent here, this node recorded it.
    const fromMs = Math.floor(Math.max(vacant.sinceMs, this.#ledger.sinceMs));
    if (fromMs >= nowMs) return;
    const heldMs = Math.max(fromMs, Math.min(nowMs, Math.ceil(vacant.heldSinceMs)));
    if (fromMs < heldMs) this.#note({ kind: 'missed', fromMs, toMs: heldMs, cause: 'moved' });
    const untilMs = this.#deps.clock.ranMs() + HELD_MS;
    if (heldMs < nowMs) this.#held = { fromMs: heldMs, toMs: nowMs, untilMs };
    this.#settledMs = Math.min(fromMs, this.#settledMs ?? fromMs);
    this.#teller?.beginAt(fromMs);
  }

  /** What was held is written, or took too long: from now on this node accounts for that time as well. */
  #settleHeld(ranMs: number): void {
    const held = this.#held;
    if (!held) return;
    // The state of the first moments, `starting`, would count as the cause of a gap up to the next written picture.
    const { state, sinceMs } = this.#ledger;
    const isWritten = state === 'recording' && this.#written.some(({ toMs }) => toMs >= sinceMs);
    if (ranMs < held.untilMs && !isWritten) return;
    this.#held = undefined;
    this.#note({ kind: 'missed', fromMs: held.fromMs, toMs: held.toMs, cause: 'moved' });
  }

  #nowMs(): number {
    return Math.floor(this.#deps.clock.wallMs());
  }

  #note(record: LedgerRecord): void {
    this.#ledger.apply(record);
    this.#deps.journal(record);
  }

  #noteDegraded(stretch: Degraded | undefined): void {
    if (stretch) this.#note({ kind: 'degraded', ...stretch });
  }

  #enter(state: LedgerState, atMs: number, down?: Downtime): void {
    const entering: StateRecord = { kind: 'state', state, atMs };
    const record = down ? afterDowntime(entering, this.#ledger, down) : entering;
    this.#settledMs ??= Math.min(atMs, record.untilMs ?? atMs);
    this.#teller?.beginAt(this.#settledMs);
    this.#downSinceMs ??= record.untilMs;
    if (record !== entering || state !== this.#ledger.state) this.#note(record);
  }

  #enterAsked(state: LedgerState, atMs: number, down: Downtime | undefined, detail: string): void {
    const isNew = this.#ledger.state !== state || this.#ledger.lastStop !== detail;
    if (state === 'stopped' && isNew) this.#note({ kind: 'stop', atMs, detail });
    this.#enter(state, atMs, down);
  }

  #count({ counters, state }: Observation['camera'], archive: Observation['archive'], atMs: number): void {
    // The counter of a new recording starts from 0.
    const wrote = archive.framesWritten !== this.#framesWritten && archive.framesWritten > 0;
    this.#framesWritten = archive.framesWritten;
    if (counters.leadFrames !== this.#framesArrived) {
      this.#arrivedAtMs = atMs;
      this.#packetsLost = counters.packetsLost;
      this.#droppedBefore = this.#dropped;
    }
    this.#dropped = counters.packetsDropped;
    this.#framesArrived = counters.leadFrames;
    // The last picture of a connection is written when the connection ends: the time of its arrival counts.
    if (wrote) this.#silence.wrote(this.#arrivedAtMs);
    // A camera that was held in memory records from the first moment on, and its pictures arrived before.
    const isFirst = this.#last === NOTHING_WRITTEN;
    if (!wrote && state === 'recording' && !isFirst) return;
    const framesWithoutKey = archive.framesDropped.get('no-key-frame') ?? 0;
    this.#last = { atMs, framesArrived: counters.leadFrames, framesWithoutKey };
  }

  /** What is missing because of packets that the kernel dropped is not missing because of the camera or its network. */
  #blamed<S extends LedgerState>(state: S): S | 'machine-dropped' {
    return MAY_BE_DROPPED.has(state) && this.#dropped > this.#droppedBefore ? 'machine-dropped' : state;
  }

  #stateOf(camera: Observation['camera'], archive: Observation['archive'], nowMs: number): LedgerState {
    if (camera.state === 'stopped') return 'starting';
    if (camera.state !== 'recording') return camera.reason ? cameraCause(camera.reason.code) : 'starting';
    if (archive.state === 'failed') return archive.reason ? diskCause(archive.reason.code) : 'disk-error';
    if (this.#breaks.cause !== undefined) return this.#breaks.cause;
    const { atMs, framesArrived, framesWithoutKey } = this.#last;
    if (nowMs - atMs < STALLED_MS) return 'recording';
    if (camera.counters.leadFrames - framesArrived < STALLED_FRAMES)
      return camera.counters.packetsLost > this.#packetsLost ? 'packets-lost' : 'recording';
    return (archive.framesDropped.get('no-key-frame') ?? 0) > framesWithoutKey ? 'no-key-frame' : 'disk-slow';
  }
}

/**
 * The first state of a process. If the camera should have been recorded before, the time since the previous process is a
 * gap in which no process ran.
 */
function afterDowntime(record: StateRecord, before: CameraLedger, down: Downtime): StateRecord {
  const { state, lastKnownMs } = before;
  if (state === 'absent' || isHalted(state)) return record;
  // Footage and journal may be newer than the last sign of life.
  const untilMs = Math.max(down.aliveMs ?? -Infinity, lastKnownMs);
  return { ...record, untilMs, because: down.cause };
}
