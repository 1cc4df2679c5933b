// Sends pieces of files to sockets. Each client has two buffers, so that reading and sending overlap. The number of
// simultaneous reads is limited, first come first served, so that a hundred clients share the disk evenly and leave threads
// for recording.

import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../base/clock.ts';
import { unlimitedMemory, type MemoryAccount } from '../../base/memory-budget.ts';
import type { KeepAwake, PlayedFile } from '../footage/archive-file.ts';
import type { Piece } from '../footage/sample-runs.ts';
import { sizeOf } from './body.ts';

/** Large enough that the overhead of a read is small, small enough for a few hundred clients. */
const CHUNK_BYTES = 256 * 1024;
/** Reads share the thread pool with recording and DNS lookups. */
const CONCURRENT_READS = 6;
/** Buffers that are kept for the next client. */
const MAX_SPARE_BUFFERS = 64;
/** If a client takes longer for a chunk, the event loop may pause again while it waits. */
const STALLED_MS = 20;

interface SenderOptions {
  readonly clock: Clock;
  /** For chunks of all clients that were read and are not sent yet. */
  readonly memory?: MemoryAccount | undefined;
  readonly keepAwake?: KeepAwake;
}

/** The client has disconnected, or the file is shorter than expected. */
export class SendAborted extends Error {}

export class Sender {
  readonly #clock: Clock;
  readonly #memory: MemoryAccount;
  readonly #keepAwake: KeepAwake;
  readonly #spare: Buffer[] = [];
  readonly #waiting: (() => void)[] = [];
  #reading = 0;
  /** Bytes handed to sockets so far. */
  bytesSent = 0;
  /** Number of responses that are being sent. */
  active = 0;

  constructor(options: SenderOptions) {
    this.#clock = options.clock;
    this.#memory = options.memory ?? unlimitedMemory('playback');
    this.#keepAwake = options.keepAwake ?? (() => () => {});
  }

  /** Sends all `pieces` to a response whose head is written. Rejects with SendAborted when that fails. */
  async send(response: ServerResponse, file: PlayedFile | undefined, pieces: readonly Piece[]): Promise<void> {
    this.active++;
    try {
      for (const piece of pieces) {
        if (Buffer.isBuffer(piece)) await this.#write(response, piece);
        else if (file && sizeOf(piece) > 0) await this.#sendRange(response, file, piece.offset, piece.size);
      }
    } finally {
      this.active--;
    }
  }

  async #sendRange(response: ServerResponse, file: PlayedFile, offset: number, size: number): Promise<void> {
    const end = offset + size;
    let at = offset;
    let next: Promise<Buffer> | undefined;
    try {
      while (at < end) {
        if (!next) await this.#memory.taken(CHUNK_BYTES);
        const chunk: Buffer = await (next ?? this.#read(file, at, end));
        at += chunk.length;
        // When memory is short, nothing is read ahead.
        next = at < end && this.#memory.take(CHUNK_BYTES) ? this.#read(file, at, end) : undefined;
        // The read may fail before the previous chunk is sent; the loop handles the error afterwards.
        next?.catch(() => {});
        try {
          await this.#write(response, chunk);
        } finally {
          this.#giveBack(chunk);
        }
      }
    } catch (err) {
      // Wait for the read ahead: its buffer is given back, and the file must not be closed during a read.
      await next?.then(
        (chunk) => this.#giveBack(chunk),
        () => {},
      );
      throw err;
    }
  }

  /** The caller has taken the memory for it; `#giveBack` returns it. */
  async #read(file: PlayedFile, at: number, end: number): Promise<Buffer> {
    if (this.#reading >= CONCURRENT_READS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#reading++;
    const buffer = this.#spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
    try {
      const length = Math.min(CHUNK_BYTES, end - at);
      const count = await file.readInto(buffer, at, length);
      if (count < length) throw new SendAborted('the file is shorter than it was');
      return buffer.subarray(0, count);
    } catch (err) {
      this.#giveBack(buffer);
      throw err;
    } finally {
      const first = this.#waiting.shift();
      if (first) first();
      else this.#reading--;
    }
  }

  #giveBack(chunk: Buffer): void {
    this.#memory.giveBack(CHUNK_BYTES);
    if (this.#spare.length < MAX_SPARE_BUFFERS) this.#spare.push(Buffer.from(chunk.buffer));
  }

  /** Resolves when the system has accepted all `bytes`: until then they must not change. */
  #write(response: ServerResponse, bytes: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      if (response.destroyed || response.writableEnded) return reject(new SendAborted('the client has disconnected'));
      const rest = this.#keepAwake();
      let timer: Timer | undefined;
      const settle = (err?: Error | null): void => {
        timer?.cancel();
        rest();
        response.off('close', closed);
        if (err) reject(new SendAborted('the client has disconnected', { cause: err }));
        else resolve();
      };
      const closed = (): void => settle(new Error('connection closed'));
      response.once('close', closed);
      this.bytesSent += bytes.length;
      if (!response.write(bytes, settle)) timer = this.#clock.after(STALLED_MS, rest);
    });
  }
}
