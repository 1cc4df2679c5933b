// The journal of a node's events: gives every event once and in order to all followers, including those that were disconnected
// for a while. The last hour is kept in memory and in one file, with which the next process continues.

import { mkdir, open, readFile, rename, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import { HOUR_MS } from '../../base/units.ts';
import { quietly } from '../../base/error.ts';
import { makeEvent, parseEvent, type NodeEvent, type EventReport } from '../contract/event.ts';

export interface JournalOptions {
  /** Created if it is missing. */
  readonly directory: string;
  /** The node's name in events. */
  readonly node: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Memory for the kept events; the oldest are dropped when it is full. */
  readonly memory: MemoryAccount;
}

/** How long events are kept, unless there are too many for the memory. */
export const KEPT_MS = HOUR_MS;
/**
 * Events are shown only once they are on the disk, so that a kill loses none that a client has seen; a disk that hangs delays
 * them at most this long.
 */
const HELD_MS = 1_000;
/** The file is rewritten when this much of it, and at least half, is obsolete. */
const WASTE_BYTES = 256 * 1024;
/** Memory of an event besides its text. */
const ENTRY_BYTES = 200;
const NAME = 'journal.jsonl';

interface Entry {
  readonly event: NodeEvent;
  readonly atMs: number;
}

const bytesOf = ({ json }: NodeEvent): number => json.length + ENTRY_BYTES;

export class EventJournal {
  readonly #options: JournalOptions;
  readonly #path: string;
  /** Oldest first; those before `#first` were dropped. */
  #entries: Entry[] = [];
  #first = 0;
  /** The newest event, even if it cannot be read yet. */
  #lastId = 0;
  /** Events up to this one can be read. */
  #shownId = 0;
  #droppedId = 0;
  /** Events up to this one are in the file. */
  #writtenId = 0;
  #file: FileHandle | undefined;
  #fileBytes = 0;
  /** The last line of the file may be incomplete, after a kill or because the disk was full. */
  #torn = false;
  #writing: Promise<void> | undefined;
  /** The disk does not take events in time. */
  #isLate = false;
  #failing = false;
  readonly #followers = new Set<() => void>();

  private constructor(options: JournalOptions) {
    this.#options = options;
    this.#path = join(options.directory, NAME);
  }

  /** Continues where the previous process ended. Never rejects: without its file it starts with no events and logs a warning. */
  static async open(options: JournalOptions): Promise<EventJournal> {
    const journal = new EventJournal(options);
    await journal.#load();
    return journal;
  }

  /** The newest event that can be read; 0 if there never was one. */
  get newestId(): number {
    return this.#shownId;
  }

  /**
   * An event that says that events after `afterId` were dropped; undefined if none were, and for 0, with which a client asks for
   * all that are kept.
   */
  missedSince(afterId: number): NodeEvent | undefined {
    if (afterId === 0 || afterId >= this.#droppedId) return undefined;
    const data = { after: String(afterId), up_to: String(this.#droppedId) };
    const { clock, node } = this.#options;
    return makeEvent(this.#droppedId, { type: 'events.missed', data }, clock.wallMs(), node);
  }

  /** Returns at once and never throws: nothing in the recorder waits for followers. */
  tell(told: EventReport): void {
    const { clock, node } = this.#options;
    const timeMs = clock.wallMs();
    // Ids derive from the time, so that ids of the last process are not reused even if the disk lost events.
    const id = Math.max(this.#lastId + 1, Math.floor(timeMs * 1000));
    this.#lastId = id;
    this.#keep(makeEvent(id, told, timeMs, node), clock.monotonicMs());
    if (this.#isLate) this.#show(id);
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined));
  }

  /** The readable events after `afterId`, oldest first. */
  *after(afterId: number): Generator<NodeEvent, void> {
    for (let i = this.#indexAfter(afterId); i < this.#entries.length; i++) {
      const { event } = this.#entries[i] as Entry;
      if (event.id > this.#shownId) return;
      yield event;
    }
  }

  /** Calls `listener` whenever there are new events to read, until the returned function is called. */
  follow(listener: () => void): () => void {
    this.#followers.add(listener);
    return () => void this.#followers.delete(listener);
  }

  /** Drops the oldest events; called by the memory budget. */
  shed(bytes: number): void {
    for (let left = bytes; left > 0 && this.#first < this.#entries.length;) left -= this.#dropFirst();
  }

  /** Writes what is not yet written, if the disk takes it in time. */
  async close(): Promise<void> {
    await Promise.race([this.#writing, this.#options.clock.sleep(HELD_MS)]);
    await Promise.race([quietly(this.#file?.close()), this.#options.clock.sleep(HELD_MS)]);
    this.#file = undefined;
  }

  #keep(event: NodeEvent, atMs: number): void {
    const { memory, clock } = this.#options;
    const bytes = bytesOf(event);
    while (!memory.take(bytes) && this.#first < this.#entries.length) this.#dropFirst();
    this.#entries.push({ event, atMs });
    const sinceMs = clock.monotonicMs() - KEPT_MS;
    while ((this.#entries[this.#first]?.atMs ?? Infinity) < sinceMs) this.#dropFirst();
    if (this.#first > 1_000 && this.#first > this.#entries.length / 2) {
      this.#entries.splice(0, this.#first);
      this.#first = 0;
    }
  }

  #dropFirst(): number {
    const { event } = this.#entries[this.#first] as Entry;
    // Releases the event now; the place in the array is removed later.
    this.#entries[this.#first++] = GONE;
    this.#droppedId = event.id;
    const bytes = bytesOf(event);
    this.#options.memory.giveBack(bytes);
    return bytes;
  }

  #indexAfter(id: number): number {
    let low = this.#first;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle] as Entry).event.id > id) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #show(id: number): void {
    if (id <= this.#shownId) return;
    this.#shownId = id;
    for (const listener of this.#followers) listener();
  }

  /** Writes until everything is written or the disk refuses; the next event then tries again. */
  async #writeAll(): Promise<void> {
    const { clock, log } = this.#options;
    // Events of the same moment become one write.
    await Promise.resolve();
    while (this.#writtenId < this.#lastId) {
      const lastId = this.#lastId;
      const late: Timer = clock.after(HELD_MS, () => {
        this.#isLate = true;
        this.#show(this.#lastId);
      });
      try {
        await this.#write(lastId);
        this.#writtenId = lastId;
        this.#failing = false;
      } catch (err) {
        this.#torn = true;
        if (!this.#failing) log.warn({ path: this.#path, err }, 'events cannot be written: a restart would lose them');
        this.#failing = true;
        await quietly(this.#file?.close());
        this.#file = undefined;
      } finally {
        late.cancel();
        this.#isLate = false;
      }
      this.#show(lastId);
      if (this.#failing) return;
    }
  }

  async #write(lastId: number): Promise<void> {
    const lines: string[] = [];
    let keptBytes = 0;
    for (let i = this.#first; i < this.#entries.length; i++) {
      const { event } = this.#entries[i] as Entry;
      if (event.id > lastId) break;
      keptBytes += event.json.length + 1;
      if (event.id > this.#writtenId) lines.push(`${event.json}\n`);
    }
    if (this.#fileBytes > 2 * keptBytes + WASTE_BYTES) return this.#replace(lastId);
    this.#file ??= await this.#open();
    const text = (this.#torn ? '\n' : '') + lines.join('');
    await this.#file.appendFile(text);
    this.#torn = false;
    this.#fileBytes += Buffer.byteLength(text);
    return undefined;
  }

  async #open(): Promise<FileHandle> {
    await mkdir(this.#options.directory, { recursive: true, mode: 0o750 });
    return open(this.#path, 'a', 0o640);
  }

  /** Replaces the file by one with only the kept events. */
  async #replace(lastId: number): Promise<void> {
    const lines = [`${JSON.stringify({ dropped: String(this.#droppedId) })}\n`];
    for (let i = this.#first; i < this.#entries.length; i++) {
      const { event } = this.#entries[i] as Entry;
      if (event.id <= lastId) lines.push(`${event.json}\n`);
    }
    const text = lines.join('');
    const file = await open(`${this.#path}.new`, 'w', 0o640);
    try {
      await file.appendFile(text);
      await rename(`${this.#path}.new`, this.#path);
    } catch (err) {
      await quietly(file.close());
      throw err;
    }
    await this.#file?.close();
    // Opened for writing, not for appending: its position is its end.
    this.#file = file;
    this.#fileBytes = Buffer.byteLength(text);
    this.#torn = false;
  }

  async #load(): Promise<void> {
    const { clock, log } = this.#options;
    let text = '';
    try {
      text = await readFile(this.#path, 'utf8');
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== 'ENOENT') {
        log.warn({ path: this.#path, err }, 'the stored events cannot be read');
      }
    }
    this.#fileBytes = Buffer.byteLength(text);
    this.#torn = text !== '' && !text.endsWith('\n');
    const nowMs = clock.monotonicMs();
    const wallMs = clock.wallMs();
    for (const line of text.split('\n')) {
      const event = parseEvent(line);
      if (event && event.id > this.#lastId) {
        this.#lastId = event.id;
        this.#keep(event, nowMs - Math.max(0, wallMs - event.timeMs));
      } else this.#droppedId = Math.max(this.#droppedId, droppedIn(line));
    }
    this.#lastId = Math.max(this.#lastId, this.#droppedId);
    this.#shownId = this.#lastId;
    this.#writtenId = this.#lastId;
  }
}

const GONE: Entry = { event: { id: 0, type: 'recorder.started', cameraIds: [], timeMs: 0, json: '' }, atMs: 0 };

/** The id in the first line of a rewritten file: the newest event that was dropped. */
function droppedIn(line: string): number {
  const match = /^\{"dropped":"(\d{1,16})"\}$/.exec(line);
  return Number(match?.[1] ?? 0);
}
