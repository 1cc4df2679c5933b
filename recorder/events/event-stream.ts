// Sends the events of the journal to a client as server-sent events (WHATWG HTML §9.2), with a limit on what waits for a
// connection.

import type { Clock, Timer } from '../../base/clock.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { NodeEvent } from '../contract/event.ts';
import type { EventJournal } from './journal.ts';

export interface StreamSink {
  /** Calls `sent` once the connection has taken everything; not if it ends before that. */
  write(bytes: Buffer, sent: () => void): void;
  /** Ends the response normally. */
  end(): void;
  /** Closes the connection and drops what waits for it. */
  destroy(): void;
}

interface StreamOptions {
  readonly journal: EventJournal;
  readonly sink: StreamSink;
  /** Sends the events after this one. */
  readonly afterId: number;
  readonly wants: (event: NodeEvent) => boolean;
  /** The stream ends once it has sent the events that are there now. */
  readonly isBrief: boolean;
}

interface StreamsDeps {
  readonly clock: Clock;
  /** Memory for what waits for connections. */
  readonly memory: MemoryAccount;
  readonly maxStreams?: number;
}

/** At most this much waits for one connection, apart from a single larger event. */
const CHUNK_BYTES = 16 * 1024;
/** How often something is sent at least: proxies close idle connections. */
const BEAT_MS = 15_000;
/** A connection that takes nothing for this long is closed. The client reconnects and continues where it was. */
const STALLED_MS = 30_000;
/** How long a client should wait before it reconnects. */
const RETRY_MS = 2_000;

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

  /** Starts to send. Call the returned function when the connection is gone; it ends the stream. */
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
  readonly #options: StreamOptions;
  readonly #memory: MemoryAccount;
  readonly #clock: Clock;
  #position: number;
  #takenBytes = 0;
  /** When what waits for the connection was written; undefined if nothing waits. */
  #waitsSinceMs: number | undefined;
  #isClosed = false;
  #unfollow = (): void => {};

  constructor(options: StreamOptions, memory: MemoryAccount, clock: Clock) {
    this.#options = options;
    this.#memory = memory;
    this.#clock = clock;
    // The id is from another node, or from a time when the clock was wrong: all new events are new to this client.
    this.#position = Math.min(options.afterId, options.journal.newestId);
  }

  begin(): void {
    this.#unfollow = this.#options.journal.follow(() => this.#send());
    this.#write(Buffer.from(`retry: ${RETRY_MS}\n${positionFrame(this.#position)}`));
  }

  /**
   * Shows that the connection works and sends the current position: a client that wanted none of the events for an hour has then
   * missed none.
   */
  beat(): void {
    if (this.#waitsSinceMs === undefined) this.#write(Buffer.from(positionFrame(this.#position)));
    else if (this.#clock.monotonicMs() - this.#waitsSinceMs >= STALLED_MS) this.#options.sink.destroy();
  }

  /** The connection is gone. */
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
    else if (this.#options.isBrief) {
      this.#isClosed = true;
      this.#options.sink.end();
    }
  }

  /** The next events that the client wants, up to one chunk. */
  #next(): Buffer[] {
    const { journal, wants } = this.#options;
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
    // Recording needs the memory: a client that is disconnected will reconnect and continue.
    if (!this.#memory.take(bytes.length)) return this.#options.sink.destroy();
    this.#takenBytes = bytes.length;
    this.#waitsSinceMs = this.#clock.monotonicMs();
    this.#options.sink.write(bytes, () => {
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

/** Without data it is not an event, but its id counts all the same (§9.2.6). */
const positionFrame = (id: number): string => `id: ${id}\n\n`;
