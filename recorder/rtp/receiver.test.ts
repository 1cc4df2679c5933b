import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { rtpPacket } from '../../test/support/packetize.ts';
import type { RtpFields } from '../../test/support/packetize.ts';
import type { RtpPacket } from './packet.ts';
import { RtpReceiver, newStatistics } from './receiver.ts';
import type { RtpReceiverOptions } from './receiver.ts';

const SSRC = 0x0102_0304;

function packet(fields: Partial<RtpFields>): Buffer {
  return rtpPacket({
    payloadType: 96,
    marker: false,
    sequenceNumber: 0,
    timestamp: 0,
    ssrc: SSRC,
    payload: Buffer.from([1, 2, 3]),
    ...fields,
  });
}

function receiving(options: Partial<RtpReceiverOptions> = {}) {
  const seen: { sequenceNumber: number; lost: number }[] = [];
  const changes: [number, number][] = [];
  const receiver = new RtpReceiver({
    payloadType: 96,
    clockRate: 90_000,
    reorder: false,
    onPacket: (p: RtpPacket) => seen.push({ sequenceNumber: p.sequenceNumber, lost: p.lost }),
    onSourceChange: (from, to) => changes.push([from, to]),
    ...options,
  });
  return {
    receiver,
    seen,
    changes,
    get order() {
      return seen.map((p) => p.sequenceNumber);
    },
    send: (fields: Partial<RtpFields>, nowMs = 0): void => {
      const bytes = packet(fields);
      receiver.receive(bytes, 0, bytes.length, nowMs);
    },
  };
}

test('RTP: header extension, contributing sources and padding are not payload (RC 0.4.4)', () => {
  const payloads: string[] = [];
  const receiver = new RtpReceiver({
    payloadType: 96,
    clockRate: 90_000,
    reorder: false,
    onPacket: (p) => payloads.push(p.buffer.toString('hex', p.payloadStart, p.payloadEnd)),
  });
  for (const [sequenceNumber, extra] of [
    { extension: { profile: 0xbede, data: Buffer.from([0x10, 0xff, 0, 0]) } },
    { paddingBytes: 4 },
    { csrc: [1, 2, 3], extension: { profile: 0xbede, data: Buffer.alloc(0) }, paddingBytes: 1 },
  ].entries()) {
    const bytes = packet({ sequenceNumber, ...extra });
    receiver.receive(Buffer.concat([Buffer.from('$$$$'), bytes, Buffer.from('$')]), 4, 4 + bytes.length, 0);
  }
  assert.deepEqual(payloads, ['010203', '010203', '010203']);
});

test('RTP: what is no RTP, or of another payload type, is counted and dropped', () => {
  const { receiver, send, seen } = receiving();
  receiver.receive(Buffer.from('80600001', 'hex'), 0, 4, 0);
  receiver.receive(Buffer.alloc(12), 0, 12, 0);
  send({ payloadType: 97 });
  assert.deepEqual(seen, []);
  assert.equal(receiver.statistics.malformed, 2);
  assert.deepEqual([...receiver.statistics.otherPayloadTypes], [[97, 1]]);
});

test('RTP over TCP: a camera that drops packets before the socket is found by its sequence numbers', () => {
  const { receiver, send, seen } = receiving();
  for (const sequenceNumber of [10, 11, 15, 16]) send({ sequenceNumber });
  assert.deepEqual(seen, [
    { sequenceNumber: 10, lost: 0 },
    { sequenceNumber: 11, lost: 0 },
    { sequenceNumber: 15, lost: 3 },
    { sequenceNumber: 16, lost: 0 },
  ]);
  assert.equal(receiver.statistics.lost, 3);
});

test('RTP: the sequence number wraps without loss', () => {
  const { send, seen, receiver } = receiving();
  for (let i = 0; i < 10; i++) send({ sequenceNumber: (65_530 + i) & 0xffff });
  assert.deepEqual(
    seen.map((p) => p.lost),
    Array<number>(10).fill(0),
  );
  assert.equal(receiver.report(0)?.extendedHighestSequence, 65_539);
});

test('RTP over TCP: a packet that comes twice in a row is dropped once, when its bytes are the same', () => {
  const stream = receiving();
  for (const sequenceNumber of [1, 2, 2, 3]) stream.send({ sequenceNumber });
  assert.deepEqual(stream.order, [1, 2, 3]);
  assert.equal(stream.receiver.statistics.late, 1);
  for (const other of [
    { timestamp: 9 },
    { timestamp: 9, payload: Buffer.from([1, 2, 4]) },
    { timestamp: 9, payload: Buffer.from([1, 2, 4, 5]) },
    { timestamp: 9, payload: Buffer.from([0, 7, 4, 5]) },
  ]) {
    stream.send({ sequenceNumber: 3, ...other });
  }
  assert.deepEqual(stream.order, [1, 2, 3, 3, 3, 3, 3]);
  assert.ok(stream.seen.every((p) => p.lost === 0));
});

test('RTP over TCP: numbers that go back, or far ahead, begin a sequence at once and without loss', () => {
  const stream = receiving();
  const numbers = [100, 101, 40_000, 40_001, 7, 8, 6, 7, 8, 9];
  for (const sequenceNumber of numbers) stream.send({ sequenceNumber });
  assert.deepEqual(stream.order, numbers);
  assert.ok(stream.seen.every((p) => p.lost === 0));
  assert.equal(stream.receiver.statistics.restarts, 3);
});

test('RTP over TCP: a camera that never counts, or counts pictures, loses nothing', () => {
  for (const numbers of [Array<number>(30).fill(0), Array.from({ length: 30 }, (_, i) => Math.floor(i / 7))]) {
    const stream = receiving();
    for (const [i, sequenceNumber] of numbers.entries()) stream.send({ sequenceNumber, payload: Buffer.from([9, i]) });
    assert.deepEqual(stream.order, numbers);
    assert.equal(stream.receiver.statistics.lost, 0);
  }
});

test('RTP over UDP: a sequence that starts far ahead continues with its first packet, marked as lost', () => {
  const stream = receiving({ reorder: true });
  for (const sequenceNumber of [100, 101]) stream.send({ sequenceNumber }, 0);
  stream.receiver.poll(50);
  for (const sequenceNumber of [40_000, 40_001]) stream.send({ sequenceNumber }, 60);
  assert.deepEqual(stream.seen.slice(2), [
    { sequenceNumber: 40_000, lost: 1 },
    { sequenceNumber: 40_001, lost: 0 },
  ]);
  assert.equal(stream.receiver.statistics.restarts, 1);
});

test('RTP over UDP: after 64 late packets in a row the sequence restarts there', () => {
  const stream = receiving({ reorder: true });
  stream.send({ sequenceNumber: 1000 }, 0);
  stream.receiver.poll(50);
  for (let i = 0; i < 70; i++) stream.send({ sequenceNumber: 500 + i }, 60);
  assert.deepEqual(stream.order, [1000, 564, 565, 566, 567, 568, 569]);
  assert.equal(stream.seen[1]?.lost, 1);
});

test('RTP over UDP: packets overtaken by the first one that came are waited for, for 50 ms', () => {
  const stream = receiving({ reorder: true });
  for (const sequenceNumber of [3, 1, 4, 0, 2]) stream.send({ sequenceNumber: (65_534 + sequenceNumber) & 0xffff }, 10);
  stream.receiver.poll(59);
  assert.deepEqual(stream.order, []);
  stream.receiver.poll(60);
  assert.deepEqual(stream.order, [65_534, 65_535, 0, 1, 2]);
  assert.ok(stream.seen.every((p) => p.lost === 0));
  assert.equal(stream.receiver.report(60)?.cumulativeLost, 0);
  stream.send({ sequenceNumber: 65_533 }, 61);
  assert.equal(stream.receiver.statistics.late, 1, 'too late');
});

test('RTP: packets of another type inside the sequence are neither handed out nor lost', () => {
  for (const reorder of [false, true]) {
    const stream = receiving({ reorder });
    for (let i = 0; i < 9; i++) {
      stream.send({ sequenceNumber: 10 + i, payloadType: i % 3 === 1 ? 107 : 96 }, i * 30);
    }
    stream.receiver.flush();
    assert.deepEqual(stream.order, [10, 12, 13, 15, 16, 18]);
    assert.ok(stream.seen.every((p) => p.lost === 0));
    assert.deepEqual([...stream.receiver.statistics.otherPayloadTypes], [[107, 3]]);
  }
});

test('RTP: the stream continues in another type when it is told to', () => {
  const stream = receiving({ onOtherType: (payloadType) => payloadType === 98 });
  for (const [sequenceNumber, payloadType] of [96, 97, 98, 98, 96].entries())
    stream.send({ sequenceNumber, payloadType });
  assert.deepEqual(stream.order, [0, 2, 3]);
  assert.equal(stream.receiver.payloadType, 98);
});

test("live555 older than 2017.06.04: another session's packets in our connection are dropped (retina#17)", () => {
  const stream = receiving();
  for (let i = 0; i < 200; i++) {
    stream.send({ sequenceNumber: i }, i * 10);
    stream.send({ sequenceNumber: 7000 + i, ssrc: 0xbad }, i * 10);
  }
  assert.equal(stream.seen.length, 200);
  assert.ok(stream.seen.every((p) => p.lost === 0));
  assert.equal(stream.receiver.statistics.foreign, 200);
  assert.deepEqual(stream.changes, []);
});

test('RTP: the source named by the Transport header wins over the one that came first', () => {
  const stream = receiving({ ssrc: SSRC });
  stream.send({ ssrc: 0xbad, sequenceNumber: 9 });
  stream.send({ sequenceNumber: 500 });
  stream.send({ ssrc: 0xbad, sequenceNumber: 10 });
  stream.send({ sequenceNumber: 501 });
  assert.deepEqual(stream.seen, [
    { sequenceNumber: 9, lost: 0 },
    { sequenceNumber: 500, lost: 0 },
    { sequenceNumber: 501, lost: 0 },
  ]);
  assert.deepEqual(stream.changes, [[0xbad, SSRC]]);
});

test('RTP: a source named by the Transport header that never shows up does not matter', () => {
  const stream = receiving({ ssrc: 0xdead });
  for (const sequenceNumber of [1, 2, 3]) stream.send({ sequenceNumber });
  assert.deepEqual(stream.order, [1, 2, 3]);
});

test('RTP: a source that comes alone for four packets takes the place of ours, and none of them is lost', () => {
  for (const reorder of [false, true]) {
    const stream = receiving({ reorder });
    for (let i = 0; i < 4; i++) stream.send({ sequenceNumber: i }, i * 40);
    for (let i = 0; i < 6; i++) stream.send({ sequenceNumber: 300 + i, ssrc: 0xb }, 160 + i * 40);
    stream.receiver.flush();
    assert.deepEqual(stream.changes, [[SSRC, 0xb]]);
    assert.deepEqual(stream.order, [0, 1, 2, 3, 300, 301, 302, 303, 304, 305]);
    // Over UDP, the end of the first one may have been lost.
    assert.deepEqual(
      stream.seen.map((p) => p.lost),
      [0, 0, 0, 0, reorder ? 1 : 0, 0, 0, 0, 0, 0],
    );
    assert.equal(stream.receiver.ssrc, 0xb);
    assert.equal(stream.receiver.statistics.foreign, 0);
  }
});

test('RTP: a source behind the goodbye of ours is taken with its first packet', () => {
  const stream = receiving();
  stream.send({ sequenceNumber: 1 });
  stream.receiver.noteBye(0xbad);
  stream.send({ sequenceNumber: 50, ssrc: 0xb });
  assert.deepEqual(stream.order, [1], 'another’s goodbye is none of ours');
  stream.send({ sequenceNumber: 2 });
  stream.receiver.noteBye(SSRC);
  stream.send({ sequenceNumber: 51, ssrc: 0xb });
  assert.deepEqual(stream.order, [1, 2, 51]);
  assert.deepEqual(stream.changes, [[SSRC, 0xb]]);
});

test('RTP: two sources mixed in bursts are told apart when the first one comes back', () => {
  const stream = receiving();
  for (let burst = 0; burst < 50; burst++) {
    for (let i = 0; i < 10; i++) stream.send({ sequenceNumber: burst * 10 + i }, burst * 40);
    for (let i = 0; i < 10; i++) stream.send({ sequenceNumber: 7000 + burst * 10 + i, ssrc: 0xbad }, burst * 40 + 20);
  }
  assert.deepEqual(stream.changes, [
    [SSRC, 0xbad],
    [0xbad, SSRC],
  ]);
  assert.equal(stream.order.filter((number) => number < 7000).length, 500, 'nothing of ours is lost');
  // When our source ends, the other one is used after a second.
  for (let i = 0; i < 40; i++) stream.send({ sequenceNumber: 300 + i, ssrc: 0xbad }, 3000 + i * 40);
  assert.equal(stream.receiver.ssrc, 0xbad);
});

test('RTP over UDP: swapped, doubled and lost packets', () => {
  const stream = receiving({ reorder: true });
  stream.send({ sequenceNumber: 0 }, -50);
  for (const sequenceNumber of [1, 3, 3, 2, 2, 4, 4, 6, 6]) stream.send({ sequenceNumber }, 0);
  assert.deepEqual(stream.order, [0, 1, 2, 3, 4]);
  stream.send({ sequenceNumber: 7 }, 50);
  stream.receiver.poll(99);
  assert.equal(stream.seen.length, 5);
  stream.receiver.poll(100); // 6 has waited 100 ms for 5
  assert.deepEqual(stream.seen.slice(5), [
    { sequenceNumber: 6, lost: 1 },
    { sequenceNumber: 7, lost: 0 },
  ]);
  assert.equal(stream.receiver.statistics.late, 4, 'doubled behind their turn, and while they waited for it');
});

test('RTP over UDP: whichever packet waits, it is passed on 100 ms after it came', () => {
  for (let ahead = 1; ahead < 64; ahead++) {
    for (let first = 0; first < 64; first++) {
      const stream = receiving({ reorder: true });
      stream.send({ sequenceNumber: first }, 0);
      stream.receiver.poll(50);
      stream.send({ sequenceNumber: first + 1 + ahead }, 60);
      stream.receiver.poll(159);
      assert.equal(stream.seen.length, 1);
      stream.receiver.poll(160);
      assert.deepEqual(stream.seen[1], { sequenceNumber: first + 1 + ahead, lost: ahead });
    }
  }
});

test('RTP over UDP: a packet 64 or more ahead closes the holes before it', () => {
  const stream = receiving({ reorder: true });
  stream.send({ sequenceNumber: 1 }, -50);
  for (const sequenceNumber of [3, 67]) stream.send({ sequenceNumber }, 0);
  assert.deepEqual(stream.seen, [
    { sequenceNumber: 1, lost: 0 },
    { sequenceNumber: 3, lost: 1 },
  ]);
  stream.send({ sequenceNumber: 200 }, 1);
  assert.deepEqual(stream.seen.slice(2), [
    { sequenceNumber: 67, lost: 63 },
    { sequenceNumber: 200, lost: 132 },
  ]);
  stream.send({ sequenceNumber: 202 }, 2);
  stream.receiver.flush();
  assert.deepEqual(stream.seen.at(-1), { sequenceNumber: 202, lost: 1 });
});

test('RTP over UDP: any order within the window comes out sorted, and what is lost is counted', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 65_535 }),
      fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), fc.boolean()), { minLength: 2, maxLength: 200 }),
      (first, moves) => {
        const stream = receiving({ reorder: true });
        // Each packet is delayed by up to 20 positions; the first and the last are in time and never lost.
        const sent = moves
          .map(([delay, lost], i) => ({
            i,
            at: i + (i === 0 ? 0 : delay),
            lost: lost && i > 0 && i < moves.length - 1,
          }))
          .filter((p) => !p.lost)
          .sort((a, b) => a.at - b.at || a.i - b.i);
        for (const { i } of sent) stream.send({ sequenceNumber: (first + i) & 0xffff }, 0);
        stream.receiver.flush();
        const inOrder = sent.map((p) => p.i).sort((a, b) => a - b);
        assert.deepEqual(
          stream.order,
          inOrder.map((i) => (first + i) & 0xffff),
        );
        assert.equal(stream.receiver.statistics.lost, moves.length - sent.length);
      },
    ),
  );
});

test('RTP: a receiver report counts the interval, and names the last sender report', () => {
  const { receiver, send } = receiving({ reorder: true });
  assert.equal(receiver.report(0), undefined);
  for (let i = 0; i < 8; i++) send({ sequenceNumber: 65_534 + i, timestamp: i * 900 }, i * 10);
  receiver.noteSenderReport(
    { ssrc: 1, ntpSeconds: 0xe000_1234, ntpFraction: 0x5678_9abc, rtpTimestamp: 0, packetCount: 0, octetCount: 0 },
    1000,
  );
  assert.deepEqual(receiver.report(2000), {
    ssrc: SSRC,
    fractionLost: 0,
    cumulativeLost: 0,
    extendedHighestSequence: 65_541,
    jitter: 0,
    lastSenderReport: 0x1234_5678,
    delaySinceLastSenderReport: 65_536,
  });
  for (let i = 10; i < 16; i++) send({ sequenceNumber: 65_534 + i, timestamp: i * 900 }, i * 10 + 3);
  receiver.poll(1000);
  const report = receiver.report(3000);
  assert.equal(report?.cumulativeLost, 2);
  assert.equal(report?.fractionLost, 64);
  assert.ok(report.jitter > 0);
  assert.equal(receiver.report(3000)?.fractionLost, 0);
});

test('RTP: a receiver counts on where one before it has counted', () => {
  const statistics = newStatistics();
  for (let connection = 1; connection <= 2; connection++) {
    const { receiver, send } = receiving({ statistics });
    receiver.receive(Buffer.from('garbage'), 0, 7, 0);
    send({ sequenceNumber: 1 });
    send({ sequenceNumber: 3 });
    send({ sequenceNumber: 3 });
    send({ sequenceNumber: 4, ssrc: 9 });
    send({ sequenceNumber: 4, payloadType: 107 });
    send({ sequenceNumber: 1 });
    const { packets, lost, late, foreign, malformed, restarts, otherPayloadTypes } = statistics;
    const counted = [packets, lost, late, foreign, malformed, restarts, otherPayloadTypes.get(107)];
    assert.deepEqual(
      counted,
      [4, 1, 1, 1, 1, 1, 1].map((count) => count * connection),
    );
  }
});

test('RTP: the last packet is reported, of whatever source and type', () => {
  const { receiver, send } = receiving();
  receiver.receive(Buffer.from('garbage'), 0, 7, 0);
  assert.equal(receiver.last, undefined);
  send({ sequenceNumber: 7 });
  assert.deepEqual(receiver.last, { ssrc: SSRC, sequenceNumber: 7 });
  send({ sequenceNumber: 8, ssrc: 9 });
  assert.deepEqual(receiver.last, { ssrc: 9, sequenceNumber: 8 });
  send({ sequenceNumber: 9, payloadType: 107 });
  assert.deepEqual(receiver.last, { ssrc: SSRC, sequenceNumber: 9 });
});
