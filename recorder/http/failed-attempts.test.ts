import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { FailedAttempts, networkOf } from './failed-attempts.ts';

test('ten wrong tokens in a row are only wrong; then an address waits, and may fail once more every six seconds', () => {
  const clock = new VirtualClock();
  const attempts = new FailedAttempts(clock);
  let made = 0;
  const fail = (address: string): boolean => attempts.add(address, `guess-${made++}`);
  for (let i = 0; i < 10; i++) assert.ok(fail('10.0.0.1'));
  assert.equal(fail('10.0.0.1'), false);
  assert.equal(attempts.waitMs('10.0.0.1'), 6_000);
  clock.advance(2_000);
  assert.equal(fail('10.0.0.1'), false);
  assert.equal(attempts.waitMs('10.0.0.1'), 4_000);
  assert.ok(fail('10.0.0.2'));
  clock.advance(4_000);
  assert.ok(fail('10.0.0.1'));
  assert.equal(fail('10.0.0.1'), false);
  clock.advance(3_600_000);
  for (let i = 0; i < 10; i++) assert.ok(fail('10.0.0.1'));
  assert.equal(fail('10.0.0.1'), false);
});

test('who sends one wrong token again and again, as a program whose token was changed, guesses nothing', () => {
  const attempts = new FailedAttempts(new VirtualClock());
  for (let i = 0; i < 1_000; i++) assert.ok(attempts.add('10.0.0.1', 'old'));
  assert.ok(!attempts.isSpent('10.0.0.1'));
  for (let i = 0; i < 9; i++) assert.ok(attempts.add('10.0.0.1', `guess-${i}`));
  assert.ok(attempts.isSpent('10.0.0.1'));
  // An address that guesses does not learn even that.
  assert.equal(attempts.add('10.0.0.1', 'old'), false);
});

test('however many addresses fail, no more than the bound are remembered, and the newest are', () => {
  const attempts = new FailedAttempts(new VirtualClock(), 100);
  for (let i = 0; i < 11; i++) attempts.add('192.0.2.1', `guess-${i}`);
  for (let i = 0; i < 1_000; i++) {
    attempts.add(`10.0.${i >> 8}.${i & 255}`, 'guess');
    if (i % 50 === 0) assert.equal(attempts.add('192.0.2.1', 'guess'), false);
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
