// Gathers statistics about the RTP packets of one stream: sources, payload types, order, timestamps, markers, delay. It sees
// packets as they arrive, before the recorder corrects anything, and keeps a limited amount of data.

import { RtpPacket } from '../rtp/packet.ts';

/** Timestamps for which the arrival is kept: a minute at 120 per second. */
const MAX_STAMPS = 7_200;
/** A sequence number this far from the expected one is a new sequence, not a loss or a late packet (RFC 3550 A.1). */
const MAX_DROPOUT = 3_000;
/** Missing sequence numbers that may still arrive. */
const MAX_MISSING = 512;
/** More sources or types than any camera has; further ones are counted with the last. */
const MAX_KINDS = 16;

export interface StreamFigures {
  readonly packets: number;
  readonly bytes: number;
  /** Not RTP packets. */
  readonly malformed: number;
  /** Packets by payload type, and by source (SSRC), in order of first arrival. */
  readonly payloadTypes: ReadonlyMap<number, number>;
  readonly sources: ReadonlyMap<number, number>;
  /** How often a packet came from another source than the previous one. */
  readonly sourceChanges: number;
  readonly lost: number;
  readonly duplicates: number;
  readonly reordered: number;
  /** Sequences that restarted. */
  readonly restarts: number;
  /** Packets whose header has an extension, contributing sources, or padding. */
  readonly extended: number;
  readonly marker: MarkerPolicy;
  /** Changes of the timestamp: pictures of video, packets of audio. */
  readonly stamps: number;
  /** Timestamps smaller than the previous one, as with B-frames. */
  readonly backwards: number;
  /** Timestamps that differ by more than 5 s from what the arrival suggests. */
  readonly jumps: number;
  readonly seconds: number;
  /** Timestamps per second of arrival; undefined for less than a second. */
  readonly rate: number | undefined;
  /**
   * The speed of the camera's clock relative to ours: 1.001 is 0.1 % fast. Undefined for less than five seconds, or if timestamps
   * do not change.
   */
  readonly clockRatio: number | undefined;
  /** Delay relative to the least delayed timestamp, in milliseconds: median, 95th percentile and maximum. */
  readonly delayMs: { readonly median: number; readonly most: number; readonly worst: number } | undefined;
  /** Share of timestamps that arrived within 2 ms of the previous one: delivery in bursts. */
  readonly bunched: number;
}

/** Which packets have the marker bit: the last one of each picture as RFC 6184 requires, or others. */
type MarkerPolicy = 'last-packet' | 'every-packet' | 'never' | 'irregular' | 'unknown';

export class StreamObserver {
  readonly #clockRate: number;
  readonly #packet = new RtpPacket();
  #packets = 0;
  #bytes = 0;
  #malformed = 0;
  readonly #payloadTypes = new Map<number, number>();
  readonly #sources = new Map<number, number>();
  #sourceChanges = 0;
  #source: number | undefined;
  #expected: number | undefined;
  readonly #missing = new Set<number>();
  #lost = 0;
  #duplicates = 0;
  #reordered = 0;
  #restarts = 0;
  #extended = 0;
  #markers = 0;
  /** Packets with a marker that were followed by a new timestamp, and new timestamps before which the marker was set. */
  #markedEnds = 0;
  #wasMarked = false;
  #timestamp: number | undefined;
  #ticks = 0;
  #firstMs: number | undefined;
  #lastMs = 0;
  #lastStampMs = 0;
  #stamps = 0;
  #backwards = 0;
  #jumps = 0;
  #bunched = 0;
  /** Arrival and media time of timestamps, in milliseconds. */
  readonly #arrivals: number[] = [];
  readonly #media: number[] = [];

  /** `clockRate`: of the timestamps, in Hz. */
  constructor(clockRate: number) {
    this.#clockRate = clockRate;
  }

  /** Takes the packet in `buffer[start, end)`, which arrived at `arrivalMs` (monotonic). */
  push(buffer: Buffer, start: number, end: number, arrivalMs: number): void {
    const packet = this.#packet;
    this.#bytes += end - start;
    if (!packet.parse(buffer, start, end)) return void this.#malformed++;
    this.#packets++;
    this.#firstMs ??= arrivalMs;
    this.#lastMs = arrivalMs;
    if (((buffer[start] as number) & 0x3f) !== 0) this.#extended++;
    count(this.#payloadTypes, packet.payloadType);
    count(this.#sources, packet.ssrc);
    if (this.#source !== packet.ssrc) {
      if (this.#source !== undefined) this.#sourceChanges++;
      this.#source = packet.ssrc;
      this.#expected = undefined;
      this.#missing.clear();
    }
    this.#order(packet.sequenceNumber);
    this.#stamp(packet, arrivalMs);
    this.#wasMarked = packet.marker;
    if (packet.marker) this.#markers++;
  }

  figures(): StreamFigures {
    const seconds = this.#firstMs === undefined ? 0 : (this.#lastMs - this.#firstMs) / 1000;
    const ratio = this.#clockRatio();
    return {
      packets: this.#packets,
      bytes: this.#bytes,
      malformed: this.#malformed,
      payloadTypes: this.#payloadTypes,
      sources: this.#sources,
      sourceChanges: this.#sourceChanges,
      lost: this.#lost + this.#missing.size,
      duplicates: this.#duplicates,
      reordered: this.#reordered,
      restarts: this.#restarts,
      extended: this.#extended,
      marker: this.#markerPolicy(),
      stamps: this.#stamps,
      backwards: this.#backwards,
      jumps: this.#jumps,
      seconds,
      rate: seconds >= 1 && this.#stamps > 1 ? (this.#stamps - 1) / seconds : undefined,
      clockRatio: ratio,
      delayMs: this.#delays(ratio ?? 1),
      bunched: this.#stamps > 1 ? this.#bunched / (this.#stamps - 1) : 0,
    };
  }

  #order(sequenceNumber: number): void {
    const expected = this.#expected;
    const ahead = expected === undefined ? 0 : ((sequenceNumber - expected) << 16) >> 16;
    if (Math.abs(ahead) > MAX_DROPOUT) {
      this.#restarts++;
      this.#lost += this.#missing.size;
      this.#missing.clear();
    } else if (ahead < 0) {
      if (this.#missing.delete(sequenceNumber)) this.#reordered++;
      else this.#duplicates++;
      return;
    } else {
      for (let i = 0; i < ahead; i++) {
        if (this.#missing.size >= MAX_MISSING) this.#lost++;
        else this.#missing.add(((expected as number) + i) & 0xffff);
      }
    }
    this.#expected = (sequenceNumber + 1) & 0xffff;
  }

  #stamp(packet: RtpPacket, arrivalMs: number): void {
    const before = this.#timestamp;
    if (before === packet.timestamp) return;
    this.#timestamp = packet.timestamp;
    const delta = before === undefined ? 0 : (packet.timestamp - before) | 0;
    if (before !== undefined) {
      if (this.#wasMarked) this.#markedEnds++;
      if (arrivalMs - this.#lastStampMs <= 2) this.#bunched++;
      const deltaMs = (delta * 1000) / this.#clockRate;
      const jumped = Math.abs(deltaMs - (arrivalMs - this.#lastStampMs)) > 5_000;
      if (jumped) this.#jumps++;
      else if (delta < 0) this.#backwards++;
      if (!jumped) this.#ticks += delta;
    }
    this.#lastStampMs = arrivalMs;
    this.#stamps++;
    if (this.#arrivals.length >= MAX_STAMPS) return;
    this.#arrivals.push(arrivalMs);
    this.#media.push((this.#ticks * 1000) / this.#clockRate);
  }

  #markerPolicy(): MarkerPolicy {
    const ends = this.#stamps - 1;
    if (ends < 5) return 'unknown';
    if (this.#markers === 0) return 'never';
    if (this.#markers >= 0.98 * this.#packets && this.#packets > 1.5 * this.#stamps) return 'every-packet';
    const all = this.#markedEnds >= 0.95 * ends;
    return all && this.#markers <= 1.05 * (ends + 1) + 1 ? 'last-packet' : 'irregular';
  }

  /** The slope between the least delayed timestamps of the first and of the last fifth of the time. */
  #clockRatio(): number | undefined {
    const arrivals = this.#arrivals;
    const media = this.#media;
    const from = arrivals[0] ?? 0;
    const to = arrivals.at(-1) ?? 0;
    if (to - from < 5_000) return undefined;
    const least = (startMs: number, endMs: number): number | undefined => {
      let best: number | undefined;
      for (let i = 0; i < arrivals.length; i++) {
        const at = arrivals[i] as number;
        if (at < startMs || at > endMs) continue;
        if (best === undefined || at - (media[i] as number) < (arrivals[best] as number) - (media[best] as number))
          best = i;
      }
      return best;
    };
    const fifth = (to - from) / 5;
    const first = least(from, from + fifth);
    const last = least(to - fifth, to);
    if (first === undefined || last === undefined) return undefined;
    const stamped = (media[last] as number) - (media[first] as number);
    const passed = (arrivals[last] as number) - (arrivals[first] as number);
    return stamped > 0 && passed > 0 ? stamped / passed : undefined;
  }

  #delays(ratio: number): StreamFigures['delayMs'] {
    if (this.#arrivals.length < 2) return undefined;
    const delays = this.#arrivals.map((arrivalMs, i) => arrivalMs - (this.#media[i] as number) / ratio);
    let least = Infinity;
    for (const delay of delays) least = Math.min(least, delay);
    const sorted = delays.map((delay) => delay - least).sort((a, b) => a - b);
    const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] as number;
    return { median: at(0.5), most: at(0.95), worst: at(1) };
  }
}

function count(kinds: Map<number, number>, kind: number): void {
  const known = kinds.get(kind);
  if (known !== undefined) kinds.set(kind, known + 1);
  else if (kinds.size < MAX_KINDS) kinds.set(kind, 1);
}
