import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Depacketizing } from '../../test/support/depacketize.ts';
import { encodeVideo } from '../../test/support/encode.ts';
import { accessUnits, nalType, packetizeH264, packetizePayloads, splitAnnexB } from '../../test/support/packetize.ts';
import type { PacketHook } from '../../test/support/packetize.ts';
import { H264Depacketizer } from './h264.ts';

const SPS = Buffer.from('Z00AKpWoHgCJ+WbgICAgQA==', 'base64');
const PPS = Buffer.from('aO48gA==', 'base64');
const SEI = Buffer.from('0605032a2a2a80', 'hex');
/** Slice headers with first_mb_in_slice 0, followed by filling. */
const idr = (size = 40): Buffer => Buffer.concat([Buffer.from('658884', 'hex'), Buffer.alloc(size, 0x11)]);
const inter = (size = 20, fill = 0x22): Buffer => Buffer.concat([Buffer.from('419a', 'hex'), Buffer.alloc(size, fill)]);
/** A further slice: first_mb_in_slice is 1. */
const further = (nal: Buffer): Buffer => Buffer.concat([nal.subarray(0, 1), Buffer.from([0x44]), nal.subarray(2)]);
const AUD = Buffer.from('09f0', 'hex');
const FILLER = Buffer.from('0cffffff80', 'hex');

/** A camera that sends access units with consecutive sequence numbers. */
class Camera extends Depacketizing {
  #sequenceNumber: number;

  constructor(options: { sprop?: string | undefined; sequenceNumber?: number } = {}) {
    const sprop = 'sprop' in options ? options.sprop : `${SPS.toString('base64')},${PPS.toString('base64')}`;
    super((deps) => new H264Depacketizer({ sprop, ...deps }));
    this.#sequenceNumber = options.sequenceNumber ?? 0;
  }

  send(nals: readonly Buffer[], timestamp: number, onPacket: PacketHook = (packet) => packet, mtu = 100): this {
    const options = { timestamp, sequenceNumber: this.#sequenceNumber, ssrc: 1, payloadType: 96, mtu };
    const counting: PacketHook = (packet, index) => {
      this.#sequenceNumber++;
      return onPacket(packet, index);
    };
    return this.push(...packetizeH264(nals, { ...options, onPacket: counting }));
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
  camera.units.map((unit, i) => [unit.timestamp, (camera.nals[i] ?? []).map((nal) => nalType(nal, 'h264')).join(' ')]);
const allMarked: PacketHook = (packet) => ({ ...packet, marker: true });
const unmarked: PacketHook = (packet) => ({ ...packet, marker: false });

for (const [name, parameters, aggregate] of [
  ['one slice a picture, STAP-A', 'keyint=6', true],
  ['four slices a picture', 'keyint=6:slices=4:bframes=0', false],
  ['B pyramid', 'keyint=6:bframes=3:b-pyramid=2', false],
  ['open GOPs', 'keyint=6:bframes=2:open-gop=1', true],
] as const) {
  test(`H.264: ${name}: every NAL unit of x264 comes out as it went in`, () => {
    const units = accessUnits(
      splitAnnexB(encodeVideo({ codec: 'h264', parameters, options: ['-preset', 'fast'] })),
      'h264',
    );
    const camera = new Depacketizing((deps) => new H264Depacketizer({ sprop: undefined, ...deps }));
    let sequenceNumber = 65_530; // Wraps inside the first picture.
    for (const [i, nals] of units.entries()) {
      const options = { timestamp: i * 3600, sequenceNumber, ssrc: 1, payloadType: 96, mtu: 200, aggregate };
      const packets = packetizeH264(nals, options);
      sequenceNumber += packets.length;
      camera.push(...packets);
    }
    camera.end();
    // Only the first access unit keeps the parameter sets, because they are the same in all others.
    const isSet = (nal: Buffer): boolean => [7, 8].includes(nalType(nal, 'h264'));
    assert.deepEqual(
      camera.nals,
      units.map((nals, i) => (i === 0 ? nals : nals.filter((nal) => !isSet(nal)))),
    );
    const starts = units.flatMap((nals, i) => (nals.some((nal) => nalType(nal, 'h264') === 7) ? [i] : []));
    assert.deepEqual(
      camera.units.flatMap((unit, i) => (unit.randomAccess ? [i] : [])),
      starts,
    );
    assert.equal(
      camera.units.some((unit) => unit.bidirectional),
      !parameters.includes('bframes=0'),
    );
    assert.ok(camera.units.every((unit, i) => unit.timestamp === i * 3600 && unit.lostPackets === 0));
    assert.equal(camera.faults.total, 0);
  });
}

test('H.264: the parameters of the SDP are in force before the first packet', () => {
  const { parameters } = new Camera().depacketizer;
  assert.deepEqual(parameters, {
    kind: 'video',
    codec: 'h264',
    width: 1920,
    height: 1080,
    vps: [],
    sps: [SPS],
    pps: [PPS],
    codecString: 'avc1.4d002a',
    reorderDepth: 0, // pic_order_cnt_type is 2.
  });
});

test('H.264: in-band sets the same as those of the SDP are left out, and are no change', () => {
  const camera = new Camera();
  const before = camera.depacketizer.parameters;
  camera.send([SPS, PPS, SEI, idr()], 0).send([inter()], 3600).end();
  assert.deepEqual(summary(camera), [
    [0, '6 5'],
    [3600, '1'],
  ]);
  assert.equal(camera.units[1]?.parameters, before);
});

for (const [name, sprop] of [
  ['no sprop-parameter-sets (retina#42)', undefined],
  ['a missing PPS', `${SPS.toString('base64')},`],
  [
    'an SPS without its header (VStarcam, retina#42)',
    `${SPS.subarray(1).toString('base64')},${PPS.toString('base64')}`,
  ],
  ['no base64', '%%%,$$$'],
] as const) {
  test(`H.264: ${name}: recording starts at the first sets in band`, () => {
    const camera = new Camera({ sprop });
    assert.equal(camera.depacketizer.parameters, undefined);
    camera.send([inter()], 0).send([SPS, PPS, idr()], 3600).send([inter()], 7200).end();
    assert.deepEqual(summary(camera), [
      [3600, '7 8 5'],
      [7200, '1'],
    ]);
    assert.equal(camera.fault('before-parameters'), 1);
    assert.equal(camera.units[0]?.parameters?.kind === 'video' && camera.units[0].parameters.width, 1920);
  });
}

test('H.264: start codes behind the sets of the SDP are cut off (gw_main)', () => {
  const camera = new Camera({ sprop: 'Z00AKpWoHgCJ+WbgICAgQAAAAAE=,aO48gAAAAAE=' });
  const before = camera.depacketizer.parameters;
  assert.deepEqual(before && 'sps' in before && [...before.sps, ...before.pps], [SPS, PPS]);
  camera.send([SPS, PPS, idr()], 0).end();
  assert.equal(camera.units[0]?.parameters, before);
});

test('H.264: markers on parameter sets and SEI end nothing (Tapo TC70, Reolink Duo 2, H264DVR moonfire#352)', () => {
  const camera = new Camera().settle();
  camera.send([SPS, PPS, SEI, idr()], 3600, allMarked).send([SEI, inter()], 7200, allMarked);
  assert.deepEqual(summary(camera), [
    [3600, '6 5'],
    [7200, '6 1'],
  ]);
});

test('H.264: a marker on every packet of a fragmented picture ends it at its last one only', () => {
  const camera = new Camera().settle();
  camera
    .send([idr(500)], 3600, allMarked)
    .send([inter(300)], 7200, allMarked)
    .send([inter()], 10_800);
  assert.deepEqual(camera.nals, [[idr(500)], [inter(300)], [inter()]]);
});

test('H.264: the timestamp changes behind SPS and PPS (Reolink RLC-822A, retina#13)', () => {
  const camera = new Camera({ sprop: undefined });
  camera.send([SPS, PPS], 0, allMarked).send([idr()], 3600).send([inter()], 7200).end();
  assert.deepEqual(summary(camera), [
    [3600, '7 8 5'],
    [7200, '1'],
  ]);
});

test('H.264: no marker at all: the timestamp ends a picture (FLIR M400, mediamtx#3945)', () => {
  const camera = new Camera();
  for (let i = 0; i < 4; i++) camera.send([SPS, PPS, idr(300), further(idr(300))], i * 3600, unmarked);
  assert.equal(camera.units.length, 3);
  camera.end();
  assert.deepEqual(summary(camera), [
    [0, '5 5'],
    [3600, '5 5'],
    [7200, '5 5'],
    [10_800, '5 5'],
  ]);
});

test('H.264: a marker on each slice: slices of one picture stay together (iamscottxu/obs-rtspserver PR#199)', () => {
  const camera = new Camera();
  for (let i = 0; i < 6; i++) camera.send([inter(), further(inter()), further(inter())], i * 3600, allMarked);
  camera.end();
  assert.deepEqual(
    summary(camera),
    [0, 1, 2, 3, 4, 5].map((i) => [i * 3600, '1 1 1']),
  );
  assert.equal(camera.depacketizer.discarded, 0);
});

test('H.264: slices by size: the first key picture with many marked slices comes after small pictures with one', () => {
  const camera = new Camera();
  for (let i = 0; i < 5; i++) camera.send([inter()], i * 3600, allMarked);
  camera
    .send([idr(), further(idr())], 18_000, allMarked)
    .send([inter()], 21_600, allMarked)
    .end();
  assert.deepEqual(summary(camera).slice(5), [
    [18_000, '5 5'],
    [21_600, '1'],
  ]);
});

test('H.264: a camera that begins late to mark each slice has one torn picture, and the next one says so', () => {
  const camera = new Camera().settle();
  const picture = [inter(), further(inter())];
  camera.send(picture, 3600, allMarked).send(picture, 7200, allMarked).send(picture, 10_800, allMarked).end();
  assert.deepEqual(summary(camera), [
    [3600, '1'],
    [7200, '1 1'],
    [10_800, '1 1'],
  ]);
  assert.equal(camera.units[1]?.lostPackets, 1);
  assert.equal(camera.fault('slice-behind-marker'), 1);
});

test('H.264: a marker on each slice: a lost packet costs one picture', () => {
  const camera = new Camera();
  const picture = [inter(), further(inter()), further(inter()), further(inter())];
  camera.send(picture, 0, allMarked).send(picture, 3600, allMarked);
  camera.send(picture, 7200, (packet, i) => (i === 1 ? undefined : allMarked(packet, i)));
  camera.send(picture, 10_800, allMarked).end();
  assert.deepEqual(summary(camera), [
    [0, '1 1 1 1'],
    [3600, '1 1 1 1'],
    [10_800, '1 1 1 1'],
  ]);
  assert.equal(camera.depacketizer.discarded, 1);
});

test('H.264: a loss behind the marker of a picture that is still held back does not cost it', () => {
  const camera = new Camera()
    .send([idr()], 0)
    .send([inter()], 3600, () => undefined)
    .send([inter()], 7200)
    .end();
  assert.deepEqual(
    camera.units.map((unit) => [unit.timestamp, unit.lostPackets]),
    [
      [0, 0],
      [7200, 1],
    ],
  );
});

test('H.264: once markers are trusted a picture is emitted with its last packet', () => {
  const camera = new Camera().settle();
  camera.send([idr()], 3600);
  assert.equal(camera.units.length, 1);
  camera.send([inter(500)], 7200);
  assert.equal(camera.units.length, 2);
});

test('H.264: SEI behind a picture, on its timestamp, is no picture (Tapo C260, mediamtx#6257)', () => {
  const camera = new Camera().settle();
  camera.send([idr()], 3600).send([SEI], 3600).send([inter()], 7200).send([SEI], 7200).end();
  assert.deepEqual(summary(camera), [
    [3600, '5'],
    [7200, '6 1'],
  ]);
});

test('H.264: successive pictures with equal timestamps stay two pictures', () => {
  const camera = new Camera();
  camera.send([idr()], 3600).send([inter()], 3600).send([inter()], 7200, unmarked).send([inter()], 7200).end();
  assert.deepEqual(
    camera.units.map((unit) => unit.timestamp),
    [3600, 3600, 7200, 7200],
  );
});

test('H.264: delimiters, filler and ends of sequence are left out, SEI stays', () => {
  const camera = new Camera();
  camera
    .send([AUD, SEI, idr(), FILLER, Buffer.from('0a', 'hex')], 0)
    .send([AUD, inter(), FILLER], 3600)
    .end();
  assert.deepEqual(summary(camera), [
    [0, '6 5'],
    [3600, '1'],
  ]);
  assert.equal(camera.faults.total, 0);
});

test('H.264: filler in fragments is left out', () => {
  const camera = new Camera().settle();
  camera.send([idr(), Buffer.alloc(400, 0xff).fill(0x0c, 0, 1)], 3600).end();
  assert.deepEqual(camera.nals, [[idr()]]);
});

test('H.264: a packet lost inside a fragmented picture drops that picture, and the next one tells', () => {
  for (const lost of [0, 1, 2, 4]) {
    const camera = new Camera().settle();
    camera.send([idr(500)], 3600, (packet, i) => (i === lost ? undefined : packet));
    camera.send([inter()], 7200).send([inter()], 10_800);
    assert.deepEqual(
      camera.units.map((unit) => [unit.timestamp, unit.lostPackets]),
      [
        [7200, 1],
        [10_800, 0],
      ],
      `packet ${lost}`,
    );
    assert.equal(camera.depacketizer.discarded, 1);
  }
});

test('H.264: the last packets lost, with the marker: the picture is dropped, the next one is whole', () => {
  const camera = new Camera().settle();
  camera.send([inter(500)], 3600, (packet) => (packet.marker ? undefined : packet));
  camera.send([idr(500)], 7200);
  assert.deepEqual(
    camera.units.map((unit) => [unit.timestamp, unit.lostPackets]),
    [[7200, 1]],
  );
});

test('H.264: a whole picture lost between two is told by the next one', () => {
  const camera = new Camera().settle();
  camera
    .send([idr(300)], 3600)
    .send([inter(300)], 7200, () => undefined)
    .send([inter(300)], 10_800);
  assert.deepEqual(
    camera.units.map((unit) => [unit.timestamp, unit.lostPackets]),
    [
      [3600, 0],
      [10_800, 4],
    ],
  );
});

test('H.264: the first slice lost: the picture is dropped', () => {
  const camera = new Camera().settle();
  camera
    .send([idr(), further(idr())], 3600, (packet, i) => (i === 0 ? undefined : packet))
    .send([inter()], 7200)
    .end();
  assert.deepEqual(summary(camera), [[7200, '1']]);
  assert.equal(camera.fault('first-slice-missing'), 1);
});

test('H.264: a fragment without its start, nothing lost: the picture is dropped', () => {
  const camera = new Camera().settle();
  camera.payloads([Buffer.from('3c01aabb', 'hex'), Buffer.from('3c41aabb', 'hex')], 3600).send([inter()], 7200);
  assert.deepEqual(summary(camera), [[7200, '1']]);
  assert.equal(camera.units[0]?.lostPackets, 1);
  assert.equal(camera.fault('fragment-without-start'), 1);
});

test('H.264: a fragment without its end, nothing lost: the picture is dropped, unless the marker ends it', () => {
  const camera = new Camera().settle();
  camera.payloads([Buffer.from('3c819a22', 'hex'), further(inter())], 3600).send([inter()], 7200);
  assert.deepEqual(summary(camera), [[7200, '1']]);
  assert.equal(camera.fault('fragment-without-end'), 1);
  camera.payloads([Buffer.from('3c819a22', 'hex'), Buffer.from('3c0133', 'hex')], 10_800).send([inter()], 14_400);
  assert.deepEqual(camera.nals.slice(1), [[Buffer.from('219a2233', 'hex')], [inter()]]);
  assert.equal(camera.fault('fragment-end-bit-missing'), 1);
});

test('H.264: a fragment with start and end bit is a whole NAL unit (CostarHD, OpenIPC)', () => {
  const camera = new Camera().settle();
  camera.payloads([Buffer.from('3cc19a2233', 'hex')], 3600);
  assert.deepEqual(camera.nals, [[Buffer.from('219a2233', 'hex')]]);
});

test('H.264: fragments without content do no harm, also the first (retina#115)', () => {
  const camera = new Camera().settle();
  const parts = ['7c85', '7c058884aa', '7c05', '7c05bb', '7c45'].map((hex) => Buffer.from(hex, 'hex'));
  camera.payloads(parts, 3600);
  assert.deepEqual(camera.nals, [[Buffer.from('658884aabb', 'hex')]]);
});

test('H.264: the reserved bit of fragments is not looked at (Longse)', () => {
  const camera = new Camera().settle();
  camera.payloads([Buffer.from('7ca58884aa', 'hex'), Buffer.from('7c65bb', 'hex')], 3600);
  assert.deepEqual(camera.nals, [[Buffer.from('658884aabb', 'hex')]]);
});

test('H.264: fragments that change their NAL unit type keep that of the first (Tiandy, moonfire#344)', () => {
  const camera = new Camera().settle();
  camera.payloads([Buffer.from('7c858884aa', 'hex'), Buffer.from('7c01bb', 'hex'), Buffer.from('7c41cc', 'hex')], 3600);
  assert.deepEqual(camera.nals, [[Buffer.from('658884aabbcc', 'hex')]]);
});

test('H.264: a whole access unit with start codes in one packet, or in fragments, is taken apart', () => {
  const stream = Buffer.concat([SPS, PPS, idr(300)].flatMap((nal) => [Buffer.from([0, 0, 0, 1]), nal]));
  const camera = new Camera({ sprop: undefined });
  camera.payloads([stream], 0).payloads([Buffer.concat([Buffer.from([0, 0, 1]), inter()])], 3600);
  camera
    .send([stream], 7200)
    .send([stream.subarray(4)], 10_800)
    .end();
  assert.deepEqual(camera.nals, [[SPS, PPS, idr(300)], [inter()], [idr(300)], [idr(300)]]);
});

test('H.264: aggregates with padding, and cut ones (STAP-A): what is whole is kept, a cut slice is damage', () => {
  const unit = (nal: Buffer): Buffer => Buffer.concat([Buffer.from([0, nal.length]), nal]);
  const aggregate = (...nals: Buffer[]): Buffer => Buffer.concat([Buffer.from([24]), ...nals.map(unit)]);
  const camera = new Camera().settle();
  camera.payloads([Buffer.concat([aggregate(SEI, idr()), Buffer.from([0, 0])])], 3000);
  assert.deepEqual(summary(camera), [[3000, '6 5']]);
  // After the picture, a SEI, a set, or something invalid is cut off.
  for (const [i, rest] of [SEI, SPS, PPS, Buffer.from([0x1e, 1, 2, 3])].entries()) {
    camera.units.length = 0;
    camera.payloads([aggregate(SEI, inter(), rest).subarray(0, -2)], 6000 + i * 3000);
    camera.send([inter()], 7000 + i * 3000);
    assert.equal(camera.units.length, 2);
    assert.equal(camera.fault('aggregate-cut'), i + 1);
  }
  camera.units.length = 0;
  camera.payloads([aggregate(SEI, idr()).subarray(0, -3)], 30_000);
  camera.send([inter()], 33_000);
  assert.deepEqual(summary(camera), [[33_000, '1']]);
  assert.equal(camera.fault('aggregate-cut'), 5);
});

test('H.264: a byte stream in a NAL unit that begins with SEI, whole or in fragments', () => {
  const start = Buffer.from([0, 0, 0, 1]);
  const stream = Buffer.concat([SEI, start, SPS, start, PPS, start, idr(300)]);
  for (const mtu of [1000, 100]) {
    const camera = new Camera({ sprop: undefined });
    camera.send([stream], 0, undefined, mtu).send([inter()], 3600);
    camera.send([stream], 7200, undefined, mtu).end();
    assert.deepEqual(
      summary(camera).map(([timestamp, types]) => [timestamp, String(types).split(' ').at(-1)]),
      [
        [0, '5'],
        [3600, '1'],
        [7200, '5'],
      ],
    );
  }
});

test('H.264: interleaved packets (STAP-B, MTAP, FU-B) are refused and counted', () => {
  const camera = new Camera().settle();
  for (const [i, type] of [25, 26, 27, 29].entries())
    camera.payloads([Buffer.from([type, 0, 0, 0, 3, 0x41, 0x9a, 1])], i);
  camera.send([inter()], 3600);
  assert.equal(camera.fault('interleaved-packet'), 4);
  assert.deepEqual(summary(camera), [[3600, '1']]);
});

test('H.264: a picture without end does not fill the memory (go2rtc#675)', () => {
  const camera = new Camera().settle();
  const fragment = Buffer.alloc(60_000, 0x55);
  fragment.set([0x7c, 0x85, 0x88], 0);
  camera.payloads([fragment], 3600);
  fragment[1] = 0x05;
  for (let i = 0; i < 900; i++) camera.push(...packetizePayloads([fragment], packetAt(5 + i)).map(withoutMarker));
  assert.equal(camera.units.length, 0);
  assert.equal(camera.fault('access-unit-too-large'), 1);
  assert.equal(camera.fault('lost-inside'), 0);
  camera.push(...packetizePayloads([inter()], { ...packetAt(905), timestamp: 7200 }));
  assert.deepEqual(summary(camera), [[7200, '1']]);
  assert.ok((camera.units[0]?.blockBytes ?? Infinity) < 1024 * 1024, 'the large block is still in use');
});

const packetAt = (sequenceNumber: number) => ({ timestamp: 3600, sequenceNumber, ssrc: 1, payloadType: 96 });
function withoutMarker(packet: Buffer): Buffer {
  packet[1] = (packet[1] as number) & 0x7f;
  return packet;
}

test('H.264: at the end of a stream a picture that may lack slices is not emitted', () => {
  const camera = new Camera().settle();
  camera.send([inter()], 3600, unmarked).end();
  assert.deepEqual(camera.units, []);
  assert.equal(camera.fault('ended-inside'), 1);
});

test('H.264: a stream that begins inside a picture starts with the next one', () => {
  const camera = new Camera();
  camera
    .send([idr(500)], 0, (packet, i) => (i < 2 ? undefined : packet))
    .send([inter()], 3600)
    .end();
  assert.deepEqual(summary(camera), [[3600, '1']]);
});

/** An SEI of ONVIF Media Signing; `flag` 0x80 is that of the certificate. */
const signature = (flag: number, content: string): Buffer => {
  const payload = Buffer.concat([
    Buffer.from('005bc93f2d715e95ada4796f90877a6f', 'hex'),
    Buffer.from([flag]),
    Buffer.from(content, 'hex'),
  ]);
  return Buffer.concat([Buffer.from([0x06, 5, payload.length]), payload, Buffer.from([0x80])]);
};
const nalsOf = (camera: Camera): string[][] => camera.nals.map((nals) => nals.map((nal) => nal.toString('hex')));
const hex = (...nals: Buffer[]): string[] => nals.map((nal) => nal.toString('hex'));

test('H.264: the certificate that a camera sends once is at every later key picture', () => {
  const [certificate, newer] = [signature(0x80, '1111'), signature(0x80, '2222')];
  const camera = new Camera()
    .send([certificate, idr()], 0)
    .send([inter()], 1)
    .send([SPS, PPS, idr()], 2)
    .send([inter()], 3);
  camera.send([newer, idr()], 4).send([idr()], 5).end();
  assert.deepEqual(nalsOf(camera), [
    hex(certificate, idr()),
    hex(inter()),
    hex(certificate, idr()),
    hex(inter()),
    hex(newer, idr()),
    hex(newer, idr()),
  ]);
});

test('H.264: bytes that look like a start code within a whole SEI belong to it', () => {
  const signed = signature(0, 'aa00000141bb00000167');
  const camera = new Camera().send([signed, idr()], 0).send([signed, inter()], 1, undefined, 30).end();
  assert.deepEqual(nalsOf(camera), [hex(signed, idr()), hex(signed, inter())]);
  assert.equal(camera.faults.total, 0);
});

test('H.264: a signature that arrived whole survives its damaged picture, in order', () => {
  const [first, second, third] = [signature(0, '01'), signature(0, '02'), signature(0, '03')];
  const withoutEnd: PacketHook = (packet, index) => (index === 2 ? [] : packet);
  const camera = new Camera().settle();
  camera
    .send([first, inter(150)], 5_000, withoutEnd)
    .send([second, inter(150)], 5_010, withoutEnd)
    .send([third, inter()], 5_020);
  camera.send([inter()], 5_030).end();
  assert.deepEqual(nalsOf(camera).slice(-2), [hex(first, second, third, inter()), hex(inter())]);
});

test('H.264: four slices that each have a timestamp of their own are one picture', () => {
  const camera = new Camera().settle();
  const slices = [inter(), further(inter()), further(inter()), further(inter())];
  for (const at of [5_000, 5_100]) {
    for (const [i, slice] of slices.entries()) {
      camera.send([slice], at + i, (packet) => ({ ...packet, marker: i === 3 }));
    }
  }
  camera.send([inter()], 5_200).end();
  assert.deepEqual(summary(camera), [
    [5_000, '1 1 1 1'],
    [5_100, '1 1 1 1'],
    [5_200, '1'],
  ]);
  assert.equal(camera.faults.total, 0);
});

test('H.264: a picture of which each packet has a timestamp of its own is whole', () => {
  const camera = new Camera();
  let timestamp = 100;
  for (let picture = 0; picture < 6; picture++) {
    camera.send([picture % 3 === 0 ? idr(400) : inter(400)], 0, (packet) => ({ ...packet, timestamp: timestamp++ }));
    timestamp += 100;
  }
  camera.end();
  assert.deepEqual(
    summary(camera).map(([, types]) => types),
    ['5', '1', '1', '5', '1', '1'],
  );
  assert.equal(camera.faults.total, 0);
});
