// The gap journal of one camera on the disk: records are appended at once, and read at the next start. A file that has
// grown is replaced by a shorter one with the same meaning, so that it stays small for years.

import { errorCode } from '../../../base/error.ts';
import type { Log } from '../../../base/log.ts';
import type { FileSystem, OpenFile } from '../disk/file-system.ts';
import { readIfThere, replaceFile } from '../disk/state-file.ts';
import { formatRecord, parseJournal, type LedgerRecord } from './record.ts';

interface JournalOptions {
  readonly fs: FileSystem;
  /** `.kube-nvr/gaps`, absolute. Created when it is missing; `.kube-nvr` must exist. */
  readonly directory: string;
  readonly name: string;
  readonly log: Log;
  /** Whether nothing may be written yet, because the file has not been read. */
  readonly isHeld: () => boolean;
  /** Rejects when the directory is not on the disk of the archive. */
  readonly checkDisk: () => Promise<void>;
  /** The records for a shorter file. */
  readonly snapshot: () => Iterable<LedgerRecord>;
}

/** A file is replaced when it has grown by this much, and to more than twice its size. */
const COMPACT_BYTES = 64 * 1024;
/** If more records wait for the disk, they are dropped, and the file is replaced by a snapshot when the disk returns. */
const MAX_WAITING = 4_096;

export class Journal {
  readonly #options: JournalOptions;
  readonly #path: string;
  #waiting: string[] = [];
  #replace = false;
  /** Waiting records were dropped: only a snapshot contains them. */
  #lost = false;
  /** A file that could not be read must not be replaced. */
  #readable = true;
  #sizeBytes = 0;
  #compactAtBytes = COMPACT_BYTES;
  /** The last line may be incomplete, because of a crash or a failed write. */
  #torn = true;
  #unsynced = false;
  #failing = false;
  #work: Promise<void> = Promise.resolve();
  #scheduled = false;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#path = `${options.directory}/${options.name}`;
  }

  /** Records of earlier processes, without damaged lines. Never rejects: what cannot be read is missing. */
  async read(): Promise<LedgerRecord[]> {
    try {
      return parseJournal((await readIfThere(this.#options.fs, this.#path)) ?? '');
    } catch (err) {
      this.#readable = false;
      this.#options.log.error({ file: this.#path, err }, 'a gap journal cannot be read');
      return [];
    }
  }

  /** Writes as soon as possible; records that the disk refuses now wait for `flush`. */
  append(record: LedgerRecord): void {
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(formatRecord(record));
    else if (this.#readable) {
      this.#waiting = [];
      this.#replace = true;
      this.#lost = true;
    }
    if (!this.#failing) this.#schedule();
  }

  /** Replaces the content of the file by the snapshot. */
  replace(): void {
    this.#replace = true;
    this.#lost = true;
    this.#schedule();
  }

  /** Writes and syncs waiting records. Never rejects. */
  flush(): Promise<void> {
    this.#work = this.#work.then(() => this.#write()).then(() => this.#sync());
    return this.#work;
  }

  /** Whether a power failure would lose records. */
  get dirty(): boolean {
    return this.#unsynced || this.#replace || this.#waiting.length > 0;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#work = this.#work.then(() => {
      this.#scheduled = false;
      return this.#write();
    });
  }

  async #write(): Promise<void> {
    if (this.#options.isHeld() || (!this.#replace && this.#waiting.length === 0)) return;
    try {
      await this.#options.checkDisk();
      if (this.#replace) await this.#compact();
      else await this.#append();
      this.#failing = false;
    } catch (err) {
      this.#torn = true;
      // Logged once per failure, not per attempt.
      if (!this.#failing) this.#options.log.warn({ file: this.#path, err }, 'a gap journal cannot be written');
      this.#failing = true;
    }
  }

  async #append(): Promise<void> {
    const lines = this.#take();
    try {
      const text = Buffer.from((this.#torn ? '\n' : '') + lines.join(''));
      const file = await this.#open();
      try {
        const { sizeBytes } = await file.facts();
        this.#sizeBytes = sizeBytes + (await file.write([text], sizeBytes));
      } finally {
        await file.close();
      }
    } catch (err) {
      this.#waiting.unshift(...lines);
      throw err;
    }
    this.#torn = false;
    this.#unsynced = true;
    if (this.#sizeBytes > this.#compactAtBytes && this.#readable) {
      this.#replace = true;
      this.#schedule();
    }
  }

  async #compact(): Promise<void> {
    // Waiting records are already in the snapshot.
    const lines = this.#take();
    const lost = this.#lost;
    this.#lost = false;
    this.#replace = false;
    const text = Array.from(this.#options.snapshot(), formatRecord).join('');
    try {
      await this.#makeDirectory();
      await replaceFile(this.#options.fs, this.#path, text);
    } catch (err) {
      // A longer file does no harm; the next attempt follows when it has grown further. But waiting records exist nowhere
      // else.
      this.#waiting.unshift(...lines);
      this.#lost ||= lost;
      this.#replace = this.#lost;
      this.#compactAtBytes = this.#sizeBytes + COMPACT_BYTES;
      throw err;
    }
    this.#sizeBytes = text.length;
    this.#compactAtBytes = Math.max(COMPACT_BYTES, 2 * text.length);
    this.#torn = false;
    this.#unsynced = false;
  }

  /** Takes the waiting lines: more may be appended while these are written. */
  #take(): string[] {
    const lines = this.#waiting;
    this.#waiting = [];
    return lines;
  }

  async #open(): Promise<OpenFile> {
    const { fs, directory } = this.#options;
    try {
      return await fs.open(this.#path, 'read-write');
    } catch (err) {
      if (errorCode(err) !== 'ENOENT') throw err;
    }
    await this.#makeDirectory();
    const file = await fs.create(this.#path);
    await fs.syncDirectory(directory);
    return file;
  }

  async #makeDirectory(): Promise<void> {
    const { fs, directory } = this.#options;
    try {
      await fs.makeDirectory(directory);
    } catch (err) {
      if (errorCode(err) === 'EEXIST') return;
      throw err;
    }
    await fs.syncDirectory(directory.slice(0, directory.lastIndexOf('/')));
  }

  async #sync(): Promise<void> {
    if (!this.#unsynced) return;
    try {
      const file = await this.#options.fs.open(this.#path, 'read-write');
      try {
        await file.syncData();
      } finally {
        await file.close();
      }
      this.#unsynced = false;
    } catch (err) {
      this.#options.log.debug({ file: this.#path, err }, 'a gap journal cannot be synced yet');
      // Linux reports that once, and may have dropped the lines: a later sync of the same file proves nothing.
      if (this.#readable) this.#replace = this.#lost = true;
    }
  }
}
