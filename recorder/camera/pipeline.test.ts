import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import type { Reason } from '../../base/reason.ts';
import { aacPayload, packetizeH264, packetizePayloads, rtpPacket } from '../../test/support/packetize.ts';
import type { PacketHook } from '../../test/support/packetize.ts';
import { SlabPool } from '../codec/slab.ts';
import type { Sample } from '../mp4/sample.ts';
import { parseSdp, type Media } from '../rtsp/sdp.ts';
import type { Carrier } from '../contract/packet-place.ts';
import { Pipeline } from './pipeline.ts';
import type { Run } from '../contract/sink.ts';
import { newCounters } from '../contract/camera-status.ts';

const FIELDS = { ssrc: 1, payloadType: 96, marker: false };
const rangeOf = (packet: Buffer): [Buffer, number, number] => [packet, 0, packet.length];

const SDP = `v=0
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z00AKpWoHgCJ+WbgICAgQA==,aO48gA==
a=control:video
m=audio 0 RTP/AVP 97
a=rtpmap:97 MPEG4-GENERIC/16000/1
a=control:audio
`.replaceAll('\n', '\r\n');
const CHANNEL_2: Carrier = { rtspChannel: 2 };
const IDR = Buffer.from('6588841111', 'hex');
const INTER = Buffer.from('419a222222', 'hex');

/** `counters`: those of the camera's connections so far. */
function recording(counters = newCounters()) {
  const clock = new VirtualClock();
  const samples: Sample[] = [];
  const runs: string[] = [];
  const sink = {
    begin: ({ runId }: Run) => void runs.push(runId),
    change() {},
    sample: (sample: Sample) => void samples.push(sample),
    end() {},
  };
  const pipeline = new Pipeline(parseSdp(SDP), {
    clock,
    pool: new SlabPool(),
    sink,
    counters,
    memory: { reorderDepth: 0 },
    clockWrong: (errorMs) => assert.fail(`${errorMs}`),
  });
  let sequenceNumber = 0;
  return {
    clock,
    pipeline,
    samples,
    runs,
    counters,
    /** The camera agrees to play its video, which comes by `carrier`. */
    playing: (carrier: Carrier | undefined): void => {
      const [media] = parseSdp(SDP).media;
      const of = { streamIndex: 0, media: media as Media, ssrc: undefined };
      pipeline.playing({ transport: 'tcp', streams: [{ ...of, rtpTime: undefined, carrier }] });
    },
    video: (nal: Buffer, timestamp: number, onPacket?: PacketHook): void => {
      const options = { timestamp, sequenceNumber, ssrc: 1, payloadType: 96, ...(onPacket ? { onPacket } : {}) };
      sequenceNumber++;
      for (const packet of packetizeH264([nal], options))
        pipeline.rtp(0, packet, 0, packet.length, clock.monotonicMs());
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
  video(Buffer.from('414444', 'hex'), 40_000); // a slice whose first one is missing
  assert.equal(counters.framesDiscarded, before + 1);
});

test('pipeline: audio that turns out not to be decodable is named', () => {
  const { pipeline, clock } = recording();
  const codeNow = (): string | undefined => pipeline.audioDropped?.code;
  assert.equal(codeNow(), undefined);
  const options = { timestamp: 0, sequenceNumber: 0, ssrc: 2, payloadType: 97 };
  for (const packet of packetizePayloads([aacPayload([Buffer.alloc(30, 1)], [30])], options)) {
    pipeline.rtp(1, packet, 0, packet.length, clock.monotonicMs());
  }
  assert.equal(codeNow(), 'aac-config-missing');
});

test('pipeline: what arrives in place of pictures is reported, with numbers', () => {
  const { pipeline, video, clock } = recording();
  pipeline.playing({ transport: 'tcp', streams: [] });
  assert.equal(pipeline.explainSilence(10_000).code, 'stream-silent');
  for (let i = 0; i < 30; i++) {
    video(i === 0 ? IDR : INTER, i * 3600);
    clock.advance(40);
  }
  pipeline.tick(clock.monotonicMs());
  const lastPictureMs = pipeline.lastPictureMs as number;
  assert.ok(lastPictureMs > 0);
  assert.match(pipeline.explainSilence(10_000).message, /sent no video for 10 s/, 'what came before does not count');
  for (let i = 30; i < 50; i++) {
    video(INTER, i * 3600, (packet) => ({ ...packet, payloadType: 97 }));
    clock.advance(40);
  }
  pipeline.tick(clock.monotonicMs());
  assert.equal(pipeline.lastPictureMs, lastPictureMs);
  const { code, message } = pipeline.explainSilence(12_000);
  assert.equal(code, 'not-decodable');
  assert.match(message, /for 12 s: 20 of payload type 97, expected 96$/);
});

test('pipeline: a goodbye of the video holds until its next packet', () => {
  const { pipeline, video, clock } = recording();
  const bye = Buffer.from('81cb000100000001', 'hex');
  video(IDR, 0);
  assert.equal(pipeline.byeMs, undefined);
  clock.advance(40);
  pipeline.rtcp(0, bye, 0, bye.length);
  assert.equal(pipeline.byeMs, clock.monotonicMs());
  video(INTER, 3600);
  assert.equal(pipeline.byeMs, undefined);
  pipeline.rtcp(1, bye, 0, bye.length);
  assert.equal(pipeline.byeMs, undefined, 'the sound’s goodbye is none of the video');
});

/** Pictures, and frames of 64 ms of sound whose stamps advance by `tick` from one to the next. */
function soundPlayer({ pipeline, video, clock }: ReturnType<typeof recording>) {
  const frame = Buffer.from('21'.repeat(20), 'hex');
  const config = Buffer.concat([Buffer.from([0xff, 0xf1, 0x60, 0x40, 0x03, 0x7f, 0xfc]), frame]); // ADTS, 16 kHz, mono
  let sequenceNumber = 0;
  return (seconds: number, tick: number): void => {
    for (let i = 0; i < seconds * 16; i++) {
      if (i % 2 === 0) video(i % 32 === 0 ? IDR : INTER, Math.round(clock.monotonicMs() * 90) >>> 0);
      const timestamp = (sequenceNumber * tick) >>> 0;
      const options = { timestamp, sequenceNumber: sequenceNumber++ & 0xffff, ssrc: 2, payloadType: 97 };
      for (const packet of packetizePayloads([config], options))
        pipeline.rtp(1, packet, 0, packet.length, clock.monotonicMs());
      clock.advance(64);
      pipeline.tick(clock.monotonicMs());
    }
  };
}

test('pipeline: sound of which more than a twentieth has no place in time says so, until it has', () => {
  const camera = recording();
  const play = soundPlayer(camera);
  const reasonNow = (): Reason | undefined => camera.pipeline.audioDropped;
  play(30, 1024);
  assert.equal(reasonNow(), undefined);
  play(30, 0);
  assert.equal(reasonNow()?.code, 'audio-clock');
  assert.match(reasonNow()?.message ?? '', /^\d+ % of the sound is left out/);
});

test('pipeline: sound whose stamps count at another rate than the stated one has its right time, and the video its own', () => {
  for (const tick of [3072, 512]) {
    const camera = recording();
    const play = soundPlayer(camera);
    play(25, tick);
    const before = camera.samples.length;
    play(10, tick);
    const later = camera.samples.slice(before);
    const sound = later.filter(({ kind }) => kind === 'audio');
    assert.ok(sound.length >= 159, `${sound.length} of 160 frames, ${tick} ticks each`);
    assert.equal(camera.pipeline.audioDropped, undefined);
    const seconds = ({ dts, kind }: Sample): number => dts / (kind === 'audio' ? 16_000 : 90_000);
    const [first, last] = [sound[0] as Sample, sound.at(-1) as Sample];
    assert.ok(Math.abs(seconds(last) - seconds(first) - (sound.length - 1) * 0.064) < 0.02, 'end to end');
    for (const { wallMs, dts } of [first, last]) {
      const picture = later.find((sample) => sample.kind === 'video' && Math.abs(sample.wallMs - wallMs) < 70);
      assert.ok(picture && Math.abs(seconds(picture) - dts / 16_000) < 0.2, 'beside its picture');
    }
    assert.equal(camera.runs.length, 1, 'the sound ends no run of the video');
  }
});

/** The second of three fragments. */
const CUT = Buffer.from('7c01aabb', 'hex');

test('pipeline: a fault names the packet in which it was noticed, and what carried it', () => {
  const { playing, video, counters, clock, pipeline } = recording();
  playing(CHANNEL_2);
  video(IDR, 0);
  assert.equal(counters.streams.video.lastFault, undefined);
  clock.advance(40);
  pipeline.rtp(
    0,
    ...rangeOf(rtpPacket({ ...FIELDS, sequenceNumber: 1, timestamp: 3600, payload: CUT })),
    clock.monotonicMs(),
  );
  assert.deepEqual([...counters.streams.video.faults.counts], [['fragment-without-start', 1]]);
  assert.deepEqual(counters.streams.video.lastFault, {
    fault: 'fragment-without-start',
    wallMs: clock.wallMs(),
    packet: { ssrc: 1, sequenceNumber: 1, carrier: CHANNEL_2 },
  });
  assert.equal(counters.streams.audio.faults.total, 0);
});

test('pipeline: a camera that reconnects keeps its counts, and what came before explains nothing', () => {
  const counters = newCounters();
  const garbage = Buffer.from('garbage');
  for (let connection = 1; connection <= 2; connection++) {
    const { playing, video, pipeline, clock } = recording(counters);
    assert.equal(pipeline.lastPacket, undefined);
    assert.equal(pipeline.explainSilence(10_000).code, 'stream-silent');
    playing(CHANNEL_2);
    pipeline.rtp(0, garbage, 0, garbage.length, clock.monotonicMs());
    video(IDR, 0);
    pipeline.rtp(
      0,
      ...rangeOf(rtpPacket({ ...FIELDS, sequenceNumber: 1, timestamp: 9, payload: CUT })),
      clock.monotonicMs(),
    );
    const { rtp, faults } = counters.streams.video;
    assert.deepEqual([rtp.malformed, rtp.packets, faults.total], [connection, connection * 2, connection]);
    assert.match(pipeline.explainSilence(10_000).message, / 1 that are no RTP, on RTSP channel 2/);
    assert.deepEqual(pipeline.lastPacket, { ssrc: 1, sequenceNumber: 1, carrier: CHANNEL_2 });
    pipeline.close('camera-lost');
  }
});
