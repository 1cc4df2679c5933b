// Extracts Opus frames from RTP packets (RFC 7587). Whatever the SDP states, the clock rate is 48 kHz.

import type { AudioParameters, Depacketizer, DepacketizerDeps } from './access-unit.ts';
import { AudioUnits } from './audio-units.ts';
import { countFault, type FaultCounts } from './faults.ts';
import type { RtpPacket } from '../rtp/packet.ts';

export const OPUS_CLOCK_RATE = 48_000;
/** RFC 6716 §2.1.4: a packet has at most 120 ms. */
const MAX_TICKS = 5760;

export class OpusDepacketizer implements Depacketizer {
  readonly problem = undefined;
  readonly parameters: AudioParameters = {
    kind: 'audio',
    codec: 'opus',
    sampleRate: OPUS_CLOCK_RATE,
    // Each packet states itself whether it is mono; decoders output as many channels as the header states.
    channels: 2,
    config: opusSpecificBox(2),
    codecString: 'opus',
  };
  readonly #faults: FaultCounts;
  readonly #units: AudioUnits;
  discarded = 0;

  constructor({ pool, emit, faults }: DepacketizerDeps) {
    this.#faults = faults;
    this.#units = new AudioUnits(pool, emit);
  }

  push(packet: RtpPacket): void {
    const { buffer, payloadStart: start, payloadEnd: end } = packet;
    if (packet.lost > 0) this.#units.noteLoss(packet.lost);
    const ticks = opusTicks(buffer, start, end);
    if (ticks === undefined) {
      countFault(this.#faults, 'opus-packet-invalid');
      this.discarded++;
      return;
    }
    this.#units.append(buffer, start, end);
    this.#units.finish(packet.timestamp, ticks);
  }

  flush(): void {}

  close(): void {
    this.#units.close();
  }
}

/** Duration of an Opus packet in 48 kHz samples (RFC 6716 §3.1); undefined if its frames are invalid. */
export function opusTicks(bytes: Buffer, start: number, end: number): number | undefined {
  if (start >= end) return undefined;
  const toc = bytes[start] as number;
  const configuration = toc >> 3;
  const code = toc & 3;
  if (code === 3 && end - start < 2) return undefined;
  const frames = code === 0 ? 1 : code < 3 ? 2 : (bytes[start + 1] as number) & 0x3f;
  const ticks = frames * frameTicks(configuration);
  return ticks > 0 && ticks <= MAX_TICKS ? ticks : undefined;
}

/** RFC 6716 Table 2. */
function frameTicks(configuration: number): number {
  if (configuration < 12) return [480, 960, 1920, 2880][configuration & 3] as number; // SILK
  if (configuration < 16) return [480, 960][configuration & 1] as number; // hybrid
  return [120, 240, 480, 960][configuration & 3] as number; // CELT
}

/** Body of `dOps` (Encapsulation of Opus in ISOBMFF §4.3.2). */
function opusSpecificBox(channels: number): Buffer {
  const box = Buffer.alloc(11);
  box.writeUInt8(0, 0); // Version
  box.writeUInt8(channels, 1); // OutputChannelCount
  box.writeUInt16BE(0, 2); // PreSkip: 0, because we join in the middle of the stream
  box.writeUInt32BE(OPUS_CLOCK_RATE, 4); // InputSampleRate
  box.writeInt16BE(0, 8); // OutputGain
  box.writeUInt8(0, 10); // ChannelMappingFamily: mono or stereo
  return box;
}
