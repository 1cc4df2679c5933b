// The bytes of an RTSP connection in, messages and interleaved packets out (RFC 2326 §10.12), without copying a packet
// unless it straddles two reads.
//
//  | '$' 0x24 | channel | length, 16 bits | RTP or RTCP packet |  between messages, never inside one

import { RtspError } from './error.ts';
import { contentLength, parseHead } from './message.ts';
import type { RtspMessage } from './message.ts';

export interface FramingHandler {
  /** One packet at `buffer[start, end)`, valid only until the call returns. */
  interleaved(channel: number, buffer: Buffer, start: number, end: number): void;
  message(message: RtspMessage): void;
}

/** What a channel carries: RTP, RTCP, or nothing that was agreed on. */
const UNKNOWN = 0;
const RTP = 1;
const RTCP = 2;

const DOLLAR = 0x24;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
const SPACE = 0x20;
const CAPITAL_R = 0x52;

/** Real heads have a few hundred bytes; a DESCRIBE with a long list of cookies a few thousand. */
const MAX_HEAD_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 64 * 1024;
/** A camera that lost framing is back within one packet, or the connection is worth nothing. */
const MAX_SKIPPED_BYTES = 256 * 1024;
const FIRST_CARRY_BYTES = 4 * 1024;
const HEAD_READ_BYTES = 1024;

const MESSAGE_STARTS = [
  'RTSP/',
  'HTTP/',
  'OPTIONS ',
  'ANNOUNCE ',
  'DESCRIBE ',
  'GET_PARAMETER ',
  'SET_PARAMETER ',
  'PLAY_NOTIFY ',
  'REDIRECT ',
  'TEARDOWN ',
  'PAUSE ',
  'PLAY ',
  'SETUP ',
  'RECORD ',
].map((text) => Buffer.from(text, 'latin1'));

/** Whether a message begins at `position`; `short` when the bytes so far do not tell. */
function startsMessage(buffer: Buffer, position: number, end: number): 'yes' | 'no' | 'short' {
  const available = end - position;
  let answer: 'no' | 'short' = 'no';
  for (const start of MESSAGE_STARTS) {
    const length = Math.min(available, start.length);
    let same = 0;
    while (same < length && buffer[position + same] === start[same]) same++;
    if (same < length) continue;
    if (length === start.length) return 'yes';
    answer = 'short';
  }
  return answer;
}

/** Behind the empty line that ends a head, with CRLF or LF line ends; -1 when it is not there yet. */
function endOfHead(buffer: Buffer, position: number, end: number): number {
  for (let at = buffer.indexOf(LINE_FEED, position); at >= 0 && at < end; at = buffer.indexOf(LINE_FEED, at + 1)) {
    if (at + 1 < end && buffer[at + 1] === LINE_FEED) return at + 2;
    if (at + 2 < end && buffer[at + 1] === CARRIAGE_RETURN && buffer[at + 2] === LINE_FEED) return at + 3;
  }
  return -1;
}

/** Some cameras leave Content-Length out of their answer to DESCRIBE; others have no body but a description. */
function isUnsized({ kind, headers }: RtspMessage): boolean {
  if (kind === 'request' || headers.get('Content-Length') !== undefined) return false;
  return headers.get('Content-Base') !== undefined || /sdp/i.test(headers.get('Content-Type') ?? '');
}

export class RtspFraming {
  readonly #handler: FramingHandler;
  readonly #channels = new Uint8Array(256);
  #channelsKnown = false;
  /** The payload types agreed on for all channels, and the last one seen on each. */
  readonly #payloadTypes = new Set<number>();
  readonly #lastTypes = new Uint8Array(256).fill(255);
  /** The beginning of a frame or message whose rest has not come yet. */
  #carry = Buffer.alloc(0);
  #carried = 0;
  /** Bytes from the start of the frame or message after which looking again makes sense. */
  #needed = 1;
  /** Bytes from there that are worth copying at once: more than needed while the end of a head is not in sight. */
  #useful = 1;
  /** Looking for a packet or message in garbage. */
  #lost = false;
  /** Bytes of the head that is waited for in which its end was looked for already. */
  #headScanned = 0;
  #skippedInARow = 0;
  /** Bytes between frames that were neither; for counters. */
  skippedBytes = 0;
  /** A description whose head does not say how long it is. */
  #unsized: RtspMessage | undefined;
  /** While media flows, a message that is not understood is skipped: nothing depends on it. */
  playing = false;

  constructor(handler: FramingHandler) {
    this.#handler = handler;
  }

  /** Memory in use for what has not come whole yet. */
  get carryBytes(): number {
    return this.#carry.length;
  }

  /** Announces a stream's channels and what may come on them, so that packets can be told from garbage. */
  expect(rtpChannel: number, rtcpChannel: number, payloadTypes: readonly number[]): void {
    for (const type of payloadTypes) this.#payloadTypes.add(type);
    this.#channels[rtpChannel] = RTP;
    this.#channels[rtcpChannel] = RTCP;
    this.#channelsKnown = true;
  }

  /** Takes `buffer[start, end)`; nothing of it is kept without copying. Throws `RtspError` when it is hopeless. */
  push(buffer: Buffer, start: number, end: number): void {
    let position = this.#carried > 0 ? this.#finishCarried(buffer, start, end) : start;
    while (position < end) {
      const next = this.#step(buffer, position, end);
      if (next === position) {
        this.#keep(buffer, position, end);
        return;
      }
      position = next;
    }
  }

  /** Nothing has come for a while: a description that did not say how long it is ends here. */
  settle(): void {
    const message = this.#unsized;
    this.#unsized = undefined;
    if (message) this.#handler.message({ ...message, body: Buffer.from(message.body, 'latin1').toString('utf8') });
  }

  /** Takes all there is: before the next request, which is sent when the description is there, nothing else follows. */
  #unsizedBody(message: RtspMessage, buffer: Buffer, position: number, end: number): number {
    const body = message.body + buffer.toString('latin1', position, end);
    if (body.length > MAX_BODY_BYTES) throw new RtspError('too-large', 'a message with a body beyond 256 KiB');
    this.#unsized = { ...message, body };
    return end;
  }

  /** Completes what is carried from the new bytes; returns how far they are used up. */
  #finishCarried(buffer: Buffer, start: number, end: number): number {
    let position = start;
    while (this.#carried > 0) {
      const taken = Math.min(end - position, this.#useful - this.#carried);
      this.#keep(buffer, position, position + taken);
      position += taken;
      if (this.#carried < this.#needed) return position;
      const used = this.#step(this.#carry, 0, this.#carried);
      if (used === 0) continue;
      const unused = this.#carried - used;
      if (unused <= position - start) {
        // The rest of the carry is the same bytes as the end of what was taken: go on in the new buffer.
        this.#carried = 0;
        return position - unused;
      }
      this.#carry.copyWithin(0, used, this.#carried);
      this.#carried = unused;
      this.#needed = unused;
      this.#useful = unused;
    }
    return position;
  }

  #keep(buffer: Buffer, start: number, end: number): void {
    const length = this.#carried + end - start;
    if (length > this.#carry.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(FIRST_CARRY_BYTES, 2 ** Math.ceil(Math.log2(length))));
      this.#carry.copy(grown, 0, 0, this.#carried);
      this.#carry = grown;
    }
    buffer.copy(this.#carry, this.#carried, start, end);
    this.#carried = length;
  }

  /**
   * Takes one frame, message, or run of bytes that are neither. Returns where the next begins, or `position` when more
   * bytes are needed (then `#needed` says how many from `position`).
   */
  #step(buffer: Buffer, position: number, end: number): number {
    if (this.#unsized) return this.#unsizedBody(this.#unsized, buffer, position, end);
    if (this.#lost) return this.#search(buffer, position, end);
    const first = buffer[position];
    if (first === DOLLAR) return this.#frame(buffer, position, end);
    if (first === CARRIAGE_RETURN || first === LINE_FEED || first === SPACE) return position + 1;
    const answer = startsMessage(buffer, position, end);
    if (answer === 'yes') return this.#message(buffer, position, end);
    if (answer === 'short') return this.#wait(position, end - position + 1);
    return this.#lose(position);
  }

  /** What begins here is not understood: the next packet or message is looked for behind it. */
  #lose(position: number): number {
    this.#lost = true;
    return this.#skip(position, position + 1);
  }

  #wait(position: number, needed: number, useful = needed): number {
    this.#needed = needed;
    this.#useful = useful;
    return position;
  }

  #skip(from: number, to: number): number {
    this.skippedBytes += to - from;
    this.#skippedInARow += to - from;
    if (this.#skippedInARow > MAX_SKIPPED_BYTES) {
      throw new RtspError('lost-framing', 'the camera sends bytes that are neither RTSP nor RTP');
    }
    return to;
  }

  #frame(buffer: Buffer, position: number, end: number): number {
    if (end - position < 4) return this.#wait(position, 4);
    const length = buffer.readUInt16BE(position + 2);
    if (length === 0) return position + 4;
    if (end - position < 5) return this.#wait(position, 5);
    // RTP and RTCP both begin with version 2: else this dollar sign is not the start of a frame.
    if ((buffer[position + 4] as number) >> 6 !== 2) {
      return this.#lose(position);
    }
    const frameEnd = position + 4 + length;
    // One byte more, when it is there, tells whether the frame was whole.
    if (frameEnd > end) return this.#wait(position, 4 + length, 5 + length);
    if (frameEnd < end && !this.#continues(buffer, frameEnd, end)) {
      const inside = this.#frameInside(buffer, position + 4, frameEnd, end);
      if (inside >= 0) return this.#skip(position, inside);
    }
    this.#skippedInARow = 0;
    const channel = buffer[position + 1] as number;
    this.#lastTypes[channel] = (buffer[position + 5] as number) & 0x7f;
    this.#handler.interleaved(channel, buffer, position + 4, frameEnd);
    return frameEnd;
  }

  /** Whether a frame or a message begins at `position`, behind blanks and line ends, as far as the bytes tell. */
  #continues(buffer: Buffer, position: number, end: number): boolean {
    let at = position;
    while (at < end && (buffer[at] === CARRIAGE_RETURN || buffer[at] === LINE_FEED || buffer[at] === SPACE)) at++;
    if (at >= end) return true;
    if (buffer[at] !== DOLLAR) return startsMessage(buffer, at, end) !== 'no';
    if (at + 4 >= end || (buffer[at + 2] === 0 && buffer[at + 3] === 0)) return true;
    return (buffer[at + 4] as number) >> 6 === 2;
  }

  /**
   * Where inside the frame `buffer[position, frameEnd)` an agreed frame begins that is followed by another or a message;
   * -1 when nowhere. Behind the frame nothing begins: either stray bytes follow it, or the camera sent less of it than it
   * said, and what came next has filled it up. Then it is no packet.
   */
  #frameInside(buffer: Buffer, position: number, frameEnd: number, end: number): number {
    for (let at = buffer.indexOf(DOLLAR, position); at >= 0 && at < frameEnd; at = buffer.indexOf(DOLLAR, at + 1)) {
      if (this.#plausible(buffer, at, end) !== 'yes') continue;
      const next = at + 4 + buffer.readUInt16BE(at + 2);
      if (next >= end || this.#continues(buffer, next, end)) return at;
    }
    return -1;
  }

  #message(buffer: Buffer, position: number, end: number): number {
    const bodyStart = endOfHead(buffer, position + Math.max(0, this.#headScanned - 2), end);
    const headBytes = (bodyStart < 0 ? end : bodyStart) - position;
    this.#headScanned = 0;
    if (headBytes > MAX_HEAD_BYTES) {
      if (this.playing) return this.#lose(position);
      throw new RtspError('too-large', 'a message with a head beyond 16 KiB');
    }
    if (bodyStart < 0) {
      this.#headScanned = headBytes;
      return this.#wait(position, headBytes + 1, headBytes + HEAD_READ_BYTES);
    }
    let message: RtspMessage;
    try {
      message = parseHead(buffer.toString('latin1', position, bodyStart));
    } catch (error) {
      if (this.playing) return this.#lose(position);
      throw error;
    }
    if (isUnsized(message)) {
      this.#unsized = message;
      return bodyStart;
    }
    const bodyBytes = contentLength(message.headers);
    if (bodyBytes > MAX_BODY_BYTES) {
      if (this.playing) return this.#lose(position);
      throw new RtspError('too-large', 'a message with a body beyond 64 KiB');
    }
    if (bodyStart + bodyBytes > end) return this.#wait(position, bodyStart - position + bodyBytes);
    this.#skippedInARow = 0;
    const body = buffer.toString('utf8', bodyStart, bodyStart + bodyBytes);
    this.#handler.message({ ...message, body });
    return bodyStart + bodyBytes;
  }

  /** Looks for the next agreed packet or response in garbage. */
  #search(buffer: Buffer, position: number, end: number): number {
    for (let at = position; at < end; at++) {
      const byte = buffer[at];
      if (byte !== DOLLAR && byte !== CAPITAL_R) continue;
      const answer = byte === DOLLAR ? this.#plausible(buffer, at, end) : startsMessage(buffer, at, end);
      if (answer === 'no') continue;
      if (answer === 'yes') this.#lost = false;
      if (at > position) return this.#skip(position, at);
      return answer === 'yes' ? this.#step(buffer, at, end) : this.#wait(at, end - at + 1);
    }
    return this.#skip(position, end);
  }

  /** Whether the frame at `position` is one that was agreed on, by channel, version and payload type. */
  #plausible(buffer: Buffer, position: number, end: number): 'yes' | 'no' | 'short' {
    if (end - position < 6) return 'short';
    const channel = buffer[position + 1] as number;
    const kind = this.#channelsKnown ? this.#channels[channel] : UNKNOWN;
    if (kind === UNKNOWN || (buffer[position + 4] as number) >> 6 !== 2) return 'no';
    const length = buffer.readUInt16BE(position + 2);
    const second = buffer[position + 5] as number;
    if (kind === RTCP) return length >= 4 && second >= 192 && second <= 223 ? 'yes' : 'no';
    const type = second & 0x7f;
    return length >= 12 && (type === this.#lastTypes[channel] || this.#payloadTypes.has(type)) ? 'yes' : 'no';
  }
}
