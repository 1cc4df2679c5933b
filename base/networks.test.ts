import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isWithin, withPrefixLength } from './networks.ts';

test('a single address is a network with the longest prefix of its family', () => {
  assert.deepEqual(['10.0.0.7', 'fd00::1', '10.0.0.0/8'].map(withPrefixLength), [
    '10.0.0.7/32',
    'fd00::1/128',
    '10.0.0.0/8',
  ]);
});

test('a network is within a wider one of its family, and not within itself', () => {
  for (const [inner, outer] of [
    ['10.96.0.0/12', '10.0.0.0/8'],
    ['10.0.0.7', '10.0.0.6/31'],
    ['127.0.0.0/8', '0.0.0.0/0'],
    ['fd00:ec2::254/128', 'fd00::/8'],
  ] as const) {
    assert.ok(isWithin(inner, outer), `${inner} in ${outer}`);
    assert.ok(!isWithin(outer, inner), `${outer} in ${inner}`);
  }
  for (const [inner, outer] of [
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['11.0.0.0/16', '10.0.0.0/8'],
    ['127.0.0.1', '::/0'],
    ['::1', '0.0.0.0/0'],
  ] as const) {
    assert.ok(!isWithin(inner, outer), `${inner} in ${outer}`);
  }
});
