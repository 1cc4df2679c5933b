// The file of one segment: creates it with its first fragment, writes, and completes it, or gives it up after a fault. It joins the
// segment's tables with the writer's queue, so that the tables list what is in the file.

import { assert } from '../../../base/assert.ts';
import type { Clock } from '../../../base/clock.ts';
import { quietly } from '../../../base/error.ts';
import type { RecordedMeta, SegmentClosing } from '../../mp4/meta.ts';
import type { Sample } from '../../mp4/sample.ts';
import { closedSegment, recordedDetails, type ClosedSegment } from '../catalogue/segment.ts';
import type { Disk } from '../disk/disk-set.ts';
import { diskFault, FILE_REMOVED, type DiskFault } from '../disk/faults.ts';
import type { FileFacts, OpenFile } from '../disk/file-system.ts';
import { Unsynced, type CreatedSegment, type SegmentStore } from '../disk/segment-store.ts';
import { FileWriter, type FileWriterEvents, type KeyPlace, type WriterOutcome } from './file-writer.ts';
import type { Fragment } from './fragment-builder.ts';
import type { SegmentPlan, TablePool } from './segment-plan.ts';
import type { WriteBudget } from './write-budget.ts';

/** How a segment's file ended. */
export type SegmentResult =
  | {
      readonly kind: 'closed';
      readonly created: CreatedSegment;
      readonly closed: ClosedSegment;
    }
  /** Nothing was recorded in it and no file is left. */
  | { readonly kind: 'empty'; readonly created: CreatedSegment | undefined }
  /** The bytes that complete the file could not be written; recovery can do it later. */
  | {
      readonly kind: 'unfinished';
      readonly created: CreatedSegment;
      readonly cause: unknown;
      /** No sync covers what follows. */
      readonly syncedBytes: number;
    };

/** Receives the outcome of a file. */
export interface SegmentFileOwner {
  fileCreated(file: SegmentFile, created: CreatedSegment): void;
  fileWritten(file: SegmentFile, fragment: Fragment): void;
  /** The disk has stopped the file. The pictures that waited in its queue are lost. Called at most once. */
  fileFailed(file: SegmentFile, fault: DiskFault, droppedVideoFrames: number): void;
  fileSynced(durationMs: number): void;
}

interface SegmentFileOptions {
  readonly store: SegmentStore;
  readonly clock: Clock;
  readonly budget: WriteBudget;
  readonly syncIntervalMs: number;
  /** Gets the tables back when the file is complete. */
  readonly tables: TablePool;
  readonly owner: SegmentFileOwner;
}

export class SegmentFile implements FileWriterEvents {
  readonly plan: SegmentPlan;
  readonly first: Sample;
  readonly #options: SegmentFileOptions;
  #writer: FileWriter | undefined;
  #disk: Disk | undefined;
  #created: CreatedSegment | undefined;
  #closing: SegmentClosing = {};
  #hurried = false;
  #writtenEndMs: number | undefined;
  #done: Promise<SegmentResult> | undefined;
  #closed: ClosedSegment | undefined;
  #cutAt: number | undefined;
  #isCompleting = false;

  constructor(plan: SegmentPlan, first: Sample, options: SegmentFileOptions) {
    this.plan = plan;
    this.first = first;
    this.#options = options;
  }

  /** Undefined until the file exists. */
  get created(): CreatedSegment | undefined {
    return this.#created;
  }

  /** The disk that was chosen for it; undefined until then. */
  get disk(): Disk | undefined {
    return this.#disk;
  }

  /** Where it can be cut, so that nothing is lost of what follows; undefined before its first fragment. */
  get safe(): KeyPlace | undefined {
    return this.#writer?.safe;
  }

  /** Everything is written, and the file is being completed. */
  get isCompleting(): boolean {
    return this.#isCompleting;
  }

  /** Its pictures from this position on are in another file; undefined: it was not given up. */
  get cutAt(): number | undefined {
    return this.#cutAt;
  }

  get isGivenUp(): boolean {
    return this.#cutAt !== undefined;
  }

  giveUp(fault: DiskFault, cutAt: number): void {
    this.#cutAt = cutAt;
    this.#closing = {};
    this.#writer?.giveUp(fault, cutAt);
  }

  /** Bytes in the file now. */
  get writtenBytes(): number {
    return this.#closed?.sizeBytes ?? this.#writer?.sizeBytes ?? 0;
  }

  /** Wall time at which the file was changed last. */
  get modifiedMs(): number {
    return this.#closed?.mtimeMs ?? this.#writer?.modifiedMs ?? 0;
  }

  /** Wall time at which it ends; undefined until the file is complete. */
  get closedEndMs(): number | undefined {
    return this.#closed?.endMs;
  }

  /** Wall time up to which pictures are in the file; undefined when there are none. */
  get writtenEndMs(): number | undefined {
    return this.#writtenEndMs;
  }

  get fault(): DiskFault | undefined {
    return this.#writer?.fault;
  }

  /** Since when, on the clock of the time in which this process ran, nothing was written although something waits; undefined: nothing does. */
  get waitsSinceMs(): number | undefined {
    return this.#writer?.waitsSinceMs;
  }

  /** Takes over a fragment for which there is space in the budget, and writes it as soon as possible. */
  append(fragment: Fragment): void {
    assert(!this.fault, 'fragment for a file that has failed');
    const writer = (this.#writer ??= this.#start());
    writer.append(fragment);
  }

  tick(nowMs: number): void {
    this.#writer?.tick(nowMs);
  }

  /** Everything has been appended: writes what waits and completes the file. */
  finish(closing: SegmentClosing): void {
    this.#closing = closing;
    this.#writer?.end();
  }

  /** The process is about to end: work that takes long and can be left out is left out. */
  hurry(): void {
    this.#hurried = true;
  }

  written(fragment: Fragment): void {
    this.#writtenEndMs = fragment.videoEndMs ?? this.#writtenEndMs;
    this.#options.owner.fileWritten(this, fragment);
  }

  failed(fault: DiskFault, droppedVideoFrames: number): void {
    if (this.#disk && fault !== FILE_REMOVED) this.#options.store.disks.failed(this.#disk, fault);
    this.#options.owner.fileFailed(this, fault, droppedVideoFrames);
  }

  synced(durationMs: number): void {
    this.#options.owner.fileSynced(durationMs);
  }

  /** How it ends, once `finish` was called or the file has failed; never rejects. */
  get done(): Promise<SegmentResult> {
    return this.#done ?? Promise.resolve({ kind: 'empty', created: undefined });
  }

  #start(): FileWriter {
    const { clock, budget, syncIntervalMs } = this.#options;
    const open = (): Promise<OpenFile> => this.#create();
    const writer = new FileWriter(this.plan.tables.header(), { clock, budget, syncIntervalMs, open, events: this });
    this.#done = writer.done.then((outcome) => this.#complete(outcome));
    return writer;
  }

  async #create(): Promise<OpenFile> {
    const { store, owner } = this.#options;
    const { name, meta } = this.plan;
    const { file } = await store.create(name, meta.sequence, {
      placed: (disk) => (this.#disk = disk),
      announce: (created) => {
        this.#created = created;
        owner.fileCreated(this, created);
      },
    });
    return file;
  }

  async #complete({ file, sizeBytes, syncedBytes, unsyncedFrames, fault }: WriterOutcome): Promise<SegmentResult> {
    const created = this.#created;
    if (!file || !created) return { kind: 'empty', created: undefined };
    this.#isCompleting = true;
    try {
      return await this.#endAt(file, created, sizeBytes, fault).catch((cause: unknown) => {
        if (fault || !(cause instanceof Unsynced)) throw cause;
        const failed = diskFault(cause.cause);
        this.failed(failed, unsyncedFrames);
        this.#closing = {};
        return this.#endAt(file, created, this.#cutAt ?? syncedBytes, failed);
      });
    } catch (cause) {
      return { kind: 'unfinished', created, cause, syncedBytes };
    } finally {
      await quietly(file.close());
      this.#options.tables.giveBack(this.plan.tables);
    }
  }

  async #endAt(
    file: OpenFile,
    created: CreatedSegment,
    sizeBytes: number,
    fault: DiskFault | undefined,
  ): Promise<SegmentResult> {
    const wholeBytes = fault ? this.plan.tables.rollback(sizeBytes) : sizeBytes;
    if (fault && this.plan.tables.isEmpty) {
      await this.#options.store.discard(created.path, created.disk);
      return { kind: 'empty', created };
    }
    // A write that failed half-way may have left a part of a fragment after the last whole one.
    if (fault) await file.truncate(wholeBytes);
    return await this.#finalise(file, created, wholeBytes, fault);
  }

  async #finalise(
    file: OpenFile,
    created: CreatedSegment,
    sizeBytes: number,
    fault: DiskFault | undefined,
  ): Promise<SegmentResult> {
    const { store } = this.#options;
    if (this.plan.format === 'mp4' && !this.#hurried) {
      const progressive = this.plan.tables.progressive(this.#closing);
      try {
        const facts = await store.rewrite(file, created.path, progressive, () => this.#hurried);
        return this.#isClosed(created, facts, progressive.meta, fault);
      } catch {
        // No space or no time for a second copy: the same file, completed in place, contains the same and opens as well.
      }
    }
    const end = this.plan.tables.finish(this.#closing);
    return this.#isClosed(created, await store.complete(file, sizeBytes, end), end.meta, fault);
  }

  #isClosed(
    created: CreatedSegment,
    facts: FileFacts,
    meta: RecordedMeta,
    fault: DiskFault | undefined,
  ): SegmentResult {
    const closed = closedSegment(created.segment, recordedDetails(facts, meta), meta);
    this.#closed = fault ? { ...closed, fault: fault.code } : closed;
    return { kind: 'closed', created, closed: this.#closed };
  }
}
