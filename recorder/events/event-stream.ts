// One who follows the journal over a connection: events in, a bounded stream of server-sent events out (WHATWG HTML §9.2).

import type { Clock, Timer } from '../../base/clock.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { NodeEvent } from './event.ts';
import type { EventJournal } from './journal.ts';

/** The connection of one who follows. */
export interface StreamSink {
  /** Calls `sent` when the connection has taken it all; not if it ends before. */
  write(bytes: Buffer, sent: () => void): void;
  /** Ends the answer, as it is complete. */
  end(): void;
  /** Ends the connection, with what waits for it. */
  destroy(): void;
}

export interface StreamOptions {
  readonly journal: EventJournal;
  readonly sink: StreamSink;
  /** The first event is the one behind this one. */
  readonly afterId: number;
  readonly wants: (event: NodeEvent) => boolean;
  /** It ends when it has sent what is there now. */
  readonly isBrief: boolean;
}

export interface StreamsDeps {
  readonly clock: Clock;
  /** For what waits for connections. */
  readonly memory: MemoryAccount;
  readonly maxStreams?: number;
}

/** So much waits for one connection at most, beside one event that is larger. */
const CHUNK_BYTES = 16 * 1024;
/** How often a connection is used at least: proxies end those that are still. */
const BEAT_MS = 15_000;
/** A connection that takes nothing for so long is given up. Who has it comes back, and goes on where it was. */
const STALLED_MS = 30_000;
/** How long a client is to wait before it comes back. */
const RETRY_MS = 2_000;

/** All streams of a node. */
export class EventStreams {
  readonly #clock: Clock;
  readonly #memory: MemoryAccount;
  readonly #maxStreams: number;
  readonly #streams = new Set<EventStream>();
  #nextBeat: Timer | undefined;

  constructor({ clock, memory, maxStreams = 2_000 }: StreamsDeps) {
    this.#clock = clock;
    this.#memory = memory;
    this.#maxStreams = maxStreams;
  }

  get size(): number {
    return this.#streams.size;
  }

  get isFull(): boolean {
    return this.#streams.size >= this.#maxStreams;
  }

  /** Begins to send; the function returned ends that, and is to be called when the connection has gone. */
  add(options: StreamOptions): () => void {
    const stream = new EventStream(options, this.#memory, this.#clock);
    this.#streams.add(stream);
    stream.begin();
    if (!this.#nextBeat) this.#nextBeat = this.#clock.after(BEAT_MS, () => this.#beatAll());
    return () => {
      this.#streams.delete(stream);
      stream.close();
    };
  }

  #beatAll(): void {
    for (const stream of this.#streams) stream.beat();
    this.#nextBeat = this.#streams.size > 0 ? this.#clock.after(BEAT_MS, () => this.#beatAll()) : undefined;
  }
}

class EventStream {
  readonly #o: StreamOptions;
  readonly #memory: MemoryAccount;
  readonly #clock: Clock;
  #position: number;
  #takenBytes = 0;
  /** When what waits for the connection was written; undefined while nothing does. */
  #waitsSinceMs: number | undefined;
  #isClosed = false;
  #unfollow = (): void => {};

  constructor(options: StreamOptions, memory: MemoryAccount, clock: Clock) {
    this.#o = options;
    this.#memory = memory;
    this.#clock = clock;
    // Of another node, or of a clock that was wrong: what comes now is new to it all the same.
    this.#position = Math.min(options.afterId, options.journal.newestId);
  }

  begin(): void {
    this.#unfollow = this.#o.journal.follow(() => this.#send());
    this.#write(Buffer.from(`retry: ${RETRY_MS}\n${positionFrame(this.#position)}`));
  }

  /** Shows that the connection stands, and where it is: who has seen none of its events for an hour has missed none. */
  beat(): void {
    if (this.#waitsSinceMs === undefined) this.#write(Buffer.from(positionFrame(this.#position)));
    else if (this.#clock.monotonicMs() - this.#waitsSinceMs >= STALLED_MS) this.#o.sink.destroy();
  }

  /** The connection has gone. */
  close(): void {
    this.#isClosed = true;
    this.#unfollow();
    this.#memory.giveBack(this.#takenBytes);
    this.#takenBytes = 0;
  }

  #send(): void {
    if (this.#isClosed || this.#waitsSinceMs !== undefined) return;
    const frames = this.#next();
    if (frames.length > 0) this.#write(Buffer.concat(frames));
    else if (this.#o.isBrief) {
      this.#isClosed = true;
      this.#o.sink.end();
    }
  }

  /** The next events that it wants, as far as they make a chunk. */
  #next(): Buffer[] {
    const { journal, wants } = this.#o;
    const frames: Buffer[] = [];
    let bytes = 0;
    const missed = journal.missedSince(this.#position);
    if (missed) {
      frames.push(frameOf(missed));
      this.#position = missed.id;
    }
    for (const event of journal.after(this.#position)) {
      this.#position = event.id;
      if (!wants(event)) continue;
      const frame = frameOf(event);
      frames.push(frame);
      bytes += frame.length;
      if (bytes >= CHUNK_BYTES) break;
    }
    return frames;
  }

  #write(bytes: Buffer): void {
    // Recording needs the memory: who is sent away comes back to where it was.
    if (!this.#memory.take(bytes.length)) return this.#o.sink.destroy();
    this.#takenBytes = bytes.length;
    this.#waitsSinceMs = this.#clock.monotonicMs();
    this.#o.sink.write(bytes, () => {
      this.#waitsSinceMs = undefined;
      if (this.#isClosed) return;
      this.#memory.giveBack(this.#takenBytes);
      this.#takenBytes = 0;
      this.#send();
    });
    return undefined;
  }
}

const frameOf = ({ id, type, json }: NodeEvent): Buffer => Buffer.from(`id: ${id}\nevent: ${type}\ndata: ${json}\n\n`);

/** Without data it is no event, and its id counts all the same (§9.2.6). */
const positionFrame = (id: number): string => `id: ${id}\n\n`;
