import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FootageHolder } from '../contract/other-node.ts';
import { holdersIn, missingAt, type Elsewhere } from './holders.ts';

const MINUTE = 60_000;

const holder = (oldest: number | undefined, newest: number | undefined, isOnline?: boolean): FootageHolder => ({
  nodeId: 'b',
  oldestMs: oldest && oldest * MINUTE,
  newestMs: newest && newest * MINUTE,
  isOnline,
});

const minutes = (from: number, to: number) => ({ fromMs: from * MINUTE, toMs: to * MINUTE });

test('a node may have recorded for five minutes after its last report', () => {
  const isIn = (from: number, to: number) => holdersIn([holder(10, 20)], minutes(from, to)).length === 1;
  assert.deepEqual([isIn(0, 10), isIn(0, 11), isIn(24, 30), isIn(25, 30)], [false, true, true, false]);
  assert.equal(
    holdersIn([holder(undefined, undefined)], { fromMs: 0, toMs: 1 }).length,
    1,
    'an extent that was not reported',
  );
});

test('what is missing ends at the interval that was asked for, and with what the node can have', () => {
  const missing = (from: number, to: number): Elsewhere => missingAt(holder(10, 20, false), minutes(from, to));
  assert.deepEqual(missing(0, 60), { nodeId: 'b', fromMs: 10 * MINUTE, toMs: 25 * MINUTE, isOnline: false });
  assert.deepEqual(missing(12, 18), { nodeId: 'b', fromMs: 12 * MINUTE, toMs: 18 * MINUTE, isOnline: false });
  assert.equal(missingAt(holder(undefined, undefined, true), { fromMs: 5, toMs: 6 }).isOnline, true);
});
