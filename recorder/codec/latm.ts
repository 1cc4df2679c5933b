// Extracts AAC frames from RTP packets with LATM (RFC 6416 §6, ISO/IEC 14496-3 §1.7.3).

import type { AudioParameters, Depacketizer, DepacketizerDeps } from './access-unit.ts';
import { aacParameters, parseHex, readAudioSpecificConfig, type AacConfig } from './audio-specific-config.ts';
import { AudioUnits } from './audio-units.ts';
import { BitReader } from './bit-reader.ts';
import { countFault, type Fault, type FaultCounts } from './faults.ts';
import type { RtpPacket } from '../rtp/packet.ts';

const MAX_ELEMENT_BYTES = 64 * 1024;

interface LatmOptions extends DepacketizerDeps {
  /** `config` of the SDP: a StreamMuxConfig in hexadecimal. */
  readonly config: string | undefined;
  /** Whether packets contain the configuration (`cpresent`). */
  readonly configInBand: boolean;
  readonly clockRate: number;
}

/** The fields of a StreamMuxConfig with one program of one layer. */
type MuxConfig = {
  readonly aac: AacConfig;
  /** AudioSpecificConfig, aligned to a byte. */
  readonly config: Buffer;
  readonly frames: number;
};

export class LatmDepacketizer implements Depacketizer {
  readonly #configInBand: boolean;
  readonly #clockRate: number;
  readonly #faults: FaultCounts;
  readonly #units: AudioUnits;
  readonly #reader = new BitReader({ hasEmulationPrevention: false });
  #mux: MuxConfig | undefined;
  parameters: AudioParameters | undefined;
  problem: Depacketizer['problem'];
  /** Packets of one audioMuxElement, until the marker. */
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #partsTimestamp = 0;
  /** Packets were lost before the current element: its first part may be missing. */
  #isAfterLoss = false;
  /** Timestamp of an element that lost a packet. */
  #damagedTimestamp: number | undefined;
  discarded = 0;

  constructor({ config, configInBand, clockRate, pool, emit, faults }: LatmOptions) {
    this.#faults = faults;
    this.#configInBand = configInBand;
    this.#clockRate = clockRate;
    this.#units = new AudioUnits(pool, emit);
    const bytes = parseHex(config);
    if (bytes) this.#configure(readMuxConfig(this.#reader.reset(bytes, 0, bytes.length), bytes));
  }

  push(packet: RtpPacket): void {
    const { buffer, payloadStart: start, payloadEnd: end, timestamp } = packet;
    if (packet.lost > 0) {
      this.#units.noteLoss(packet.lost);
      this.#damagedTimestamp = this.#parts.length > 0 ? this.#partsTimestamp : undefined;
      this.#dropParts('lost-inside');
      this.#isAfterLoss = true;
    }
    if (timestamp === this.#damagedTimestamp) return;
    if (this.#parts.length > 0 && timestamp !== this.#partsTimestamp) this.#dropParts('marker-missing');
    if (start === end) return;
    if (packet.marker && this.#parts.length === 0) return this.#takeElement(buffer, start, end, timestamp);
    if (this.#partsBytes + end - start > MAX_ELEMENT_BYTES) return this.#dropParts('element-too-large');
    this.#parts.push(Buffer.from(buffer.subarray(start, end)));
    this.#partsBytes += end - start;
    this.#partsTimestamp = timestamp;
    if (!packet.marker) return;
    const element = Buffer.concat(this.#parts);
    this.#forgetParts();
    this.#takeElement(element, 0, element.length, timestamp);
  }

  flush(): void {
    this.#dropParts('ended-inside');
  }

  close(): void {
    this.#forgetParts();
    this.#units.close();
  }

  #forgetParts(): void {
    this.#parts = [];
    this.#partsBytes = 0;
  }

  #dropParts(fault: Fault): void {
    if (this.#parts.length === 0) return;
    this.#forgetParts();
    this.#drop(fault);
  }

  #drop(fault: Fault): void {
    countFault(this.#faults, fault);
    this.discarded++;
  }

  #configure(mux: MuxConfig | undefined): void {
    if (!mux) {
      this.problem ??= { code: 'latm-config-unsupported', message: 'the LATM configuration cannot be used' };
      countFault(this.#faults, 'mux-config-invalid');
      return;
    }
    this.problem = undefined;
    this.#mux = mux;
    if (this.parameters?.config.equals(mux.config) !== true) this.parameters = aacParameters(mux.aac, mux.config);
  }

  /** audioMuxElement, §1.7.3.1. */
  #takeElement(bytes: Buffer, start: number, end: number, timestamp: number): void {
    const reader = this.#reader.reset(bytes, start, end);
    if (this.#configInBand && !reader.flag()) {
      const mux = readMuxConfig(reader, bytes.subarray(start, end)); // useSameStreamMux is 0
      this.#configure(reader.overrun ? undefined : mux);
    }
    const mux = this.#mux;
    if (!mux) {
      this.problem ??= { code: 'latm-config-missing', message: 'the camera does not send the LATM configuration' };
      return this.#drop('before-parameters');
    }
    for (let frame = 0; frame < mux.frames && reader.remainingBits >= 8; frame++) {
      if (!this.#takeFrame(reader, bytes.subarray(start, end), this.#timestampOf(mux, timestamp, frame))) return;
    }
  }

  /**
   * PayloadLengthInfo and PayloadMux: a length coded as bytes of 255 and a remainder, then the frame, not necessarily
   * byte-aligned.
   */
  #takeFrame(reader: BitReader, bytes: Buffer, timestamp: number): boolean {
    let size = 0;
    let byte = 255;
    while (byte === 255 && !reader.overrun) {
      byte = reader.bits(8);
      size += byte;
    }
    // An element without its start is noise, unless its length fits exactly.
    const isNoise = this.#isAfterLoss && size * 8 < reader.remainingBits - 7 && this.#mux?.frames === 1;
    this.#isAfterLoss = false;
    if (reader.overrun || size === 0 || size * 8 > reader.remainingBits || isNoise) {
      this.#drop('frame-cut');
      return false;
    }
    const frame = takeBits(reader, bytes, size * 8);
    this.#units.append(frame, 0, frame.length);
    this.#units.finish(timestamp, this.#mux?.aac.samplesPerFrame ?? 0);
    return true;
  }

  #timestampOf(mux: MuxConfig, timestamp: number, index: number): number {
    return timestamp + Math.round((index * mux.aac.samplesPerFrame * this.#clockRate) / mux.aac.sampleRate);
  }
}

/** Copies the next `bits` bits of `bytes`, which `reader` reads to their end, aligned to a byte. */
function takeBits(reader: BitReader, bytes: Buffer, bits: number): Buffer {
  if (reader.remainingBits % 8 === 0 && bits % 8 === 0) {
    const at = bytes.length - reader.remainingBits / 8;
    reader.skip(bits);
    return bytes.subarray(at, at + bits / 8);
  }
  const out = Buffer.alloc(Math.ceil(bits / 8));
  for (let i = 0; i * 8 < bits; i++) {
    const count = Math.min(8, bits - i * 8);
    out[i] = reader.bits(count) << (8 - count);
  }
  return out;
}

/** StreamMuxConfig, §1.7.3.2.3; undefined for several programs or layers, and if it is not AAC. */
function readMuxConfig(reader: BitReader, bytes: Buffer): MuxConfig | undefined {
  const version = reader.bit(); // audioMuxVersion
  if (version === 1 && reader.bit() === 1) return undefined; // audioMuxVersionA
  if (version === 1) readLatmValue(reader); // taraBufferFullness
  reader.bit(); // allStreamsSameTimeFraming
  const frames = reader.bits(6) + 1; // numSubFrames
  const programs = reader.bits(4) + 1; // numProgram
  const layers = reader.bits(3) + 1; // numLayer
  if (programs > 1 || layers > 1) return undefined;
  const configBits = version === 1 ? readLatmValue(reader) : undefined; // ascLen
  const before = reader.remainingBits;
  const aac = readAudioSpecificConfig(reader);
  if (!aac) return undefined;
  // GStreamer also writes the backward compatible extension here (§1.6.5.3); no valid frameLengthType starts with its bits.
  if (version === 0 && peekBits(reader, bytes, 11) === SYNC_EXTENSION) skipExtension(reader);
  const usedBits = before - reader.remainingBits;
  const again = new BitReader({ hasEmulationPrevention: false }).reset(bytes, 0, bytes.length);
  again.skip(again.remainingBits - before);
  const config = takeBits(again, bytes, Math.max(usedBits, Math.min(configBits ?? 0, before)));
  if (configBits !== undefined) reader.skip(configBits - usedBits);
  if (reader.bits(3) !== 0) return undefined; // frameLengthType: 0 is frames of variable length
  reader.skip(8); // latmBufferFullness
  // Other data and a checksum of the configuration follow. They do not matter, because frames come first in each element.
  if (reader.flag()) {
    if (version === 1) readLatmValue(reader);
    else while (reader.flag() && !reader.overrun) reader.skip(8); // otherDataLenEsc, otherDataLenTmp
    if (version === 0) reader.skip(8);
  }
  if (reader.flag()) reader.skip(8); // crcCheckPresent, crcCheckSum
  // If the end of the configuration in the SDP is missing, nothing needed is lost.
  return { aac, config, frames };
}

/** syncExtensionType of SBR. */
const SYNC_EXTENSION = 0x2b7;

/** Returns the next `count` bits of `bytes`, which `reader` reads to their end, without moving the reader. */
function peekBits(reader: BitReader, bytes: Buffer, count: number): number {
  const ahead = new BitReader({ hasEmulationPrevention: false }).reset(bytes, 0, bytes.length);
  ahead.skip(ahead.remainingBits - reader.remainingBits);
  return ahead.bits(count);
}

/** extensionAudioObjectType, sbrPresentFlag, and the sampling rate if that flag is set. */
function skipExtension(reader: BitReader): void {
  reader.skip(16);
  if (reader.flag() && reader.bits(4) === 15) reader.skip(24);
}

/** LatmGetValue: a count of bytes, then the bytes. */
function readLatmValue(reader: BitReader): number {
  return reader.bits((reader.bits(2) + 1) * 8);
}
