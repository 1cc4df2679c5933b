import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Depacketizing } from '../../test/support/depacketize.ts';
import { encodeVideo } from '../../test/support/encode.ts';
import { accessUnits, nalType, packetizeH265, packetizePayloads, splitAnnexB } from '../../test/support/packetize.ts';
import type { PacketHook } from '../../test/support/packetize.ts';
import { H265Depacketizer } from './h265.ts';

const VPS = Buffer.from('QAEMAf//AWAAAAMAsAAAAwAAAwBarAwAAAMABAAAAwAyqA==', 'base64');
const SPS = Buffer.from('QgEBAWAAAAMAsAAAAwAAAwBaoAWCAeFja5JFL83BQYFBAAADAAEAAAMADKE=', 'base64');
const PPS = Buffer.from('RAHA8saNA7NA', 'base64');
const SEI = Buffer.from('4e0105042a2a2a2a80', 'hex');
const SUFFIX_SEI = Buffer.from('500184042a2a2a2a80', 'hex');
/** First slices; the slice_type of `inter` is P. */
const idr = (size = 40): Buffer => Buffer.concat([Buffer.from('2601af', 'hex'), Buffer.alloc(size, 0x11)]);
const inter = (size = 20): Buffer => Buffer.concat([Buffer.from('0201d0', 'hex'), Buffer.alloc(size, 0x22)]);
const further = (nal: Buffer): Buffer => Buffer.concat([nal.subarray(0, 2), Buffer.from([0x50]), nal.subarray(3)]);
const NO_SPROP = { spropVps: undefined, spropSps: undefined, spropPps: undefined };
const SPROP = {
  spropVps: VPS.toString('base64'),
  spropSps: SPS.toString('base64'),
  spropPps: PPS.toString('base64'),
};

class Camera extends Depacketizing {
  #sequenceNumber = 0;

  constructor(options: { sprop?: Partial<typeof SPROP>; maxDonDiff?: number } = {}) {
    const { sprop = SPROP, maxDonDiff = 0 } = options;
    super((deps) => new H265Depacketizer({ ...NO_SPROP, ...sprop, maxDonDiff, ...deps }));
  }

  send(nals: readonly Buffer[], timestamp: number, onPacket: PacketHook = (packet) => packet, don?: number): this {
    const options = { timestamp, sequenceNumber: this.#sequenceNumber, ssrc: 1, payloadType: 96, mtu: 100 };
    const counting: PacketHook = (packet, index) => {
      this.#sequenceNumber++;
      return onPacket(packet, index);
    };
    const numbers = don === undefined ? {} : { decodingOrderNumber: don, aggregate: true };
    return this.push(...packetizeH265(nals, { ...options, ...numbers, onPacket: counting }));
  }

  payloads(payloads: readonly Buffer[], timestamp: number): this {
    const sequenceNumber = this.#sequenceNumber;
    this.#sequenceNumber += payloads.length;
    return this.push(...packetizePayloads(payloads, { timestamp, sequenceNumber, ssrc: 1, payloadType: 96 }));
  }

  /** Sends plain pictures until markers are trusted. */
  settle(): this {
    for (const [i, nal] of [idr(), inter(), idr(), inter()].entries()) this.send([nal], 1000 + i * 10);
    this.units.length = 0;
    return this;
  }
}

const summary = (camera: Camera) =>
  camera.units.map((unit, i) => [unit.timestamp, (camera.nals[i] ?? []).map((nal) => nalType(nal, 'h265')).join(' ')]);
const allMarked: PacketHook = (packet) => ({ ...packet, marker: true });

for (const [name, parameters, aggregate, don] of [
  ['aggregation packets', 'keyint=6:min-keyint=6:bframes=0', true, undefined],
  ['two slices a picture, open GOPs', 'keyint=6:min-keyint=6:slices=2:bframes=2:open-gop=1', false, undefined],
  ['temporal layers', 'keyint=6:min-keyint=6:temporal-layers=3:bframes=2', true, undefined],
  ['decoding order numbers', 'keyint=6:min-keyint=6:bframes=2', true, 65_530],
] as const) {
  test(`H.265: ${name}: every NAL unit of x265 comes out as it went in`, () => {
    const units = accessUnits(splitAnnexB(encodeVideo({ codec: 'h265', parameters })), 'h265');
    const maxDonDiff = don === undefined ? 0 : 1;
    const camera = new Depacketizing((deps) => new H265Depacketizer({ ...NO_SPROP, maxDonDiff, ...deps }));
    let sequenceNumber = 65_530;
    let order = don;
    for (const [i, nals] of units.entries()) {
      const options = { timestamp: i * 3600, sequenceNumber, ssrc: 1, payloadType: 96, mtu: 200, aggregate };
      const packets = packetizeH265(
        nals,
        order === undefined ? options : { ...options, decodingOrderNumber: order & 0xffff },
      );
      sequenceNumber += packets.length;
      if (order !== undefined) order += nals.length;
      camera.push(...packets);
    }
    camera.end();
    const isSet = (nal: Buffer): boolean => [32, 33, 34].includes(nalType(nal, 'h265'));
    assert.deepEqual(
      camera.nals,
      units.map((nals, i) => (i === 0 ? nals : nals.filter((nal) => !isSet(nal)))),
    );
    const starts = units.flatMap((nals, i) => (nals.some(isSet) ? [i] : []));
    assert.ok(starts.length > 1);
    assert.deepEqual(
      camera.units.flatMap((unit, i) => (unit.randomAccess ? [i] : [])),
      starts,
    );
    assert.equal(camera.faults.total, 0);
    const { parameters: track } = camera.depacketizer;
    assert.ok(track?.kind === 'video');
    assert.deepEqual([track.width, track.height], [160, 120]);
    assert.ok(track.codecString.startsWith('hvc1.1.6.L'));
  });
}

for (const missing of ['spropVps', 'spropSps', 'spropPps'] as const) {
  test(`H.265: an SDP without ${missing} counts as one without sets (go2rtc PR#1588)`, () => {
    const { [missing]: _, ...sprop } = SPROP;
    const camera = new Camera({ sprop });
    assert.equal(camera.depacketizer.parameters, undefined);
    camera.send([inter()], 0).send([VPS, SPS, PPS, idr()], 3600).send([inter()], 7200).end();
    assert.deepEqual(summary(camera), [
      [3600, '32 33 34 19'],
      [7200, '1'],
    ]);
  });
}

test('H.265: markers on sets and SEI, a timestamp that changes behind them, SEI behind a picture', () => {
  const camera = new Camera({ sprop: {} });
  camera.send([VPS, SPS, PPS], 0, allMarked).send([idr()], 3600, allMarked).send([SEI], 3600, allMarked);
  camera.send([inter()], 7200, allMarked).end();
  assert.deepEqual(summary(camera), [
    [3600, '32 33 34 19'],
    [7200, '39 1'],
  ]);
});

test('H.265: a marker on each slice segment', () => {
  const camera = new Camera();
  for (let i = 0; i < 5; i++) camera.send([idr(), further(idr()), SUFFIX_SEI], i * 3600, allMarked);
  camera.end();
  assert.deepEqual(
    summary(camera),
    [0, 1, 2, 3, 4].map((i) => [i * 3600, '19 19 40']),
  );
});

test('H.265: delimiters, filler and other layers are left out', () => {
  const layer1 = Buffer.from('0209d0222222', 'hex');
  const camera = new Camera().settle();
  camera
    .send([Buffer.from('460150', 'hex'), idr(), layer1, Buffer.from('4c01ffff80', 'hex')], 3600)
    .send([inter()], 7200);
  assert.deepEqual(summary(camera), [
    [3600, '19'],
    [7200, '1'],
  ]);
  assert.equal(camera.fault('layer-ignored'), 1);
});

test('H.265: a packet lost inside a picture drops it, also with its sets', () => {
  for (const lost of [0, 1, 3]) {
    const camera = new Camera().settle();
    camera.send([inter(300)], 3600, (packet, i) => (i === lost ? undefined : packet)).send([inter()], 7200);
    assert.deepEqual(
      camera.units.map((unit) => [unit.timestamp, unit.lostPackets]),
      [[7200, 1]],
      `packet ${lost}`,
    );
  }
});

test('H.265: fragments: start with end (OpenIPC), none of either, empty ones', () => {
  const camera = new Camera().settle();
  camera.payloads([Buffer.from('6201c1d02233', 'hex')], 3600);
  camera.payloads([Buffer.from('620101d02233', 'hex'), Buffer.from('620141d02233', 'hex')], 7200);
  camera.payloads(
    ['620181', '620101d022', '620101', '62014133'].map((hex) => Buffer.from(hex, 'hex')),
    10_800,
  );
  assert.deepEqual(camera.nals, [[Buffer.from('0201d02233', 'hex')], [Buffer.from('0201d02233', 'hex')]]);
  assert.equal(camera.units[1]?.lostPackets, 1);
  assert.equal(camera.fault('fragment-without-start'), 1);
});

test('H.265: a whole access unit with start codes in one packet is taken apart', () => {
  const stream = Buffer.concat([VPS, SPS, PPS, idr(300)].flatMap((nal) => [Buffer.from([0, 0, 0, 1]), nal]));
  const camera = new Camera({ sprop: {} }).payloads([stream], 0).send([stream], 3600).send([inter()], 7200).end();
  assert.deepEqual(camera.nals, [[VPS, SPS, PPS, idr(300)], [idr(300)], [inter()]]);
});

test('H.265: decoding order numbers that go back are refused', () => {
  const camera = new Camera({ maxDonDiff: 2 });
  camera
    .send([idr()], 0, undefined, 100)
    .send([inter()], 3600, undefined, 99)
    .send([inter()], 7200, undefined, 101)
    .end();
  assert.deepEqual(summary(camera), [
    [0, '19'],
    [7200, '1'],
  ]);
  assert.equal(camera.fault('decoding-order-changed'), 1);
});

test('H.265: PACI packets are ignored', () => {
  const camera = new Camera().settle().payloads([Buffer.from('640102000000', 'hex'), inter()], 3600);
  assert.deepEqual(summary(camera), [[3600, '1']]);
  assert.equal(camera.fault('paci-ignored'), 1);
});
