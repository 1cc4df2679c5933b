// One camera's gaps as they happen: what camera and archive say of themselves in, a few times a second; records for the
// journal, silence and seconds by cause out.

import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { SampleSink } from '../../camera/sink.ts';
import type { CameraStatus } from '../../camera/status.ts';
import type { Interval } from '../catalogue/interval.ts';
import type { CameraArchiveStatus } from '../segments/camera-archive.ts';
import { CameraLedger, MIN_GAP_MS, type GapReport } from './camera-ledger.ts';
import { cameraCause, diskCause, isHalted, type GapCause, type HaltCause, type LedgerState } from './cause.ts';
import { DegradedMinute, type Degraded } from './degraded.ts';
import { GapTeller, type GapObserver } from './gap-teller.ts';
import type { LedgerRecord } from './record.ts';
import { RunBreaks } from './run-breaks.ts';
import { Silence } from './silence.ts';

/** A camera that is to be recorded, at one moment. */
export interface Observation {
  readonly camera: Pick<CameraStatus, 'state' | 'reason' | 'counters'>;
  readonly archive: Pick<CameraArchiveStatus, 'state' | 'reason' | 'framesWritten' | 'framesDropped'>;
  /** Times of which pictures are in files that are not closed yet. */
  readonly written: readonly Interval[];
}

/** Since when the process before was not seen any more, and why that was. */
export interface Downtime {
  readonly cause: 'process-down' | 'node-down';
  /** Undefined: as far as the journal goes. */
  readonly aliveMs: number | undefined;
}

export interface CameraGapsDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Receives each record once it counts. */
  readonly journal: (record: LedgerRecord) => void;
  /** Is told of silence, and of gaps once they are certain. */
  readonly observer?: GapObserver | undefined;
}

type StateRecord = Extract<LedgerRecord, { kind: 'state' }>;

/** Pictures arrive and none is written for so long: the disk holds them up, though it has not failed. */
const STALLED_MS = 5_000;
/** No hole is noticed later than this. */
const EXPLAINED_MS = 60_000;
/** A camera with a picture every few seconds is no slow disk. */
const STALLED_FRAMES = 10;

export class CameraGaps {
  #ledger = new CameraLedger();
  readonly #deps: CameraGapsDeps;
  readonly #silence: Silence;
  readonly #teller: GapTeller | undefined;
  readonly #breaks = new RunBreaks({
    missed: (fromMs, toMs, cause) =>
      this.#note({ kind: 'missed', fromMs: Math.round(fromMs), toMs: Math.round(toMs), cause }),
    picture: (fromMs, toMs, lost) => {
      this.#lostPictures += lost;
      this.#noteDegraded(this.#minute.picture(fromMs, toMs, lost));
    },
  });
  /** As of the last observation. */
  #written: readonly Interval[] = [];
  readonly #minute = new DegradedMinute();
  #lostPictures = 0;
  readonly #seconds = new Map<GapCause, number>();
  #settledMs: number | undefined;
  /** Since when nobody recorded the camera that is wanted next. */
  #vacantSinceMs: number | undefined;
  /** The last sign of life of the process before, where that was to record the camera. */
  #downSinceMs: number | undefined;
  #begun = false;
  /** Observations count: the camera is to be recorded. */
  #observed = false;
  #framesWritten = 0;
  #framesArrived = 0;
  #arrivedAtMs = 0;
  /** As of the last picture that arrived. */
  #packetsLost = 0;
  /** As of the last picture written. */
  #last = { atMs: -Infinity, framesArrived: 0, framesWithoutKey: 0 };

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

  /** Takes the camera's samples beside archive and live. */
  get sink(): SampleSink {
    return this.#breaks;
  }

  /** Somebody has said what is wanted of it. */
  get isWanted(): boolean {
    return this.#begun;
  }

  /** What it is in: one of the causes, while nothing is written. */
  get state(): LedgerState {
    return this.#ledger.state;
  }

  get ledger(): CameraLedger {
    return this.#ledger;
  }

  /** Pictures that are missing within footage of this process. */
  get lostPictures(): number {
    return this.#lostPictures;
  }

  /**
   * Takes over what earlier processes have written. Where that could be read only when this one had begun, as on a disk
   * that is mounted late, what it knows by now follows, and the journal is to be written anew.
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
   * The node that recorded the camera was lost, and this one is about to go on in its place: what is missing since
   * `sinceMs` belongs to this account. Call it before the camera is wanted.
   */
  takeOver(sinceMs: number): void {
    if (this.#ledger.state === 'absent') this.#vacantSinceMs = sinceMs;
  }

  /**
   * The camera is in the account of another node since `sinceMs`, which this one learns only now; undefined: since the
   * last sign of life of the process before.
   */
  giveUp(sinceMs: number | undefined): void {
    const nowMs = this.#nowMs();
    const atMs = Math.floor(Math.min(nowMs, sinceMs ?? this.#downSinceMs ?? nowMs));
    if (this.#ledger.state !== 'absent') {
      // What was missing by then may be explained only by what is no longer in this account.
      const last = this.#ledger.report(atMs - EXPLAINED_MS, atMs, nowMs).gaps.at(-1);
      if (last?.toMs === atMs) this.#note({ kind: 'missed', fromMs: last.fromMs, toMs: atMs, cause: last.cause });
      this.#note({ kind: 'state', state: 'absent', atMs });
    }
    this.#observed = false;
    this.#silence.want(false, this.#deps.clock.monotonicMs());
  }

  /**
   * From now on the camera is to be recorded, or is `stopped` by a user, `unlicensed`, or `absent`: not this node's any
   * more. The first call of a process also accounts for the time in which none ran.
   */
  want(want: 'recording' | 'absent' | HaltCause, down: Downtime): void {
    const nowMs = this.#nowMs();
    const first = !this.#begun;
    this.#begun = true;
    const observed = want === 'recording';
    if (observed) this.#fillVacancy(nowMs);
    if (first || observed !== this.#observed || !observed)
      this.#enter(observed ? 'starting' : want, nowMs, first ? down : undefined);
    this.#observed = observed;
    this.#silence.want(observed, this.#deps.clock.monotonicMs());
  }

  observe({ camera, archive, written }: Observation): void {
    const nowMs = this.#nowMs();
    this.#written = written;
    for (const { fromMs, toMs } of written) this.#ledger.wrote(Math.floor(fromMs), Math.round(toMs), nowMs);
    if (!this.#observed) return;
    const monotonicMs = this.#deps.clock.monotonicMs();
    this.#count(camera, archive, monotonicMs);
    if (camera.state !== 'recording') this.#breaks.interrupted(nowMs);
    const state = this.#stateOf(camera, archive, monotonicMs);
    if (state !== this.#ledger.state) this.#enter(state, nowMs);
    this.#silence.tick(monotonicMs, state);
  }

  /** A segment was closed: it counts as recorded for good. It begins at the millisecond of its name. */
  recorded(fromMs: number, toMs: number): void {
    if (!(toMs > fromMs)) return;
    // A file keeps a straight piece of the wall clock's map: where the camera's clock failed, its end is not that of its last
    // picture when that arrived.
    const toldMs = this.#written.find((file) => Math.abs(file.fromMs - fromMs) < 1)?.toMs ?? toMs;
    if (toldMs - toMs >= MIN_GAP_MS) {
      this.#ledger.unwrote(Math.round(toMs), Math.round(toldMs));
      this.#note({ kind: 'missed', fromMs: Math.round(toMs), toMs: Math.round(toldMs), cause: 'clock-step' });
    }
    this.#note({ kind: 'recorded', fromMs: Math.floor(fromMs), toMs: Math.round(toMs) });
  }

  /** The wall clock was set: it showed `untilMs` when it began to show `atMs`. */
  clockSet(untilMs: number, atMs: number): void {
    const { state } = this.ledger;
    if (state === 'absent') return;
    const because = isHalted(state) ? state : 'clock-step';
    this.#note({ kind: 'state', state, atMs, untilMs, because });
  }

  /** Wall time of the last picture written, or since when there should have been one, when that is too long ago. */
  silentSinceMs(): number | undefined {
    const { clock } = this.#deps;
    const forMs = this.#silence.silentForMs(clock.monotonicMs());
    return forMs === undefined ? undefined : clock.wallMs() - forMs;
  }

  report(fromMs: number, toMs: number, files?: Iterable<Interval>): GapReport {
    const report = this.#ledger.report(fromMs, toMs, this.#nowMs(), files);
    const { current } = this.#minute;
    const isAsked = current !== undefined && current.toMs > fromMs && current.fromMs < toMs;
    return isAsked ? { ...report, degraded: [...report.degraded, current] } : report;
  }

  /** Tells of gaps that have begun or ended since the last call; about once a second. */
  tellGaps(): void {
    this.#teller?.look(this.#nowMs(), (fromMs, toMs) => this.#ledger.report(fromMs, toMs, toMs));
  }

  /** Writes down what is only counted so far; for the end of the process. */
  settle(): void {
    this.#noteDegraded(this.#minute.take());
  }

  /** Seconds without footage by cause, as far as it is certain, since this process accounts for the camera. */
  seconds(): ReadonlyMap<GapCause, number> {
    if (this.#settledMs === undefined) return this.#seconds;
    const nowMs = this.#nowMs();
    // The clock was set back: what it has shown before is counted.
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

  /** The time in which nobody recorded, up to the time at which this node begins to. */
  #fillVacancy(nowMs: number): void {
    const vacantSinceMs = this.#vacantSinceMs;
    this.#vacantSinceMs = undefined;
    if (vacantSinceMs === undefined || this.#ledger.state !== 'absent') return;
    // Before it was absent here, it was this node's.
    const fromMs = Math.floor(Math.max(vacantSinceMs, this.#ledger.sinceMs));
    if (fromMs >= nowMs) return;
    this.#note({ kind: 'missed', fromMs, toMs: nowMs, cause: 'moved' });
    this.#settledMs = Math.min(fromMs, this.#settledMs ?? fromMs);
    this.#teller?.beginAt(fromMs);
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

  #count({ counters, state }: Observation['camera'], archive: Observation['archive'], atMs: number): void {
    // A recording that has just begun counts from 0.
    const wrote = archive.framesWritten !== this.#framesWritten && archive.framesWritten > 0;
    this.#framesWritten = archive.framesWritten;
    if (counters.leadFrames !== this.#framesArrived) {
      this.#arrivedAtMs = atMs;
      this.#packetsLost = counters.packetsLost;
    }
    this.#framesArrived = counters.leadFrames;
    // The last picture of a connection is written when that ends: it is as old as it is.
    if (wrote) this.#silence.wrote(this.#arrivedAtMs);
    if (!wrote && state === 'recording') return;
    const framesWithoutKey = archive.framesDropped.get('no-key-frame') ?? 0;
    this.#last = { atMs, framesArrived: counters.leadFrames, framesWithoutKey };
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

/** A process begins: the time since the last one, if the camera was to be recorded then, is that in which none ran. */
function afterDowntime(record: StateRecord, before: CameraLedger, down: Downtime): StateRecord {
  const { state, lastKnownMs } = before;
  if (state === 'absent' || isHalted(state)) return record;
  // Footage and journal may be younger than the last sign of life.
  const untilMs = Math.max(down.aliveMs ?? -Infinity, lastKnownMs);
  return { ...record, untilMs, because: down.cause };
}
