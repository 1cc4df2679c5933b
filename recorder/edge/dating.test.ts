import { test } from 'node:test';
import assert from 'node:assert/strict';
import { withReplayExtension } from '../../test/camera/memory-replay.ts';
import { rtpPacket } from '../../test/support/packetize.ts';
import { RtpPacket } from '../rtp/packet.ts';
import { Dating } from './dating.ts';

const START = Date.UTC(2026, 10, 25, 12);

/** A packet with this RTP timestamp, and the extension if it has a time. */
function packet(timestamp: number, cameraMs?: number, bits = 0): RtpPacket {
  const payload = Buffer.from([1, 2, 3]);
  const plain = rtpPacket({ payloadType: 96, sequenceNumber: 1, timestamp, ssrc: 3, marker: true, payload });
  const bytes = cameraMs === undefined ? plain : withReplayExtension(plain, { cameraMs, bits });
  const view = new RtpPacket();
  assert.ok(view.parse(bytes, 0, bytes.length));
  return view;
}

/** Milliseconds after `START`, and where that is from. */
function dated(dating: Dating, timestamp: number): [number, string] | undefined {
  const found = dating.date({ timestamp: timestamp >>> 0, randomAccess: false });
  return found && [Math.round(found.cameraMs - START), found.dated];
}

test('a unit without an extension is dated from others, over the end of the RTP timestamps', () => {
  const dating = new Dating(90_000);
  dating.note(packet(0xffff_ff00, START));
  dating.note(packet((0xffff_ff00 + 3_600) >>> 0));
  assert.deepEqual(dated(dating, 0xffff_ff00), [0, 'unit']);
  assert.deepEqual(dated(dating, 0xffff_ff00 + 3_600), [40, 'stream']);
});

test('a packet with the extension of the next unit does not date the one before', () => {
  const dating = new Dating(90_000);
  dating.note(packet(0, START));
  dating.note(packet(3_600, START + 5_000));
  assert.deepEqual(dated(dating, 0), [0, 'unit']);
  assert.deepEqual(dated(dating, 3_600), [5_000, 'unit']);
});

test('without any extension the answer to PLAY counts; without that nothing', () => {
  const silent = new Dating(90_000);
  silent.note(packet(1_000));
  assert.equal(dated(silent, 1_000), undefined);
  const stated = new Dating(90_000);
  stated.startsAt(START, undefined);
  stated.note(packet(1_000));
  assert.deepEqual(dated(stated, 91_000), [1_000, 'range']);
  const named = new Dating(90_000);
  named.startsAt(START, 10_000);
  named.note(packet(1_000));
  assert.deepEqual(dated(named, 1_000), [-100, 'range']);
});

test('a unit too far from every stamp has no time', () => {
  const dating = new Dating(90_000);
  dating.note(packet(0, START));
  assert.equal(dated(dating, 90_000 * 3_600), undefined);
});

test('times that do not follow the RTP timestamps are a discontinuity', () => {
  const dating = new Dating(90_000);
  const discontinuity = (timestamp: number, ms: number): boolean | undefined => {
    dating.note(packet(timestamp, START + ms));
    return dating.date({ timestamp, randomAccess: false })?.discontinuity;
  };
  assert.deepEqual(
    [discontinuity(0, 0), discontinuity(3_600, 40), discontinuity(7_200, -37_000), discontinuity(10_800, -36_960)],
    [false, false, true, false],
  );
});
