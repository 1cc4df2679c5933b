import { test } from 'node:test';
import assert from 'node:assert/strict';
import { withReplayExtension } from '../../test/camera/memory-replay.ts';
import { rtpPacket } from '../../test/support/packetize.ts';
import { RtpPacket } from './packet.ts';
import { parseReplayExtension } from './replay-extension.ts';

const plain = (): Buffer =>
  rtpPacket({
    payloadType: 96,
    sequenceNumber: 1,
    timestamp: 2,
    ssrc: 3,
    marker: true,
    payload: Buffer.from([1, 2, 3]),
  });

function parse(bytes: Buffer): ReturnType<typeof parseReplayExtension> {
  const packet = new RtpPacket();
  assert.ok(packet.parse(bytes, 0, bytes.length));
  return parseReplayExtension(packet);
}

const MOMENT = Date.UTC(2026, 10, 25, 12, 0, 0) + 437.5;

test('the extension has the time of an access unit, and its bits from the highest on', () => {
  for (const [bits, expected] of [
    [0x80, { cleanPoint: true }],
    [0x40, { endsSection: true }],
    [0x20, { discontinuity: true }],
    [0x10, { terminal: true }],
    [0x0f, {}],
  ] as const) {
    const stamp = parse(withReplayExtension(plain(), { cameraMs: MOMENT, bits }));
    const none = { cleanPoint: false, endsSection: false, discontinuity: false, terminal: false };
    assert.ok(stamp && Math.abs(stamp.cameraMs - MOMENT) < 0.001);
    assert.deepEqual({ ...stamp, cameraMs: 0 }, { cameraMs: 0, ...none, ...expected });
  }
});

test('times from February 2036 on, when the seconds of NTP begin again', () => {
  const moment = Date.UTC(2036, 1, 8, 12);
  const stamped = withReplayExtension(plain(), { cameraMs: moment, bits: 0 });
  stamped.writeUInt32BE(Math.floor(moment / 1000 + 2_208_988_800) % 2 ** 32, 16);
  assert.equal(parse(stamped)?.cameraMs, moment);
});

test('a packet without it, with another one, one that is too short, and one without a time have none', () => {
  assert.equal(parse(plain()), undefined);
  const other = withReplayExtension(plain(), { cameraMs: MOMENT, bits: 0 });
  other.writeUInt16BE(0xbede, 12);
  assert.equal(parse(other), undefined);
  const short = withReplayExtension(plain(), { cameraMs: MOMENT, bits: 0 });
  short.writeUInt16BE(2, 14);
  assert.equal(parse(short), undefined);
  const untimed = withReplayExtension(plain(), { cameraMs: MOMENT, bits: 0 });
  untimed.fill(0, 16, 24);
  assert.equal(parse(untimed), undefined);
});

test('a JPEG extension may follow it', () => {
  const stamped = withReplayExtension(plain(), { cameraMs: MOMENT, bits: 0x80 });
  const both = Buffer.concat([stamped.subarray(0, 28), Buffer.from([0xff, 0xd8, 0, 0]), stamped.subarray(28)]);
  both.writeUInt16BE(4, 14);
  assert.equal(parse(both)?.cleanPoint, true);
});
