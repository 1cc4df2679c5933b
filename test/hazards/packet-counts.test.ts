// Every damaged packet is counted, and the last fault identifies its packet in a packet capture.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PacketCounts, toPackets } from '../../recorder/api/packet-counts.ts';
import { videoMedia } from '../camera/media.ts';
import { header } from '../camera/message.ts';
import type { Outgoing, PacketInfo } from '../camera/options.ts';
import { videoTrack } from '../camera/tracks.ts';
import { setStage } from './stage.ts';

const TRANSPORTS = ['tcp', 'udp'] as const;

/** Small packets, so that every picture travels in several. */
const fragmented = async () => videoTrack(await videoMedia('h264'), { mtu: 150 });

/** The first packet of each of these pictures, none of which is a key frame. */
const isChosen = ({ frame, indexInFrame }: PacketInfo): boolean => frame.index % 10 === 7 && indexInFrame === 0;
const PICTURES = 100;
const CHOSEN = 10;

const changed = (packet: Buffer, change: (copy: Buffer) => void): Buffer => {
  const copy = Buffer.from(packet);
  change(copy);
  return copy;
};

/** A padding of no bytes: RFC 3550 §5.1 has none. */
const notRtp = (packet: Buffer): Buffer =>
  changed(packet, (copy) => {
    copy[0] = (copy[0] as number) | 0x20;
    copy[copy.length - 1] = 0;
  });
const otherSource = (packet: Buffer): Buffer => changed(packet, (copy) => copy.writeUInt32BE(0xdead, 8));
const otherType = (packet: Buffer): Buffer =>
  changed(packet, (copy) => {
    copy[1] = 107;
    copy.writeUInt32BE(0xdead, 8);
  });
/** The start bit of FU-A is missing. */
const withoutStart = (packet: Buffer): Buffer =>
  changed(packet, (copy) => {
    copy[13] = (copy[13] as number) & 0x7f;
  });

const NONE = { late: 0, not_rtp: 0, other_source: 0, other_payload_type: 0, sequence_restarts: 0 };
const DAMAGES: readonly [string, (packet: Buffer) => Outgoing[], Partial<typeof NONE & { lost: number }>][] = [
  ['that are no RTP', (packet) => [notRtp(packet)], { not_rtp: CHOSEN, lost: CHOSEN }],
  ['of another source', (packet) => [otherSource(packet), packet], { other_source: CHOSEN }],
  ['of another payload type', (packet) => [otherType(packet), packet], { other_payload_type: CHOSEN }],
  ['sent twice', (packet) => [packet, packet], { late: CHOSEN }],
];

for (const [what, damage, expected] of DAMAGES) {
  test(`packets ${what} are counted one by one`, async (t) => {
    for (const transport of TRANSPORTS) {
      const stage = await setStage(t, {
        transport,
        tracks: [await fragmented()],
        onPacket: (packet, info) => (isChosen(info) ? damage(packet) : packet),
      });
      await stage.play(PICTURES);
      await stage.pass(300);
      const counts = toPackets(stage.status.counters.streams.video);
      assert.partialDeepStrictEqual(counts, { lost: 0, ...NONE, ...expected }, transport);
      assert.ok(counts.received > PICTURES);
      await stage.finish();
    }
  });
}

test('fragments that make no sense are counted by name, and the last one is found by number, source and channel or port', async (t) => {
  for (const transport of TRANSPORTS) {
    const damaged: Buffer[] = [];
    const stage = await setStage(t, {
      transport,
      tracks: [await fragmented()],
      onPacket: (packet, info) => {
        if (!isChosen(info)) return packet;
        damaged.push(packet);
        return withoutStart(packet);
      },
    });
    await stage.play(PICTURES);
    await stage.pass(300);
    assert.equal(damaged.length, CHOSEN);
    const { faults, last_fault } = PacketCounts.parse(toPackets(stage.status.counters.streams.video));
    assert.deepEqual(
      faults.map(({ code, count }) => [code, count]),
      [['fragment-without-start', CHOSEN]],
    );
    const last = damaged.at(-1) as Buffer;
    assert.equal(last_fault?.sequence_number, last.readUInt16BE(2));
    assert.equal(last_fault.ssrc, `0x${last.subarray(8, 12).toString('hex')}`);
    const setup = stage.camera.requests.find(({ method }) => method === 'SETUP');
    const port = /client_port=(\d+)/.exec(setup ? (header(setup, 'transport') ?? '') : '')?.[1];
    const expected = transport === 'tcp' ? [0, null] : [null, Number(port)];
    assert.deepEqual([last_fault.rtsp_channel, last_fault.udp_port], expected);
    await stage.finish();
  }
});

test('counts of packets continue over a connection that is lost, and its error names the last packet', async (t) => {
  const numbers: number[] = [];
  const stage = await setStage(t, {
    tracks: [await fragmented()],
    channels: () => [6, 7],
    onPacket: (packet, info) => {
      numbers.push(packet.readUInt16BE(2));
      return isChosen(info) ? [packet, otherSource(packet)] : packet;
    },
  });
  await stage.play(PICTURES / 2);
  const { rtp } = stage.status.counters.streams.video;
  assert.equal(rtp.foreign, CHOSEN / 2);
  stage.camera.disconnect();
  await stage.until((status) => status.state === 'retrying');
  const last = new RegExp(`; last packet: SSRC 0x[0-9a-f]{8}, sequence number ${numbers.at(-1)}, RTSP channel 6$`);
  assert.match(stage.status.reason?.message ?? '', last);
  await stage.passUntil(() => stage.camera.playing.length === 1, 'a second connection');
  await stage.play(PICTURES / 2, { connection: 2 });
  assert.equal(stage.status.counters.streams.video.rtp.foreign, CHOSEN);
});

test('a camera that falls silent is said to, with the packet that came last', async (t) => {
  let last: Buffer | undefined;
  const stage = await setStage(t, {
    tracks: [await fragmented()],
    transport: 'udp',
    onPacket: (packet) => (last = packet),
  });
  await stage.play(30);
  await stage.passUntil(() => stage.status.state === 'retrying', 'an error');
  const { code, message = '' } = stage.status.reason ?? {};
  assert.equal(code, 'stream-silent');
  const numbers = /; last packet: SSRC 0x([0-9a-f]{8}), sequence number (\d+), UDP port \d+$/.exec(message);
  assert.deepEqual(numbers?.slice(1), [last?.subarray(8, 12).toString('hex'), String(last?.readUInt16BE(2))], message);
});

test('packets of which no picture can be made are named, with the last one, while the camera is still connected', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmented()],
    // A type of NAL units that H.264 leaves open.
    onPacket: (packet) => changed(packet, (copy) => void (copy[12] = 0x1f)),
  });
  await stage.play(150);
  const { state, reason } = stage.status;
  assert.deepEqual([state, reason?.code], ['connecting', 'not-decodable']);
  assert.match(
    reason?.message ?? '',
    /\(NAL units of an undefined type \d+ times\); last packet: SSRC 0x[0-9a-f]{8}, sequence number \d+, RTSP channel 0$/,
  );
});
