// Extracts AAC frames from RTP packets (RFC 3640, modes AAC-hbr and AAC-lbr).
//
//   |AU-headers-length (16 bits)|AU-header|AU-header|…|padding| AU | AU |…
//
// A frame larger than a packet is sent in fragments, each after an AU header with the size of the whole frame.

import type { AudioParameters, Depacketizer, DepacketizerDeps } from './access-unit.ts';
import { aacParameters, parseAdts, parseAudioSpecificConfig, parseHex, withChannels } from './audio-specific-config.ts';
import type { AacConfig } from './audio-specific-config.ts';
import { AudioUnits } from './audio-units.ts';
import { BitReader } from './bit-reader.ts';
import { countFault, type Fault, type FaultCounts } from './faults.ts';
import type { RtpPacket } from '../rtp/packet.ts';

/** The maximum of a 13-bit size. */
const MAX_FRAME_BYTES = 8191;

/** Lengths in bits of the fields of an AU header, RFC 3640 §4.1. */
export interface AuHeaderLayout {
  readonly sizeLength: number;
  readonly indexLength: number;
  readonly indexDeltaLength: number;
  readonly ctsDeltaLength: number;
  readonly dtsDeltaLength: number;
  readonly randomAccessIndication: boolean;
  readonly streamStateIndication: number;
  readonly auxiliaryDataSizeLength: number;
  /** Size of every AU if `sizeLength` is 0. */
  readonly constantSize: number;
}

interface AacOptions extends DepacketizerDeps {
  readonly layout: AuHeaderLayout;
  /** AudioSpecificConfig from the SDP in hexadecimal. */
  readonly config: string | undefined;
  /** Channels from the rtpmap, for a configuration that does not state them. */
  readonly channels?: number | undefined;
  readonly clockRate: number;
}

export class AacDepacketizer implements Depacketizer {
  readonly #layout: AuHeaderLayout;
  readonly #clockRate: number;
  readonly #faults: FaultCounts;
  readonly #units: AudioUnits;
  readonly #headers = new BitReader({ hasEmulationPrevention: false });
  #aac: AacConfig | undefined;
  parameters: AudioParameters | undefined;
  problem: Depacketizer['problem'];
  /** Size in bytes of the frame that is arriving in fragments; 0 if there is none. */
  #fragmentedSize = 0;
  #fragmentedTimestamp = 0;
  /** Timestamp of a frame that lost a fragment. */
  #damagedTimestamp: number | undefined;
  discarded = 0;

  constructor({ layout, config, channels, clockRate, pool, emit, faults }: AacOptions) {
    this.#faults = faults;
    this.#layout = layout;
    this.#clockRate = clockRate;
    this.#units = new AudioUnits(pool, emit);
    const bytes = parseHex(config);
    if (bytes) this.#configure(withChannels(bytes, channels));
  }

  push(packet: RtpPacket): void {
    const { buffer, payloadStart: start, payloadEnd: end } = packet;
    if (packet.lost > 0) {
      this.#units.noteLoss(packet.lost);
      this.#damagedTimestamp = this.#fragmentedSize > 0 ? this.#fragmentedTimestamp : undefined;
      this.#dropFragments('lost-inside');
    }
    // Some cameras send plain ADTS frames.
    if (parseAdts(buffer, start, end)) this.#takeFrame(buffer, start, end, packet.timestamp);
    else this.#takeUnits(buffer, start, end, packet.timestamp);
  }

  flush(): void {
    this.#dropFragments('ended-inside');
  }

  close(): void {
    this.#units.close();
    this.#fragmentedSize = 0;
  }

  #configure(config: Buffer): void {
    const aac = parseAudioSpecificConfig(config);
    if (!aac) {
      this.problem = { code: 'aac-config-unsupported', message: 'the AAC configuration cannot be used' };
      return;
    }
    this.#aac = aac;
    this.parameters = aacParameters(aac, config);
    this.problem = undefined;
  }

  #takeUnits(buffer: Buffer, start: number, end: number, timestamp: number): void {
    if (end - start < 2) return countFault(this.#faults, 'packet-cut');
    const layout = this.#layout;
    const headersStart = start + 2;
    const headerBits = buffer.readUInt16BE(start);
    const headersEnd = headersStart + Math.ceil(headerBits / 8);
    if (headersEnd > end) return countFault(this.#faults, 'au-headers-cut');
    let dataStart = headersEnd;
    if (layout.auxiliaryDataSizeLength > 0) {
      const auxiliary = this.#headers.reset(buffer, headersEnd, end).bits(layout.auxiliaryDataSizeLength);
      dataStart += Math.ceil((layout.auxiliaryDataSizeLength + auxiliary) / 8);
    }
    const headers = this.#headers.reset(buffer, headersStart, headersEnd);
    const paddingBits = (headersEnd - headersStart) * 8 - headerBits;
    let at = dataStart;
    for (let index = 0; at < end && (index === 0 || headers.remainingBits > paddingBits); index++) {
      const size = headerBits === 0 ? end - at : this.#readHeader(headers, index === 0);
      if (headers.overrun) return countFault(this.#faults, 'au-headers-cut');
      if (size === 0) continue;
      if (at + size > end) return this.#takeFragment(buffer, at, end, size, timestamp);
      this.#dropFragments('fragment-missing');
      this.#takeFrame(buffer, at, at + size, this.#timestampOf(timestamp, index));
      at += size;
    }
  }

  /** Reads one AU header and returns the size of its AU in bytes. */
  #readHeader(reader: BitReader, isFirst: boolean): number {
    const layout = this.#layout;
    const size = layout.sizeLength > 0 ? reader.bits(layout.sizeLength) : layout.constantSize;
    const index = reader.bits(isFirst ? layout.indexLength : layout.indexDeltaLength);
    if (index > 0) countFault(this.#faults, 'interleaved');
    if (layout.ctsDeltaLength > 0 && reader.flag()) reader.skip(layout.ctsDeltaLength);
    if (layout.dtsDeltaLength > 0 && reader.flag()) reader.skip(layout.dtsDeltaLength);
    if (layout.randomAccessIndication) reader.bit();
    reader.skip(layout.streamStateIndication);
    return size;
  }

  #takeFragment(buffer: Buffer, start: number, end: number, size: number, timestamp: number): void {
    if (timestamp === this.#damagedTimestamp) return;
    if (size > MAX_FRAME_BYTES) return countFault(this.#faults, 'frame-too-large');
    if (this.#fragmentedSize > 0 && (this.#fragmentedSize !== size || this.#fragmentedTimestamp !== timestamp)) {
      this.#dropFragments('fragment-missing');
    }
    this.#fragmentedSize = size;
    this.#fragmentedTimestamp = timestamp;
    this.#units.append(buffer, start, end);
    if (this.#units.size < size) return;
    const isExact = this.#units.size === size;
    const frame = Buffer.from(this.#units.peek());
    this.#units.discard();
    this.#fragmentedSize = 0;
    if (isExact) this.#takeFrame(frame, 0, frame.length, timestamp);
    else this.#drop('fragment-too-long');
  }

  #dropFragments(fault: Fault): void {
    if (this.#fragmentedSize === 0) return;
    this.#fragmentedSize = 0;
    this.#units.discard();
    this.#drop(fault);
  }

  #drop(fault: Fault): void {
    countFault(this.#faults, fault);
    this.discarded++;
  }

  /** Takes one AU: a frame, or frames with ADTS headers, which should not be there (go2rtc#1328). */
  #takeFrame(buffer: Buffer, start: number, end: number, timestamp: number): void {
    let at = start;
    let index = 0;
    for (let adts = parseAdts(buffer, at, end); adts; adts = parseAdts(buffer, at, end)) {
      countFault(this.#faults, 'adts-inside');
      if (!this.#aac) this.#configure(adts.config);
      this.#emitFrame(buffer, at + adts.headerBytes, at + adts.frameBytes, this.#timestampOf(timestamp, index++));
      at += adts.frameBytes;
    }
    if (at === start) this.#emitFrame(buffer, start, end, timestamp);
  }

  #emitFrame(buffer: Buffer, start: number, end: number, timestamp: number): void {
    if (!this.#aac) {
      this.problem ??= { code: 'aac-config-missing', message: 'the camera does not send the AAC configuration' };
      return this.#drop('before-parameters');
    }
    this.#units.append(buffer, start, end);
    this.#units.finish(timestamp, this.#aac.samplesPerFrame);
  }

  /** The timestamp of a later frame in one packet; the clock rate may differ from the sampling rate. */
  #timestampOf(timestamp: number, index: number): number {
    if (index === 0 || !this.#aac) return timestamp;
    return timestamp + Math.round((index * this.#aac.samplesPerFrame * this.#clockRate) / this.#aac.sampleRate);
  }
}
