import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { FailedAttempts, networkOf } from './failed-attempts.ts';

test('ten wrong tokens in a row are only wrong; then an address waits, and may fail once more every six seconds', () => {
  const clock = new VirtualClock();
  const attempts = new FailedAttempts(clock);
  for (let i = 0; i < 10; i++) assert.equal(attempts.add('10.0.0.1').waitMs, 0);
  assert.deepEqual(attempts.add('10.0.0.1'), { waitMs: 6_000, isFirstRefusal: true });
  clock.advance(2_000);
  assert.deepEqual(attempts.add('10.0.0.1'), { waitMs: 4_000, isFirstRefusal: false });
  assert.equal(attempts.add('10.0.0.2').waitMs, 0);
  clock.advance(4_000);
  assert.equal(attempts.add('10.0.0.1').waitMs, 0);
  assert.deepEqual(attempts.add('10.0.0.1'), { waitMs: 6_000, isFirstRefusal: true });
  clock.advance(3_600_000);
  for (let i = 0; i < 10; i++) assert.equal(attempts.add('10.0.0.1').waitMs, 0);
  assert.notEqual(attempts.add('10.0.0.1').waitMs, 0);
});

test('however many addresses fail, no more than the bound are remembered, and the newest are', () => {
  const attempts = new FailedAttempts(new VirtualClock(), 100);
  for (let i = 0; i < 11; i++) attempts.add('192.0.2.1');
  for (let i = 0; i < 1_000; i++) {
    attempts.add(`10.0.${i >> 8}.${i & 255}`);
    if (i % 50 === 0) assert.notEqual(attempts.add('192.0.2.1').waitMs, 0);
  }
  assert.equal(attempts.size, 100);
});

for (const [address, network] of [
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::6', '2001:db8:1:2'],
  ['2001:0DB8:0001:2::', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['::1', '0:0:0:0'],
] as const) {
  test(`${address} counts as ${network}`, () => assert.equal(networkOf(address), network));
}
