// Makes RTP packets from JPEG files like a well-behaved camera (RFC 2435). It parses the files with separate code, so that it
// shares no mistake with the recorder.

import assert from 'node:assert/strict';
import type { PacketizeOptions } from './packetize.ts';
import { packetizePayloads } from './packetize.ts';

export interface MjpegOptions {
  /** 128 to 255: the tables of the file are in the packet; 1 to 99: the file was made with the tables of this quality. */
  readonly q?: number;
  /** With `q` from 128 to 254: the receiver has the tables already. */
  readonly omitTables?: boolean;
  /** Sends the size 0 by 0. */
  readonly omitSize?: boolean;
  readonly typeSpecific?: number;
}

interface JpegFile {
  readonly width: number;
  readonly height: number;
  /** Horizontal and vertical sampling factors of the first component. */
  readonly sampling: readonly [number, number];
  /** Contents of DQT segments without their ids. */
  readonly tables: readonly Buffer[];
  readonly restartInterval: number;
  /** Entropy-coded data, without the end-of-image marker. */
  readonly scan: Buffer;
  /** Each with its marker, up to the start of scan. */
  readonly segments: ReadonlyMap<number, Buffer>;
}

export function readJpeg(file: Buffer): JpegFile {
  const segments = new Map<number, Buffer>();
  const tables: Buffer[] = [];
  let at = 2;
  while (segments.size < 64) {
    assert.equal(file[at], 0xff, `a marker at ${at}`);
    const marker = file[at + 1] as number;
    const end = at + 2 + file.readUInt16BE(at + 2);
    segments.set(marker, Buffer.concat([segments.get(marker) ?? Buffer.alloc(0), file.subarray(at, end)]));
    if (marker === 0xdb) for (let t = at + 4; t < end; t += 65) tables.push(file.subarray(t + 1, t + 65));
    at = end;
    if (marker === 0xda) break;
  }
  const frame = segments.get(0xc0) as Buffer;
  const sampling = frame[11] as number;
  let end = file.length;
  while (end > at && (file[end - 1] !== 0xd9 || file[end - 2] !== 0xff)) end--;
  assert.ok(end > at, 'an end of image');
  return {
    width: frame.readUInt16BE(7),
    height: frame.readUInt16BE(5),
    sampling: [sampling >> 4, sampling & 0x0f],
    tables,
    restartInterval: segments.get(0xdd)?.readUInt16BE(4) ?? 0,
    scan: file.subarray(at, end - 2),
    segments,
  };
}

export function packetizeMjpeg(file: Buffer, options: PacketizeOptions & MjpegOptions): Buffer[] {
  return packetizePayloads(mjpegPayloads(file, (options.mtu ?? 1400) - 12, options), options);
}

export function mjpegPayloads(file: Buffer, room: number, options: MjpegOptions = {}): Buffer[] {
  const { q = 255, omitTables = false, omitSize = false, typeSpecific = 0 } = options;
  const { width, height, sampling, tables, restartInterval, scan } = readJpeg(file);
  assert.equal(sampling[0], 2);
  const type = (sampling[1] === 1 ? 0 : 1) | (restartInterval > 0 ? 64 : 0);
  const units = (pixels: number): number => (omitSize ? 0 : Math.ceil(pixels / 8) & 0xff);
  // First and last packet of a chunk, which is the whole picture (§3.1.7).
  const restart = restartInterval > 0 ? [restartInterval >> 8, restartInterval & 0xff, 0xff, 0xff] : [];
  const sent = omitTables ? [] : tables;
  const tableBytes = Buffer.concat(sent);
  const quantization = Buffer.concat([Buffer.of(0, 0, tableBytes.length >> 8, tableBytes.length & 0xff), tableBytes]);
  const payloads: Buffer[] = [];
  for (let offset = 0; offset < scan.length;) {
    const head = Buffer.from([typeSpecific, 0, 0, 0, type, q, units(width), units(height), ...restart]);
    head.writeUIntBE(offset, 1, 3);
    const extra = offset === 0 && q >= 128 ? quantization : Buffer.alloc(0);
    const end = Math.min(scan.length, offset + Math.max(1, room - head.length - extra.length));
    payloads.push(Buffer.concat([head, extra, scan.subarray(offset, end)]));
    offset = end;
  }
  return payloads;
}
