import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { aacPayload, packetizeH264, packetizePayloads } from '../../test/support/packetize.ts';
import type { PacketHook } from '../../test/support/packetize.ts';
import { SlabPool } from '../codec/slab.ts';
import type { Sample } from '../mp4/sample.ts';
import { parseSdp } from '../rtsp/sdp.ts';
import { Pipeline } from './pipeline.ts';
import { newCounters } from './status.ts';

const SDP = `v=0
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z00AKpWoHgCJ+WbgICAgQA==,aO48gA==
a=control:video
m=audio 0 RTP/AVP 97
a=rtpmap:97 MPEG4-GENERIC/16000/1
a=control:audio
`.replaceAll('\n', '\r\n');
const IDR = Buffer.from('6588841111', 'hex');
const INTER = Buffer.from('419a222222', 'hex');

function recording() {
  const clock = new VirtualClock();
  const samples: Sample[] = [];
  const counters = newCounters();
  const sink = { begin() {}, change() {}, sample: (sample: Sample) => void samples.push(sample), end() {} };
  const pipeline = new Pipeline({
    clock,
    pool: new SlabPool(),
    sink,
    counters,
    memory: { reorderDepth: 0 },
    fail: (error) => assert.fail(error),
  });
  pipeline.select(parseSdp(SDP));
  let sequenceNumber = 0;
  return {
    clock,
    pipeline,
    samples,
    counters,
    video: (nal: Buffer, timestamp: number, onPacket?: PacketHook): void => {
      const options = { timestamp, sequenceNumber, ssrc: 1, payloadType: 96, ...(onPacket ? { onPacket } : {}) };
      sequenceNumber++;
      for (const packet of packetizeH264([nal], options)) pipeline.rtp(0, packet, 0, packet.length);
    },
  };
}

test('pipeline: a picture without marker has the time at which it came, not that of the next one', () => {
  const marked = recording();
  const unmarked = recording();
  for (const [camera, marker] of [
    [marked, true],
    [unmarked, false],
  ] as const) {
    for (let i = 0; i < 60; i++) {
      camera.video(i % 10 === 0 ? IDR : INTER, i * 45_000, (packet) => ({ ...packet, marker }));
      camera.clock.advance(500);
    }
    camera.pipeline.close('stopped');
  }
  assert.equal(marked.samples.length, 60);
  assert.deepEqual(
    unmarked.samples.map((sample) => sample.wallMs),
    marked.samples.map((sample) => sample.wallMs),
  );
});

test('pipeline: pictures dropped for a lost packet are counted', () => {
  const { video, counters } = recording();
  for (let i = 0; i < 10; i++) video(i === 0 ? IDR : INTER, i * 3600, (packet) => (i === 5 ? undefined : packet));
  const before = counters.framesDiscarded;
  video(Buffer.from('414444', 'hex'), 40_000); // A slice whose first one is missing.
  assert.equal(counters.framesDiscarded, before + 1);
});

test('pipeline: audio that turns out not to be decodable is named', () => {
  const { pipeline } = recording();
  const codeNow = (): string | undefined => pipeline.audioDropped?.code;
  assert.equal(codeNow(), undefined);
  const options = { timestamp: 0, sequenceNumber: 0, ssrc: 2, payloadType: 97 };
  for (const packet of packetizePayloads([aacPayload([Buffer.alloc(30, 1)], [30])], options)) {
    pipeline.rtp(1, packet, 0, packet.length);
  }
  assert.equal(codeNow(), 'aac-config-missing');
});
