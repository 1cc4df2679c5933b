import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renewMsFor } from './renewal.ts';

const DEFAULT = { renewSeconds: 2, unavailableAfterSeconds: 15 };

test('a pool of up to 100 nodes for each second of renewSeconds renews as it says', () => {
  for (const nodes of [0, 1, 100, 200]) assert.equal(renewMsFor(nodes, DEFAULT), 2_000);
  assert.equal(renewMsFor(500, { renewSeconds: 5, unavailableAfterSeconds: 20 }), 5_000);
});

test('all nodes of a larger pool together renew 100 times a second', () => {
  assert.equal(renewMsFor(201, DEFAULT), 3_000);
  assert.equal(renewMsFor(400, DEFAULT), 4_000);
  assert.equal(renewMsFor(1_000, { ...DEFAULT, unavailableAfterSeconds: 30 }), 10_000);
});

test('no node renews less than three times before it would be lost, however large the pool is', () => {
  for (let unavailableAfterSeconds = 3; unavailableAfterSeconds <= 3_600; unavailableAfterSeconds++) {
    for (const nodes of [1, 400, 1_000, 100_000]) {
      const renewMs = renewMsFor(nodes, { renewSeconds: 1, unavailableAfterSeconds });
      assert.ok(renewMs >= 1_000 && 3 * renewMs <= unavailableAfterSeconds * 1000, `${nodes}: ${renewMs}`);
    }
  }
  assert.equal(renewMsFor(1_000, DEFAULT), 5_000);
});
