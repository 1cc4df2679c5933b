// The gap ledger of a node: which time of each camera should have been recorded but was not, and why. It combines the
// accounts of the cameras with their journals under `.kube-nvr/gaps`, the sign of life of the process, and the files of the
// archive.

import type { CameraSilence, GapReport } from '../../contract/gap-report.ts';
import type { Registry } from 'prom-client';
import { threadCpuMs, type Clock } from '../../../base/clock.ts';
import { concurrently } from '../../../base/concurrently.ts';
import { errorCode } from '../../../base/error.ts';
import type { Log } from '../../../base/log.ts';
import { withoutTrailingSlash } from '../../../base/paths.ts';
import { DAY_MS } from '../../../base/units.ts';
import type { SampleSink } from '../../contract/sink.ts';
import type { Interval } from '../../../base/interval.ts';
import type { SegmentObserver } from '../catalogue/observer.ts';
import type { ClosedSegment } from '../catalogue/segment.ts';
import { nodeFileSystem, type FileSystem } from '../disk/file-system.ts';
import { isCameraId } from '../../../base/camera-id.ts';
import { AliveFile } from './alive.ts';
import { CameraGaps, type LostTimeCause, type Downtime, type Observation } from './camera-gaps.ts';
import type { NotFilled } from '../../contract/gap-fill.ts';
import { diskCause, type HaltCause } from '../../contract/gap-cause.ts';
import type { GapObserver } from './gap-teller.ts';
import { Journal } from './journal.ts';
import { registerGapMetrics } from './metrics.ts';
import type { LedgerRecord } from './record.ts';

interface GapLedgerOptions {
  /** The record path, absolute. */
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Identifies the boot of the machine: `readBootId`. */
  readonly bootId: string;
  readonly registry?: Registry;
  readonly fs?: FileSystem;
  /** Observers of the silence and the gaps of each camera. */
  readonly observerOf?: (cameraId: string) => GapObserver;
  /** Rejects when the record path is not on the disk of the archive. */
  readonly checkDisk?: () => Promise<void>;
}

interface Entry {
  readonly gaps: CameraGaps;
  readonly journal: Journal;
}

const DIRECTORY = '.kube-nvr/gaps';
const SUFFIX = '.jsonl';
const ALIVE_INTERVAL_MS = 5_000;
const TELL_INTERVAL_MS = 1_000;
/** If the wall clock deviates from the monotonic clock by this much at once, it was set. */
const CLOCK_STEP_MS = 1_000;
/** A shorter standstill is the turn of a busy event loop. */
const FROZEN_MS = 500;
/** Gaps are kept this long, whether or not there is still footage around them. */
const KEEP_MS = 400 * DAY_MS;
const CONCURRENT_READS = 16;

/** The clocks at one moment. */
interface Tick {
  readonly wallMs: number;
  readonly monotonicMs: number;
  readonly ranMs: number;
  /** Processor time. */
  readonly workedMs: number;
}

export class GapLedger implements SegmentObserver {
  readonly #options: GapLedgerOptions;
  readonly #fs: FileSystem;
  readonly #directory: string;
  readonly #entries = new Map<string, Entry>();
  readonly #aliveFile: AliveFile;
  #down: Downtime = { cause: 'process-down', aliveMs: undefined };
  /** The records of earlier processes were read; before that, nothing may be written. */
  #loaded = false;
  /** The cameras are known: this process records their gaps from now on. */
  #begun = false;
  #closing = false;
  #lastTick: Tick | undefined;
  #aliveAtMs = -Infinity;
  #toldAtMs = -Infinity;
  #beat: Promise<void> | undefined;
  #beatFails = false;

  constructor(options: GapLedgerOptions) {
    this.#options = options;
    this.#fs = options.fs ?? nodeFileSystem;
    this.#directory = `${withoutTrailingSlash(options.root)}/${DIRECTORY}`;
    this.#aliveFile = new AliveFile(this.#fs, `${this.#directory}/alive`);
    if (options.registry) registerGapMetrics(options.registry, () => this.#figures());
  }

  /**
   * Reads the records of earlier processes. To be called once, before the archive reports any segment. Never rejects: a
   * disk that is missing is read when it appears, and does not prevent recording.
   */
  async load(): Promise<void> {
    try {
      await this.#options.checkDisk?.();
      const before = await this.#aliveFile.read();
      const journals = await this.#readJournals();
      const { bootId } = this.#options;
      const sameBoot = !before || before.bootId === bootId || before.bootId === '' || bootId === '';
      this.#down = { cause: sameBoot ? 'process-down' : 'node-down', aliveMs: before?.aliveMs };
      this.#loaded = true;
      for (const [cameraId, records] of journals) {
        const { gaps, journal } = this.#entry(cameraId);
        gaps.load(records, this.#down);
        if (!this.#begun) continue;
        if (!gaps.isWanted) gaps.want('absent', this.#down);
        journal.replace();
      }
    } catch (err) {
      // Also for a new archive, which has no known disk yet.
      this.#options.log.debug({ path: this.#directory, err }, 'the gap ledger cannot be read yet');
    }
  }

  /**
   * Sets the cameras, and which of them should be recorded; the others are stopped by a user, unless there is another
   * cause. Gaps of cameras that are not in the list are no longer recorded. To be called before the change is carried out.
   */
  configure(
    cameras: Iterable<{
      readonly id: string;
      readonly enabled: boolean;
      readonly cause?: HaltCause | undefined;
      /** Who stopped it, and why. */
      readonly detail?: string | undefined;
    }>,
  ): void {
    const named = new Map(Array.from(cameras, (camera) => [camera.id, camera]));
    for (const [id, { enabled, cause = 'stopped', detail }] of named) {
      this.#entry(id).gaps.want(enabled ? 'recording' : cause, this.#down, detail);
    }
    for (const id of this.#entries.keys()) if (!named.has(id)) this.want(id, 'absent');
    if (this.#begun) return;
    this.#begun = true;
    this.#markTime();
    this.#signLife();
  }

  /**
   * The node that recorded a camera was lost, and this one takes over: the gap since `sinceMs` has the cause `moved` and is
   * recorded here. It ends at `heldSinceMs`, since when this node has pictures in memory. To be called before the camera is
   * configured.
   */
  takeOver(cameraId: string, sinceMs: number, heldSinceMs?: number): void {
    this.#entry(cameraId).gaps.takeOver(Math.max(sinceMs, this.#options.clock.wallMs() - KEEP_MS), heldSinceMs);
  }

  /**
   * Another node records the gaps of a camera since `sinceMs`; undefined: since this node was last alive before it started.
   * To be called before the camera is removed from the configuration.
   */
  giveUp(cameraId: string, sinceMs: number | undefined): void {
    this.#entry(cameraId).gaps.giveUp(sinceMs);
  }

  /** Like `configure`, for one camera. */
  want(cameraId: string, want: 'recording' | 'absent' | HaltCause): void {
    this.#entry(cameraId).gaps.want(want, this.#down);
  }

  /** Receives the samples of a camera, as archive and live view do. */
  sinkFor(cameraId: string): SampleSink {
    return this.#entry(cameraId).gaps.sink;
  }

  /** The current state of a camera that should be recorded; to be called a few times a second. */
  observe(cameraId: string, observation: Observation): void {
    if (!this.#closing) this.#entry(cameraId).gaps.observe(observation);
  }

  /** To be called a few times a second, after `observe` of all cameras. */
  tick(): void {
    if (!this.#begun || this.#closing) return;
    this.#lookAtClock();
    this.#tellGaps();
    if (this.#options.clock.monotonicMs() - this.#aliveAtMs >= ALIVE_INTERVAL_MS) this.#signLife();
  }

  /** Undefined for a camera that is not silent, or should not be recorded. */
  silenceOf(cameraId: string): CameraSilence | undefined {
    const gaps = this.#entries.get(cameraId)?.gaps;
    const sinceMs = gaps?.silentSinceMs();
    return gaps && sinceMs !== undefined ? { sinceMs, cause: gaps.state } : undefined;
  }

  report(cameraId: string, fromMs: number, toMs: number, files: Iterable<Interval>): GapReport {
    const gaps = this.#entries.get(cameraId)?.gaps;
    if (gaps) return gaps.report(fromMs, toMs, files);
    const knownUntilMs = Math.max(fromMs, Math.min(toMs, this.#options.clock.wallMs()));
    const recorded = [...files];
    return { fromMs, toMs, gaps: [], knownUntilMs, wantedMs: 0, recordedMs: 0, recorded, degraded: [], filled: [] };
  }

  /** Written footage that overlaps [fromMs, toMs), not cut; retention may have removed it since. */
  written(cameraId: string, fromMs: number, toMs: number): Interval[] {
    return this.#entries.get(cameraId)?.gaps.ledger.writtenIn(fromMs, toMs) ?? [];
  }

  closed({ segment, endMs, meta, fault }: ClosedSegment): void {
    // The account is of the main stream: a preview fills no gap of it.
    if (!isCameraId(segment.cameraId)) return;
    const { gaps } = this.#entry(segment.cameraId);
    const fromMs = meta?.wallStartMs ?? segment.startMs;
    if (meta?.edge) gaps.filled(Math.max(fromMs, meta.edge.fromMs), endMs, meta.edge.seam);
    gaps.recorded(fromMs, endMs, fault === undefined ? undefined : diskCause(fault));
  }

  /** Why an interval of a camera could not be filled from its memory. */
  notFilled(cameraId: string, part: Omit<NotFilled, 'atMs'>): void {
    this.#entries.get(cameraId)?.gaps.notFilled(part);
  }

  /** Footage that retention removes still counts as recorded. */
  removed(): void {}

  async saved(cameraId: string): Promise<boolean> {
    const journal = this.#entries.get(cameraId)?.journal;
    if (journal?.dirty) await journal.flush();
    return !journal?.dirty;
  }

  /** The cameras will be stopped because the process ends: their states after this do not count. */
  stopping(): void {
    this.#closing = true;
  }

  /** Writes all records. To be called when the archive has closed its files. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#beat;
    for (const { gaps } of this.#entries.values()) gaps.settle();
    if (this.#begun) await this.#write();
  }

  async #readJournals(): Promise<ReadonlyMap<string, readonly LedgerRecord[]>> {
    const journals = new Map<string, readonly LedgerRecord[]>();
    const names = await this.#fs.list(this.#directory).catch((err: unknown) => {
      if (errorCode(err) === 'ENOENT') return [];
      throw err;
    });
    const ids = names.filter((name) => name.endsWith(SUFFIX)).map((name) => name.slice(0, -SUFFIX.length));
    await concurrently(ids.filter(isCameraId), CONCURRENT_READS, async (id) => {
      journals.set(id, await this.#entry(id).journal.read());
    });
    return journals;
  }

  #entry(cameraId: string): Entry {
    const known = this.#entries.get(cameraId);
    if (known) return known;
    const { clock } = this.#options;
    const log = this.#options.log.child({ camera: cameraId });
    const observer = this.#options.observerOf?.(cameraId);
    const gaps = new CameraGaps({ clock, log, observer, journal: (record) => journal.append(record) });
    const journal = new Journal({
      fs: this.#fs,
      directory: this.#directory,
      name: cameraId + SUFFIX,
      log,
      isHeld: () => !this.#loaded,
      checkDisk: async () => this.#options.checkDisk?.(),
      snapshot: () => {
        gaps.ledger.forgetBefore(clock.wallMs() - KEEP_MS);
        return gaps.ledger.records();
      },
    });
    const entry = { gaps, journal };
    this.#entries.set(cameraId, entry);
    return entry;
  }

  /** A step of the wall clock shows as a deviation from the monotonic clock, and a standstill of this process as one between that and its own. */
  #lookAtClock(): void {
    const before = this.#lastTick;
    const now = this.#markTime();
    if (!before) return;
    const passedMs = now.monotonicMs - before.monotonicMs;
    const expectedMs = before.wallMs + passedMs;
    const stoodMs = passedMs - (now.ranMs - before.ranMs);
    if (stoodMs >= FROZEN_MS) {
      // Nearly all of it: the process was busy with something of its own. Little: it got no processor.
      const workedSeconds = Math.round(now.workedMs - before.workedMs) / 1000;
      this.#lost('machine-frozen', expectedMs - stoodMs, expectedMs, 'this process stood still', { workedSeconds });
    }
    if (Math.abs(now.wallMs - expectedMs) < CLOCK_STEP_MS) return;
    this.#lost('clock-step', expectedMs, now.wallMs, 'the wall clock of the machine was set');
  }

  /** What happened to all cameras from `fromMs` to `toMs` (wall time). */
  #lost(cause: LostTimeCause, fromMs: number, toMs: number, message: string, more: object = {}): void {
    this.#options.log.warn({ seconds: Math.round((toMs - fromMs) / 1000), ...more }, message);
    for (const { gaps } of this.#entries.values()) gaps.lostTime(cause, Math.floor(fromMs), Math.floor(toMs));
  }

  #markTime(): Tick {
    const { clock } = this.#options;
    const [wallMs, monotonicMs, ranMs] = [clock.wallMs(), clock.monotonicMs(), clock.ranMs()];
    return (this.#lastTick = { wallMs, monotonicMs, ranMs, workedMs: threadCpuMs() });
  }

  /** Not before the records of earlier processes were read: they say which gaps were reported. */
  #tellGaps(): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.#options.observerOf || !this.#loaded || nowMs - this.#toldAtMs < TELL_INTERVAL_MS) return;
    this.#toldAtMs = nowMs;
    for (const { gaps } of this.#entries.values()) gaps.tellGaps();
  }

  /** One write at a time, however slow the disk is. */
  #signLife(): void {
    if (this.#beat) return;
    this.#aliveAtMs = this.#options.clock.monotonicMs();
    this.#beat = this.#write().finally(() => (this.#beat = undefined));
  }

  /** The journals are written first: a sign of life means that everything before it is written. */
  async #write(): Promise<void> {
    const { clock, log, bootId, checkDisk } = this.#options;
    if (!this.#loaded) await this.load();
    if (!this.#loaded) return;
    const aliveMs = Math.floor(clock.wallMs());
    for (const { journal } of this.#entries.values()) if (journal.dirty) await journal.flush();
    try {
      await checkDisk?.();
      await this.#aliveFile.write({ aliveMs, bootId });
      this.#beatFails = false;
    } catch (err) {
      if (!this.#beatFails) log.warn({ path: this.#directory, err }, 'the sign of life cannot be written');
      this.#beatFails = true;
    }
  }

  *#figures() {
    const nowMs = this.#options.clock.wallMs();
    for (const [cameraId, { gaps }] of this.#entries) {
      if (gaps.state === 'absent') continue;
      const sinceMs = gaps.silentSinceMs();
      const silentForSeconds = sinceMs === undefined ? undefined : (nowMs - sinceMs) / 1000;
      const { lostPictures, filledSeconds } = gaps;
      yield { cameraId, seconds: gaps.seconds(), filledSeconds, silentForSeconds, lostPictures };
    }
  }
}
