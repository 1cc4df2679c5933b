// Makes RTP packets from NAL units and audio frames like a well-behaved camera; tests modify them with `onPacket`. H.264: RFC
// 6184, H.265: RFC 7798, AAC: RFC 3640 and RFC 6416 (LATM), Opus: RFC 7587, G.711: RFC 3551.

export interface RtpFields {
  payloadType: number;
  marker: boolean;
  sequenceNumber: number;
  timestamp: number;
  ssrc: number;
  payload: Buffer;
  /** Contributing sources to list in the header. */
  csrc?: readonly number[];
  /** A header extension: its profile word and data (a multiple of four bytes). */
  extension?: { readonly profile: number; readonly data: Buffer };
  /** Bytes of padding to append, including the count. */
  paddingBytes?: number;
}

/** Gets each packet before it is written; returns it (changed or not), several packets, or nothing to lose it. */
export type PacketHook = (packet: RtpFields, index: number) => RtpFields | readonly RtpFields[] | undefined;

export interface PacketizeOptions {
  readonly timestamp: number;
  /** Of the first packet. The next access unit starts at this plus the number of packets returned. */
  readonly sequenceNumber: number;
  readonly ssrc: number;
  readonly payloadType: number;
  /** Maximum size of a packet including its 12-byte header; default 1400. */
  readonly mtu?: number;
  readonly onPacket?: PacketHook;
}

/** One RTP packet (RFC 3550 §5.1). */
export function rtpPacket(fields: RtpFields): Buffer {
  const csrc = fields.csrc ?? [];
  const { extension } = fields;
  const paddingBytes = fields.paddingBytes ?? 0;
  const header = Buffer.alloc(12 + csrc.length * 4);
  header[0] = 0x80 | (paddingBytes > 0 ? 0x20 : 0) | (extension ? 0x10 : 0) | csrc.length;
  header[1] = (fields.marker ? 0x80 : 0) | (fields.payloadType & 0x7f);
  header.writeUInt16BE(fields.sequenceNumber & 0xffff, 2);
  header.writeUInt32BE(fields.timestamp >>> 0, 4);
  header.writeUInt32BE(fields.ssrc >>> 0, 8);
  for (const [i, source] of csrc.entries()) header.writeUInt32BE(source >>> 0, 12 + i * 4);
  const parts: Buffer[] = [header];
  if (extension) {
    const extensionHeader = Buffer.alloc(4);
    extensionHeader.writeUInt16BE(extension.profile, 0);
    extensionHeader.writeUInt16BE(extension.data.length / 4, 2);
    parts.push(extensionHeader, extension.data);
  }
  parts.push(fields.payload);
  if (paddingBytes > 0) {
    const padding = Buffer.alloc(paddingBytes);
    padding[paddingBytes - 1] = paddingBytes;
    parts.push(padding);
  }
  return Buffer.concat(parts);
}

/** An RTP packet inside an interleaved frame (RFC 2326 §10.12): `$`, channel, length. */
export function interleaved(channel: number, packet: Buffer): Buffer {
  const header = Buffer.from([0x24, channel, packet.length >> 8, packet.length & 0xff]);
  return Buffer.concat([header, packet]);
}

/** Makes packets from RTP payloads; the last one has the marker. */
export function packetizePayloads(payloads: readonly Buffer[], options: PacketizeOptions): Buffer[] {
  const packets: Buffer[] = [];
  for (const [index, payload] of payloads.entries()) {
    const fields: RtpFields = {
      payloadType: options.payloadType,
      marker: index === payloads.length - 1,
      sequenceNumber: (options.sequenceNumber + index) & 0xffff,
      timestamp: options.timestamp >>> 0,
      ssrc: options.ssrc,
      payload,
    };
    const hooked = options.onPacket ? options.onPacket(fields, index) : fields;
    if (hooked === undefined) continue;
    for (const packet of Array.isArray(hooked) ? (hooked as readonly RtpFields[]) : [hooked as RtpFields]) {
      packets.push(rtpPacket(packet));
    }
  }
  return packets;
}

const payloadRoom = (options: PacketizeOptions): number => (options.mtu ?? 1400) - 12;

/** How small NAL units are sent: each alone, or in aggregation packets where two or more fit. */
interface NalOptions {
  readonly aggregate?: boolean;
}

/** One H.264 access unit: single NAL unit packets, STAP-A when `aggregate`, FU-A for what does not fit. */
export function packetizeH264(nals: readonly Buffer[], options: PacketizeOptions & NalOptions): Buffer[] {
  return packetizePayloads(h264Payloads(nals, payloadRoom(options), options.aggregate ?? false), options);
}

export function h264Payloads(nals: readonly Buffer[], room: number, aggregate = false): Buffer[] {
  const payloads: Buffer[] = [];
  for (const group of groupNals(nals, room, aggregate, 1)) {
    const nal = group[0] as Buffer;
    if (group.length > 1) {
      const referenceIdc = Math.max(...group.map((n) => (n[0] as number) & 0x60));
      payloads.push(Buffer.concat([Buffer.from([referenceIdc | 24]), ...group.flatMap(lengthPrefixed)]));
    } else if (nal.length <= room) {
      payloads.push(nal);
    } else {
      const header = nal[0] as number;
      for (const part of fragments(nal, 1, room - 2)) {
        const flags = (part.first ? 0x80 : 0) | (part.last ? 0x40 : 0);
        payloads.push(Buffer.concat([Buffer.from([(header & 0xe0) | 28, flags | (header & 0x1f)]), part.data]));
      }
    }
  }
  return payloads;
}

interface H265Options extends NalOptions {
  /** Decoding order number of the first NAL unit; adds DONL and DOND fields (`sprop-max-don-diff` > 0). */
  readonly decodingOrderNumber?: number;
}

/** One H.265 access unit: single NAL unit packets, AP when `aggregate`, FU for what does not fit. */
export function packetizeH265(nals: readonly Buffer[], options: PacketizeOptions & H265Options): Buffer[] {
  return packetizePayloads(
    h265Payloads(nals, payloadRoom(options), options.aggregate ?? false, options.decodingOrderNumber),
    options,
  );
}

function h265Payloads(
  nals: readonly Buffer[],
  room: number,
  aggregate = false,
  decodingOrderNumber?: number,
): Buffer[] {
  const payloads: Buffer[] = [];
  const hasDon = decodingOrderNumber !== undefined;
  let don = decodingOrderNumber ?? 0;
  const donl = (): Buffer => (hasDon ? Buffer.from([(don >> 8) & 0xff, don & 0xff]) : Buffer.alloc(0));
  for (const group of groupNals(nals, hasDon ? room - 4 : room, aggregate, 2)) {
    const nal = group[0] as Buffer;
    if (group.length > 1) {
      const parts: Buffer[] = [Buffer.from([48 << 1, 1])];
      for (const [i, unit] of group.entries()) {
        // The first unit has DONL, the others DOND: the difference to the previous one minus one (RFC 7798 §4.4.2).
        if (hasDon) parts.push(i === 0 ? donl() : Buffer.from([0]));
        parts.push(...lengthPrefixed(unit));
      }
      payloads.push(Buffer.concat(parts));
    } else if (nal.length + donl().length <= room) {
      payloads.push(Buffer.concat([nal.subarray(0, 2), donl(), nal.subarray(2)]));
    } else {
      const type = ((nal[0] as number) >> 1) & 0x3f;
      const header = [((nal[0] as number) & 0x81) | (49 << 1), nal[1] as number];
      for (const part of fragments(nal, 2, room - 3 - donl().length)) {
        const flags = (part.first ? 0x80 : 0) | (part.last ? 0x40 : 0);
        const fuHeader = Buffer.from([...header, flags | type]);
        payloads.push(Buffer.concat([fuHeader, part.first ? donl() : Buffer.alloc(0), part.data]));
      }
    }
    don += group.length;
  }
  return payloads;
}

function lengthPrefixed(nal: Buffer): Buffer[] {
  return [Buffer.from([nal.length >> 8, nal.length & 0xff]), nal];
}

/** Consecutive NAL units that fit into one packet form a group; every other one forms a separate group. */
function groupNals(nals: readonly Buffer[], room: number, aggregate: boolean, headerBytes: number): Buffer[][] {
  const groups: Buffer[][] = [];
  let size = 0;
  for (const nal of nals) {
    const group = groups.at(-1);
    if (aggregate && group && size + 3 + nal.length <= room) {
      group.push(nal);
      size += 3 + nal.length;
    } else {
      groups.push([nal]);
      size = headerBytes + 3 + nal.length;
    }
  }
  return groups;
}

function fragments(nal: Buffer, from: number, size: number): { data: Buffer; first: boolean; last: boolean }[] {
  const parts = [];
  for (let at = from; at < nal.length; at += size) {
    const end = Math.min(nal.length, at + size);
    parts.push({ data: nal.subarray(at, end), first: at === from, last: end === nal.length });
  }
  return parts;
}

/** AAC frames without ADTS header in one packet (RFC 3640, `AAC-hbr`); a frame too large for one packet is fragmented. */
export function packetizeAac(frames: readonly Buffer[], options: PacketizeOptions): Buffer[] {
  const room = payloadRoom(options);
  const total = frames.reduce((sum, frame) => sum + frame.length + 2, 2);
  if (total <= room)
    return packetizePayloads(
      [
        aacPayload(
          frames,
          frames.map((frame) => frame.length),
        ),
      ],
      options,
    );
  return packetizePayloads(
    frames.flatMap((frame) => fragments(frame, 0, room - 4).map((part) => aacPayload([part.data], [frame.length]))),
    options,
  );
}

/** AU headers of 13 bits size and 3 bits index, then the data (RFC 3640 §3.3.6). */
export function aacPayload(parts: readonly Buffer[], sizes: readonly number[]): Buffer {
  const header = Buffer.alloc(2 + sizes.length * 2);
  header.writeUInt16BE(sizes.length * 16, 0);
  for (const [i, size] of sizes.entries()) header.writeUInt16BE((size << 3) & 0xffff, 2 + i * 2);
  return Buffer.concat([header, ...parts]);
}

/**
 * One AAC frame as a LATM audioMuxElement with `cpresent=0` (RFC 6416): length as bytes of 255 and a remainder, then the frame.
 */
export function packetizeLatm(frame: Buffer, options: PacketizeOptions): Buffer[] {
  const length = [...Array<number>(Math.floor(frame.length / 255)).fill(255), frame.length % 255];
  const element = Buffer.concat([Buffer.from(length), frame]);
  return packetizePayloads(
    fragments(element, 0, payloadRoom(options)).map((part) => part.data),
    options,
  );
}

/** One complete Opus packet. */
export function packetizeOpus(frame: Buffer, options: PacketizeOptions): Buffer[] {
  return packetizePayloads([frame], options);
}

/** G.711 octets in one packet. */
export function packetizeG711(octets: Buffer, options: PacketizeOptions): Buffer[] {
  return packetizePayloads([octets], options);
}

/** MPEG audio frames after headers with the fragment's offset (RFC 2250 §3.5): several in a packet, or one in several packets. */
export function packetizeMpegAudio(frames: readonly Buffer[], options: PacketizeOptions): Buffer[] {
  const room = (options.mtu ?? 1400) - 16;
  const behindOffset = (offset: number, data: readonly Buffer[]): Buffer => {
    const header = Buffer.alloc(4);
    header.writeUInt16BE(offset, 2);
    return Buffer.concat([header, ...data]);
  };
  const whole = Buffer.concat(frames);
  if (whole.length <= room) return packetizePayloads([behindOffset(0, frames)], options);
  const payloads = frames.flatMap((frame) =>
    Array.from({ length: Math.ceil(frame.length / room) }, (_, i) =>
      behindOffset(i * room, [frame.subarray(i * room, (i + 1) * room)]),
    ),
  );
  return packetizePayloads(payloads, options);
}

/** NAL units of an Annex B byte stream (ITU-T H.264 B.2), without start codes and trailing zeros. */
export function splitAnnexB(stream: Buffer): Buffer[] {
  const nals: Buffer[] = [];
  let start = stream.indexOf('000001', 0, 'hex');
  while (start >= 0) {
    const next = stream.indexOf('000001', start + 3, 'hex');
    let end = next < 0 ? stream.length : next;
    while (end > start + 3 && stream[end - 1] === 0) end--;
    if (end > start + 3) nals.push(stream.subarray(start + 3, end));
    start = next;
  }
  return nals;
}

/** Groups NAL units into access units: one starts at a delimiter, parameter set or SEI after a slice, or a first slice. */
export function accessUnits(nals: readonly Buffer[], codec: 'h264' | 'h265'): Buffer[][] {
  const units: Buffer[][] = [];
  let hasSlice = false;
  for (const nal of nals) {
    const slice = isSlice(nal, codec);
    const starts = slice ? isFirstSlice(nal, codec) : startsAccessUnit(nal, codec);
    if (units.length === 0 || (hasSlice && starts)) {
      units.push([]);
      hasSlice = false;
    }
    units.at(-1)?.push(nal);
    hasSlice ||= slice;
  }
  return units;
}

/** NAL unit type, for either codec. */
export function nalType(nal: Buffer, codec: 'h264' | 'h265'): number {
  return codec === 'h264' ? (nal[0] as number) & 0x1f : ((nal[0] as number) >> 1) & 0x3f;
}

function isSlice(nal: Buffer, codec: 'h264' | 'h265'): boolean {
  const type = nalType(nal, codec);
  return codec === 'h264' ? type >= 1 && type <= 5 : type < 32;
}

function isFirstSlice(nal: Buffer, codec: 'h264' | 'h265'): boolean {
  // first_mb_in_slice is Exp-Golomb coded: 0 is a single 1 bit; first_slice_segment_in_pic_flag is one bit.
  return ((nal[codec === 'h264' ? 1 : 2] as number) & 0x80) !== 0;
}

function startsAccessUnit(nal: Buffer, codec: 'h264' | 'h265'): boolean {
  const type = nalType(nal, codec);
  if (codec === 'h264') return type >= 6 && type <= 9;
  return (type >= 32 && type <= 35) || type === 39;
}

/** AAC frames of an ADTS stream, without their headers. */
export function splitAdts(stream: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  let at = 0;
  while (at + 7 <= stream.length) {
    const size =
      (((stream[at + 3] as number) & 3) << 11) | ((stream[at + 4] as number) << 3) | ((stream[at + 5] as number) >> 5);
    const headerBytes = ((stream[at + 1] as number) & 1) === 1 ? 7 : 9;
    frames.push(stream.subarray(at + headerBytes, at + size));
    at += size;
  }
  return frames;
}
