// One segment on its way to the disk: fragments in; created, written, completed or given up out. Joins the mp4 room's
// tables with the writer's queue, so that what the tables say is in the file is in the file.

import { assert } from '../../../base/assert.ts';
import type { Clock } from '../../../base/clock.ts';
import type { VideoParameters } from '../../codec/access-unit.ts';
import type { RecordedMeta, SegmentClosing, SegmentMeta } from '../../mp4/meta.ts';
import type { TrackParameters } from '../../mp4/sample.ts';
import type { SegmentWriter } from '../../mp4/segment.ts';
import { closedSegment, recordedDetails, type ClosedSegment, type RecordFormat } from '../catalogue/segment.ts';
import type { DiskFault } from '../disk/faults.ts';
import type { FileFacts, OpenFile } from '../disk/file-system.ts';
import type { SegmentName } from '../disk/names.ts';
import type { CreatedSegment, SegmentStore } from '../disk/segment-store.ts';
import { FileWriter, type WriterOutcome } from './file-writer.ts';
import type { Fragment, FragmentBuilder } from './fragment-builder.ts';
import type { WriteBudget } from './write-budget.ts';

/** What a segment is to be. */
export interface SegmentPlan {
  readonly format: RecordFormat;
  readonly name: SegmentName;
  readonly tracks: readonly TrackParameters[];
  readonly meta: SegmentMeta;
}

/** How a segment's file ended. */
export type SegmentResult =
  | {
      readonly kind: 'closed';
      readonly created: CreatedSegment;
      readonly closed: ClosedSegment;
    }
  /** Nothing was recorded in it and no file is left. */
  | { readonly kind: 'empty'; readonly created: CreatedSegment | undefined }
  /** The disk did not even take what completes the file; recovery can do it later. */
  | { readonly kind: 'unfinished'; readonly created: CreatedSegment; readonly cause: unknown };

export interface SegmentFileEvents {
  created(segment: CreatedSegment): void;
  written(fragment: Fragment): void;
  failed(fault: DiskFault, droppedVideoFrames: number): void;
  synced(durationMs: number): void;
}

/** The tables of a file grow to some 200 KB; the next file fills the same again. */
export interface TablePool {
  /** Throws Mp4Error when the tracks cannot be described in a file. */
  take(tracks: readonly TrackParameters[], meta: SegmentMeta): SegmentWriter;
  giveBack(tables: SegmentWriter): void;
}

export interface SegmentFileOptions {
  readonly store: SegmentStore;
  readonly clock: Clock;
  readonly budget: WriteBudget;
  readonly syncIntervalMs: number;
  readonly tables: TablePool;
  readonly events: SegmentFileEvents;
}

export class SegmentFile {
  readonly plan: SegmentPlan;
  readonly #o: SegmentFileOptions;
  readonly #tables: SegmentWriter;
  #writer: FileWriter | undefined;
  #created: CreatedSegment | undefined;
  #closing: SegmentClosing = {};
  #hurried = false;
  #fragmentsWritten = 0;
  #writtenEndMs: number | undefined;
  #done: Promise<SegmentResult> | undefined;
  #closed: ClosedSegment | undefined;

  /** Throws Mp4Error when the tracks cannot be described in a file. The file itself begins with the first fragment. */
  constructor(plan: SegmentPlan, options: SegmentFileOptions) {
    this.plan = plan;
    this.#o = options;
    this.#tables = options.tables.take(plan.tracks, plan.meta);
  }

  /** Undefined until the file exists. */
  get created(): CreatedSegment | undefined {
    return this.#created;
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

  /** Bytes in the file when everything that waits is written. */
  get sizeBytes(): number {
    return this.#tables.size;
  }

  get fault(): DiskFault | undefined {
    return this.#writer?.fault;
  }

  change(video: VideoParameters): void {
    this.#tables.change(video);
  }

  /** Empties `builder` into the file's queue. False, with `builder` untouched, when there is no room to wait in. */
  append(builder: FragmentBuilder): boolean {
    assert(!this.fault, 'fragment for a file that has failed');
    if (!this.#o.budget.take(builder)) return false;
    const writer = (this.#writer ??= this.#start());
    writer.append(builder.take((tracks, sampleChecksum) => this.#tables.append(tracks, sampleChecksum)));
    return true;
  }

  tick(nowMs: number): void {
    this.#writer?.tick(nowMs);
  }

  /** Everything has been appended: writes what waits and completes the file. */
  finish(closing: SegmentClosing): void {
    this.#closing = closing;
    this.#writer?.end();
  }

  /** The process is about to end: what takes long and can be left is left. */
  hurry(): void {
    this.#hurried = true;
  }

  /** How it ends, once `finish` was called or the file has failed; never rejects. */
  get done(): Promise<SegmentResult> {
    return this.#done ?? Promise.resolve({ kind: 'empty', created: undefined });
  }

  #start(): FileWriter {
    const { clock, budget, syncIntervalMs, events, store } = this.#o;
    const writer = new FileWriter(this.#tables.header(), {
      clock,
      budget,
      syncIntervalMs,
      open: async () => {
        const { name, meta } = this.plan;
        const { file } = await store.create(name, meta.sequence, (created) => {
          this.#created = created;
          events.created(created);
        });
        return file;
      },
      events: {
        written: (fragment) => {
          this.#fragmentsWritten++;
          this.#writtenEndMs = fragment.videoEndMs ?? this.#writtenEndMs;
          events.written(fragment);
        },
        failed: (fault, frames) => events.failed(fault, frames),
        synced: (durationMs) => events.synced(durationMs),
      },
    });
    this.#done = writer.done.then((outcome) => this.#complete(outcome));
    return writer;
  }

  async #complete({ file, sizeBytes, fault }: WriterOutcome): Promise<SegmentResult> {
    const created = this.#created;
    if (!file || !created) return { kind: 'empty', created: undefined };
    try {
      if (fault && this.#fragmentsWritten === 0) {
        await this.#o.store.discard(created.path);
        return { kind: 'empty', created };
      }
      const wholeBytes = fault ? this.#tables.rollback(sizeBytes) : sizeBytes;
      // A write that failed half-way may have left a part of a fragment behind what is known to be whole.
      if (fault) await file.truncate(wholeBytes);
      return await this.#finalise(file, created, wholeBytes);
    } catch (cause) {
      return { kind: 'unfinished', created, cause };
    } finally {
      await file.close().catch(() => {});
      this.#o.tables.giveBack(this.#tables);
    }
  }

  async #finalise(file: OpenFile, created: CreatedSegment, sizeBytes: number): Promise<SegmentResult> {
    const { store } = this.#o;
    if (this.plan.format === 'mp4' && !this.#hurried) {
      const progressive = this.#tables.progressive(this.#closing);
      try {
        const facts = await store.rewrite(file, created.path, progressive, () => this.#hurried);
        return this.#isClosed(created, facts, progressive.meta);
      } catch {
        // No room or no time for a second copy: the file completed in its place holds the same and opens as well.
      }
    }
    const end = this.#tables.finish(this.#closing);
    return this.#isClosed(created, await store.complete(file, sizeBytes, end), end.meta);
  }

  #isClosed(created: CreatedSegment, facts: FileFacts, meta: RecordedMeta): SegmentResult {
    this.#closed = closedSegment(created.segment, recordedDetails(facts, meta), meta);
    return { kind: 'closed', created, closed: this.#closed };
  }
}
