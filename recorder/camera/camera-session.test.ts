import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { packetizeH264 } from '../../test/support/packetize.ts';
import { SlabPool } from '../codec/slab.ts';
import { parseSdp } from '../rtsp/sdp.ts';
import { CameraSession, type OfferedStreams } from './camera-session.ts';
import { CameraError } from './error.ts';
import type { CameraObserver } from './observer.ts';
import { newCounters } from '../contract/camera-status.ts';

const sdpOf = (...media: string[]): ReturnType<typeof parseSdp> => parseSdp(`v=0\r\n${media.join('')}`);
const VIDEO = `m=video 0 RTP/AVP 96\r
a=rtpmap:96 H264/90000\r
a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z00AKpWoHgCJ+WbgICAgQA==,aO48gA==\r
a=control:video\r
`;
const EVENTS = 'm=application 0 RTP/AVP 107\r\na=rtpmap:107 vnd.onvif.metadata/90000\r\na=control:events\r\n';
const STRANGE_AUDIO = 'm=audio 0 RTP/AVP 98\r\na=rtpmap:98 MAGIC/8000\r\na=control:audio\r\n';
const NOTHING: OfferedStreams = { audioDropped: undefined, notRecorded: [] };
const IDR = Buffer.from('6588841111', 'hex');

function sessionOf(clock = new VirtualClock(), offered = NOTHING, calls: string[] = []) {
  const session = new CameraSession({
    clock,
    pipeline: {
      clock,
      pool: new SlabPool(),
      counters: newCounters(),
      memory: { reorderDepth: 0 },
      clockWrong: () => {},
      sink: {
        begin: () => calls.push('begin'),
        change: () => calls.push('change'),
        sample: () => calls.push('sample'),
        end: (reason) => calls.push(`end ${reason}`),
      },
    },
    offered,
    connected: () => calls.push('connected'),
  });
  const picture = (sequenceNumber: number): void => {
    const options = { timestamp: sequenceNumber * 3600, sequenceNumber, ssrc: 1, payloadType: 96 };
    for (const packet of packetizeH264([IDR], options)) session.rtp(0, packet, 0, packet.length, clock.monotonicMs());
  };
  return { session, clock, picture, calls };
}

test('what a camera offered counts until its next connection knows better', () => {
  const { session: first } = sessionOf();
  assert.deepEqual(first.select(sdpOf(VIDEO, EVENTS, STRANGE_AUDIO)), [0]);
  const offered = first.offered;
  assert.deepEqual(
    offered.notRecorded.map(({ kind }) => kind),
    ['application', 'audio'],
  );
  assert.equal(offered.audioDropped?.code, 'codec-unsupported');
  first.close('camera-lost');
  assert.deepEqual(first.offered, offered);
  const { session: second } = sessionOf(undefined, first.offered);
  assert.deepEqual(second.offered, offered);
  assert.throws(() => second.select(sdpOf(EVENTS)), { code: 'no-video' });
  assert.deepEqual(
    second.offered.notRecorded.map(({ kind }) => kind),
    ['application'],
    'also of a camera of which nothing can be recorded',
  );
});

test('another choice of streams ends the run of the last one; after the end nothing is taken', () => {
  const { session, picture, clock, calls } = sessionOf();
  session.connected();
  session.select(sdpOf(VIDEO));
  const before = session.pictures;
  for (let i = 0; i < 30; i++) {
    picture(i);
    clock.advance(40);
  }
  assert.ok(calls.includes('sample'));
  session.select(sdpOf(VIDEO));
  assert.equal(calls.at(-1), 'end camera-lost');
  assert.notEqual(session.pictures, before);
  assert.equal(session.pictures?.lastPictureMs, undefined);
  session.close('stopped');
  const { length } = calls;
  picture(100);
  assert.equal(calls.length, length);
  assert.equal(session.pictures, undefined);
});

test('an observer that comes late gets the messages so far, and each of them once', () => {
  const { session } = sessionOf();
  const got: string[] = [];
  const observer = (name: string): CameraObserver => ({
    said: ({ text }) => got.push(`${name} ${text}`),
    selected: (_, chosen) => got.push(`${name} [${chosen.join()}]`),
    rtp: () => got.push(`${name} rtp`),
    rtcp: () => got.push(`${name} rtcp`),
    begin() {},
    change() {},
    sample() {},
    end() {},
  });
  const [early, late] = [observer('early'), observer('late')];
  session.observe([early]);
  session.said({ atMs: 0, from: 'camera', text: 'hello' });
  session.select(sdpOf(VIDEO));
  session.observe([early, late]);
  session.observe([late]);
  session.rtp(0, Buffer.alloc(1), 0, 1, 0);
  assert.deepEqual(got, ['early hello', 'early [0]', 'late hello', 'late [0]', 'late rtp']);
});

test('a connection says after 5 s what it waits for, and one that recorded after 15 s', () => {
  const { session, clock, picture } = sessionOf();
  const codeOf = (isRecording: boolean): string | undefined => session.stalled(isRecording)?.code;
  clock.advance(60_000);
  assert.equal(codeOf(false), undefined, 'not connected yet');
  session.connected();
  clock.advance(4_999);
  assert.equal(codeOf(false), undefined);
  clock.advance(1);
  assert.equal(codeOf(false), 'no-answer');
  session.select(sdpOf(VIDEO));
  session.playing({ transport: 'udp', streams: [] });
  assert.equal(session.transport, 'udp');
  clock.advance(4_999);
  assert.equal(codeOf(false), undefined, 'playing has just begun');
  clock.advance(1);
  assert.equal(codeOf(false), 'stream-silent');
  for (let i = 0; i < 30; i++) {
    picture(i);
    clock.advance(40);
  }
  session.pictures?.tick(clock.monotonicMs());
  clock.advance(14_900);
  assert.equal(codeOf(true), undefined);
  clock.advance(100);
  assert.equal(codeOf(true), 'stream-silent');
  session.close('camera-lost');
  assert.deepEqual([codeOf(false), session.transport], [undefined, undefined]);
});

test('an error that ends the connection is the reason of its signal; the first one counts', () => {
  const { session } = sessionOf();
  const error = new CameraError('no-key-frame', 'no key frame');
  session.fail(error);
  session.fail(new CameraError('protocol', 'later'));
  assert.equal(session.failed.reason, error);
});
