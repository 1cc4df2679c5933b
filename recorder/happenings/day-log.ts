// The events of one camera on one day: a file to which lines are appended. What `add` has resolved is on the disk; a line that a
// crash left incomplete is no event. An event without an end may come again with it, as another line.

import { errorCode } from '../../base/error.ts';
import type { Turns } from '../../base/turns.ts';
import type { FileSystem, OpenFile } from '../archive/disk/file-system.ts';
import { makeDirectories, readIfThere } from '../archive/disk/state-file.ts';
import {
  HappeningError,
  identityOf,
  isChangeOf,
  parseHappening,
  type Happening,
  type HappeningLine,
} from './happening.ts';

/** Of a camera and day. A source that reports without end must not fill the disk. */
export const MAX_EVENTS = 10_000;
const MAX_BYTES = 8 * 1024 * 1024;
const LINES_AT_ONCE = 500;

interface PendingWrite {
  readonly events: readonly HappeningLine[];
  readonly resolve: (fresh: readonly HappeningLine[]) => void;
  readonly reject: (err: unknown) => void;
}

/** What is known of the file. */
interface WrittenDay {
  readonly events: Map<string, Pick<HappeningLine, 'end_ms' | 'removed_by'>>;
  sizeBytes: number;
  /** The last line is incomplete. */
  isTorn: boolean;
}

export class DayLog {
  readonly #fs: FileSystem;
  readonly #directory: string;
  readonly #path: string;
  readonly #checkDisk: () => Promise<void>;
  readonly #turns: Turns;
  #waiting: PendingWrite[] = [];
  #isWriting = false;
  #written: WrittenDay | undefined;

  /**
   * `directory`: absolute. `checkDisk` rejects when it is not on the disk of the archive. `turns`: of all days, so that a disk that
   * hangs does not occupy the threads in which footage is written.
   */
  constructor(place: {
    readonly fs: FileSystem;
    readonly directory: string;
    readonly name: string;
    readonly checkDisk: () => Promise<void>;
    readonly turns: Turns;
  }) {
    this.#fs = place.fs;
    this.#directory = place.directory;
    this.#path = `${place.directory}/${place.name}`;
    this.#checkDisk = place.checkDisk;
    this.#turns = place.turns;
  }

  get isIdle(): boolean {
    return !this.#isWriting;
  }

  /**
   * Resolves to those that are new, when all are on the disk: all of them or, if it rejects, any. Rejects with HappeningError
   * `too-many`, and with the error of the system.
   */
  add(events: readonly HappeningLine[]): Promise<readonly HappeningLine[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly HappeningLine[]>();
    this.#waiting.push({ events, resolve, reject });
    if (!this.#isWriting) void this.#writeAll();
    return promise;
  }

  /** One write at a time: what arrives meanwhile shares the next. Never rejects. */
  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const taken = this.#waiting;
      this.#waiting = [];
      try {
        await this.#turns.take(() => this.#write(taken));
      } catch (err) {
        // A part of it may be in the file.
        this.#written = undefined;
        for (const { reject } of taken) reject(err);
      }
    }
    this.#isWriting = false;
  }

  async #write(taken: readonly PendingWrite[]): Promise<void> {
    await this.#checkDisk();
    const file = await this.#open();
    const answers: (() => void)[] = [];
    try {
      // Lines that an earlier process or a failed write or sync left may not be on the disk, and only what is written again is synced.
      const read = this.#written ? undefined : await readAll(file);
      const written = (this.#written ??= await writtenIn(read ?? NOTHING));
      const added = new Map<string, HappeningLine>();
      const lines: string[] = [];
      let count = written.events.size;
      let bytes = written.isTorn ? 1 : 0;
      for (const { events, resolve, reject } of taken) {
        const fresh = new Map<string, HappeningLine>();
        for (const event of events) {
          const identity = identityOf(event);
          const known = fresh.get(identity) ?? added.get(identity) ?? written.events.get(identity);
          if (!known || isChangeOf(known, event)) fresh.set(identity, event);
        }
        const own = Array.from(fresh.values(), (event) => `${JSON.stringify(event)}\n`);
        const ownBytes = own.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
        const isNew = (identity: string): boolean => !added.has(identity) && !written.events.has(identity);
        const ownCount = [...fresh.keys()].filter(isNew).length;
        const isTooMany = ownCount > 0 && count + ownCount > MAX_EVENTS;
        if (fresh.size > 0 && (isTooMany || written.sizeBytes + bytes + ownBytes > MAX_BYTES)) {
          const limits = `a camera may have ${MAX_EVENTS} events, and ${MAX_BYTES / 1024 ** 2} MiB of them, on one day`;
          answers.push(() => reject(new HappeningError('too-many', limits)));
          continue;
        }
        for (const [identity, event] of fresh) added.set(identity, event);
        lines.push(...own);
        count += ownCount;
        bytes += ownBytes;
        answers.push(() => resolve([...fresh.values()]));
      }
      if (lines.length > 0) {
        const text = Buffer.from((written.isTorn ? '\n' : '') + lines.join(''));
        await file.write([text], written.sizeBytes);
        written.sizeBytes += text.length;
        written.isTorn = false;
      }
      if (read && read.length > 0) await file.write([read], 0);
      if (lines.length > 0 || read) await file.syncData();
      for (const [identity, event] of added) written.events.set(identity, facts(event));
    } finally {
      await file.close();
    }
    for (const answer of answers) answer();
  }

  async #open(): Promise<OpenFile> {
    try {
      return await this.#fs.open(this.#path, 'read-write');
    } catch (err) {
      if (errorCode(err) !== 'ENOENT') throw err;
    }
    // Retention may have removed it.
    this.#written = undefined;
    await makeDirectories(this.#fs, this.#directory);
    const file = await this.#fs.create(this.#path);
    await this.#fs.syncDirectory(this.#directory);
    return file;
  }
}

const NOTHING = Buffer.alloc(0);
const facts = ({ end_ms, removed_by }: HappeningLine) => ({ end_ms, ...(removed_by !== undefined && { removed_by }) });

const readAll = async (file: OpenFile): Promise<Buffer> => file.read(0, (await file.facts()).sizeBytes);

async function writtenIn(bytes: Buffer): Promise<WrittenDay> {
  const text = bytes.toString('utf8');
  return {
    events: new Map((await happeningsIn(text)).map((event) => [identityOf(event), facts(event)])),
    sizeBytes: bytes.length,
    isTorn: text !== '' && !text.endsWith('\n'),
  };
}

/** The events in a file, each once, in the order in which they came. Rejects with the error of the system. */
export const readDay = async (fs: FileSystem, path: string): Promise<readonly Happening[]> =>
  (await happeningsIn((await readIfThere(fs, path)) ?? '')).filter(({ removed_by }) => removed_by === undefined);

/** A full day takes many milliseconds: packets of cameras are read in between. */
async function happeningsIn(text: string): Promise<HappeningLine[]> {
  const found = new Map<string, HappeningLine>();
  for (const [i, line] of text.split('\n').entries()) {
    const event = parseHappening(line);
    if (event) {
      const identity = identityOf(event);
      const known = found.get(identity);
      if (!known) found.set(identity, event);
      else if (isChangeOf(known, event)) found.set(identity, { ...event, start_ms: known.start_ms });
    }
    if (i % LINES_AT_ONCE === LINES_AT_ONCE - 1) await new Promise((resolve) => void setImmediate(resolve));
  }
  return [...found.values()];
}
