import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StreamObserver } from './stream-observer.ts';
import type { StreamFigures } from './stream-observer.ts';

interface Sent {
  readonly atMs: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly marker?: boolean;
  readonly ssrc?: number;
  readonly payloadType?: number;
}

function observed(packets: readonly Sent[], clockRate = 90_000): StreamFigures {
  const observer = new StreamObserver(clockRate);
  for (const { atMs, sequence, timestamp, marker = false, ssrc = 1, payloadType = 96 } of packets) {
    const packet = Buffer.alloc(112);
    packet[0] = 0x80;
    packet[1] = payloadType | (marker ? 0x80 : 0);
    packet.writeUInt16BE(sequence & 0xffff, 2);
    packet.writeUInt32BE(timestamp >>> 0, 4);
    packet.writeUInt32BE(ssrc, 8);
    observer.push(packet, 0, packet.length, atMs);
  }
  return observer.figures();
}

/** `count` pictures of two packets every 40 ms, modified by `change`. */
function pictures(
  count: number,
  change: (packet: Sent, index: number) => Sent | undefined = (packet) => packet,
): Sent[] {
  return Array.from({ length: 2 * count }, (_, i): Sent | undefined =>
    change(
      {
        atMs: 1000 + 40 * (i >> 1) + (i & 1) * 3,
        sequence: 65_500 + i,
        timestamp: 4_294_900_000 + 3600 * (i >> 1),
        marker: (i & 1) === 1,
      },
      i,
    ),
  ).filter((packet) => packet !== undefined);
}

test('a good camera: pictures, rate and clock, over a wrap of sequence and stamps, and nothing else', () => {
  const seen = observed(pictures(500));
  assert.equal(seen.stamps, 500);
  assert.equal(seen.rate?.toFixed(1), '25.0');
  assert.ok(Math.abs((seen.clockRatio ?? 0) - 1) < 1e-9, `clock ratio ${seen.clockRatio}`);
  assert.deepEqual(
    [seen.lost, seen.duplicates, seen.reordered, seen.restarts, seen.jumps, seen.backwards, seen.sourceChanges],
    [0, 0, 0, 0, 0, 0, 0],
  );
  assert.equal(seen.marker, 'last-packet');
  assert.deepEqual(seen.delayMs, { median: 0, most: 0, worst: 0 });
});

test('packets that are lost, doubled and late are told apart', () => {
  const sent = pictures(100, (packet, i) => (i === 50 || i === 51 ? undefined : packet));
  const doubled = sent[20] as Sent;
  sent.splice(21, 0, doubled);
  const late = sent.splice(120, 1)[0] as Sent;
  sent.splice(123, 0, late);
  const seen = observed(sent);
  assert.deepEqual([seen.lost, seen.duplicates, seen.reordered, seen.restarts], [2, 1, 1, 0]);
});

test('a sequence that begins again is one restart, and no loss', () => {
  const seen = observed(pictures(100, (packet, i) => ({ ...packet, sequence: i < 100 ? 30_000 + i : i - 100 })));
  assert.deepEqual([seen.restarts, seen.lost], [1, 0]);
});

test('sources and payload types are counted, and their changes', () => {
  const seen = observed(
    pictures(100, (packet, i) => ({ ...packet, ssrc: i < 100 ? 7 : 8, payloadType: i < 150 ? 96 : 97 })),
  );
  assert.deepEqual([...seen.sources], [[7, 100], [8, 100]]); // prettier-ignore
  assert.deepEqual([...seen.payloadTypes], [[96, 150], [97, 50]]); // prettier-ignore
  assert.equal(seen.sourceChanges, 1);
});

test('the clock is measured between the least delayed pictures, whatever bursts come between', () => {
  for (const ratio of [0.84, 0.999, 1, 1.001, 2]) {
    const sent = pictures(750, (packet, i) => ({
      ...packet,
      // Each second, 20 pictures wait for the next one.
      atMs: packet.atMs + ((i >> 1) % 25 < 20 ? 40 * (20 - ((i >> 1) % 25)) : 0),
      timestamp: 1000 + Math.round(3600 * ratio * (i >> 1)),
    }));
    const seen = observed(sent);
    assert.ok(Math.abs((seen.clockRatio ?? 0) / ratio - 1) < 1e-3, `${seen.clockRatio} for ${ratio}`);
    assert.ok((seen.delayMs?.worst ?? 0) > 700 && seen.bunched > 0.6, JSON.stringify(seen.delayMs));
  }
});

test('marker bits: never, on each packet, or anywhere', () => {
  const policy = (marker: (i: number) => boolean): string =>
    observed(pictures(100, (packet, i) => ({ ...packet, marker: marker(i) }))).marker;
  assert.equal(policy(() => false), 'never'); // prettier-ignore
  assert.equal(policy(() => true), 'every-packet'); // prettier-ignore
  assert.equal(policy((i) => i % 7 === 0), 'irregular'); // prettier-ignore
  assert.equal(policy((i) => i % 2 === 1), 'last-packet'); // prettier-ignore
});

test('stamps that jump for hours or go back are counted, and do not spoil the clock', () => {
  const seen = observed(
    pictures(500, (packet, i) => {
      const n = i >> 1;
      const jumped = n === 100 ? 882_000_000 : 0;
      // Every fourth picture is displayed before the one sent before it.
      const reordered = n % 4 === 3 ? -7200 : 0;
      return { ...packet, timestamp: 4_000_000 + 3600 * n + reordered + jumped };
    }),
  );
  assert.equal(seen.jumps, 2);
  assert.ok(seen.backwards >= 120, `${seen.backwards}`);
  assert.ok(Math.abs((seen.clockRatio ?? 0) - 1) < 0.02, `${seen.clockRatio}`);
});

test('what is no RTP is counted as malformed', () => {
  const observer = new StreamObserver(90_000);
  observer.push(Buffer.from('GET / HTTP/1.1'), 0, 14, 0);
  observer.push(Buffer.alloc(3), 0, 3, 0);
  assert.deepEqual([observer.figures().malformed, observer.figures().packets], [2, 0]);
});
