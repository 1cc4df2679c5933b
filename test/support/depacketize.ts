// Feeds packets through a receiver and a depacketizer, and collects the result in a form that tests can compare.

import type { AccessUnit, Depacketizer, DepacketizerDeps } from '../../recorder/codec/access-unit.ts';
import { type Fault, noFaults } from '../../recorder/codec/faults.ts';
import { SlabPool } from '../../recorder/codec/slab.ts';
import { RtpReceiver } from '../../recorder/rtp/receiver.ts';
import { ffmpeg, flacFile } from './encode.ts';

interface ReceivedUnit extends Omit<AccessUnit, 'data'> {
  readonly bytes: Buffer;
  /** Size of the block that held the bytes. */
  readonly blockBytes: number;
  readonly parameters: Depacketizer['parameters'];
}

export class Depacketizing {
  readonly pool = new SlabPool();
  readonly units: ReceivedUnit[] = [];
  readonly faults = noFaults();
  readonly depacketizer: Depacketizer;
  readonly #receiver: RtpReceiver;

  constructor(create: (deps: DepacketizerDeps) => Depacketizer, payloadType = 96, clockRate = 90_000) {
    const depacketizer = create({
      pool: this.pool,
      faults: this.faults,
      emit: ({ data, ...rest }) => {
        const bytes = Buffer.from(data.slab.buffer.subarray(data.offset, data.offset + data.size));
        const blockBytes = data.slab.buffer.length;
        this.units.push({ ...rest, bytes, blockBytes, parameters: depacketizer.parameters });
        data.slab.release();
      },
    });
    this.depacketizer = depacketizer;
    this.#receiver = new RtpReceiver({
      payloadType,
      clockRate,
      reorder: false,
      onPacket: (packet) => depacketizer.push(packet),
    });
  }

  push(...packets: readonly Buffer[]): this {
    for (const packet of packets) this.#receiver.receive(packet, 0, packet.length, 0);
    return this;
  }

  /** Ends the stream. */
  end(): this {
    this.depacketizer.flush();
    this.depacketizer.close();
    return this;
  }

  /** The NAL units of each access unit. */
  get nals(): Buffer[][] {
    return this.units.map((unit) => splitLengths(unit.bytes));
  }

  fault(name: Fault): number {
    return this.faults.counts.get(name) ?? 0;
  }
}

/** The samples (16 bits, little endian, interleaved channels) of a stream converted to FLAC, as decoded by ffmpeg. */
export function decodedFlac({ depacketizer: { parameters }, units }: Depacketizing): Buffer {
  if (parameters?.kind !== 'audio' || parameters.codec !== 'flac') throw new Error('not a stream of FLAC');
  const frames = units.map((unit) => unit.bytes);
  return ffmpeg(['-xerror', '-f', 'flac', '-i', '-', '-f', 's16le', '-'], flacFile(parameters.config, frames));
}

/** Splits NAL units with 4-byte lengths; throws if the lengths do not add up. */
export function splitLengths(bytes: Buffer): Buffer[] {
  const nals: Buffer[] = [];
  let at = 0;
  while (at < bytes.length) {
    const size = bytes.readUInt32BE(at);
    if (size === 0 || at + 4 + size > bytes.length)
      throw new Error(`NAL unit of ${size} bytes at ${at} of ${bytes.length}`);
    nals.push(bytes.subarray(at + 4, at + 4 + size));
    at += 4 + size;
  }
  return nals;
}
