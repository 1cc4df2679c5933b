// A queue of row changes for the database, stored on disk. It survives a crash at any point; changes that were applied but not
// yet removed are applied again, which changes nothing.
//
// Lines are appended to numbered files of about a megabyte. The oldest file is in memory and the newest is being written; those
// in between are only on disk, so that a database that is unreachable for weeks costs no memory. A file is removed once all of it
// was applied.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ignoreMissing } from '../../base/file-calls.ts';
import { quietly } from '../../base/error.ts';
import type { FileSystem, OpenFile } from '../archive/disk/file-system.ts';
import { makeDirectories } from '../archive/disk/state-file.ts';
import { formatLine, parseLine, type RowChange } from './row.ts';

interface RowQueueOptions {
  /** Absolute path; created if it does not exist. */
  readonly directory: string;
  readonly fs: FileSystem;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxFileBytes?: number;
}

export interface Queued {
  readonly change: RowChange;
  applied: boolean;
}

interface QueueFile {
  readonly number: number;
  lines: number;
}

const MAX_FILE_BYTES = 1024 * 1024;
/** A completely applied file is removed only if it is larger; after a start its changes are applied again. */
const SWEEP_BYTES = 64 * 1024;
/** How many changes are kept in memory if the disk takes none; the rows of further ones are found missing at the next start. */
const MAX_UNWRITTEN = 10_000;
const RETRY_MS = 5_000;
const NAME = /^(\d{10})\.rows$/;

export class RowQueue {
  readonly #options: RowQueueOptions;
  readonly #maxFileBytes: number;
  /** Oldest first. The unapplied changes of the first one are in `#window`. */
  #files: QueueFile[] = [];
  #window: Queued[] = [];
  /** Pushed but not on the disk yet. */
  #unwritten: Queued[] = [];
  /** The last of `#files`, if this run created it. */
  #tail: { readonly file: OpenFile; sizeBytes: number } | undefined;
  #nextNumber = 1;
  #loaded = false;
  #failing = false;
  #overflowed = 0;
  #work: Promise<void> | undefined;
  /** There may be something to do since the last check. */
  #again = false;
  readonly #closing = new AbortController();
  #waiting: (() => void)[] = [];

  constructor(options: RowQueueOptions) {
    this.#options = options;
    this.#maxFileBytes = options.maxFileBytes ?? MAX_FILE_BYTES;
  }

  /** Loads what the last run left; until then, changes wait in memory. Resolves when it is loaded or the disk refuses. */
  async open(): Promise<void> {
    this.#startWork();
    await this.settled();
  }

  /** Adds a change; it is written to the disk soon. */
  push(change: RowChange): void {
    // Applied changes need not wait for the disk: the next start compares rows and files.
    if (this.#unwritten.length >= MAX_UNWRITTEN) this.#unwritten = this.#unwritten.filter(({ applied }) => !applied);
    if (this.#unwritten.length >= MAX_UNWRITTEN) {
      this.#overflowed++;
      return;
    }
    this.#unwritten.push({ change, applied: false });
    if (this.#loaded) this.#startWork();
    this.#wake();
  }

  /** The oldest unapplied changes, up to `count`. */
  peek(count: number): readonly Queued[] {
    if (!this.#loaded) return [];
    const found = this.#window.slice(0, count);
    if (!this.isInMemory) return found;
    for (const queued of this.#unwritten) {
      if (found.length >= count) break;
      if (!queued.applied) found.push(queued);
    }
    return found;
  }

  /** Marks changes from `peek` as applied. */
  applied(changes: readonly Queued[]): void {
    for (const queued of changes) queued.applied = true;
    this.#window = this.#window.filter((queued) => !queued.applied);
    if (this.#window.length === 0) this.#startWork();
  }

  /** All unapplied changes in order; undefined if some of them are only on disk. */
  pending(): readonly RowChange[] | undefined {
    if (!this.isInMemory || !this.#loaded) return undefined;
    return [...this.#window, ...this.#unwritten].flatMap(({ change, applied }) => (applied ? [] : [change]));
  }

  /** The number of unapplied changes. */
  get length(): number {
    const onDiskOnly = this.#files.slice(1).reduce((sum, file) => sum + file.lines, 0);
    return this.#window.length + onDiskOnly + this.#unwritten.filter(({ applied }) => !applied).length;
  }

  /** Changes that were given up because the disk took none for too long. */
  get overflowed(): number {
    return this.#overflowed;
  }

  /** Whether no change is only on disk. */
  get isInMemory(): boolean {
    return this.#files.length <= 1;
  }

  /** Resolves when there is something to apply, or when `signal` aborts. */
  async filled(signal: AbortSignal): Promise<void> {
    const wake = (): void => this.#wake();
    signal.addEventListener('abort', wake, { once: true });
    while (!signal.aborted && this.peek(1).length === 0) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    signal.removeEventListener('abort', wake);
  }

  /** Resolves when everything pushed is on the disk, or when the disk refuses. */
  async settled(): Promise<void> {
    while (this.#work && !this.#failing) {
      await Promise.race([this.#work, new Promise<void>((resolve) => this.#waiting.push(resolve))]);
    }
  }

  /** Writes to the disk what it takes. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#startWork();
    await this.#work;
    await quietly(this.#tail?.file.close());
    this.#tail = undefined;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  #startWork(): void {
    this.#again = true;
    this.#work ??= this.#untilDone();
  }

  /** All disk access happens here, one operation after another. */
  async #untilDone(): Promise<void> {
    const { clock, log, directory } = this.#options;
    for (;;) {
      try {
        this.#again = false;
        const more = await this.#step();
        if (this.#failing) log.info({ directory }, 'the queue of database rows can be written to the disk again');
        this.#failing = false;
        if (more || this.#again) continue;
        // Cleared at once: a change added now must start a new run.
        this.#work = undefined;
        return;
      } catch (err) {
        if (!this.#failing) log.warn({ directory, err }, 'the queue of database rows cannot be written to the disk');
        this.#failing = true;
        this.#wake();
        if (this.#closing.signal.aborted) {
          this.#work = undefined;
          return;
        }
        await clock.sleep(RETRY_MS, this.#closing.signal);
      }
    }
  }

  /** Does one thing that is due; false if there is none. */
  async #step(): Promise<boolean> {
    if (!this.#loaded) {
      await this.#load();
      return true;
    }
    const [head] = this.#files;
    if (head && this.#window.length === 0) {
      if (!this.isInMemory) {
        await this.#remove(head);
        await this.#loadHead();
        return true;
      }
      // All of it was applied.
      const sizeBytes = this.#tail?.sizeBytes ?? Infinity;
      if (sizeBytes > SWEEP_BYTES || (this.#closing.signal.aborted && this.#unwritten.length === 0)) {
        await this.#remove(head);
        return true;
      }
    }
    if (this.#unwritten.length === 0) return false;
    await this.#write();
    return true;
  }

  async #load(): Promise<void> {
    const { fs, directory } = this.#options;
    await makeDirectories(this.#options.fs, directory);
    const numbers = (await fs.list(directory)).flatMap((name) => {
      const digits = NAME.exec(name)?.[1];
      return digits === undefined ? [] : [Number(digits)];
    });
    const files: QueueFile[] = [];
    for (const number of numbers.sort((a, b) => a - b)) {
      files.push({ number, lines: (await this.#read(number)).length });
      this.#nextNumber = number + 1;
    }
    this.#files = files;
    await this.#loadHead();
    this.#loaded = true;
  }

  async #loadHead(): Promise<void> {
    const [head] = this.#files;
    this.#window = head ? (await this.#read(head.number)).map((change) => ({ change, applied: false })) : [];
    // Lines that were applied while they were being written are applied again, so what follows them must be too.
    for (const queued of this.#unwritten) queued.applied = false;
    this.#wake();
  }

  async #read(number: number): Promise<RowChange[]> {
    const file = await this.#options.fs.open(this.#path(number), 'read');
    try {
      const { sizeBytes } = await file.facts();
      const lines = (await file.read(0, sizeBytes)).toString('utf8').split('\n');
      // After the last line break is what was being written when the process ended.
      lines.pop();
      // A damaged line must not cost the others; its file is found when rows and files are compared.
      return lines.flatMap((line) => parseLine(line) ?? []);
    } finally {
      await file.close();
    }
  }

  async #write(): Promise<void> {
    const seen = new Set(this.#unwritten);
    // The lines on the disk may be applied again. What was applied after them must then follow, or the row of a file that is gone
    // would return.
    const batch = [...seen].filter(({ applied }) => !applied || this.#files.length > 0);
    if (batch.length > 0) {
      const bytes = Buffer.from(batch.map(({ change }) => formatLine(change)).join(''));
      const tail = await this.#tailFor();
      try {
        await tail.file.write([bytes], tail.sizeBytes);
        await tail.file.syncData();
      } catch (err) {
        // The content of this file is uncertain, so the lines are written to another one; duplicates do no harm.
        await this.#abandonTail();
        throw err;
      }
      tail.sizeBytes += bytes.length;
      (this.#files.at(-1) as QueueFile).lines += batch.length;
    }
    this.#unwritten = this.#unwritten.filter((queued) => !seen.has(queued));
    if (this.isInMemory) this.#window.push(...batch.filter(({ applied }) => !applied));
  }

  async #tailFor(): Promise<{ readonly file: OpenFile; sizeBytes: number }> {
    if (this.#tail && this.#tail.sizeBytes < this.#maxFileBytes) return this.#tail;
    const { fs, directory } = this.#options;
    await makeDirectories(this.#options.fs, directory);
    const number = this.#nextNumber;
    // A file whose creation seemed to fail may exist; it is empty, so it can be replaced.
    await fs.remove(this.#path(number)).catch(ignoreMissing);
    const file = await fs.create(this.#path(number));
    try {
      await fs.syncDirectory(directory);
    } catch (err) {
      await quietly(file.close());
      throw err;
    }
    await quietly(this.#tail?.file.close());
    this.#nextNumber++;
    this.#files.push({ number, lines: 0 });
    this.#tail = { file, sizeBytes: 0 };
    return this.#tail;
  }

  async #abandonTail(): Promise<void> {
    await quietly(this.#tail?.file.close());
    this.#tail = undefined;
    const last = this.#files.at(-1);
    if (last?.lines !== 0) return;
    this.#files.pop();
    await quietly(this.#options.fs.remove(this.#path(last.number)));
  }

  async #remove(head: QueueFile): Promise<void> {
    if (this.isInMemory) {
      await quietly(this.#tail?.file.close());
      this.#tail = undefined;
    }
    await this.#options.fs.remove(this.#path(head.number)).catch(ignoreMissing);
    this.#files.shift();
  }

  #path(number: number): string {
    return `${this.#options.directory}/${String(number).padStart(10, '0')}.rows`;
  }
}
