// Writes audit entries as numbered, chained lines to files. Adding an entry never waits: lines wait for the disk in limited
// memory, and lines that find no space there are counted in the next one.

import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { Counter, type Registry } from 'prom-client';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';
import { quietly } from '../../base/error.ts';
import type { AuditEntry, AuditSink } from './entry.ts';
import { asideName, chainEndOf, filesOf, firstLineOf, hashOf, isAuditFile } from './files.ts';
import { NEWEST, NO_LINE, openFrom, type ChainEnd } from './files.ts';

const MAX_FILE_BYTES = 10 * 1024 * 1024;
/** About 500 bytes each. */
const MAX_WAITING = 4_096;
const RETRY_MS = 2_000;
/**
 * A line is passed to the operating system at once and synced after this time; a crash of the machine may lose the lines in
 * between.
 */
const SYNC_MS = 5_000;
/** A stop waits at most this long for a disk that hangs. */
const CLOSE_MS = 2_000;

export interface AuditTrailOptions {
  readonly directory: string;
  readonly node: string;
  /** Files whose last line is older are removed. */
  readonly maxAgeMs: number;
  /** The oldest files are removed while all together are larger. */
  readonly maxBytes: number;
  readonly maxFileBytes?: number;
  /** Also gets each line, at once and without its number. */
  readonly copy?: Pick<Log, 'info'> | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry?: Registry;
}

interface OpenFile {
  readonly handle: FileHandle;
  /** Number of the file's first line, or of the next line while the file is empty. */
  readonly first: number;
  size: number;
  /** The day of the last line, in days since 1970-01-01 UTC. */
  day: number;
}

const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);

export const auditLostLines = (registry: Registry): Counter =>
  new Counter({
    name: 'kube_nvr_audit_lost_lines_total',
    help: 'Audit lines that were lost because the disk did not accept them in time.',
    registers: [registry],
  });

export class AuditTrail implements AuditSink {
  readonly #options: AuditTrailOptions;
  readonly #waiting: object[] = [];
  readonly #closing = new AbortController();
  readonly #lostTotal: Counter | undefined;
  #file: OpenFile | undefined;
  #end: ChainEnd = { n: 0, sha256: NO_LINE };
  #lost = 0;
  #problem: string | undefined;
  #writing: Promise<void> | undefined;
  #syncTimer: Timer | undefined;
  #hourTimer: Timer | undefined;

  constructor(options: AuditTrailOptions) {
    this.#options = options;
    this.#lostTotal = options.registry && auditLostLines(options.registry);
    this.#everyHour();
  }

  /** Why lines are not being written; undefined while they are. */
  get problem(): string | undefined {
    return this.#problem ?? (this.#lost > 0 ? 'the disk is too slow: lines were lost' : undefined);
  }

  /** The last line that was written. */
  get end(): ChainEnd {
    return this.#end;
  }

  write(entry: AuditEntry): void {
    const { node, clock, copy } = this.#options;
    copy?.info(entry, 'audit');
    if (this.#waiting.length >= MAX_WAITING) {
      this.#lost++;
      this.#lostTotal?.inc();
      return;
    }
    const lost = this.#lost > 0 ? { lost: this.#lost } : {};
    this.#lost = 0;
    this.#waiting.push({ time: new Date(clock.wallMs()).toISOString(), node, ...entry, ...lost });
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when everything is written, or when the disk has had its time. */
  async close(): Promise<void> {
    this.#hourTimer?.cancel();
    this.#syncTimer?.cancel();
    const closed = new AbortController();
    const tooLong = this.#options.clock.sleep(CLOSE_MS, closed.signal);
    this.#closing.abort();
    await Promise.race([this.#writing?.then(() => this.#closeFile()) ?? this.#closeFile(), tooLong]);
    closed.abort();
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      try {
        this.#file ??= await this.#open();
        await this.#writeLines(this.#file);
        if (this.#problem !== undefined) this.#options.log.info({}, 'the audit can be written again');
        this.#problem = undefined;
      } catch (err) {
        await this.#closeFile();
        const { message } = err as Error;
        if (this.#problem === undefined)
          this.#options.log.error({ err }, 'the audit cannot be written: its lines wait in memory');
        this.#problem = message;
        if (this.#closing.signal.aborted) break;
        await this.#options.clock.sleep(RETRY_MS, this.#closing.signal);
      }
    }
    // Not in a callback: an entry added before it ran would wait for the next one.
    this.#writing = undefined;
  }

  async #writeLines(file: OpenFile): Promise<void> {
    const { maxFileBytes = MAX_FILE_BYTES, clock } = this.#options;
    const day = dayOf(clock.wallMs());
    let end = this.#end;
    let text = '';
    let taken = 0;
    for (const entry of file.size > 0 && file.day !== day ? [] : this.#waiting) {
      const line = JSON.stringify({ n: end.n + 1, ...entry, prev: end.sha256 });
      const before = file.size + text.length;
      if (before > 0 && before + line.length >= maxFileBytes) break;
      text += `${line}\n`;
      end = { n: end.n + 1, sha256: hashOf(line) };
      taken++;
    }
    if (taken === 0) return this.#putAside(file);
    try {
      await file.handle.appendFile(text);
    } catch (err) {
      // A part may be in the file: truncate it and write again.
      await quietly(file.handle.truncate(file.size));
      throw err;
    }
    this.#waiting.splice(0, taken);
    this.#end = end;
    file.size += Buffer.byteLength(text);
    file.day = day;
    this.#syncTimer ??= clock.after(SYNC_MS, () => {
      this.#syncTimer = undefined;
      // A file that was rotated meanwhile is synced when it is closed; the next line detects a failing disk.
      void quietly(this.#file?.handle.datasync());
    });
  }

  async #putAside({ first }: OpenFile): Promise<void> {
    const { directory } = this.#options;
    await this.#closeFile();
    await rename(join(directory, NEWEST), join(directory, asideName(first)));
    await this.#removeOld();
  }

  async #closeFile(): Promise<void> {
    const handle = this.#file?.handle;
    this.#file = undefined;
    await quietly(handle?.datasync());
    await quietly(handle?.close());
  }

  /** Continues where the last process ended, in whatever state it left the files. */
  async #open(): Promise<OpenFile> {
    const { directory, clock } = this.#options;
    await mkdir(directory, { recursive: true, mode: 0o750 });
    const path = join(directory, NEWEST);
    const handle = await open(path, 'a+', 0o640);
    try {
      const { size, mtimeMs } = await handle.stat();
      const line = await firstLineOf(handle);
      const end = await chainEndOf(handle);
      if (size > 0 && !(line && end)) {
        // From a version whose lines had no number, or a foreign file: it is kept, but is not part of the chain.
        await rename(path, join(directory, `audit-before_${clock.wallMs()}.log`));
        await handle.close();
        return await this.#open();
      }
      this.#end = end ?? (await this.#endOfOlder()) ?? this.#end;
      const isWhole = size === 0 || (await handle.read(Buffer.alloc(1), 0, 1, size - 1)).buffer[0] === 10;
      if (!isWhole) await handle.appendFile('\n');
      await this.#removeOld();
      return { handle, first: line?.n ?? this.#end.n + 1, size: isWhole ? size : size + 1, day: dayOf(mtimeMs) };
    } catch (err) {
      await quietly(handle.close());
      throw err;
    }
  }

  async #endOfOlder(): Promise<ChainEnd | undefined> {
    const { directory } = this.#options;
    const [newest] = await filesOf(directory);
    await using file = newest === undefined ? undefined : await openFrom(directory, newest);
    return file && (await chainEndOf(file));
  }

  /** Never removes the current file. */
  async #removeOld(): Promise<void> {
    const { directory, clock, maxAgeMs, maxBytes } = this.#options;
    const names = (await readdir(directory)).filter((name) => isAuditFile(name) && name !== NEWEST);
    const files = await Promise.all(
      names.map(async (name) => {
        const { mtimeMs, size } = await stat(join(directory, name));
        return { name, mtimeMs, size };
      }),
    );
    let kept = 0;
    for (const { name, mtimeMs, size } of files.toSorted(
      (a, b) => b.mtimeMs - a.mtimeMs || (a.name < b.name ? 1 : -1),
    )) {
      kept += size;
      if (kept > maxBytes || clock.wallMs() - mtimeMs > maxAgeMs) await rm(join(directory, name), { force: true });
    }
  }

  /** Writes the last line to the log: with a collected log, later changes of the files can be detected. */
  #everyHour(): void {
    const { clock, log } = this.#options;
    this.#hourTimer = clock.after(HOUR_MS, () => {
      if (this.#end.n > 0) log.info({ ...this.#end }, 'the last line of the audit has this hash');
      this.#everyHour();
    });
  }
}
