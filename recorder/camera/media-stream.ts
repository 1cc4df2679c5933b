// One stream of a session: detects its payload type, orders its packets, assembles access units, and counts what it delivered.

import type { Reason } from '../../base/reason.ts';
import type { Clock } from '../../base/clock.ts';
import type { AccessUnit, Depacketizer, DepacketizerDeps } from '../codec/access-unit.ts';
import { createDepacketizer } from '../codec/depacketizer.ts';
import type { SlabPool } from '../codec/slab.ts';
import type { RtpPacket } from '../rtp/packet.ts';
import { RtpReceiver } from '../rtp/receiver.ts';
import type { Media, Presentation } from '../rtsp/sdp.ts';
import type { Carrier, PacketPlace } from '../contract/packet-place.ts';
import type { CameraCounters, StreamCounters } from '../contract/camera-status.ts';
import { countFault } from '../codec/faults.ts';

/**
 * After this many packets in a row of a type that the SDP does not name, following packets of a named one, the camera has changed
 * the type.
 */
const UNNAMED_AFTER_NAMED = 50;
/** The same for a type that the SDP gives to the other stream, if none of the own ones comes: the camera has exchanged them. */
const EXCHANGED = 20;
/** The same for audio at its start, where events and noise have types of their own. Video may start with a key frame. */
const UNNAMED_SOUND = 5;
/** Pictures with one timestamp differ in their last bytes. */
const TAIL_BYTES = 64;
/** The payload types that RTCP packets seem to have where a camera mixes them with RTP (RFC 5761 §4). */
const isRtcp = (payloadType: number): boolean => payloadType >= 64 && payloadType <= 95;

export const ENCRYPTED = (kind: 'video' | 'audio'): Reason => ({
  code: 'encrypted',
  message: `the camera offers its ${kind} over SRTP only, which is not supported: switch encryption off in it`,
});

/** Which codec cameras send that state this one. */
const MISTAKEN: ReadonlyMap<string, string> = new Map([
  ['H264', 'H265'],
  ['H265', 'H264'],
]);

interface Format {
  readonly payloadType: number;
  /** Clock rate of the packets' timestamps in Hz. */
  readonly clockRate: number;
  open(): Depacketizer;
}

/** Gets what a stream delivers. */
export interface MediaStreamOwner {
  /** Takes an access unit; the stream releases its data afterwards. */
  unit(unit: AccessUnit, stream: MediaStream): void;
  /** The packets continue with another clock rate. */
  clockRateChanged(): void;
}

export interface MediaStreamDeps {
  readonly pool: SlabPool;
  readonly counters: CameraCounters;
  readonly clock: Clock;
  readonly owner: MediaStreamOwner;
}

export class MediaStream {
  readonly kind: 'video' | 'audio';
  readonly #formats: readonly Format[];
  /** Payload types that the SDP uses for another section. */
  readonly #taken: ReadonlySet<number>;
  readonly #deps: MediaStreamDeps;
  #format: Format;
  #depacketizer: Depacketizer;
  #receiver: RtpReceiver;
  readonly #counters: StreamCounters;
  #carrier: Carrier | undefined;
  #hasPackets = false;
  #hasNamed = false;
  #unnamed = -1;
  #unnamedPackets = 0;
  /** The camera has changed the format: nothing can be decoded before a key frame. */
  #awaitsKeyFrame = false;
  /** Discarded access units of the depacketizer that were counted already. */
  #discarded = 0;
  /** Of the last picture: its timestamp, and its last bytes. */
  #tailTimestamp = -1;
  #tailBytes = 0;
  readonly #tail = Buffer.alloc(TAIL_BYTES);
  // Times of the current packet and of the one before it.
  #timestamp = 0;
  #nowMs = 0;
  #ranMs = 0;
  #packetMs = 0;
  #previousPacketMs = 0;

  private constructor(
    kind: 'video' | 'audio',
    formats: readonly [Format, ...Format[]],
    taken: ReadonlySet<number>,
    deps: MediaStreamDeps,
  ) {
    this.kind = kind;
    this.#formats = formats;
    this.#taken = taken;
    this.#deps = deps;
    this.#counters = deps.counters.streams[kind];
    [this.#format] = formats;
    this.#depacketizer = this.#format.open();
    this.#receiver = this.#newReceiver(false, undefined);
  }

  /**
   * The first section of a kind that can be recorded and its index, or why there is none. `way`: another order, for a camera of which
   * that many attempts brought no picture.
   */
  static choose(
    presentation: Presentation,
    kind: 'video' | 'audio',
    deps: MediaStreamDeps,
    way = 0,
  ): { index: number; stream: MediaStream } | { index: -1; stream: undefined; reason: Reason | undefined } {
    let reason: Reason | undefined;
    for (const { index, media } of waysOf(presentation, kind, way)) {
      if (media.encrypted) {
        reason ??= ENCRYPTED(kind);
        continue;
      }
      let stream: MediaStream | undefined;
      const emit = (unit: AccessUnit): void => stream?.emit(unit);
      const { formats, unsupported } = formatsOf(media, kind, {
        pool: deps.pool,
        emit,
        faults: deps.counters.streams[kind].faults,
      });
      const [first, ...others] = formats;
      if (!first) {
        reason ??= unsupported;
        continue;
      }
      const named = presentation.media.flatMap((other) => other.formats.map(({ payloadType }) => payloadType));
      const own = new Set(formats.map(({ payloadType }) => payloadType));
      const taken = new Set(named.filter((payloadType) => !own.has(payloadType)));
      stream = new MediaStream(kind, [first, ...others], taken, deps);
      return { index, stream };
    }
    return { index: -1, stream: undefined, reason };
  }

  get clockRate(): number {
    return this.#format.clockRate;
  }

  get depacketizer(): Depacketizer {
    return this.#depacketizer;
  }

  get receiver(): RtpReceiver {
    return this.#receiver;
  }

  get carrier(): Carrier | undefined {
    return this.#carrier;
  }

  /** The last packet of this connection, of any source and type; undefined before the first. */
  get lastPacket(): PacketPlace | undefined {
    const { last } = this.#receiver;
    return last && { ...last, carrier: this.#carrier };
  }

  /** Whether packets of a type that its section names have come. */
  get hasNamed(): boolean {
    return this.#hasNamed;
  }

  get payloadTypes(): readonly number[] {
    return this.#formats.map(({ payloadType }) => payloadType);
  }

  /** Sets how packets arrive and their source. If packets came before the response, their source counts. */
  begin(reorder: boolean, ssrc: number | undefined, carrier: Carrier | undefined): void {
    this.#carrier = carrier;
    if (this.#receiver.ssrc === undefined) this.#receiver = this.#newReceiver(reorder, ssrc);
  }

  receive(buffer: Buffer, start: number, end: number, nowMs: number): void {
    // Packets of one read have one time.
    if (nowMs !== this.#nowMs) this.#ranMs = this.#deps.clock.ranMs();
    this.#nowMs = nowMs;
    this.#receiver.receive(buffer, start, end, this.#ranMs);
    if (this.#depacketizer.discarded !== this.#discarded) this.#noteDiscarded();
  }

  flush(): void {
    this.#receiver.flush();
    this.#depacketizer.flush();
  }

  close(): void {
    this.#depacketizer.close();
  }

  /** When the given access unit arrived; its depacketizer may emit it only with the following packet. */
  arrivalOf(unit: AccessUnit): number {
    return unit.timestamp === this.#timestamp ? this.#packetMs : this.#previousPacketMs;
  }

  /** Called by the depacketizers only. */
  emit(unit: AccessUnit): void {
    if (this.kind === 'video' && this.#isRepeated(unit)) countFault(this.#counters.faults, 'picture-twice');
    else if (this.#awaitsKeyFrame && !unit.randomAccess) this.#deps.counters.framesDiscarded++;
    else {
      this.#awaitsKeyFrame = false;
      this.#deps.owner.unit(unit, this);
    }
    unit.data.slab.release();
  }

  /** Whether the last picture had this timestamp and ended with the same bytes. */
  #isRepeated({ timestamp, data }: AccessUnit): boolean {
    const { buffer } = data.slab;
    const end = data.offset + data.size;
    const start = Math.max(data.offset, end - TAIL_BYTES);
    const hasTimestamp = timestamp === this.#tailTimestamp;
    const isRepeated = hasTimestamp && buffer.compare(this.#tail, 0, this.#tailBytes, start, end) === 0;
    this.#tailTimestamp = timestamp;
    this.#tailBytes = buffer.copy(this.#tail, 0, start, end);
    return isRepeated;
  }

  #newReceiver(reorder: boolean, ssrc: number | undefined): RtpReceiver {
    const { counters } = this.#deps;
    const { faults } = this.#counters;
    return new RtpReceiver({
      payloadType: this.#receiver?.payloadType ?? this.#format.payloadType,
      clockRate: this.clockRate,
      reorder,
      ssrc,
      statistics: this.#counters.rtp,
      onOtherType: (payloadType) => this.#takesType(payloadType),
      // No more packets follow for what the old source started.
      onSourceChange: () => this.#depacketizer.flush(),
      onPacket: (packet) => {
        counters.packetsReceived++;
        counters.packetsLost += packet.lost;
        if (!this.#hasNamed || this.#unnamedPackets > 0) this.#noteType(packet.payloadType);
        this.#previousPacketMs = this.#packetMs;
        this.#packetMs = this.#nowMs;
        this.#timestamp = packet.timestamp;
        const { total } = faults;
        this.#depacketizer.push(packet);
        if (faults.total !== total) this.#noteFault(packet);
      },
    });
  }

  #noteFault({ ssrc, sequenceNumber }: RtpPacket): void {
    const { last } = this.#counters.faults;
    if (!last) return;
    const packet = { ssrc, sequenceNumber, carrier: this.#carrier };
    this.#counters.lastFault = { fault: last, wallMs: this.#deps.clock.wallMs(), packet };
  }

  #noteType(payloadType: number): void {
    this.#hasPackets = true;
    this.#hasNamed ||= payloadType === this.#format.payloadType;
    this.#unnamedPackets = 0;
  }

  /**
   * Whether the stream continues with this payload type. A type that the section names is accepted with its first packet. A type
   * that the SDP does not name in this section is taken for the section's only format, if that is not sent under its own number.
   */
  #takesType(payloadType: number): boolean {
    const named = this.#formats.find((format) => format.payloadType === payloadType);
    if (named) {
      this.#hasNamed = true;
      this.#use(named);
      return true;
    }
    const isTaken = this.#taken.has(payloadType);
    if (this.#formats.length > 1 || (isTaken && this.#hasNamed) || isRtcp(payloadType)) return false;
    if (payloadType !== this.#unnamed) this.#unnamedPackets = 0;
    this.#unnamed = payloadType;
    const atStart = isTaken ? EXCHANGED : this.kind === 'audio' ? UNNAMED_SOUND : 1;
    const needed = this.#hasNamed ? UNNAMED_AFTER_NAMED : atStart;
    if (++this.#unnamedPackets < needed) return false;
    this.#use(this.#format);
    return true;
  }

  #use(format: Format): void {
    const isFirst = !this.#hasPackets;
    if (isFirst && format === this.#format) return;
    const { clockRate } = this;
    this.#depacketizer.flush();
    this.#noteDiscarded();
    this.#depacketizer.close();
    this.#format = format;
    this.#depacketizer = format.open();
    this.#discarded = 0;
    this.#awaitsKeyFrame = true;
    if (!isFirst) this.#receiver.noteBreak();
    if (format.clockRate !== clockRate) this.#deps.owner.clockRateChanged();
  }

  #noteDiscarded(): void {
    const { discarded } = this.#depacketizer;
    if (this.kind === 'video') this.#deps.counters.framesDiscarded += discarded - this.#discarded;
    this.#discarded = discarded;
  }
}

/**
 * The sections of a kind, best first: MJPEG after all others, and last the sections that say H.264 taken for H.265, and the other way
 * round. Each is tried twice before the next one: what is no picture now may be one after the next connection.
 */
function waysOf(
  presentation: Presentation,
  kind: 'video' | 'audio',
  way: number,
): { readonly index: number; readonly media: Media }[] {
  const isJpeg = ({ formats }: Media): boolean => formats.every(({ encodingName }) => encodingName === 'JPEG');
  const stated = presentation.media
    .map((media, index) => ({ index, media }))
    .filter(({ media }) => media.kind === kind && !media.backchannel)
    .sort((a, b) => Number(isJpeg(a.media)) - Number(isJpeg(b.media)));
  const mistaken = stated.flatMap(({ index, media }) => {
    const formats = media.formats.flatMap((format) => {
      const encodingName = MISTAKEN.get(format.encodingName);
      return encodingName ? [{ ...format, encodingName, formatParameters: new Map() }] : [];
    });
    return formats.length > 0 ? [{ index, media: { ...media, formats } }] : [];
  });
  const ways = [...stated, ...mistaken];
  const first = ways.length > 0 ? Math.floor(way / 2) % ways.length : 0;
  return [...ways.slice(first), ...ways.slice(0, first)];
}

/** The formats of a section that can be recorded, and why the first of the others cannot. */
function formatsOf(
  media: Media,
  kind: 'video' | 'audio',
  deps: DepacketizerDeps,
): { formats: readonly Format[]; unsupported: Reason | undefined } {
  const formats: Format[] = [];
  let unsupported: Reason | undefined;
  for (const { payloadType, encodingName, clockRate, channels, formatParameters } of media.formats) {
    const description = {
      kind,
      payloadType,
      encodingName: encodingName || undefined,
      clockRate: clockRate || undefined,
      channels,
      formatParameters,
      pictureSize: media.pictureSize,
    };
    const choice = createDepacketizer(description, deps);
    if ('unsupported' in choice) {
      unsupported ??= choice.unsupported;
      continue;
    }
    let unused: Depacketizer | undefined = choice.depacketizer;
    const open = (): Depacketizer => {
      const depacketizer = unused;
      unused = undefined;
      if (depacketizer) return depacketizer;
      const again = createDepacketizer(description, deps);
      return 'unsupported' in again ? choice.depacketizer : again.depacketizer;
    };
    formats.push({ payloadType, clockRate: choice.clockRate, open });
  }
  return { formats, unsupported };
}
