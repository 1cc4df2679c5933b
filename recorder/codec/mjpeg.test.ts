import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Depacketizing } from '../../test/support/depacketize.ts';
import { ffmpeg } from '../../test/support/encode.ts';
import type { PacketHook } from '../../test/support/packetize.ts';
import { mjpegPayloads, packetizeMjpeg, readJpeg } from '../../test/support/packetize-mjpeg.ts';
import type { MjpegOptions as Sending } from '../../test/support/packetize-mjpeg.ts';
import { NO_SEGMENTS, jpegHeader, readSegments, tablesOfQuality } from './jpeg-header.ts';
import { MjpegDepacketizer } from './mjpeg.ts';
import type { PictureSize } from './mjpeg.ts';
import { MAX_ACCESS_UNIT_BYTES } from './slab.ts';

/** JPEG files of a moving picture. */
function pictures(count: number, size: string, options: readonly string[] = []): Buffer[] {
  const source = ['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=25`, '-frames:v', `${count}`];
  const encoder = ['-c:v', 'mjpeg', '-huffman', 'default', '-q:v', '5', '-pix_fmt', 'yuvj420p', ...options];
  const stream = ffmpeg([...source, ...encoder, '-f', 'image2pipe', '-']);
  const files: Buffer[] = [];
  for (let at = 0; at < stream.length;) {
    const next = stream.indexOf('ffd8ff', at + 2, 'hex');
    files.push(stream.subarray(at, next < 0 ? stream.length : next));
    at = next < 0 ? stream.length : next;
  }
  return files;
}

/** A hash of the decoded picture. */
const pixels = (file: Buffer): string =>
  createHash('sha256')
    .update(ffmpeg(['-f', 'mjpeg', '-i', 'pipe:0', '-f', 'rawvideo', '-pix_fmt', 'yuvj420p', '-'], file))
    .digest('hex');

class Camera extends Depacketizing {
  #sequenceNumber = 65_530;
  #picture = 0;

  constructor(size?: PictureSize) {
    super((deps) => new MjpegDepacketizer({ size, ...deps }), 26);
  }

  send(file: Buffer, sending: Sending = {}, onPacket: PacketHook = (packet) => packet): this {
    const options = { sequenceNumber: this.#sequenceNumber, timestamp: this.#picture++ * 3600, ssrc: 1, mtu: 500 };
    const sent = mjpegPayloads(file, 488, sending).length;
    this.#sequenceNumber = (this.#sequenceNumber + sent) & 0xffff;
    return this.push(...packetizeMjpeg(file, { ...options, payloadType: 26, ...sending, onPacket }));
  }

  get files(): Buffer[] {
    return this.units.map(({ bytes }) => bytes);
  }
}

test('MJPEG: pictures decode to the pixels that were sent', () => {
  const sent = pictures(3, '320x176');
  const camera = new Camera();
  for (const file of sent) camera.send(file);
  assert.deepEqual(camera.files.map(pixels), sent.map(pixels));
  assert.deepEqual(
    camera.units.map(({ timestamp, randomAccess, lostPackets }) => [timestamp, randomAccess, lostPackets]),
    [0, 3600, 7200].map((timestamp) => [timestamp, true, 0]),
  );
  assert.deepEqual(camera.depacketizer.parameters, {
    kind: 'video',
    codec: 'mjpeg',
    codecString: 'mp4v.6C',
    width: 320,
    height: 176,
    reorderDepth: 0,
  });
});

test('MJPEG: type 0 is 4:2:2, type 1 is 4:2:0, others are refused', () => {
  const [file] = pictures(1, '160x96') as [Buffer];
  const sampling = [0, 1, 2].map((type) => {
    const camera = new Camera().send(file, {}, (packet) => {
      packet.payload[4] = type;
      return packet;
    });
    return camera.files.map((bytes) => readJpeg(bytes).sampling)[0] ?? camera.depacketizer.problem?.code;
  });
  assert.deepEqual(sampling, [[2, 1], [2, 2], 'mjpeg-type-unknown']);
});

test('MJPEG: a Q below 128 stands for the tables of the standard, scaled', () => {
  // The first values for quality 75 and for quality 10, as in every libjpeg.
  assert.equal(tablesOfQuality(75)[0]?.toString('hex', 4, 13), '00080606070605080707'.slice(0, 18));
  assert.equal(tablesOfQuality(10)[1]?.toString('hex', 4, 13), '01555a5a786978eb82');
  const [file] = pictures(1, '160x96') as [Buffer];
  const camera = new Camera().send(file, { q: 75 });
  const received = readJpeg(camera.files[0] as Buffer);
  assert.deepEqual(
    received.tables,
    tablesOfQuality(75).map((segment) => segment.subarray(5)),
  );
  assert.ok(received.scan.equals(readJpeg(file).scan));
});

test('MJPEG: the Huffman tables of the header are those of the standard', () => {
  const [file] = pictures(1, '160x96') as [Buffer];
  const camera = new Camera().send(file);
  // ffmpeg also writes all four tables in one segment, but in another order.
  const tables = (jpeg: Buffer): string[] => {
    const segment = readJpeg(jpeg).segments.get(0xc4) as Buffer;
    const found: string[] = [];
    for (let at = 4; at < segment.length;) {
      const values = segment.subarray(at + 1, at + 17).reduce((sum, count) => sum + count, 0);
      found.push(segment.toString('hex', at, at + 17 + values));
      at += 17 + values;
    }
    return found.sort();
  };
  assert.deepEqual(tables(camera.files[0] as Buffer), tables(file));
});

test('MJPEG: tables that were sent once for a Q serve the pictures that follow', () => {
  const [first, second] = pictures(2, '160x96') as [Buffer, Buffer];
  const camera = new Camera().send(first, { q: 200 }).send(second, { q: 200, omitTables: true });
  assert.deepEqual(camera.files.map(pixels), [first, second].map(pixels));
  camera.send(second, { q: 201, omitTables: true });
  assert.equal(camera.units.length, 2);
  assert.equal(camera.fault('quantization-missing'), 1);
  assert.equal(camera.depacketizer.problem?.code, 'mjpeg-quantization-missing');
  camera.send(second, { q: 201 });
  assert.equal(camera.units[2]?.lostPackets, 1);
  assert.equal(camera.depacketizer.problem, undefined);
});

test('MJPEG: restart markers are announced in the file', () => {
  // ffmpeg ends a slice with a restart marker.
  const sent = pictures(2, '160x96', ['-slices', '3', '-threads', '3']);
  assert.ok(readJpeg(sent[0] as Buffer).restartInterval > 0);
  const camera = new Camera();
  for (const file of sent) camera.send(file);
  assert.deepEqual(camera.files.map(pixels), sent.map(pixels));
  assert.equal(readJpeg(camera.files[0] as Buffer).restartInterval, readJpeg(sent[0] as Buffer).restartInterval);
});

test('MJPEG: what packets cannot say of the size is taken from the SDP', () => {
  const sizes: readonly (readonly [string, PictureSize | undefined, Sending, number, number])[] = [
    ['2560x48', { width: 2560, height: 48 }, {}, 2560, 48],
    ['2560x48', { width: 2560, height: 48 }, { omitSize: true }, 2560, 48],
    ['160x90', { width: 160, height: 90 }, {}, 160, 90],
    ['160x90', undefined, {}, 160, 96],
    // Packets take precedence over an outdated SDP.
    ['160x96', { width: 640, height: 480 }, {}, 160, 96],
  ];
  for (const [size, announced, sending, width, height] of sizes) {
    const camera = new Camera(announced).send(pictures(1, size)[0] as Buffer, sending);
    const { parameters } = camera.depacketizer;
    assert.deepEqual(parameters?.kind === 'video' && [parameters.width, parameters.height], [width, height]);
  }
  const unknown = new Camera().send(pictures(1, '160x96')[0] as Buffer, { omitSize: true });
  assert.equal(unknown.units.length, 0);
  assert.equal(unknown.depacketizer.problem?.code, 'mjpeg-size-unknown');
});

test('MJPEG: another size makes new parameters, the same size does not', () => {
  const [small, large] = [pictures(2, '160x96'), pictures(1, '320x176')];
  const camera = new Camera();
  for (const file of [...small, ...large]) camera.send(file);
  const [first, second, third] = camera.units.map(({ parameters }) => parameters);
  assert.equal(first, second);
  assert.notEqual(second, third);
});

test('MJPEG: a picture of which a packet is missing is dropped, and the next one says so', () => {
  const [first, second, third] = pictures(3, '320x176') as [Buffer, Buffer, Buffer];
  for (const lost of [0, 3, -1]) {
    const camera = new Camera().send(first);
    const last = mjpegPayloads(second, 488).length - 1;
    camera.send(second, {}, (packet, i) => (i === (lost < 0 ? last : lost) ? undefined : packet));
    camera.send(third);
    assert.deepEqual(camera.files.map(pixels), [first, third].map(pixels), `packet ${lost}`);
    assert.equal(camera.depacketizer.discarded, 1);
    assert.ok((camera.units[1]?.lostPackets ?? 0) >= 1);
  }
});

test('MJPEG: without markers a picture ends where the next begins, and at the end of the stream by its own end', () => {
  const sent = pictures(3, '160x96');
  const camera = new Camera();
  for (const file of sent) {
    const last = mjpegPayloads(file, 488).length - 1;
    const withEnd: PacketHook = (packet, i) => ({
      ...packet,
      marker: false,
      payload: i === last ? Buffer.concat([packet.payload, Buffer.of(0xff, 0xd9)]) : packet.payload,
    });
    camera.send(file, {}, withEnd);
  }
  assert.equal(camera.units.length, 2);
  camera.end();
  assert.deepEqual(camera.files.map(pixels), sent.map(pixels));
  const cut = new Camera().send(sent[0] as Buffer, {}, (packet) => ({ ...packet, marker: false })).end();
  assert.equal(cut.units.length, 0);
});

test('MJPEG: two fields of one timestamp are two pictures whose lines are twice as far apart', () => {
  const [first, second] = pictures(2, '160x96') as [Buffer, Buffer];
  const camera = new Camera();
  const packets = [first, second].flatMap((file, i) =>
    packetizeMjpeg(file, {
      sequenceNumber: i * 100,
      timestamp: 0,
      ssrc: 1,
      payloadType: 26,
      typeSpecific: i + 1,
      // Also a field without its own marker.
      onPacket: (packet) => ({ ...packet, marker: packet.marker && i === 1 }),
    }),
  );
  for (const [i, packet] of packets.entries()) packet.writeUInt16BE(i, 2);
  camera.push(...packets);
  assert.deepEqual(camera.files.map(pixels), [first, second].map(pixels));
  const { parameters } = camera.depacketizer;
  assert.deepEqual(parameters?.kind === 'video' && parameters.pixelAspect, { horizontal: 1, vertical: 2 });
});

/** The header extension of ONVIF with these segments. */
function extension(profile: number, ...segments: readonly (Buffer | undefined)[]) {
  const data = Buffer.concat(segments.filter((part) => part !== undefined));
  return { profile, data: Buffer.concat([Buffer.alloc((4 - (data.length % 4)) % 4, 0xff), data]) };
}

test('MJPEG: headers in the extension of ONVIF win: any size, tables, sampling', () => {
  // Its own Huffman tables, and a size that packets cannot express.
  const [file, next] = pictures(2, '2560x48', ['-huffman', 'optimal']) as [Buffer, Buffer];
  const all = readJpeg(file).segments;
  const send = (camera: Camera, jpeg: Buffer, q: number, ...markers: readonly number[]): Camera =>
    camera.send(jpeg, { q, omitSize: true, omitTables: true }, (packet, i) => {
      const { segments } = readJpeg(jpeg);
      return i === 0 ? { ...packet, extension: extension(0xffd8, ...markers.map((m) => segments.get(m))) } : packet;
    });
  assert.ok(all.has(0xc4) && all.has(0xdb) && all.has(0xc0));
  const camera = send(new Camera(), file, 255, 0xdb, 0xc4, 0xc0);
  assert.deepEqual(camera.files.map(pixels), [file].map(pixels));
  // Q 0: the tables, and with a size of 0 the frame header, are those of the previous picture.
  send(camera, next, 0, 0xc4);
  assert.deepEqual(camera.files.map(pixels), [file, next].map(pixels));
});

test('MJPEG: a header extension may come in packets of its own before the data', () => {
  const [file] = pictures(1, '2560x48') as [Buffer];
  const { segments } = readJpeg(file);
  const camera = new Camera().send(file, { q: 255, omitSize: true, omitTables: true }, (packet, i) => {
    if (i > 0) return { ...packet, sequenceNumber: packet.sequenceNumber + 1 };
    const head = packet.payload.subarray(0, 12);
    const first = { ...packet, payload: head, extension: extension(0xffd8, segments.get(0xdb)) };
    const sequenceNumber = packet.sequenceNumber + 1;
    return [first, { ...packet, sequenceNumber, extension: extension(0xffff, segments.get(0xc0)) }];
  });
  assert.deepEqual(camera.files.map(pixels), [file].map(pixels));
});

test('MJPEG: a picture without end is dropped before it fills the memory', () => {
  const camera = new Camera();
  const [file] = pictures(1, '160x96') as [Buffer];
  const head = mjpegPayloads(file, 488)[0] as Buffer;
  const headerBytes = 8 + 4 + 64 * readJpeg(file).tables.length;
  const chunk = Buffer.alloc(64_000, 1);
  let offset = 0;
  for (let i = 0; i < 400; i++) {
    const payload = i === 0 ? Buffer.concat([head, chunk]) : Buffer.concat([head.subarray(0, 8), chunk]);
    payload.writeUIntBE(offset & 0xffffff, 1, 3);
    offset += i === 0 ? payload.length - headerBytes : chunk.length;
    const header = Buffer.from([0x80, 26, i >> 8, i & 0xff, 0, 0, 0, 0, 0, 0, 0, 1]);
    camera.push(Buffer.concat([header, payload]));
  }
  assert.equal(camera.fault('picture-too-large'), 1);
  assert.ok(offset > 2 * MAX_ACCESS_UNIT_BYTES);
  assert.equal(camera.end().units.length, 0);
});

test('JPEG segments: what is cut off, padded or endless is read as far as it is a header', () => {
  const dqt = Buffer.from('ffdb000401aa', 'hex');
  assert.deepEqual(readSegments(Buffer.concat([Buffer.from('ffff', 'hex'), dqt])).quantization, [dqt]);
  assert.deepEqual(readSegments(dqt.subarray(0, 5)), NO_SEGMENTS);
  assert.deepEqual(readSegments(Buffer.alloc(60_000, 0xff)), NO_SEGMENTS);
  assert.deepEqual(readSegments(Buffer.from('ffc000040000', 'hex')).frame, undefined);
  assert.ok(readSegments(Buffer.concat(Array<Buffer>(10_000).fill(dqt))).quantization.length <= 32);
  const header = jpegHeader({ ...NO_SEGMENTS, type: 0, width: 8, height: 8, restartInterval: 0 });
  assert.equal(header.toString('hex', 0, 2), 'ffd8');
});
