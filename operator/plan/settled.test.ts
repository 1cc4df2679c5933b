import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeOf, snapshotOf, UNAVAILABLE, UNKNOWN } from '../../test/support/snapshots.ts';
import { isSettled } from './settled.ts';

const unheard = [nodeOf('a', { liveness: UNKNOWN }), nodeOf('b', { liveness: UNKNOWN })];

test('an operator that has just started reports nothing of nodes that it has not heard', () => {
  const snapshot = { ...snapshotOf(unheard, []), majorityForMs: 0 };
  assert.equal(isSettled(snapshot, 1_000), false);
  assert.equal(isSettled({ ...snapshot, majorityForMs: 1_000 }, 1_000), false);
});

test('it is settled when all are heard, a majority for three renewals, or after the time that makes a node unavailable', () => {
  const { pool } = snapshotOf([], []);
  const dead = { ...snapshotOf([nodeOf('a'), nodeOf('b', { liveness: UNAVAILABLE })], []), majorityForMs: 0 };
  assert.equal(isSettled(snapshotOf([nodeOf('a')], []), 0), true);
  assert.equal(isSettled({ ...dead, majorityForMs: 3 * pool.renewMs }, 7_000), true);
  assert.equal(isSettled(dead, pool.unavailableAfterMs), true);
});
