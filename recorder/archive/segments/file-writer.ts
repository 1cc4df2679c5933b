// Writes the fragments of one segment to its file. `append` returns at once. One write runs at a time and takes everything that
// waits; syncs run at the same time. An error stops this file and no other.

import type { Clock } from '../../../base/clock.ts';
import { diskFault, FILE_REMOVED, type DiskFault } from '../disk/faults.ts';
import type { OpenFile } from '../disk/file-system.ts';
import type { Sample } from '../../mp4/sample.ts';
import type { Fragment } from './fragment-builder.ts';
import type { WriteBudget } from './write-budget.ts';

/** About how often `tick` is called: a sync starts one call early rather than late. */
const TICK_MS = 250;
/** The kernel takes about this many pieces in one writev; more would become several writes. */
const MAX_PIECES = 1_000;
/** After a stall every file has much to write. With a limit, the files take turns and memory is released bit by bit. */
const MAX_WRITE_BYTES = 4 * 1024 * 1024;

export interface FileWriterEvents {
  /** A fragment is in the file (not yet synced). */
  written(fragment: Fragment): void;
  /** The file is stopped, and fragments that waited, or that no sync covers, are dropped. Called at most once. */
  failed(fault: DiskFault, droppedVideoFrames: number): void;
  /** A sync took this long; `FileWriter.safe` may be another one now. */
  synced?(durationMs: number): void;
}

interface FileWriterOptions {
  readonly clock: Clock;
  /** Opens or creates the file; called at once. */
  readonly open: () => Promise<OpenFile>;
  readonly budget: WriteBudget;
  readonly syncIntervalMs: number;
  readonly events: FileWriterEvents;
}

/** A place in the file at which a fragment begins with a key frame. */
export interface KeyPlace {
  readonly key: Sample;
  readonly position: number;
  /** Wall time at which the picture before it ends; undefined for the first one. */
  readonly wallMs: number | undefined;
}

/** How writing ended. `file` is still open; undefined if it was never opened. */
export interface WriterOutcome {
  readonly file: OpenFile | undefined;
  /** Bytes that are certainly in the file: after a failed sync, those of the last good one. */
  readonly sizeBytes: number;
  /** Those that a sync has covered, and the pictures behind them. */
  readonly syncedBytes: number;
  readonly unsyncedFrames: number;
  readonly fault: DiskFault | undefined;
}

export class FileWriter {
  readonly #options: FileWriterOptions;
  readonly #queue: Fragment[] = [];
  #file: OpenFile | undefined;
  #position = 0;
  #modifiedMs = 0;
  #syncedPosition = 0;
  /** Pictures up to `#position`, and up to `#syncedPosition`. */
  #frames = 0;
  #syncedFrames = 0;
  /** From the last one that a sync has covered on. */
  #keys: KeyPlace[] = [];
  #endMs: number | undefined;
  /** When the oldest fragment came, or the one before it was written. */
  #waitsSinceMs = 0;
  #cutAt: number | undefined;
  #lastSyncMs: number;
  #sync: Promise<void> | undefined;
  #fault: DiskFault | undefined;
  #ending = false;
  /** Everything is written or given up. The receiver of `done` closes the file, so no sync may begin any more. */
  #drained = false;
  #wake: () => void = () => {};
  /** Settles when the writer has nothing more to do; never rejects. */
  readonly done: Promise<WriterOutcome>;

  constructor(head: Buffer, options: FileWriterOptions) {
    this.#options = options;
    this.#lastSyncMs = options.clock.monotonicMs();
    this.done = this.#run(head);
  }

  /** Bytes in the file so far. */
  get sizeBytes(): number {
    return this.#position;
  }

  /** Wall time of the last write. */
  get modifiedMs(): number {
    return this.#modifiedMs;
  }

  get fault(): DiskFault | undefined {
    return this.#fault;
  }

  /** Since when, on the clock of the time in which this process ran, nothing was written although something waits; undefined: nothing does. */
  get waitsSinceMs(): number | undefined {
    return this.#queue.length > 0 ? this.#waitsSinceMs : undefined;
  }

  /** The last key frame up to which everything is safe; undefined before the first fragment. */
  get safe(): KeyPlace | undefined {
    return this.#keys[0];
  }

  /** What follows `cutAt` goes into another file: nothing more is written, and it is cut there. */
  giveUp(fault: DiskFault, cutAt: number): void {
    this.#cutAt = cutAt;
    this.#fault ??= fault;
    for (const fragment of this.#queue.splice(0)) this.#drop(fragment);
    this.#wake();
  }

  /** Takes over a fragment for which the caller has taken space in the budget. */
  append(fragment: Fragment): void {
    if (this.#fault) return this.#drop(fragment);
    if (this.#queue.length === 0) this.#waitsSinceMs = this.#options.clock.ranMs();
    this.#queue.push(fragment);
    this.#wake();
  }

  /** Nothing more will be appended: `done` settles when the waiting fragments are written. */
  end(): void {
    this.#ending = true;
    this.#wake();
  }

  /** Starts a sync when one is due. */
  tick(nowMs: number): void {
    if (this.#sync || !this.#file || this.#fault || this.#drained) return;
    if (nowMs - this.#lastSyncMs <= this.#options.syncIntervalMs - TICK_MS) return;
    this.#lastSyncMs = nowMs;
    if (this.#position > this.#syncedPosition) this.#sync = this.#syncNow(this.#file, nowMs);
  }

  async #run(head: Buffer): Promise<WriterOutcome> {
    try {
      this.#file = await this.#options.open();
      await this.#writeHead(this.#file, head);
      while (!this.#fault) {
        if (this.#queue.length > 0) await this.#writeWaiting(this.#file);
        else if (this.#ending) break;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } catch (err) {
      this.#fail(diskFault(err));
    }
    this.#drained = true;
    await this.#sync;
    return {
      file: this.#file,
      sizeBytes: this.#cutAt ?? this.#position,
      syncedBytes: this.#syncedPosition,
      unsyncedFrames: this.#frames - this.#syncedFrames,
      fault: this.#fault,
    };
  }

  /** The header is synced before any fragment is written: without a whole header, the fragments after it could not be found. */
  async #writeHead(file: OpenFile, head: Buffer): Promise<void> {
    const written = await file.write([head], 0);
    await file.syncData();
    this.#position = written;
    this.#modifiedMs = this.#options.clock.wallMs();
    this.#syncedPosition = written;
  }

  async #writeWaiting(file: OpenFile): Promise<void> {
    const buffers: Buffer[] = [];
    let count = 0;
    let bytes = 0;
    while (count < this.#queue.length && buffers.length < MAX_PIECES && bytes < MAX_WRITE_BYTES) {
      for (const buffer of (this.#queue[count] as Fragment).buffers) {
        buffers.push(buffer);
        bytes += buffer.length;
      }
      count++;
    }
    const written = await file.write(buffers, this.#position);
    // A sync that failed meanwhile has emptied the queue.
    if (this.#fault) return;
    let at = this.#position;
    this.#position += written;
    this.#modifiedMs = this.#options.clock.wallMs();
    this.#waitsSinceMs = this.#options.clock.ranMs();
    for (const fragment of this.#queue.splice(0, count)) {
      if (fragment.key) this.#keys.push({ key: fragment.key, position: at, wallMs: this.#endMs });
      for (const buffer of fragment.buffers) at += buffer.length;
      this.#endMs = fragment.videoEndMs ?? this.#endMs;
      this.#options.budget.giveBack(fragment);
      fragment.release();
      this.#frames += fragment.videoFrames;
      this.#options.events.written(fragment);
    }
  }

  async #syncNow(file: OpenFile, startedMs: number): Promise<void> {
    const [position, frames] = [this.#position, this.#frames];
    try {
      await file.syncData();
      // Writing to a removed file keeps succeeding, and everything is lost.
      if ((await file.facts()).links === 0) this.#fail(FILE_REMOVED);
      this.#syncedPosition = position;
      this.#syncedFrames = frames;
      const safe = this.#keys.findLastIndex((place) => place.position <= position);
      if (safe > 0) this.#keys.splice(0, safe);
      this.#options.events.synced?.(this.#options.clock.monotonicMs() - startedMs);
    } catch (err) {
      // Linux reports the error once and may have dropped the pages; later syncs succeed. What no sync has covered is lost.
      this.#position = this.#syncedPosition;
      this.#fail(diskFault(err), this.#frames - this.#syncedFrames);
    } finally {
      this.#sync = undefined;
    }
  }

  #fail(fault: DiskFault, lostFrames = 0): void {
    if (this.#fault) return;
    this.#fault = fault;
    let frames = lostFrames;
    for (const fragment of this.#queue.splice(0)) {
      frames += fragment.videoFrames;
      this.#drop(fragment);
    }
    this.#wake();
    this.#options.events.failed(fault, frames);
  }

  #drop(fragment: Fragment): void {
    this.#options.budget.giveBack(fragment);
    fragment.release();
  }
}
