// One camera's place in the archive: its segmenter, its open files, and what became of what it sent. Shares nothing
// with other cameras but the index, so that cameras can be spread over workers.

import { assert } from '../../../base/assert.ts';
import { Backoff } from '../../../base/backoff.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { MemoryAccount } from '../../../base/memory-budget.ts';
import type { SampleSink } from '../../camera/sink.ts';
import type { Reason } from '../../camera/status.ts';
import { Mp4Error } from '../../mp4/error.ts';
import type { SegmentClosing, SegmentMeta } from '../../mp4/meta.ts';
import type { TrackParameters } from '../../mp4/sample.ts';
import { SegmentWriter } from '../../mp4/segment.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { Interval } from '../catalogue/interval.ts';
import type { OpenSegment, RecordFormat } from '../catalogue/segment.ts';
import { diskFault, SLOW_DISK, type DiskFault } from '../disk/faults.ts';
import { fileNameOf } from '../disk/names.ts';
import type { CreatedSegment, SegmentStore } from '../disk/segment-store.ts';
import type { Fragment } from './fragment-builder.ts';
import type { CameraHistory } from './history.ts';
import type { ArchiveMetrics } from './metrics.ts';
import { noteRepair, repairFile } from './recovery.ts';
import { Segmenter, type DropCause, type SegmentTarget } from './segmenter.ts';
import { SegmentFile, type SegmentPlan, type SegmentResult, type TablePool } from './segment-file.ts';
import { WriteBudget } from './write-budget.ts';

/** How a camera is recorded. */
export interface RecordSettings {
  readonly format: RecordFormat;
  readonly segmentDurationMs: number;
}

export interface CameraArchiveOptions extends RecordSettings {
  readonly cameraId: string;
  readonly name: string;
}

/** What the archive wants to know of it. */
export interface CameraArchiveOwner {
  /** It takes no more samples; its files are being completed. */
  closing(camera: CameraArchive): void;
  closed(camera: CameraArchive): void;
}

export interface CameraArchiveCallbacks {
  /** The camera sends no key frame any more: reconnect it. */
  needKeyFrame(): void;
}

export interface CameraArchiveStatus {
  /** `idle`: nothing to write, or nothing written yet; `failed`: what the camera sends is lost. */
  readonly state: 'idle' | 'writing' | 'failed';
  readonly reason: Reason | undefined;
  /** Wall time at which the last written picture was captured. */
  readonly lastWrittenMs: number | undefined;
  readonly segmentsClosed: number;
  readonly bytesWritten: number;
  /** Pictures. */
  readonly framesWritten: number;
  /** Pictures that arrived and are not in a file, by cause. */
  readonly framesDropped: ReadonlyMap<DropCause, number>;
  /** Relative to the record path. */
  readonly currentFile: string | undefined;
}

export interface CameraArchiveDeps {
  readonly store: SegmentStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly index: Catalogue;
  readonly metrics: ArchiveMetrics;
  readonly history: CameraHistory;
  readonly owner: CameraArchiveOwner;
  readonly syncIntervalMs: number;
  /** For what waits for the disk, of all cameras. */
  readonly memory?: MemoryAccount | undefined;
}

/** A file with pictures in it. */
interface ShownFile {
  readonly file: SegmentFile;
  readonly created: CreatedSegment;
}

/** Behind lost packets or a clock that was set, the next run begins at a key frame; a camera that sends none is silent. */
const NEXT_RUN_MS = 10_000;
const RETRY = { firstMs: 1_000, maxMs: 30_000 };
/** Files that could not be completed are tried again this often, one at a time, while the disk works. */
const REPAIR_INTERVAL_MS = 30_000;
const MAX_UNFINISHED = 1_000;

export class CameraArchive implements SegmentTarget {
  readonly #o: CameraArchiveOptions;
  #record: RecordSettings;
  readonly #deps: CameraArchiveDeps;
  readonly #segmenter: Segmenter;
  readonly #budget: WriteBudget;
  readonly #backoff = new Backoff(RETRY);
  readonly #tables: TablePool;
  /** Files that are not complete yet, with what waits for their end. */
  readonly #files = new Map<SegmentFile, Promise<void> | undefined>();
  /** The file that receives samples. */
  #newest: SegmentFile | undefined;
  /** The recording in progress as answers show it: the newest file with pictures in it. */
  #shown: ShownFile | undefined;
  /** Monotonic time up to which it stands for a run that has not begun. */
  #shownUntilMs = Infinity;
  #retryAtMs = -Infinity;
  #fault: Reason | undefined;
  #faultCause: DropCause = 'disk-error';
  readonly #unfinished = new Map<string, CreatedSegment>();
  #repair: Promise<void> | undefined;
  #repairedAtMs = -Infinity;
  #closing: Promise<void> | undefined;

  #lastWrittenMs: number | undefined;
  #segmentsClosed = 0;
  #bytesWritten = 0;
  #framesWritten = 0;
  readonly #framesDropped = new Map<DropCause, number>();

  constructor(options: CameraArchiveOptions, deps: CameraArchiveDeps, callbacks: CameraArchiveCallbacks) {
    this.#o = options;
    this.#record = options;
    this.#deps = deps;
    this.#budget = new WriteBudget(deps.memory);
    this.#tables = tablePool();
    this.#segmenter = new Segmenter({
      clock: deps.clock,
      segmentDurationMs: () => this.#record.segmentDurationMs,
      target: this,
      dropCause: () => this.#faultCause,
      needKeyFrame: () => callbacks.needKeyFrame(),
    });
  }

  get cameraId(): string {
    return this.#o.cameraId;
  }

  /** Where the camera's samples go. */
  get sink(): SampleSink {
    return this.#segmenter;
  }

  /** From the next file on; one that is longer than files are now to be ends at its next key frame. */
  configure(record: RecordSettings): void {
    this.#record = record;
  }

  /** Call it about four times a second. */
  tick(): void {
    this.#segmenter.tick();
    const nowMs = this.#deps.clock.monotonicMs();
    for (const file of this.#files.keys()) file.tick(nowMs);
    this.#repairOne(nowMs);
  }

  status(): CameraArchiveStatus {
    const currentFile = this.#inProgress()?.created.path;
    const idle = !this.#segmenter.active || currentFile === undefined;
    return {
      state: this.#fault ? 'failed' : idle ? 'idle' : 'writing',
      reason: this.#fault,
      lastWrittenMs: this.#lastWrittenMs,
      segmentsClosed: this.#segmentsClosed,
      bytesWritten: this.#bytesWritten,
      framesWritten: this.#framesWritten,
      framesDropped: this.#framesDropped,
      currentFile,
    };
  }

  /** Paths of all files of this camera that are not complete yet, also of those that the disk has stopped. */
  *unfinishedPaths(): Generator<string> {
    for (const { created } of this.#files.keys()) if (created) yield created.path;
    yield* this.#unfinished.keys();
  }

  /** Segments of this camera that are not complete yet. */
  openEntries(): OpenSegment[] {
    const entries: OpenSegment[] = [];
    for (const file of this.#files.keys()) if (file.created && !file.fault) entries.push(openEntry(file, file.created));
    return entries;
  }

  /** The last segment, complete, while recording goes on and the next has no picture yet. */
  standIn(): OpenSegment | undefined {
    const shown = this.#inProgress();
    return shown && !this.#files.has(shown.file) ? openEntry(shown.file, shown.created) : undefined;
  }

  #inProgress(): ShownFile | undefined {
    const isOver = !this.#segmenter.active && this.#deps.clock.monotonicMs() >= this.#shownUntilMs;
    return isOver ? undefined : this.#shown;
  }

  /** Wall times of the pictures in files that are not complete yet, for the gap ledger. */
  written(): Interval[] {
    const written: Interval[] = [];
    for (const { plan, writtenEndMs } of this.#files.keys()) {
      if (writtenEndMs !== undefined) written.push({ fromMs: plan.meta.wallStartMs, toMs: writtenEndMs });
    }
    return written;
  }

  /** The recording in progress, as far as it can be played: undefined for `mp4`, which has no index before its end. */
  current(): OpenSegment | undefined {
    const shown = this.#inProgress();
    return shown && shown.file.plan.format !== 'mp4' ? openEntry(shown.file, shown.created) : undefined;
  }

  /** Ends what is open and resolves when every file is complete. Takes no samples afterwards. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { owner } = this.#deps;
    if (this.#segmenter.active) this.#segmenter.end('stopped');
    owner.closing(this);
    for (const file of this.#files.keys()) file.hurry();
    await Promise.all([...this.#files.values(), this.#repair]);
    owner.closed(this);
  }

  ready(nowMs: number): boolean {
    const { refused } = this.#deps.store;
    if (refused) {
      // No file is even planned: its sequence is known only when the archive has been recovered.
      const fault = diskFault(refused);
      if (this.#fault?.code !== fault.code) this.#block(fault, fault.code, 0);
      return false;
    }
    return !this.#closing && nowMs >= this.#retryAtMs && this.#budget.hasRoom();
  }

  open(
    tracks: readonly TrackParameters[],
    known: Omit<SegmentMeta, 'cameraId' | 'sequence' | 'gapBeforeMs'>,
    failed: () => void,
  ): SegmentFile | undefined {
    const { history, log } = this.#deps;
    const { cameraId } = this.#o;
    const { format } = this.#record;
    const gapBeforeMs = Math.max(0, known.wallStartMs - (history.wallEndMs ?? known.wallStartMs));
    const meta: SegmentMeta = { ...known, cameraId, sequence: history.nextSequence, gapBeforeMs };
    const name = { name: fileNameOf(this.#o.name), cameraId, startMs: Math.floor(known.wallStartMs) };
    const lead = tracks.slice(0, 1);
    let file: SegmentFile;
    try {
      file = this.#newFile({ format, name, tracks, meta }, failed);
    } catch (err) {
      if (!(err instanceof Mp4Error)) throw err;
      try {
        // Bad audio never stops video; where the video is at fault, this fails as well.
        file = this.#newFile({ format, name, tracks: lead, meta }, failed);
        log.warn({ camera: cameraId, err }, 'audio that no file can hold is not recorded');
      } catch (err) {
        if (!(err instanceof Mp4Error)) throw err;
        this.#block({ code: 'unsupported-parameters', message: err.message }, 'parameters');
        return undefined;
      }
    }
    history.nextSequence++;
    this.#files.set(file, undefined);
    this.#newest = file;
    return file;
  }

  #newFile(plan: SegmentPlan, failed: () => void): SegmentFile {
    const { store, clock, syncIntervalMs, metrics } = this.#deps;
    const file: SegmentFile = new SegmentFile(plan, {
      store,
      clock,
      syncIntervalMs,
      budget: this.#budget,
      tables: this.#tables,
      events: {
        created: (created) => this.#created(file, created),
        written: (fragment) => this.#written(file, fragment),
        failed: (fault, frames) => this.#failed(file, fault, frames, failed),
        synced: (durationMs) => metrics.synced(durationMs),
      },
    });
    return file;
  }

  get lastEndMs(): number | undefined {
    return this.#deps.history.wallEndMs;
  }

  ended(wallEndMs: number, goesOn: boolean): void {
    this.#deps.history.wallEndMs = wallEndMs;
    this.#shownUntilMs = this.#deps.clock.monotonicMs() + NEXT_RUN_MS;
    if (!goesOn) this.#shown = undefined;
  }

  finish(file: SegmentFile, closing: SegmentClosing): void {
    if (this.#newest === file) this.#newest = undefined;
    file.finish(closing);
    this.#await(file);
  }

  slow(file: SegmentFile): void {
    this.#deps.metrics.failed(SLOW_DISK.code);
    if (this.#newest !== file) return;
    this.#newest = undefined;
    // Nothing to wait for but room in the queue.
    this.#block(SLOW_DISK, SLOW_DISK.code, 0);
  }

  dropped(cause: DropCause, videoFrames: number): void {
    if (videoFrames === 0) return;
    this.#framesDropped.set(cause, (this.#framesDropped.get(cause) ?? 0) + videoFrames);
  }

  #created(file: SegmentFile, created: CreatedSegment): void {
    const { history, index, store } = this.#deps;
    index.opened(created.segment);
    history.openMarkers.add(created.marker);
    const before = history.marker;
    // An older file may be created after a newer one where the disk stalls; the greatest sequence stays.
    if (file.plan.meta.sequence !== history.nextSequence - 1 && before !== undefined) return;
    history.marker = created.marker;
    if (before !== undefined && !history.openMarkers.has(before)) void store.unmark(before);
  }

  #written(file: SegmentFile, fragment: Fragment): void {
    let bytes = 0;
    for (const buffer of fragment.buffers) bytes += buffer.length;
    this.#bytesWritten += bytes;
    this.#framesWritten += fragment.videoFrames;
    this.#lastWrittenMs = fragment.lastVideoMs ?? this.#lastWrittenMs;
    const { created, writtenEndMs } = file;
    // A short one may be over, and the next begun, when its first pictures reach the disk.
    const isNewer = file.plan.meta.sequence > (this.#shown?.file.plan.meta.sequence ?? Infinity);
    if (created && writtenEndMs !== undefined && (file === this.#newest || isNewer)) this.#shown = { file, created };
    if (file !== this.#newest || fragment.videoFrames === 0) return;
    this.#backoff.reset();
    if (!this.#fault) return;
    this.#deps.log.info({ camera: this.#o.cameraId }, 'recording to disk again');
    this.#fault = undefined;
  }

  #failed(file: SegmentFile, fault: DiskFault, droppedFrames: number, tellSegmenter: () => void): void {
    if (this.#shown?.file === file) this.#shown = undefined;
    if (this.#newest === file) {
      this.#newest = undefined;
      const { history } = this.#deps;
      // Before the first picture of this file, the last one ended where it did.
      history.wallEndMs = file.writtenEndMs ?? history.wallEndMs;
    }
    this.#block(fault, fault.code);
    this.dropped(fault.code, droppedFrames);
    this.#deps.metrics.failed(fault.code);
    tellSegmenter();
    this.#await(file);
  }

  /** No new file for a while. One line a change of reason: a disk that stays full must not fill the log. */
  #block(fault: Reason, cause: DropCause, retryMs = this.#backoff.next()): void {
    this.#retryAtMs = this.#deps.clock.monotonicMs() + retryMs;
    const known = this.#fault?.code === fault.code;
    this.#fault = fault;
    this.#faultCause = cause;
    if (!this.#newest) this.#shown = undefined;
    const fields = { camera: this.#o.cameraId, code: fault.code, reason: fault.message, retryMs };
    if (known) this.#deps.log.debug(fields, 'recording to disk still fails');
    else this.#deps.log.warn(fields, 'recording to disk fails');
  }

  #await(file: SegmentFile): void {
    assert(this.#files.has(file), 'a file ends twice');
    if (this.#files.get(file)) return;
    this.#files.set(
      file,
      file.done.then((result) => this.#settled(file, result)),
    );
  }

  #settled(file: SegmentFile, result: SegmentResult): void {
    const { index, log, clock } = this.#deps;
    const { cameraId } = this.#o;
    this.#files.delete(file);
    switch (result.kind) {
      case 'closed': {
        const { created, closed } = result;
        index.closed(closed);
        this.#segmentsClosed++;
        this.#release(created.marker);
        log.debug({ camera: cameraId, file: created.path, sizeBytes: closed.sizeBytes }, 'segment closed');
        return;
      }
      case 'empty':
        if (result.created) {
          index.removed(result.created.segment);
          this.#release(result.created.marker);
        }
        return;
      case 'unfinished':
        log.warn(
          { camera: cameraId, file: result.created.path, err: result.cause },
          'segment could not be completed and is kept for recovery',
        );
        // Beyond this many the next start repairs them.
        if (this.#unfinished.size < MAX_UNFINISHED) this.#unfinished.set(result.created.path, result.created);
        this.#repairedAtMs = clock.monotonicMs();
    }
  }

  #release(marker: string): void {
    const { history, store } = this.#deps;
    history.openMarkers.delete(marker);
    if (marker !== history.marker) void store.unmark(marker);
  }

  /** Completes one of the files that a failing disk left open, now that it seems to work. */
  #repairOne(nowMs: number): void {
    const created = this.#unfinished.values().next().value;
    const wait = this.#fault !== undefined || nowMs - this.#repairedAtMs < REPAIR_INTERVAL_MS;
    if (!created || wait || this.#repair || this.#closing) return;
    this.#repairedAtMs = nowMs;
    const { store, index, log } = this.#deps;
    this.#repair = repairFile(store, created.path)
      .then((repaired) => {
        this.#unfinished.delete(created.path);
        this.#release(created.marker);
        noteRepair(index, created.segment, repaired);
        log.info({ camera: this.#o.cameraId, file: created.path, outcome: repaired.kind }, 'segment repaired');
      })
      .catch((err: unknown) => {
        log.debug({ camera: this.#o.cameraId, file: created.path, err }, 'segment could not be repaired yet');
      })
      .finally(() => {
        this.#repair = undefined;
      });
  }
}

const openEntry = (file: SegmentFile, { path, segment }: CreatedSegment): OpenSegment => ({
  path,
  startMs: segment.startMs,
  sequence: file.plan.meta.sequence,
  sizeBytes: file.writtenBytes,
  mtimeMs: file.modifiedMs,
  isOpen: true,
  format: file.plan.format,
  isEmpty: file.writtenEndMs === undefined,
  endMs: file.closedEndMs,
});

function tablePool(): TablePool {
  const spare: SegmentWriter[] = [];
  return {
    take(tracks, meta) {
      const tables = spare.pop();
      if (!tables) return new SegmentWriter(tracks, meta);
      tables.reset(tracks, meta);
      return tables;
    },
    giveBack(tables) {
      // A long stall leaves many; one is enough.
      if (spare.length === 0) spare.push(tables);
    },
  };
}
