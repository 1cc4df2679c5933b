// Extracts the frames of MPEG audio from RTP packets, unchanged (RFC 2250 §3.5; ISO/IEC 11172-3 and 13818-3: MP2 and MP3).
//
//   | zero (16 bits) | fragment offset (16 bits) | frame | frame | …   or   … | part of a frame
//
// The offset is the position of the packet's data in its frame: 0 where a frame starts.

import type { AudioParameters, Depacketizer, DepacketizerDeps } from './access-unit.ts';
import { AudioUnits } from './audio-units.ts';
import { countFault, type Fault, type FaultCounts } from './faults.ts';
import type { RtpPacket } from '../rtp/packet.ts';

const PAYLOAD_HEADER_BYTES = 4;
const FRAME_HEADER_BYTES = 4;

interface MpegAudioOptions extends DepacketizerDeps {
  /** Clock rate of the packets' timestamps in Hz: 90000 unless the camera states another one. */
  readonly clockRate: number;
}

interface Fragmented {
  readonly header: FrameHeader;
  readonly timestamp: number;
}

export class MpegAudioDepacketizer implements Depacketizer {
  readonly #clockRate: number;
  readonly #faults: FaultCounts;
  readonly #units: AudioUnits;
  parameters: AudioParameters | undefined;
  problem: Depacketizer['problem'];
  #fragmented: Fragmented | undefined;
  discarded = 0;

  constructor({ clockRate, pool, emit, faults }: MpegAudioOptions) {
    this.#faults = faults;
    this.#clockRate = clockRate;
    this.#units = new AudioUnits(pool, emit);
  }

  push(packet: RtpPacket): void {
    const { buffer, payloadStart, payloadEnd: end, timestamp } = packet;
    if (packet.lost > 0) {
      this.#units.noteLoss(packet.lost);
      this.#dropFragments('lost-inside');
    }
    if (end - payloadStart <= PAYLOAD_HEADER_BYTES) return countFault(this.#faults, 'packet-cut');
    const start = payloadStart + PAYLOAD_HEADER_BYTES;
    const offset = buffer.readUInt16BE(payloadStart + 2);
    if (offset > 0) this.#takeFragment(buffer, start, end, offset);
    else this.#takeFrames(buffer, start, end, timestamp);
  }

  flush(): void {
    this.#dropFragments('ended-inside');
  }

  close(): void {
    this.#fragmented = undefined;
    this.#units.close();
  }

  #takeFrames(buffer: Buffer, start: number, end: number, timestamp: number): void {
    this.#dropFragments('fragment-missing');
    let ticks = 0;
    for (let at = start; at < end;) {
      const header = parseFrameHeader(buffer, at, end);
      if (!header) return this.#drop('frame-header-invalid');
      const frameTimestamp = (timestamp + Math.round(ticks)) >>> 0;
      this.#units.append(buffer, at, Math.min(end, at + header.frameBytes));
      if (at + header.frameBytes > end) {
        this.#fragmented = { header, timestamp: frameTimestamp };
        return;
      }
      this.#finish(header, frameTimestamp);
      at += header.frameBytes;
      ticks += (header.samples * this.#clockRate) / header.sampleRate;
    }
  }

  #takeFragment(buffer: Buffer, start: number, end: number, offset: number): void {
    if (!this.#fragmented) return countFault(this.#faults, 'fragment-without-start');
    const { header, timestamp } = this.#fragmented;
    if (offset !== this.#units.size || offset + end - start > header.frameBytes) {
      return this.#dropFragments('fragment-missing');
    }
    this.#units.append(buffer, start, end);
    if (this.#units.size < header.frameBytes) return;
    this.#fragmented = undefined;
    this.#finish(header, timestamp);
  }

  #finish(header: FrameHeader, timestamp: number): void {
    const { layer, sampleRate, channels } = header;
    if (layer === 1) {
      this.problem = { code: 'mpa-layer-unsupported', message: 'MPEG audio of layer I is not supported' };
      this.#units.discard();
      return this.#drop('layer-unsupported');
    }
    this.problem = undefined;
    const codec = layer === 2 ? 'mp2' : 'mp3';
    const known = this.parameters;
    if (known?.codec !== codec || known.sampleRate !== sampleRate || known.channels !== channels) {
      this.parameters = mpegAudioParameters(codec, sampleRate, channels);
    }
    this.#units.finish(timestamp, header.samples);
  }

  #dropFragments(fault: Fault): void {
    if (!this.#fragmented) return;
    this.#fragmented = undefined;
    this.#units.discard();
    this.#drop(fault);
  }

  #drop(fault: Fault): void {
    countFault(this.#faults, fault);
    this.discarded++;
  }
}

function mpegAudioParameters(codec: 'mp2' | 'mp3', sampleRate: number, channels: number): AudioParameters {
  return {
    kind: 'audio',
    codec,
    sampleRate,
    channels,
    config: Buffer.alloc(0),
    codecString: codecStringOf(codec, sampleRate),
  };
}

/**
 * RFC 6381 §3.3: the object type of MPEG-1 or of MPEG-2 with its lower rates. These do not state the layer, and browsers take
 * them for MP3. MP2 is therefore given its MPEG-4 object type, so that no browser claims to play it.
 */
function codecStringOf(codec: 'mp2' | 'mp3', sampleRate: number): string {
  if (codec === 'mp2') return 'mp4a.40.33';
  return isMpeg1Rate(sampleRate) ? 'mp4a.6B' : 'mp4a.69';
}

/** 32, 44.1 and 48 kHz belong to MPEG-1 (ISO/IEC 11172-3), half of each to MPEG-2 (ISO/IEC 13818-3). */
export const isMpeg1Rate = (sampleRate: number): boolean => sampleRate >= 32_000;

interface FrameHeader {
  readonly layer: 1 | 2 | 3;
  readonly sampleRate: number;
  readonly channels: 1 | 2;
  /** Samples of each channel. */
  readonly samples: number;
  /** Size including the header. */
  readonly frameBytes: number;
}

/** Kilobits per second by index; index 0 (free format) and 15 give no frame length. */
const MPEG1_KBPS = [
  [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
];
const MPEG2_KBPS = [
  [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
const RATES = [44_100, 48_000, 32_000];
const MONO = 3;

/** ISO/IEC 11172-3 §2.4.1.3 and 13818-3 §2.4.2.3; MPEG-2.5 halves the rates of MPEG-2. Undefined if it is not a header. */
function parseFrameHeader(bytes: Buffer, at: number, end: number): FrameHeader | undefined {
  if (end - at < FRAME_HEADER_BYTES) return undefined;
  const word = bytes.readUInt32BE(at);
  const version = (word >>> 19) & 3; // 3: MPEG-1, 2: MPEG-2, 0: MPEG-2.5
  const layer = 4 - ((word >>> 17) & 3);
  if (word >>> 21 !== 0x7ff || version === 1 || layer === 4) return undefined;
  const isMpeg1 = version === 3;
  const kbps = (isMpeg1 ? MPEG1_KBPS[layer - 1] : MPEG2_KBPS[layer === 1 ? 0 : 1])?.[((word >>> 12) & 15) - 1];
  const baseRate = RATES[(word >>> 10) & 3];
  if (kbps === undefined || baseRate === undefined) return undefined;
  const sampleRate = isMpeg1 ? baseRate : baseRate / (version === 2 ? 2 : 4);
  const samples = layer === 1 ? 384 : layer === 3 && !isMpeg1 ? 576 : 1152;
  const slotBytes = layer === 1 ? 4 : 1;
  const slots = Math.floor((samples * kbps * 125) / (sampleRate * slotBytes)) + ((word >>> 9) & 1);
  return {
    layer: layer as 1 | 2 | 3,
    sampleRate,
    channels: ((word >>> 6) & 3) === MONO ? 1 : 2,
    samples,
    frameBytes: slots * slotBytes,
  };
}
