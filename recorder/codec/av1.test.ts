import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { videoMedia } from '../../test/camera/media.ts';
import { Depacketizing } from '../../test/support/depacketize.ts';
import { ffmpeg } from '../../test/support/encode.ts';
import { probePackets } from '../../test/support/encoded-samples.ts';
import type { PacketHook } from '../../test/support/packetize.ts';
import {
  OBU_SEQUENCE_HEADER,
  av1Payloads,
  obuType,
  packetizeAv1,
  splitObus,
  withoutSize,
} from '../../test/support/packetize-av1.ts';
import type { Av1Options as Sending } from '../../test/support/packetize-av1.ts';
import { workspace } from '../../test/support/workspace.ts';
import { leb128, parseSequenceHeader, readLeb128 } from './av1-obu.ts';
import { Av1Depacketizer } from './av1.ts';
import { MAX_ACCESS_UNIT_BYTES } from './slab.ts';

const MTU = 300;

class Camera extends Depacketizing {
  #sequenceNumber = 65_530;
  #unit = 0;

  constructor() {
    super((deps) => new Av1Depacketizer(deps));
  }

  send(obus: readonly Buffer[], sending: Sending = {}, onPacket: PacketHook = (packet) => packet): this {
    const options = { sequenceNumber: this.#sequenceNumber, timestamp: this.#unit++ * 3600, ssrc: 1, mtu: MTU };
    this.#sequenceNumber = (this.#sequenceNumber + av1Payloads(obus, MTU - 12, sending).length) & 0xffff;
    return this.push(...packetizeAv1(obus, { ...options, payloadType: 96, ...sending, onPacket }));
  }

  get keys(): number[] {
    return this.units.flatMap(({ randomAccess }, i) => (randomAccess ? [i] : []));
  }
}

const units = async (name: 'av1' | 'av1-hidden', count: number): Promise<(readonly Buffer[])[]> =>
  (await videoMedia(name)).frames.slice(0, count).map(({ nals }) => nals);

const sent = (obus: readonly (readonly Buffer[])[]): string[] =>
  obus.map((unit) => Buffer.concat(unit).toString('hex'));
const received = (camera: Camera): string[] => camera.units.map(({ bytes }) => bytes.toString('hex'));
const sameBytes = (camera: Camera, obus: readonly (readonly Buffer[])[]): void =>
  assert.ok(received(camera).join() === sent(obus).join(), 'the same temporal units');

for (const name of ['av1', 'av1-hidden'] as const) {
  for (const sending of [{}, { sizes: true }, { keepSizeFields: true }]) {
    test(`AV1: temporal units of ${name} leave as they were encoded, sent with ${JSON.stringify(sending)}`, async () => {
      const stream = await units(name, 60);
      const camera = new Camera();
      for (const obus of stream) camera.send(obus, sending);
      sameBytes(camera, stream);
      assert.deepEqual(camera.keys, [0, 25, 50]);
      assert.deepEqual([...camera.faults.counts], []);
      assert.deepEqual(
        camera.units.slice(0, 2).map(({ timestamp, lostPackets }) => [timestamp, lostPackets]),
        [
          [0, 0],
          [3600, 0],
        ],
      );
    });
  }
}

for (const [name, size, options] of [
  ['8 bits', '320x180', ['-pix_fmt', 'yuv420p']],
  ['10 bits', '62x46', ['-pix_fmt', 'yuv420p10le']],
  ['12 bits in 4:2:2', '320x180', ['-pix_fmt', 'yuv422p12le']],
  ['4:4:4', '320x180', ['-pix_fmt', 'yuv444p']],
  ['grey', '320x180', ['-pix_fmt', 'gray']],
  [
    'colours that are named',
    '320x180',
    ['-pix_fmt', 'yuv420p', '-color_primaries', 'bt2020', '-color_trc', 'smpte2084'],
  ],
  ['a high level', '5120x2880', ['-pix_fmt', 'yuv420p']],
] as const) {
  test(`AV1: the configuration of ${name} is the one that ffmpeg writes`, (t) => {
    const file = join(workspace(t), 'one.mp4');
    const source = ['-f', 'lavfi', '-i', `color=c=red:size=${size}:rate=25`, '-frames:v', '1'];
    const encoder = ['-c:v', 'libaom-av1', '-usage', 'realtime', '-cpu-used', '8', '-crf', '60'];
    ffmpeg([...source, ...options, ...encoder, file]);
    const bytes = readFileSync(file);
    const [packet] = probePackets(file);
    assert.ok(packet);
    const camera = new Camera().send(splitObus(bytes.subarray(packet.pos, packet.pos + packet.size)));
    const { parameters } = camera.depacketizer;
    assert.ok(parameters?.kind === 'video' && parameters.codec === 'av1');
    assert.equal(`${parameters.width}x${parameters.height}`, size);
    const at = bytes.indexOf('av1C', 0, 'latin1');
    const expected = bytes.subarray(at + 4, at - 4 + bytes.readUInt32BE(at - 4));
    assert.equal(parameters.config.toString('hex'), expected.toString('hex'));
    const [, flags = 0] = [expected[1], expected[2]];
    const depth = (flags & 0x20) !== 0 ? 12 : (flags & 0x40) !== 0 ? 10 : 8;
    const level = String((expected[1] as number) & 31).padStart(2, '0');
    assert.equal(
      parameters.codecString,
      `av01.${(expected[1] as number) >> 5}.${level}M.${String(depth).padStart(2, '0')}`,
    );
  });
}

test('AV1: a temporal unit of which a packet is missing is dropped, and the next one says so', async () => {
  const stream = await units('av1', 5);
  const [key = [], ...others] = stream;
  const last = av1Payloads(key, MTU - 12).length - 1;
  for (const lost of [0, 2, last]) {
    const camera = new Camera().send(key).send(key, {}, (packet, i) => (i === lost ? undefined : packet));
    for (const obus of others) camera.send(obus);
    sameBytes(camera, stream);
    assert.equal(camera.depacketizer.discarded, 1);
    assert.deepEqual(
      camera.units.map(({ lostPackets }) => lostPackets > 0),
      [false, true, false, false, false],
    );
  }
});

test('AV1: nothing leaves before a key frame with its sequence header; one without it gets the last one', async () => {
  const stream = await units('av1', 27);
  const [key = []] = stream;
  const bare = key.filter((obu) => obuType(obu) !== OBU_SEQUENCE_HEADER);
  const camera = new Camera().send(stream[1] as Buffer[]).send(bare);
  assert.equal(camera.units.length, 0);
  assert.equal(camera.fault('before-parameters'), 2);
  camera.send(key).send(bare);
  assert.deepEqual(received(camera), sent([key, key]));
  assert.equal(camera.units[0]?.parameters, camera.units[1]?.parameters);
});

test('AV1: a sequence header with its own timestamp serves the key frame that follows', async () => {
  const [key = []] = await units('av1', 1);
  const [sequence, ...rest] = key;
  const camera = new Camera().send([sequence as Buffer]).send(rest);
  assert.deepEqual(received(camera), sent([key]));
});

test('AV1: another sequence header makes new parameters at its key frame', async () => {
  const [key = []] = await units('av1', 1);
  const [other = []] = await units('av1-hidden', 1);
  const camera = new Camera().send(key).send(key).send(other);
  const [first, second, third] = camera.units.map(({ parameters }) => parameters);
  assert.equal(first, second);
  assert.notEqual(second, third);
});

test('AV1: frames that are hidden, shown once more or no key frames are no place to begin', async () => {
  const stream = await units('av1-hidden', 20);
  const camera = new Camera();
  for (const obus of stream) camera.send(obus);
  assert.deepEqual(camera.keys, [0]);
});

test('AV1: delimiters, padding and OBUs of other kinds are left out; OBUs in one element are told apart', async () => {
  const [key = [], next = []] = await units('av1', 2);
  const extra = ['1200', '7a0100', '4200', '3a0100', '6200'].map((hex) => Buffer.from(hex, 'hex'));
  const camera = new Camera().send([...extra, ...key, ...extra]);
  // A complete temporal unit, including sizes, as one element.
  const whole = Buffer.concat([...extra, ...next]);
  const packet = Buffer.concat([Buffer.from('80e0000a00000e100000000110', 'hex'), whole]);
  packet.writeUInt16BE((65_530 + av1Payloads([...extra, ...key, ...extra], MTU - 12).length) & 0xffff, 2);
  camera.push(packet);
  assert.deepEqual(received(camera), sent([key, next]));
  assert.equal(camera.fault('obu-unknown'), 3);
});

test('AV1: without markers a temporal unit ends where the next begins', async () => {
  const stream = await units('av1', 4);
  const camera = new Camera();
  for (const obus of stream) camera.send(obus, {}, (packet) => ({ ...packet, marker: false }));
  camera.end();
  sameBytes(camera, stream.slice(0, 3));
});

test('AV1: fragments that do not fit each other make no temporal unit', async () => {
  const stream = await units('av1', 3);
  const [key = []] = stream;
  const bent = (change: (header: number, i: number) => number): Camera => {
    const camera = new Camera().send(key).send(key, {}, (packet, i) => {
      packet.payload[0] = change(packet.payload[0] as number, i);
      return packet;
    });
    for (const obus of stream.slice(1)) camera.send(obus);
    sameBytes(camera, stream);
    return camera;
  };
  assert.equal(bent((header, i) => (i === 3 ? header & ~0x80 : header)).fault('fragment-without-end'), 1);
  assert.equal(bent((header, i) => (i === 2 ? header & ~0x40 : header)).fault('fragment-without-start'), 1);
  assert.equal(bent((header, i) => (i === 0 ? header | 0x80 : header)).fault('fragment-without-start'), 1);
});

test('AV1: a temporal unit without end is dropped before it fills the memory', () => {
  const camera = new Camera();
  const chunk = Buffer.concat([Buffer.of(0xd0), Buffer.alloc(60_000, 0x32)]);
  const packets = 2 * Math.ceil(MAX_ACCESS_UNIT_BYTES / 60_000);
  for (let i = 0; i < packets; i++) {
    const header = Buffer.from([0x80, 96, i >> 8, i & 0xff, 0, 0, 0, 0, 0, 0, 0, 1]);
    camera.push(Buffer.concat([header, chunk.fill(i === 0 ? 0x50 : 0xd0, 0, 1)]));
  }
  assert.equal(camera.fault('temporal-unit-too-large'), 1);
  assert.equal(camera.end().units.length, 0);
});

test('leb128: sizes are read as they are written, cut off or endless ones not at all', () => {
  for (const value of [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 268_435_455]) {
    const bytes = leb128(value);
    assert.deepEqual(readLeb128(bytes, 0, bytes.length), { value, bytes: bytes.length });
    assert.equal(readLeb128(bytes, 0, bytes.length - 1), undefined);
  }
  assert.deepEqual(readLeb128(Buffer.from('8180', 'hex'), 0, 2), undefined);
  assert.deepEqual(readLeb128(Buffer.from('818000', 'hex'), 0, 3), { value: 1, bytes: 3 });
  assert.equal(readLeb128(Buffer.alloc(100, 0x80), 0, 100), undefined);
});

test('AV1: a sequence header that is cut off anywhere is none', async () => {
  const [key = []] = await units('av1', 1);
  const payload = withoutSize(key[0] as Buffer).subarray(1);
  assert.ok(parseSequenceHeader(payload));
  // The last byte contains only trailing bits.
  for (let end = 0; end < payload.length - 1; end++)
    assert.equal(parseSequenceHeader(payload.subarray(0, end)), undefined);
});
