// Dates the access units of one stream of a replay by the camera's clock: from the header extension of their own packets; otherwise
// from that of other packets and the RTP timestamps; otherwise from the answer to PLAY. Pure arithmetic.

import type { AccessUnit } from '../codec/access-unit.ts';
import type { RtpPacket } from '../rtp/packet.ts';
import { parseReplayExtension, type ReplayStamp } from '../rtp/replay-extension.ts';
import type { EdgeUnit } from './memory.ts';

type DatedUnit = Pick<EdgeUnit, 'cameraMs' | 'dated' | 'cleanPoint' | 'endsSection' | 'discontinuity'> & {
  /** The camera has no more footage of this track. */
  readonly terminal: boolean;
};

/** An access unit is emitted at the latest with the packet that follows it, and one packet may hold many audio frames. */
const KEPT_STAMPS = 16;
/** RTP timestamps are used up to this distance from a dated packet: some cameras date only key frames. */
const MAX_FOLLOWED_MS = 120_000;
/** A time that differs by this much from the RTP timestamps is a jump. */
const JUMP_MS = 500;

interface Anchor {
  /** RTP timestamp. */
  readonly timestamp: number;
  readonly cameraMs: number;
}

interface StampedAnchor extends Anchor {
  readonly stamp: ReplayStamp;
}

export class Dating {
  readonly #ticksPerMs: number;
  readonly #stamps: StampedAnchor[] = [];
  #start: { readonly cameraMs: number; readonly timestamp: number | undefined } | undefined;
  #firstTimestamp: number | undefined;
  #last: Anchor | undefined;

  /** `clockRate`: that of the stream's timestamps, in Hz. */
  constructor(clockRate: number) {
    this.#ticksPerMs = clockRate / 1000;
  }

  /** The answer to PLAY: the replay starts at `cameraMs`, with this RTP timestamp if the camera stated one. */
  startsAt(cameraMs: number, timestamp: number | undefined): void {
    this.#start = { cameraMs, timestamp };
  }

  /** Takes a packet of the stream, before its depacketizer gets it. */
  note(packet: RtpPacket): void {
    this.#firstTimestamp ??= packet.timestamp;
    const stamp = parseReplayExtension(packet);
    if (!stamp) return;
    const { timestamp } = packet;
    const last = this.#stamps.at(-1);
    // Further packets of an access unit may repeat the extension, with or without its bits.
    if (last?.timestamp === timestamp && Math.abs(last.cameraMs - stamp.cameraMs) < JUMP_MS) {
      this.#stamps.pop();
      this.#stamps.push({ ...last, stamp: withBitsOf(last.stamp, stamp) });
      return;
    }
    this.#stamps.push({ timestamp, cameraMs: stamp.cameraMs, stamp });
    if (this.#stamps.length > KEPT_STAMPS) this.#stamps.shift();
  }

  /** Undefined if nothing says when it was captured. */
  date({ timestamp, randomAccess }: Pick<AccessUnit, 'timestamp' | 'randomAccess'>): DatedUnit | undefined {
    const own = this.#stamps.findLast((kept) => kept.timestamp === timestamp);
    const { cameraMs, dated } = own ? ({ cameraMs: own.cameraMs, dated: 'unit' } as const) : this.#follow(timestamp);
    if (cameraMs === undefined) return undefined;
    const last = this.#last;
    const jumped = last !== undefined && Math.abs(cameraMs - this.#after(last, timestamp)) > JUMP_MS;
    this.#last = { timestamp, cameraMs };
    return {
      cameraMs,
      dated,
      cleanPoint: randomAccess || own?.stamp.cleanPoint === true,
      endsSection: own !== undefined && (own.stamp.endsSection || own.stamp.terminal),
      discontinuity: own?.stamp.discontinuity === true || jumped,
      terminal: own?.stamp.terminal === true,
    };
  }

  #follow(timestamp: number): { readonly cameraMs: number | undefined; readonly dated: 'stream' | 'range' } {
    let nearest: StampedAnchor | undefined;
    for (const kept of this.#stamps) {
      if (!nearest || this.#distance(kept, timestamp) <= this.#distance(nearest, timestamp)) nearest = kept;
    }
    const anchor = nearest ?? this.#startAnchor();
    const isNear = anchor && (!nearest || this.#distance(anchor, timestamp) <= MAX_FOLLOWED_MS);
    return { cameraMs: isNear ? this.#after(anchor, timestamp) : undefined, dated: nearest ? 'stream' : 'range' };
  }

  #startAnchor(): Anchor | undefined {
    const timestamp = this.#start?.timestamp ?? this.#firstTimestamp;
    return this.#start && timestamp !== undefined ? { cameraMs: this.#start.cameraMs, timestamp } : undefined;
  }

  /** RFC 3550 §5.1: the difference of two timestamps is a signed 32-bit number. */
  #after(anchor: Anchor, timestamp: number): number {
    return anchor.cameraMs + ((timestamp - anchor.timestamp) | 0) / this.#ticksPerMs;
  }

  #distance(anchor: Anchor, timestamp: number): number {
    return Math.abs((timestamp - anchor.timestamp) | 0) / this.#ticksPerMs;
  }
}

const withBitsOf = (one: ReplayStamp, other: ReplayStamp): ReplayStamp => ({
  cameraMs: one.cameraMs,
  cleanPoint: one.cleanPoint || other.cleanPoint,
  endsSection: one.endsSection || other.endsSection,
  discontinuity: one.discontinuity || other.discontinuity,
  terminal: one.terminal || other.terminal,
});
