// Packets that no camera should send: whatever the bytes are, receiver, depacketizers and RTCP return, what they emit is
// well formed, and all memory comes back.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import type { AccessUnit } from '../../recorder/codec/access-unit.ts';
import { createDepacketizer } from '../../recorder/codec/depacketizer.ts';
import { noFaults } from '../../recorder/codec/faults.ts';
import type { MediaDescription } from '../../recorder/codec/depacketizer.ts';
import { H264Syntax } from '../../recorder/codec/h264-nal.ts';
import { H265Syntax } from '../../recorder/codec/h265-nal.ts';
import { ParameterSets } from '../../recorder/codec/parameter-sets.ts';
import { SlabPool } from '../../recorder/codec/slab.ts';
import type { Slab } from '../../recorder/codec/slab.ts';
import { RtpReceiver } from '../../recorder/rtp/receiver.ts';
import { formatReceiverReport, parseRtcp } from '../../recorder/rtp/rtcp.ts';
import { splitLengths } from '../support/depacketize.ts';
import { encodeAudio, encodeVideo, ffmpeg } from '../support/encode.ts';
import { OBU_DELIMITER, obuType, packetizeAv1, splitObus } from '../support/packetize-av1.ts';
import { packetizeMjpeg } from '../support/packetize-mjpeg.ts';
import {
  accessUnits,
  packetizeAac,
  packetizeG711,
  packetizeH264,
  packetizeH265,
  packetizeLatm,
  packetizeMpegAudio,
  packetizeOpus,
  splitAdts,
  splitAnnexB,
} from '../support/packetize.ts';
import type { PacketizeOptions } from '../support/packetize.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 2_000);
/** More than any stream here needs: growth without bound shows. */
const MAX_LIVE_BYTES = 64 * 1024 * 1024;

/** Counts blocks out and back. */
class CountingPool extends SlabPool {
  out = 0;
  bytes = 0;

  override take(minBytes = 0): Slab {
    const slab = super.take(minBytes);
    this.bytes += slab.buffer.length;
    if (minBytes <= 256 * 1024) this.out++;
    return slab;
  }

  override giveBack(slab: Slab): void {
    if (slab.buffer.length <= 256 * 1024) this.out--;
    super.giveBack(slab);
  }
}

interface Subject {
  readonly name: string;
  readonly media: MediaDescription;
  readonly packets: readonly Buffer[];
}

function packets<Unit>(
  units: readonly Unit[],
  ticks: number,
  packetize: (unit: Unit, o: PacketizeOptions) => Buffer[],
) {
  let sequenceNumber = 65_500;
  return units.flatMap((unit, i) => {
    const made = packetize(unit, { timestamp: i * ticks, sequenceNumber, ssrc: 7, payloadType: 96, mtu: 300 });
    sequenceNumber += made.length;
    return made;
  });
}

const media = (
  kind: 'video' | 'audio',
  encodingName: string,
  parameters: Record<string, string> = {},
): MediaDescription => ({
  kind,
  encodingName,
  payloadType: 96,
  clockRate: kind === 'video' ? 90_000 : 16_000,
  channels: undefined,
  formatParameters: new Map(Object.entries(parameters)),
});

/** JPEG files, each the same. */
function jpegs(): Buffer[] {
  const source = ['-f', 'lavfi', '-i', 'testsrc2=size=160x120:rate=25', '-frames:v', '1'];
  const encoder = [
    '-pix_fmt',
    'yuvj420p',
    '-c:v',
    'mjpeg',
    '-huffman',
    'default',
    '-q:v',
    '20',
    '-f',
    'image2pipe',
    '-',
  ];
  return Array<Buffer>(8).fill(ffmpeg([...source, ...encoder]));
}

/** Eight AV1 temporal units without their delimiters. */
function temporalUnits(): Buffer[][] {
  const source = ['-f', 'lavfi', '-i', 'testsrc2=size=160x120:rate=25', '-frames:v', '8'];
  const encoder = ['-pix_fmt', 'yuv420p', '-c:v', 'libaom-av1', '-usage', 'realtime', '-cpu-used', '8', '-g', '4'];
  const stream = ffmpeg([...source, ...encoder, '-lag-in-frames', '0', '-f', 'obu', '-']);
  const units: Buffer[][] = [];
  for (const obu of splitObus(stream)) {
    if (obuType(obu) === OBU_DELIMITER) units.push([]);
    else units.at(-1)?.push(obu);
  }
  return units;
}

function subjects(): Subject[] {
  const h264 = accessUnits(
    splitAnnexB(encodeVideo({ codec: 'h264', frames: 6, parameters: 'keyint=3:slices=2:bframes=1' })),
    'h264',
  );
  const h265 = accessUnits(
    splitAnnexB(encodeVideo({ codec: 'h265', frames: 6, parameters: 'keyint=3:min-keyint=3:bframes=1' })),
    'h265',
  );
  const aac = splitAdts(encodeAudio('adts', 0.5, ['-c:a', 'aac', '-ar', '16000', '-ac', '1']));
  const octets = Array.from({ length: 12 }, (_, i) => Buffer.alloc(160, i * 7));
  const samples = octets.map((block) => Buffer.concat(Array<Buffer>(4).fill(block)));
  // 72 bytes each: MPEG-2, layer III, 24 kbit/s at 24 kHz.
  const mp3 = Array.from({ length: 12 }, () => Buffer.concat([Buffer.from('fff334c4', 'hex'), Buffer.alloc(68)]));
  const opus = Array.from({ length: 12 }, (_, i) => Buffer.from([0xf8 | (i & 3), 2, 3, 4]));
  const don = { 'sprop-max-don-diff': '1' };
  return [
    {
      name: 'H.264',
      media: media('video', 'H264'),
      packets: packets(h264, 3600, (u, o) => packetizeH264(u, { ...o, aggregate: true })),
    },
    {
      name: 'H.265',
      media: media('video', 'H265'),
      packets: packets(h265, 3600, (u, o) => packetizeH265(u, { ...o, aggregate: true })),
    },
    {
      name: 'H.265 with DONL',
      media: media('video', 'H265', don),
      packets: packets(h265, 3600, (u, o) =>
        packetizeH265(u, { ...o, aggregate: true, decodingOrderNumber: o.timestamp / 90 }),
      ),
    },
    {
      name: 'MJPEG',
      media: media('video', 'JPEG'),
      packets: packets(jpegs(), 3600, packetizeMjpeg),
    },
    ...[false, true].map((sizes) => ({
      name: sizes ? 'AV1 with sizes' : 'AV1',
      media: media('video', 'AV1'),
      packets: packets(temporalUnits(), 3600, (u, o) => packetizeAv1(u, { ...o, sizes })),
    })),
    {
      name: 'AAC',
      media: media('audio', 'MPEG4-GENERIC', { config: '1408' }),
      packets: packets(aac, 1024, (u, o) => packetizeAac([u, u], o)),
    },
    {
      name: 'AAC without config',
      media: media('audio', 'MPEG4-GENERIC'),
      packets: packets(aac, 1024, (u, o) => packetizeAac([u], o)),
    },
    {
      name: 'LATM',
      media: media('audio', 'MP4A-LATM', { cpresent: '0', config: '400028103fc0' }),
      packets: packets(aac, 1024, packetizeLatm),
    },
    { name: 'LATM in band', media: media('audio', 'MP4A-LATM'), packets: packets(aac, 1024, packetizeLatm) },
    { name: 'Opus', media: media('audio', 'OPUS'), packets: packets(opus, 960, packetizeOpus) },
    {
      name: 'MPEG audio',
      media: media('audio', 'MPA'),
      packets: packets(mp3, 6480, (u, o) => packetizeMpegAudio([u, u], o)),
    },
    {
      name: 'MPEG audio in fragments',
      media: media('audio', 'MPA'),
      packets: packets(mp3, 3240, (u, o) => packetizeMpegAudio([u], { ...o, mtu: 70 })),
    },
    { name: 'G.711', media: media('audio', 'PCMU'), packets: packets(octets, 160, packetizeG711) },
    { name: 'L16', media: media('audio', 'L16'), packets: packets(samples, 320, packetizeG711) },
    { name: 'G.722', media: media('audio', 'G722'), packets: packets(octets, 160, packetizeG711) },
    { name: 'G.726', media: media('audio', 'G726-40'), packets: packets(octets, 256, packetizeG711) },
  ];
}

type Mutation =
  | { readonly kind: 'lose' | 'repeat' | 'swap' | 'mark' }
  | { readonly kind: 'byte'; readonly at: number; readonly value: number }
  | { readonly kind: 'cut' | 'grow' | 'time'; readonly by: number }
  | { readonly kind: 'payload'; readonly bytes: Uint8Array };

/** Mostly the first bytes of a payload, where headers are. */
const place = fc.oneof(fc.nat(6), fc.nat(400));
const mutation = fc.oneof(
  fc.constantFrom<Mutation>({ kind: 'lose' }, { kind: 'repeat' }, { kind: 'swap' }, { kind: 'mark' }),
  fc.record({ kind: fc.constant('byte' as const), at: place, value: fc.nat(255) }),
  fc.record({ kind: fc.constantFrom('cut' as const, 'grow' as const), by: fc.nat(300) }),
  fc.record({ kind: fc.constant('time' as const), by: fc.oneof(fc.integer({ min: -9000, max: 9000 }), fc.integer()) }),
  fc.record({ kind: fc.constant('payload' as const), bytes: fc.uint8Array({ maxLength: 60 }) }),
) satisfies fc.Arbitrary<Mutation>;

/** The stream with each mutation applied to the packet at its place, in millionths. */
function mutate(stream: readonly Buffer[], mutations: readonly (readonly [number, Mutation])[]): Buffer[] {
  const out = stream.map((packet) => Buffer.from(packet));
  for (const [place, change] of mutations) {
    const index = Math.floor((place / 1_000_000) * out.length);
    const packet = out[index];
    if (!packet || packet.length < 12) continue;
    switch (change.kind) {
      case 'lose':
        out.splice(index, 1);
        break;
      case 'repeat':
        out.splice(index, 0, packet);
        break;
      case 'swap':
        out.splice(index, 1);
        out.splice(index + 3, 0, packet);
        break;
      case 'mark':
        packet[1] = (packet[1] as number) ^ 0x80;
        break;
      case 'byte':
        packet.subarray(12 + change.at, 13 + change.at).fill(change.value);
        break;
      case 'cut':
        out[index] = packet.subarray(0, Math.max(12, packet.length - change.by));
        break;
      case 'grow':
        out[index] = Buffer.concat([packet, Buffer.alloc(change.by, change.by)]);
        break;
      case 'time':
        packet.writeUInt32BE((packet.readUInt32BE(4) + change.by) >>> 0, 4);
        break;
      case 'payload':
        out[index] = Buffer.concat([packet.subarray(0, 12), change.bytes]);
        break;
    }
  }
  return out;
}

/** Sends packets through a receiver and a depacketizer, holds all units until the end, and counts what comes back. */
function run(subject: Subject, stream: readonly Buffer[], reorder: boolean): AccessUnit[] {
  const pool = new CountingPool();
  const units: AccessUnit[] = [];
  const faults = noFaults();
  const choice = createDepacketizer(subject.media, { pool, emit: (unit) => units.push(unit), faults });
  assert.ok('depacketizer' in choice);
  const { depacketizer, clockRate } = choice;
  const receiver = new RtpReceiver({ payloadType: 96, clockRate, reorder, onPacket: (p) => depacketizer.push(p) });
  for (const [i, packet] of stream.entries()) receiver.receive(packet, 0, packet.length, i * 10);
  receiver.flush();
  depacketizer.flush();
  for (const unit of units) {
    const { slab, offset, size } = unit.data;
    assert.ok(size > 0 && offset + size <= slab.buffer.length);
    assert.ok(Number.isInteger(unit.timestamp) && unit.timestamp >= 0 && unit.timestamp < 2 ** 32);
    assert.ok(unit.lostPackets >= 0);
    const bytes = slab.buffer.subarray(offset, offset + size);
    if (subject.media.encodingName?.startsWith('H26')) splitLengths(bytes);
    else if (subject.media.encodingName === 'AV1') splitObus(bytes);
    else if (subject.name === 'MJPEG') assert.match(bytes.toString('hex'), /^ffd8ff.*ffd9$/);
    else assert.ok(unit.durationTicks > 0);
  }
  assert.ok(units.length === 0 || depacketizer.parameters !== undefined);
  assert.ok(faults.counts.size < 40, 'a fault for each value');
  assert.ok(pool.bytes < MAX_LIVE_BYTES, `${pool.bytes} bytes taken`);
  depacketizer.close();
  for (const unit of units) unit.data.slab.release();
  assert.equal(pool.out, 0, 'blocks that did not come back');
  return units;
}

/** Beginnings of fragments, aggregates, parameter sets, slices, AU headers and ADTS. */
const STARTS: readonly Buffer[] = `
  7c85 7c05 7c45 7cc5 3c81 3c01 3c41 7c87 7c8c 7800046588 780002 658884 419a 4144 674d 68ee 0605 09f0 00000001
  0000016742 620193 620113 620153 6201d3 600100 2601af 0201d0 420101 4401c1 4e01 5001 460150 6401 0010 0020 001000
  fff160 ffff 20 c0 000000000132140f 00000000410a140f0001ffff 0000000001ff140f000000400000 0000000001000000
  18 50 d0 90 10 20 30 183200 100a0b000000 1032 0002 40 00ff ffffffffff 183a10
`
  .trim()
  .split(/\s+/)
  .map((hex) => Buffer.from(hex, 'hex'));

for (const subject of subjects()) {
  test(`${subject.name}: the stream that is bent below is good`, () => {
    const isUseless = ['AAC without config', 'LATM in band'].includes(subject.name);
    assert.equal(run(subject, subject.packets, true).length > 5, !isUseless);
  });

  test(`${subject.name}: any changes to a stream give whole access units or none`, () => {
    const changes = fc.array(fc.tuple(fc.nat(999_999), mutation), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(changes, fc.boolean(), (mutations, reorder) => {
        run(subject, mutate(subject.packets, mutations), reorder);
      }),
      { numRuns: RUNS },
    );
  });

  test(`${subject.name}: any payloads give whole access units or none`, () => {
    const payload = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      // Headers of fragments and aggregates, parameter sets and slices, then anything.
      fc.tuple(fc.constantFrom(...STARTS), fc.uint8Array({ maxLength: 40 })).map(([a, b]) => Buffer.concat([a, b])),
    );
    const packet = fc.tuple(
      payload,
      fc.boolean(),
      fc.oneof(fc.constant(1), fc.nat(3)),
      fc.oneof(fc.constant(0), fc.nat(9000)),
    );
    fc.assert(
      fc.property(fc.array(packet, { maxLength: 60 }), (script) => {
        let sequenceNumber = 0;
        let timestamp = 0;
        const stream = script.map(([bytes, marker, step, ticks]) => {
          sequenceNumber = (sequenceNumber + step) & 0xffff;
          timestamp += ticks;
          const header = Buffer.from([
            0x80,
            (marker ? 0x80 : 0) | 96,
            sequenceNumber >> 8,
            sequenceNumber & 0xff,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            7,
          ]);
          header.writeUInt32BE(timestamp, 4);
          return Buffer.concat([header, bytes]);
        });
        // Behind a good beginning, so that parameters are known.
        run(subject, [...subject.packets.slice(0, 4), ...stream], false);
      }),
      { numRuns: RUNS },
    );
  });
}

test('receiver: any bytes, also as several sources, are counted and forgotten', () => {
  // Padding, extension and CSRC count, of which some are more than there is; without them no RTP.
  const flags = fc.option(fc.nat(0x3f), { nil: undefined });
  const packet = fc.tuple(fc.uint8Array({ maxLength: 40 }), flags, fc.nat(65_535), fc.nat(3), fc.nat(2000));
  fc.assert(
    fc.property(fc.array(packet, { maxLength: 300 }), fc.boolean(), (script, reorder) => {
      let delivered = 0;
      let nowMs = 0;
      const receiver = new RtpReceiver({
        payloadType: 96,
        clockRate: 90_000,
        reorder,
        ssrc: 3,
        onPacket: (p) => {
          delivered++;
          assert.ok(p.payloadStart <= p.payloadEnd && p.payloadEnd <= p.buffer.length && p.lost >= 0);
        },
      });
      for (const [bytes, first, sequenceNumber, ssrc, delayMs] of script) {
        const bent = Buffer.concat([Buffer.alloc(first === undefined ? 0 : 12), bytes]);
        if (first !== undefined) {
          bent.set([0x80 | first, 96, sequenceNumber >> 8, sequenceNumber & 0xff], 0);
          bent[11] = ssrc;
        }
        receiver.receive(bent, 0, bent.length, (nowMs += delayMs));
        receiver.report(nowMs);
      }
      receiver.flush();
      const { packets, malformed, foreign, otherPayloadTypes, late } = receiver.statistics;
      const others = [...otherPayloadTypes.values()].reduce((sum, count) => sum + count, 0);
      assert.equal(packets + malformed + foreign + others, script.length);
      assert.ok(delivered <= packets && delivered + late >= packets - 64);
    }),
    { numRuns: RUNS },
  );
});

test('RTCP: any reports are formatted, and parse', () => {
  const number = fc.oneof(fc.integer(), fc.double({ noNaN: true, min: -1e12, max: 1e12 }), fc.nat());
  const report = fc.record({
    ssrc: fc.nat(),
    fractionLost: number,
    cumulativeLost: number,
    extendedHighestSequence: number,
    jitter: number,
    lastSenderReport: number,
    delaySinceLastSenderReport: number,
  });
  fc.assert(
    fc.property(fc.array(report, { maxLength: 40 }), fc.string(), (reports, cname) => {
      const packet = formatReceiverReport({ ssrc: 1, reports, cname });
      assert.equal(packet.length % 4, 0);
      assert.deepEqual(parseRtcp(packet, 0, packet.length), { senderReports: [], byes: [] });
    }),
    { numRuns: RUNS },
  );
});

test('parameter sets: any sets give sane parameters or none', () => {
  const seeds = [
    ['Z00AKpWoHgCJ+WbgICAgQA==', 'aO48gA=='],
    [
      'QAEMAf//AWAAAAMAsAAAAwAAAwBarAwAAAMABAAAAwAyqA==',
      'QgEBAWAAAAMAsAAAAwAAAwBaoAWCAeFja5JFL83BQYFBAAADAAEAAAMADKE=',
      'RAHA8saNA7NA',
    ],
  ].map((sets) => sets.map((set) => Buffer.from(set, 'base64')));
  const changes = fc.array(fc.tuple(fc.nat(2), fc.nat(60), fc.nat(255)), { maxLength: 6 });
  fc.assert(
    fc.property(fc.nat(1), changes, (which, mutations) => {
      const nals = (seeds[which] ?? []).map((nal) => Buffer.from(nal));
      // The header stays: what kind of set it is.
      for (const [index, at, value] of mutations) nals[index]?.subarray(which + 1 + at, which + 2 + at).fill(value);
      const sets = new ParameterSets(which === 0 ? new H264Syntax() : new H265Syntax());
      for (const nal of nals) sets.offer(nal, 0, nal.length);
      sets.commit();
      sets.activate(undefined);
      const { parameters } = sets;
      if (!parameters) return;
      assert.ok(parameters.width > 0 && parameters.height > 0);
      assert.match(
        parameters.codecString,
        which === 0 ? /^avc1\.[0-9a-f]{6}$/ : /^hvc1\.[ABC]?\d+\.[0-9A-F]+\.[LH]\d+/,
      );
    }),
    { numRuns: RUNS * 4 },
  );
});
