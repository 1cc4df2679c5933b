import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newCounters } from '../contract/camera-status.ts';
import { PacketCounts, toPackets } from './packet-counts.ts';
import { countFault } from '../codec/faults.ts';

const WALL_MS = Date.UTC(2026, 0, 1, 12);

test('packets: what receiver and depacketizers counted, under plain names, the most frequent fault first', () => {
  const { video } = newCounters().streams;
  Object.assign(video.rtp, { packets: 100, lost: 7, late: 6, malformed: 5, foreign: 4, restarts: 2 });
  video.rtp.otherPayloadTypes.set(107, 2).set(108, 1);
  for (const fault of ['offset-wrong', 'packet-cut', 'packet-cut'] as const) countFault(video.faults, fault);
  assert.deepEqual(PacketCounts.parse(toPackets(video)), {
    received: 100,
    lost: 7,
    late: 6,
    not_rtp: 5,
    other_source: 4,
    other_payload_type: 3,
    sequence_restarts: 2,
    faults: [
      { code: 'packet-cut', message: 'a packet that ends inside its header', count: 2 },
      {
        code: 'offset-wrong',
        message: 'a JPEG fragment with a wrong offset although no packet was lost',
        count: 1,
      },
    ],
    last_fault: null,
  });
});

test('packets: the last fault is found in a capture by source, sequence number, and channel or port', () => {
  const { audio } = newCounters().streams;
  const lastFault = (carrier: { rtspChannel: number } | { udpPort: number } | undefined) => {
    const packet = { ssrc: 0xabcd, sequenceNumber: 4711, carrier };
    audio.lastFault = { fault: 'frame-cut', wallMs: WALL_MS, packet };
    return PacketCounts.parse(toPackets(audio)).last_fault;
  };
  const place = {
    code: 'frame-cut',
    time: '2026-01-01T12:00:00.000+00:00',
    ssrc: '0x0000abcd',
    sequence_number: 4711,
    rtsp_channel: null,
    udp_port: null,
  };
  assert.deepEqual(lastFault({ rtspChannel: 0 }), { ...place, rtsp_channel: 0 });
  assert.deepEqual(lastFault({ udpPort: 50_000 }), { ...place, udp_port: 50_000 });
  assert.deepEqual(lastFault(undefined), place);
});
