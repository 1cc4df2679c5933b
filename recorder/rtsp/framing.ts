// Splits the bytes of an RTSP connection into messages and interleaved packets (RFC 2326 §10.12). A packet is copied only if it
// spans two reads.
//
//  | '$' 0x24 | channel | length, 16 bits | RTP or RTCP packet |  between messages, never inside one

import { RtspError } from './error.ts';
import { contentLength, parseHead, type RtspMessage } from './message.ts';

export interface FramingHandler {
  /** One packet, `buffer[start, end)`; valid only during the call. */
  interleaved(channel: number, buffer: Buffer, start: number, end: number): void;
  message(message: RtspMessage): void;
  /** Bytes that were neither a frame nor a message. */
  skipped?(bytes: number): void;
}

/** The use of a channel: RTP, RTCP, or none that was negotiated. */
const UNKNOWN = 0;
const RTP = 1;
const RTCP = 2;

const DOLLAR = 0x24;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
const SPACE = 0x20;
const CAPITAL_R = 0x52;

/** Real heads have a few hundred bytes; a response to DESCRIBE with many cookies has a few thousand. */
const MAX_HEAD_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 64 * 1024;
/** A camera that lost framing recovers within one packet; after this many bytes the connection is given up. */
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

/** Whether a message starts at `position`; `short` if more bytes are needed to tell. */
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

/** The offset after the empty line (CRLF or LF) that ends a head; -1 if it has not arrived yet. */
function endOfHead(buffer: Buffer, position: number, end: number): number {
  for (let at = buffer.indexOf(LINE_FEED, position); at >= 0 && at < end; at = buffer.indexOf(LINE_FEED, at + 1)) {
    if (at + 1 < end && buffer[at + 1] === LINE_FEED) return at + 2;
    if (at + 2 < end && buffer[at + 1] === CARRIAGE_RETURN && buffer[at + 2] === LINE_FEED) return at + 3;
  }
  return -1;
}

/** Some cameras omit Content-Length in the response to DESCRIBE. Other responses without it have no body. */
function isUnsized({ kind, headers }: RtspMessage): boolean {
  if (kind === 'request' || headers.get('Content-Length') !== undefined) return false;
  return headers.get('Content-Base') !== undefined || /sdp/i.test(headers.get('Content-Type') ?? '');
}

/** Whether a frame with content starts at `position`, and its version shows that. */
const isFrame = (buffer: Buffer, position: number, end: number): boolean =>
  position + 4 < end && buffer[position] === DOLLAR && (buffer[position + 4] as number) >> 6 === 2;

export class RtspFraming {
  readonly #handler: FramingHandler;
  readonly #channels = new Uint8Array(256);
  #channelsKnown = false;
  /** The payload types negotiated for all channels, and the last type seen on each channel. */
  readonly #payloadTypes = new Set<number>();
  readonly #lastTypes = new Uint8Array(256).fill(255);
  /** The start of an incomplete frame or message. */
  #carry = Buffer.alloc(0);
  #carried = 0;
  /** How many bytes from the start of the incomplete frame or message are needed before parsing is tried again. */
  #needed = 1;
  /** How many bytes from there to copy at once: more than needed while the end of a head has not been found. */
  #useful = 1;
  /** Framing was lost: searching for the next packet or message. */
  #lost = false;
  /** How many bytes of the incomplete head were already searched for its end. */
  #headScanned = 0;
  #skippedInARow = 0;
  /** A response to DESCRIBE whose head does not state the length of its body. */
  #unsized: RtspMessage | undefined;
  /** While media flows, an invalid message is skipped, because nothing depends on it. */
  playing = false;

  constructor(handler: FramingHandler) {
    this.#handler = handler;
  }

  /** Size of the buffer for incomplete frames and messages. */
  get carryBytes(): number {
    return this.#carry.length;
  }

  /** Registers the channels of a stream and its payload types, so that packets can be told from garbage. */
  expect(rtpChannel: number, rtcpChannel: number, payloadTypes: readonly number[]): void {
    for (const type of payloadTypes) this.#payloadTypes.add(type);
    this.#channels[rtpChannel] = RTP;
    this.#channels[rtcpChannel] = RTCP;
    this.#channelsKnown = true;
  }

  /** Processes `buffer[start, end)`; keeps only copies of it. Throws `RtspError` when framing cannot be recovered. */
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

  /** Call when no bytes have arrived for a while: a body without a stated length ends here. */
  settle(): void {
    const message = this.#unsized;
    this.#unsized = undefined;
    if (message) this.#handler.message({ ...message, body: Buffer.from(message.body, 'latin1').toString('utf8') });
  }

  /** Takes all available bytes: nothing else can follow, because the next request is sent only after this response. */
  #unsizedBody(message: RtspMessage, buffer: Buffer, position: number, end: number): number {
    const body = message.body + buffer.toString('latin1', position, end);
    if (body.length > MAX_BODY_BYTES) throw new RtspError('too-large', 'a message with a body beyond 256 KiB');
    this.#unsized = { ...message, body };
    return end;
  }

  /** Completes the carried frame or message with new bytes; returns the position up to which they were used. */
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
        // The rest of the carry was copied from this buffer: continue in the buffer itself.
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
   * Processes one frame, one message, or a run of other bytes. Returns where the next one starts, or `position` when more bytes
   * are needed (then `#needed` says how many from `position`).
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

  /** The bytes at `position` are not valid: search for the next packet or message after them. */
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
    this.#handler.skipped?.(to - from);
    this.#skippedInARow += to - from;
    if (this.#skippedInARow > MAX_SKIPPED_BYTES) {
      throw new RtspError('lost-framing', 'the camera sends bytes that are neither RTSP nor RTP');
    }
    return to;
  }

  #frame(buffer: Buffer, position: number, end: number): number {
    if (end - position < 4) return this.#wait(position, 4);
    const length = ((buffer[position + 2] as number) << 8) | (buffer[position + 3] as number);
    if (length === 0) return position + 4;
    if (end - position < 5) return this.#wait(position, 5);
    // RTP and RTCP both start with version 2; otherwise this dollar sign is not the start of a frame.
    if ((buffer[position + 4] as number) >> 6 !== 2) {
      return this.#lose(position);
    }
    const frameEnd = position + 4 + length;
    // Wait for one more byte if possible: it shows whether the length of the frame was right.
    if (frameEnd > end) return this.#wait(position, 4 + length, 5 + length);
    if (frameEnd < end && !isFrame(buffer, frameEnd, end) && !this.#continues(buffer, frameEnd, end)) {
      const inside = this.#frameInside(buffer, position + 4, frameEnd, end);
      if (inside >= 0) return this.#skip(position, inside);
    }
    this.#skippedInARow = 0;
    const channel = buffer[position + 1] as number;
    this.#lastTypes[channel] = (buffer[position + 5] as number) & 0x7f;
    this.#handler.interleaved(channel, buffer, position + 4, frameEnd);
    return frameEnd;
  }

  /** Whether a frame or message starts at `position`, after white space, as far as the bytes show. */
  #continues(buffer: Buffer, position: number, end: number): boolean {
    let at = position;
    while (at < end && (buffer[at] === CARRIAGE_RETURN || buffer[at] === LINE_FEED || buffer[at] === SPACE)) at++;
    if (at >= end) return true;
    if (buffer[at] !== DOLLAR) return startsMessage(buffer, at, end) !== 'no';
    if (at + 4 >= end || (buffer[at + 2] === 0 && buffer[at + 3] === 0)) return true;
    return (buffer[at + 4] as number) >> 6 === 2;
  }

  /**
   * Called when nothing valid follows the frame `buffer[position, frameEnd)`: either stray bytes follow it, or the camera sent
   * less than the stated length and the next frames filled it up. Returns where inside it a negotiated frame starts that is
   * followed by another one or by a message (then the outer frame is not a packet), or -1.
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

  /** Searches garbage for the next negotiated packet or response. */
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

  /** Whether the frame at `position` matches a negotiated channel, its version and its payload type. */
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
