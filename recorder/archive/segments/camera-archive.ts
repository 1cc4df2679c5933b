// Records one camera: carries out the actions of its segmenter on files, and counts what became of the pictures. It
// shares only the catalogue with other cameras, so that cameras can be spread over workers.

import { SHORT_MS, type DropCause, type CameraArchiveStatus } from '../../contract/archive-status.ts';
import { assert, assertNever } from '../../../base/assert.ts';
import { Backoff } from '../../../base/backoff.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Interval } from '../../../base/interval.ts';
import type { Log } from '../../../base/log.ts';
import type { MemoryAccount } from '../../../base/memory-budget.ts';
import type { Reason } from '../../../base/reason.ts';
import { MINUTE_MS } from '../../../base/units.ts';
import type { EndReason, Run, SampleSink } from '../../contract/sink.ts';
import type { Seam, SegmentClosing } from '../../mp4/meta.ts';
import type { Sample } from '../../mp4/sample.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { OpenSegment } from '../catalogue/segment.ts';
import type { Disk } from '../disk/disk-set.ts';
import { diskFault, FILE_REMOVED, SLOW_DISK, type DiskFault } from '../disk/faults.ts';
import { formatPath } from '../disk/names.ts';
import type { CreatedSegment, SegmentStore } from '../disk/segment-store.ts';
import type { Fragment } from './fragment-builder.ts';
import { unmarkDone, type CameraHistory } from './history.ts';
import { KeptSamples, type CameraCall } from './kept-samples.ts';
import type { ArchiveMetrics } from './metrics.ts';
import { noteRepair, repairFile } from './recovery.ts';
import type { SegmentAction, SegmenterDropCause } from './segment-action.ts';
import { SegmentFile, type SegmentFileOwner, type SegmentResult } from './segment-file.ts';
import { TablePool, type SegmentPlan } from './segment-plan.ts';
import { Segmenter, type RecordSettings } from './segmenter.ts';
import { WriteBudget } from './write-budget.ts';

export interface CameraArchiveOptions extends RecordSettings {
  readonly cameraId: string;
  readonly name: string;
  /** The samples come from the memory of the camera: files are listed once they are complete. */
  readonly edge?: EdgeOrigin | undefined;
}

/** Where footage from the memory of a camera belongs. */
export interface EdgeOrigin {
  readonly seam: Seam;
  /** That of the footage beside it; undefined: that of the node now. */
  readonly epoch: number | undefined;
}

/** Called when the recording of a camera ends. */
export interface CameraArchiveOwner {
  /** It takes no more samples; its files are being completed. */
  closing(camera: CameraArchive): void;
  closed(camera: CameraArchive): void;
}

export interface CameraArchiveCallbacks {
  /** The camera no longer sends key frames: reconnect it. */
  needKeyFrame(): void;
}

interface CameraArchiveDeps {
  readonly store: SegmentStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly catalogue: Catalogue;
  readonly metrics: ArchiveMetrics;
  readonly history: CameraHistory;
  readonly owner: CameraArchiveOwner;
  readonly syncIntervalMs: number;
  /** For what waits for the disk, of all cameras. */
  readonly memory?: MemoryAccount | undefined;
  /** For what a disk may not have yet, of all cameras; with several disks. */
  readonly unsynced?: MemoryAccount | undefined;
  /** The epoch under which this node records a camera now; undefined outside of a cluster. */
  readonly epochOf?: ((cameraId: string) => number | undefined) | undefined;
}

/** A file that is not complete yet. */
interface Filing {
  readonly file: SegmentFile;
  /** Set when it ends; resolves when the result is known. */
  settled: Promise<void> | undefined;
}

/** A file that the disk has stopped; what follows `cutAt` is in another one. */
interface Unfinished {
  readonly created: CreatedSegment;
  readonly cutAt: number | undefined;
  readonly syncedBytes: number;
}

interface ShownFile {
  readonly file: SegmentFile;
  readonly created: CreatedSegment;
}

/** After lost packets or a clock step the next run begins at a key frame. A camera that sends none for this long is silent. */
const NEXT_RUN_MS = 10_000;
const RETRY = { firstMs: 1_000, maxMs: 30_000 };
/** A disk that takes nothing for so long does not answer: a busy one needs seconds. */
const HANGS_MS = 10_000;
/** Files that could not be completed are tried again this often, one at a time, while the disk works. */
const REPAIR_INTERVAL_MS = 30_000;
const MAX_UNFINISHED = 1_000;
/** Short files of a camera in a minute. */
const MAX_SHORT = 6;

export class CameraArchive implements SampleSink, SegmentFileOwner {
  readonly #options: CameraArchiveOptions;
  readonly #deps: CameraArchiveDeps;
  readonly #callbacks: CameraArchiveCallbacks;
  readonly #segmenter: Segmenter;
  readonly #budget: WriteBudget;
  readonly #backoff = new Backoff(RETRY);
  readonly #tables = new TablePool();
  readonly #files = new Map<SegmentPlan, Filing>();
  /** The file that receives samples. */
  #newest: SegmentFile | undefined;
  /** The recording in progress as answers show it: the newest file with pictures in it. */
  #shown: ShownFile | undefined;
  /** Files up to this sequence are not shown: the recording that they belong to has ended. */
  #withdrawn = -1;
  /** Monotonic time up to which it is shown between two runs. */
  #shownUntilMs = Infinity;
  #fault: Reason | undefined;
  #faultCause: DropCause = 'disk-error';
  /** The last fault of the disk that lost pictures, and when. */
  #lost: { readonly fault: Reason; readonly atMs: number } | undefined;
  #writtenAtMs = -Infinity;
  readonly #unfinished = new Map<string, Unfinished>();
  /** Undefined for what comes from the memory of the camera: it can be asked again. */
  readonly #kept: KeptSamples | undefined;
  #repair: Promise<void> | undefined;
  #repairedAtMs = -Infinity;
  #unmarking: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  #lastWrittenMs: number | undefined;
  #segmentsClosed = 0;
  #shortSegments = 0;
  /** When the last short ones were closed. */
  #shortAtMs: number[] = [];
  #bytesWritten = 0;
  #framesWritten = 0;
  readonly #framesDropped = new Map<DropCause, number>();

  constructor(options: CameraArchiveOptions, deps: CameraArchiveDeps, callbacks: CameraArchiveCallbacks) {
    this.#options = options;
    this.#deps = deps;
    this.#callbacks = callbacks;
    this.#budget = new WriteBudget(deps.memory);
    const { cameraId, name, edge } = options;
    const { clock, history, epochOf } = deps;
    const epoch = (): number | undefined => edge?.epoch ?? epochOf?.(cameraId);
    const shared = { clock, history, budget: this.#budget, tables: this.#tables };
    this.#segmenter = new Segmenter({ cameraId, name, record: options, epoch, edge, ...shared });
    this.#kept = edge || !deps.unsynced ? undefined : new KeptSamples(deps.unsynced);
  }

  get cameraId(): string {
    return this.#options.cameraId;
  }

  begin(run: Run): void {
    if (!this.#closing) this.#call({ kind: 'begin', run });
  }

  change(run: Run): void {
    this.#call({ kind: 'change', run });
  }

  sample(sample: Sample): void {
    if (this.#deps.store.disks.hasOthers) this.#kept?.add({ kind: 'sample', sample });
    else this.#kept?.clear();
    this.#push(sample);
  }

  #call(call: CameraCall): void {
    this.#kept?.add(call);
    this.#pass(call);
  }

  #pass(call: CameraCall): void {
    switch (call.kind) {
      case 'begin':
        return this.#perform(this.#segmenter.begin(call.run));
      case 'change':
        return this.#segmenter.change(call.run);
      case 'sample':
        return this.#push(call.sample);
      case 'end':
        return this.#perform(this.#segmenter.end(call.reason));
      default:
        return assertNever(call);
    }
  }

  #push(sample: Sample): void {
    const actions = this.#segmenter.push(sample, this.#deps.store.disks.refused === undefined);
    if (actions.length > 0) this.#perform(actions);
  }

  end(reason: EndReason): void {
    this.#call({ kind: 'end', reason });
  }

  /** Valid from the next file on. A file that is already longer than that ends at its next key frame. */
  configure(record: RecordSettings): void {
    this.#segmenter.configure(record);
  }

  /** Wall time at which the last file of the camera ends; undefined without one. */
  get endMs(): number | undefined {
    return this.#deps.history.wallEndMs;
  }

  /** Whether the disk keeps up, so that it may get footage faster than a camera sends it. */
  hasTimeForMore(): boolean {
    return this.#budget.isLight;
  }

  /** Call it about four times a second. */
  tick(): void {
    this.#perform(this.#segmenter.tick());
    const nowMs = this.#deps.clock.monotonicMs();
    for (const { file } of this.#files.values()) file.tick(nowMs);
    this.#repairOne(nowMs);
  }

  status(): CameraArchiveStatus {
    const currentFile = this.#inProgress()?.created.path;
    const idle = !this.#segmenter.active || currentFile === undefined;
    const stall = this.#stall;
    return {
      state: this.#fault ? 'failed' : stall ? 'waiting' : idle ? 'idle' : 'writing',
      reason: this.#fault ?? stall,
      lastWrittenMs: this.#lastWrittenMs,
      segmentsClosed: this.#segmentsClosed,
      shortSegments: this.#shortSegments,
      bytesWritten: this.#bytesWritten,
      framesWritten: this.#framesWritten,
      framesDropped: this.#framesDropped,
      currentFile,
    };
  }

  /** What keeps pictures waiting in memory, if the disk does not answer. */
  get #stall(): Reason | undefined {
    const since = Array.from(this.#files.values()).flatMap(({ file }) => file.waitsSinceMs ?? []);
    const forMs = this.#deps.clock.ranMs() - Math.min(...since);
    if (forMs < HANGS_MS) return undefined;
    const message = `the disk has not answered for ${Math.floor(forMs / 1000)} s, and pictures wait in memory`;
    return { code: SLOW_DISK.code, message };
  }

  /** Why pictures wait, or were lost within the longest pause after a fault: a disk that takes some calls is written to again and again. */
  get trouble(): Reason | undefined {
    const lost = this.#lost;
    const isRecent = lost && (lost.fault === this.#fault || this.#isRecent(lost.atMs));
    return isRecent ? lost.fault : this.#stall;
  }

  /** Whether pictures came to the disk lately. */
  get isTried(): boolean {
    return this.trouble !== undefined || this.#isRecent(this.#writtenAtMs);
  }

  #isRecent(atMs: number): boolean {
    return this.#deps.clock.monotonicMs() - atMs < RETRY.maxMs;
  }

  /** Paths of all files of this camera that are not complete yet, also of those that the disk has stopped. */
  *unfinishedPaths(): Generator<string> {
    for (const { file } of this.#files.values()) if (file.created) yield file.created.path;
    yield* this.#unfinished.keys();
  }

  /** Completes what `other`, which is closed, could not complete. */
  adopt(other: CameraArchive): void {
    for (const [path, unfinished] of other.#unfinished) {
      if (this.#unfinished.size < MAX_UNFINISHED) this.#unfinished.set(path, unfinished);
    }
  }

  isOn(disk: Disk): boolean {
    return Array.from(this.#files.values()).some(({ file }) => file.disk === disk);
  }

  /** Segments of this camera that are not complete yet. */
  openEntries(): OpenSegment[] {
    const entries: OpenSegment[] = [];
    for (const { file } of this.#files.values()) {
      if (file.created && !file.fault) entries.push(openEntry(file, file.created, this.#options.edge !== undefined));
    }
    return entries;
  }

  /** The last segment, already complete, while recording continues and the next one has no picture yet. */
  standIn(): OpenSegment | undefined {
    const shown = this.#inProgress();
    return shown && !this.#files.has(shown.file.plan) ? openEntry(shown.file, shown.created) : undefined;
  }

  #inProgress(): ShownFile | undefined {
    const isOver = !this.#segmenter.active && this.#deps.clock.monotonicMs() >= this.#shownUntilMs;
    return isOver ? undefined : this.#shown;
  }

  /** Wall times of the pictures in files that are not complete yet, for the gap ledger. */
  written(): Interval[] {
    const written: Interval[] = [];
    for (const { file } of this.#files.values()) {
      const { plan, writtenEndMs } = file;
      if (writtenEndMs !== undefined) written.push({ fromMs: plan.meta.wallStartMs, toMs: writtenEndMs });
    }
    return written;
  }

  /** The recording in progress, as far as it can be played: undefined for `mp4`, which has no index before its end. */
  current(): OpenSegment | undefined {
    const shown = this.#inProgress();
    return shown && shown.file.plan.format !== 'mp4' ? openEntry(shown.file, shown.created) : undefined;
  }

  /** Fragments that wait for the disk. */
  get waiting(): number {
    return this.#budget.fragments;
  }

  /** Ends what is open and resolves when every file is complete. Takes no samples afterwards. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { owner } = this.#deps;
    this.end('stopped');
    owner.closing(this);
    const filings = [...this.#files.values()];
    for (const { file } of filings) file.hurry();
    // A file that fails now is continued in another.
    const unsettled = (): Promise<void>[] => Array.from(this.#files.values()).flatMap(({ settled }) => settled ?? []);
    while (unsettled().length > 0) await Promise.all(unsettled());
    await this.#repair;
    await this.#unmarking;
    this.#kept?.clear();
    owner.closed(this);
  }

  #perform(actions: readonly SegmentAction[]): void {
    for (const action of actions) {
      switch (action.kind) {
        case 'open':
          this.#open(action.plan, action.first, action.audioFault);
          break;
        case 'write':
          this.#filing(action.plan).file.append(action.fragment);
          break;
        case 'ended':
          this.#shownUntilMs = this.#deps.clock.monotonicMs() + NEXT_RUN_MS;
          if (!action.goesOn) this.#withdraw(this.#deps.history.nextSequence - 1);
          break;
        case 'close':
          this.#finish(this.#filing(action.plan), action.closing, action.noSpace);
          break;
        case 'refused':
          this.#noteRefusal();
          break;
        case 'unsupported':
          this.#block({ code: 'unsupported-parameters', message: action.error.message }, 'parameters');
          break;
        case 'drop':
          this.#dropped(this.#causeOf(action.cause), action.videoFrames);
          break;
        case 'askKeyFrame':
          this.#callbacks.needKeyFrame();
          break;
        default:
          assertNever(action);
      }
    }
  }

  #filing(plan: SegmentPlan): Filing {
    const filing = this.#files.get(plan);
    assert(filing, 'the segmenter continues a file that is complete');
    return filing;
  }

  #open(plan: SegmentPlan, first: Sample, audioFault: Error | undefined): void {
    const { store, clock, syncIntervalMs, log } = this.#deps;
    if (audioFault) {
      log.warn({ camera: this.#options.cameraId, err: audioFault }, 'audio that no file can hold is not recorded');
    }
    const [budget, tables] = [this.#budget, this.#tables];
    const file = new SegmentFile(plan, first, { store, clock, syncIntervalMs, budget, tables, owner: this });
    this.#files.set(plan, { file, settled: undefined });
    this.#newest = file;
  }

  #finish(filing: Filing, closing: SegmentClosing, noSpace: boolean): void {
    const { file } = filing;
    const wasNewest = this.#newest === file;
    if (wasNewest) this.#newest = undefined;
    if (noSpace) {
      this.#deps.metrics.failed(SLOW_DISK.code);
      // Only space in the queue is awaited.
      if (wasNewest) this.#block(SLOW_DISK, SLOW_DISK.code, 0);
    }
    file.finish(closing);
    this.#settle(filing);
  }

  /** The record path is not usable now, so no file is planned: its sequence may not be known before the archive is recovered. */
  #noteRefusal(): void {
    const fault = diskFault(this.#deps.store.disks.refused);
    if (this.#fault?.code !== fault.code) this.#block(fault, fault.code, 0);
  }

  #causeOf(cause: SegmenterDropCause): DropCause {
    return cause === 'last-fault' ? this.#faultCause : cause;
  }

  #dropped(cause: DropCause, videoFrames: number): void {
    if (videoFrames === 0) return;
    this.#framesDropped.set(cause, (this.#framesDropped.get(cause) ?? 0) + videoFrames);
  }

  fileCreated(file: SegmentFile, created: CreatedSegment): void {
    const { history, catalogue } = this.#deps;
    catalogue.opened(created.segment);
    history.openMarkers.add(created.marker);
    // An older file may be created after a newer one where the disk stalls; the greatest sequence stays.
    if (file.plan.meta.sequence !== history.nextSequence - 1 && history.marker !== undefined) return;
    history.marker = created.marker;
    this.#unmark();
  }

  fileWritten(file: SegmentFile, fragment: Fragment): void {
    let bytes = 0;
    for (const buffer of fragment.buffers) bytes += buffer.length;
    this.#bytesWritten += bytes;
    this.#framesWritten += fragment.videoFrames;
    this.#writtenAtMs = this.#deps.clock.monotonicMs();
    this.#lastWrittenMs = fragment.lastVideoMs ?? this.#lastWrittenMs;
    const { created, writtenEndMs } = file;
    // A short file may have ended, and the next one begun, before its first pictures reach the disk.
    const shown = Math.max(this.#withdrawn, this.#shown?.file.plan.meta.sequence ?? -1);
    if (created && writtenEndMs !== undefined && file.plan.meta.sequence > shown) this.#shown = { file, created };
    if (file !== this.#newest || fragment.videoFrames === 0) return;
    this.#backoff.reset();
    if (!this.#fault) return;
    this.#deps.log.info({ camera: this.#options.cameraId }, 'recording to disk again');
    this.#fault = undefined;
  }

  /** What was sent lately is given up where memory is short. */
  shedKept(): void {
    this.#kept?.clear();
  }

  /** A disk fails: what it may not have yet goes to another. */
  leave(disk: Disk, fault: DiskFault): void {
    const file = this.#filesOn(disk)[0];
    if (file) this.#continueElsewhere(file, fault);
  }

  /** Oldest first. One that is being completed shows by itself whether the disk takes that, unless the disk hangs. */
  #filesOn(disk: Disk): SegmentFile[] {
    const files = Array.from(this.#files.values(), ({ file }) => file);
    return files.filter((file) => file.disk === disk && !file.isGivenUp && (disk.hangs || !file.isCompleting));
  }

  /**
   * Cuts a file at the last key frame up to which it is safe, gives up those that follow it, and records again from that key frame on,
   * on another disk. False if there is none, or if memory was too short to keep the samples.
   */
  #continueElsewhere(from: SegmentFile, fault: DiskFault): boolean {
    const { store, metrics, log } = this.#deps;
    const calls = store.disks.hasHealthy ? this.#kept?.from(from.safe?.key ?? from.first) : undefined;
    if (!calls) return false;
    const { meta } = from.plan;
    const place = from.safe;
    const later = Array.from(this.#files.values(), ({ file }) => file).filter(
      ({ plan, isGivenUp }) => plan.meta.sequence > meta.sequence && !isGivenUp,
    );
    from.giveUp(fault, place?.position ?? 0);
    for (const file of later) file.giveUp(fault, 0);
    for (const { plan, created } of [from, ...later]) store.leaveBehind(created?.path ?? formatPath(plan.name));
    this.#newest = undefined;
    this.#withdraw(this.#deps.history.nextSequence - 1);
    this.#segmenter.abandon(place?.wallMs ?? meta.wallStartMs - (meta.gapBeforeMs ?? 0));
    for (const file of [from, ...later]) {
      const filing = this.#files.get(file.plan);
      if (filing) this.#settle(filing);
    }
    metrics.failed(fault.code);
    log.debug({ camera: this.#options.cameraId, code: fault.code }, 'recording continues on another disk');
    for (const call of calls) this.#pass(call);
    return true;
  }

  fileFailed(file: SegmentFile, fault: DiskFault, droppedVideoFrames: number): void {
    if (file.isGivenUp || (fault !== FILE_REMOVED && this.#continueElsewhere(file, fault))) return;
    if (this.#shown?.file === file) this.#withdraw(file.plan.meta.sequence);
    if (this.#newest === file) this.#newest = undefined;
    this.#block(fault, fault.code);
    this.#dropped(fault.code, droppedVideoFrames);
    this.#deps.metrics.failed(fault.code);
    this.#perform(this.#segmenter.fileFailed(file.plan, file.writtenEndMs));
    this.#settle(this.#filing(file.plan));
  }

  fileSynced(durationMs: number): void {
    this.#deps.metrics.synced(durationMs);
    this.#dropSafe();
  }

  /** What is kept begins with what the oldest file may not have yet. */
  #dropSafe(): void {
    const oldest = Array.from(this.#files.values(), ({ file }) => file).find((file) => !file.isGivenUp);
    if (oldest) this.#kept?.dropBefore(oldest.safe?.key ?? oldest.first);
  }

  #withdraw(sequence: number): void {
    this.#shown = undefined;
    this.#withdrawn = Math.max(this.#withdrawn, sequence);
  }

  /** Allows no new file for a while. Only a new reason is logged as a warning: a disk that stays full must not fill the log. */
  #block(fault: Reason, cause: DropCause, retryMs = this.#backoff.next()): void {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#segmenter.pause(nowMs + retryMs);
    const known = this.#fault?.code === fault.code;
    this.#fault = fault;
    this.#faultCause = cause;
    if (cause !== 'parameters' && cause !== FILE_REMOVED.code) this.#lost = { fault, atMs: nowMs };
    if (!this.#newest) this.#withdraw(this.#deps.history.nextSequence - 1);
    const fields = { camera: this.#options.cameraId, code: fault.code, reason: fault.message, retryMs };
    if (known) this.#deps.log.debug(fields, 'recording to disk still fails');
    else this.#deps.log.warn(fields, 'recording to disk fails');
  }

  /** The file ends, by itself or because of a fault. */
  #settle(filing: Filing): void {
    filing.settled ??= filing.file.done.then((result) => this.#settled(filing.file, result));
  }

  #settled(file: SegmentFile, result: SegmentResult): void {
    const { catalogue, log, clock, store } = this.#deps;
    const { cameraId } = this.#options;
    this.#files.delete(file.plan);
    this.#dropSafe();
    switch (result.kind) {
      case 'closed': {
        const { created, closed } = result;
        catalogue.closed(closed);
        this.#segmentsClosed++;
        if (closed.endMs - closed.segment.startMs < SHORT_MS) this.#noteShort(clock.monotonicMs());
        this.#release(created.marker);
        log.debug({ camera: cameraId, file: created.path, sizeBytes: closed.sizeBytes }, 'segment closed');
        return;
      }
      case 'empty':
        if (result.created) {
          catalogue.removed(result.created.segment);
          this.#release(result.created.marker);
        }
        return;
      case 'unfinished':
        if (file.disk) store.disks.failed(file.disk, diskFault(result.cause));
        if (!file.isGivenUp) this.#continueElsewhere(file, diskFault(result.cause));
        log.warn(
          { camera: cameraId, file: result.created.path, err: result.cause },
          'segment could not be completed and is kept for recovery',
        );
        // Beyond this many the next start repairs them.
        if (this.#unfinished.size < MAX_UNFINISHED) {
          const { created, syncedBytes } = result;
          this.#unfinished.set(created.path, { created, syncedBytes, cutAt: file.cutAt });
        }
        this.#repairedAtMs = clock.monotonicMs();
    }
  }

  #noteShort(nowMs: number): void {
    this.#shortSegments++;
    this.#shortAtMs = [...this.#shortAtMs.slice(-MAX_SHORT), nowMs];
  }

  /** Whether more files of the last minute are short than have single causes. */
  get isShredded(): boolean {
    const [first] = this.#shortAtMs;
    const isFull = this.#shortAtMs.length > MAX_SHORT;
    return isFull && first !== undefined && this.#deps.clock.monotonicMs() - first < MINUTE_MS;
  }

  #release(marker: string): void {
    const { history } = this.#deps;
    history.openMarkers.delete(marker);
    history.doneMarkers.add(marker);
    this.#unmark();
  }

  #unmark(): void {
    const { history } = this.#deps;
    this.#unmarking = this.#unmarking.then(() => unmarkDone(this.cameraId, history, this.#deps));
  }

  /** Completes one of the files that a failing disk left open, now that it seems to work. */
  #repairOne(nowMs: number): void {
    const works = ({ created: { disk } }: Unfinished): boolean => !disk.fault && !disk.refused;
    const { created, ...repair } = [...this.#unfinished.values()].find(works) ?? {};
    const wait = this.#fault !== undefined || nowMs - this.#repairedAtMs < REPAIR_INTERVAL_MS;
    if (!created || wait || this.#repair || this.#closing) return;
    this.#repairedAtMs = nowMs;
    const { store, catalogue, log } = this.#deps;
    this.#repair = repairFile(store, created.path, repair)
      .then((repaired) => {
        this.#unfinished.delete(created.path);
        noteRepair(catalogue, created.segment, repaired);
        this.#release(created.marker);
        log.info({ camera: this.#options.cameraId, file: created.path, outcome: repaired.kind }, 'segment repaired');
      })
      .catch((err: unknown) => {
        log.debug({ camera: this.#options.cameraId, file: created.path, err }, 'segment could not be repaired yet');
      })
      .finally(() => {
        this.#repair = undefined;
      });
  }
}

const openEntry = (file: SegmentFile, { path, segment }: CreatedSegment, isHidden = false): OpenSegment => ({
  path,
  startMs: segment.startMs,
  sequence: file.plan.meta.sequence,
  sizeBytes: file.writtenBytes,
  mtimeMs: file.modifiedMs,
  isOpen: true,
  format: file.plan.format,
  isHidden: isHidden || file.writtenEndMs === undefined,
  endMs: file.closedEndMs,
});
