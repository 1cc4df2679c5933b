// One viewer: gets the messages of its camera in order, and drops what its connection is too slow for.

import { assertNever } from '../../base/assert.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { StreamStart } from '../contract/live-feed.ts';
import { CLOSE } from './close.ts';
import { LiveMessage } from './message.ts';

/** The live room's interface to a WebSocket. */
export interface ViewerSocket {
  /**
   * Sends one binary message; calls `sent` once, later, when the operating system has taken it. Never throws; a dead connection
   * drops the message.
   */
  send(message: Buffer, sent: () => void): void;
  /** Bytes passed to `send` that have not been sent yet. */
  readonly bufferedBytes: number;
  /** The connection encrypts, so each viewer has its own copy of the bytes; otherwise all viewers share those of the message. */
  readonly isCopying: boolean;
  close(code: number, reason: string): void;
  /** Closes the connection and drops what has not been sent. */
  terminate(): void;
}

export interface ViewerOptions {
  /** False: video only, for example for a wall of tiles without sound. */
  readonly audio: boolean;
  /** Who watches; undefined where nobody is told apart. */
  readonly watcher?: Watcher | undefined;
}

interface Watcher {
  /** Of the user or the token. */
  readonly name: string;
  /** Has at least the role operator: may use the last places. */
  readonly isOperator: boolean;
}

/** A connection on which nothing is sent for this long is too slow for video. */
const STUCK_MS = 30_000;
/** How much is passed to a connection before it takes any; what waits beyond this can still be dropped. */
const SOCKET_BYTES = 64 * 1024;

/** The close code and reason when there is no memory for a viewer's messages. */
const SHORT_OF_MEMORY = [CLOSE.tooSlow, 'the connection is too slow, and memory is short'] as const;

/** `waiting`: for a key frame, after connecting without one or after falling behind. */
type State = 'waiting' | 'live' | 'closed';

export class Viewer {
  readonly audio: boolean;
  /** Undefined where nobody is told apart. */
  readonly watcher: Watcher | undefined;
  readonly #socket: ViewerSocket;
  readonly #maxWaitingBytes: number;
  readonly #memory: MemoryAccount;
  #state: State = 'waiting';
  /** Messages not sent yet; the first `#handedOver` were passed to the connection. */
  readonly #queue: LiveMessage[] = [];
  #handedOver = 0;
  #waitingBytes = 0;
  /** Bytes of the messages that its connection has copied. */
  #copiedBytes = 0;
  /** The start of the stream may exceed the limit until it has been sent. */
  #startBytes = 0;
  /** Since when more waits for the connection than allowed, in monotonic milliseconds. */
  #fellBehindMs: number | undefined;
  /** The stream whose initialization segment this viewer has. */
  #stream: StreamStart | undefined;
  sentBytes = 0;
  droppedFrames = 0;

  /** `memory`: for what waits for viewers, of all cameras. */
  constructor(socket: ViewerSocket, options: ViewerOptions, maxWaitingBytes: number, memory: MemoryAccount) {
    this.#socket = socket;
    this.audio = options.audio;
    this.watcher = options.watcher;
    this.#maxWaitingBytes = maxWaitingBytes;
    this.#memory = memory;
  }

  get closed(): boolean {
    return this.#state === 'closed';
  }

  /** The bytes that `giveWay` would release at once. */
  get droppableBytes(): number {
    let bytes = this.#copiedBytes;
    for (let i = this.#handedOver; i < this.#queue.length; i++) bytes += (this.#queue[i] as LiveMessage).bytes.length;
    return bytes;
  }

  /**
   * Sends the initialization segment unless the viewer has it already; what follows starts at a key frame. `startBytes` of it are
   * available already and sent at once.
   */
  start(stream: StreamStart, startBytes = 0): void {
    if (this.#state === 'closed') return;
    const before = this.#stream;
    if (before && before.tracks !== stream.tracks) {
      this.close(CLOSE.codecsChanged, 'the codecs changed: connect again');
      return;
    }
    this.#state = 'waiting';
    this.#stream = stream;
    this.#startBytes = startBytes;
    if (before?.init.equals(stream.init)) return;
    if (!this.#send(new LiveMessage('init', stream.init))) this.giveWay();
  }

  /** Sends one message, or drops it if the viewer is behind. */
  push(message: LiveMessage, nowMs: number): void {
    const video = message.kind !== 'audio';
    switch (this.#state) {
      case 'closed':
        return;
      case 'waiting':
        this.#checkProgress(nowMs);
        if (this.#fellBehindMs === undefined && message.kind === 'key-frame' && this.#send(message))
          this.#state = 'live';
        else if (video) this.droppedFrames++;
        return;
      case 'live': {
        if (!video && !this.audio) return;
        const isTooMuch = this.#waitingBytes + message.bytes.length > this.#maxWaitingBytes + this.#startBytes;
        if (!isTooMuch && this.#send(message)) return;
        if (video) this.droppedFrames++;
        this.#fallBehind(nowMs);
        return;
      }
      default:
        assertNever(this.#state);
    }
  }

  close(code: number, reason: string): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#drop(this.#handedOver);
    this.#socket.close(code, reason);
  }

  /** The memory that the viewer holds is needed now. */
  giveWay(): void {
    if (this.#copiedBytes === 0) return this.close(...SHORT_OF_MEMORY);
    // A close frame would wait for what the connection has buffered.
    this.#socket.terminate();
    return this.gone();
  }

  /** The connection is gone: nothing is sent any more. */
  gone(): void {
    this.#state = 'closed';
    this.#handedOver = 0;
    this.#memory.giveBack(this.#copiedBytes);
    this.#copiedBytes = 0;
    this.#drop(0);
  }

  /** Such a viewer can continue only with the next key frame. */
  #fallBehind(nowMs: number): void {
    if (this.#state === 'closed') return;
    this.#state = 'waiting';
    this.#fellBehindMs = nowMs;
    this.#drop(this.#handedOver);
  }

  /** A viewer that fell behind continues once its connection has sent everything; if that takes too long, it is disconnected. */
  #checkProgress(nowMs: number): void {
    if (this.#fellBehindMs === undefined) return;
    if (this.#queue.length === 0) this.#fellBehindMs = undefined;
    else if (nowMs - this.#fellBehindMs > STUCK_MS)
      this.close(CLOSE.tooSlow, 'the connection is too slow for this camera');
  }

  /** False if there is no memory for it to wait in. */
  #send(message: LiveMessage): boolean {
    if (!message.hold(this.#memory)) return false;
    if (this.closed) {
      // Making space for it disconnected this viewer.
      message.release(this.#memory);
      return false;
    }
    this.#queue.push(message);
    this.#waitingBytes += message.bytes.length;
    this.#pump();
    return !this.closed;
  }

  #pump(): void {
    while (this.#handedOver < this.#queue.length && this.#socket.bufferedBytes < SOCKET_BYTES) {
      const { bytes } = this.#queue[this.#handedOver] as LiveMessage;
      if (!this.#copied(bytes.length)) return this.giveWay();
      this.#handedOver++;
      this.sentBytes += bytes.length;
      this.#socket.send(bytes, this.#sent);
    }
  }

  /** False if there is no memory for the connection's copy, or making space for it disconnected this viewer. */
  #copied(bytes: number): boolean {
    if (!this.#socket.isCopying) return true;
    if (!this.#memory.take(bytes)) return false;
    this.#copiedBytes += bytes;
    return !this.closed;
  }

  readonly #sent = (): void => {
    if (this.#handedOver === 0) return;
    this.#handedOver--;
    const message = this.#queue.shift() as LiveMessage;
    if (this.#socket.isCopying) {
      this.#copiedBytes -= message.bytes.length;
      this.#memory.giveBack(message.bytes.length);
    }
    this.#letGo(message);
    if (this.#queue.length === 0) this.#startBytes = 0;
    if (!this.closed) this.#pump();
  };

  /** Drops what waits after the first `from` messages. */
  #drop(from: number): void {
    for (const message of this.#queue.splice(from)) {
      if (message.kind !== 'audio' && message.kind !== 'init') this.droppedFrames++;
      this.#letGo(message);
    }
  }

  #letGo(message: LiveMessage): void {
    this.#waitingBytes -= message.bytes.length;
    message.release(this.#memory);
  }
}
