import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cameraOf, nodeOf, recordedBy, snapshotOf } from '../../test/support/snapshots.ts';
import { camerasThatCanLeave } from './guards.ts';

const counted = (...args: Parameters<typeof snapshotOf>): Record<string, number> =>
  Object.fromEntries(camerasThatCanLeave(snapshotOf(...args)));

const TWO = [nodeOf('a'), nodeOf('b')];

test('a node is waited for while it has cameras that another node may record', () => {
  assert.deepEqual(counted(TWO, [recordedBy('gate', 'a'), recordedBy('yard', 'a')]), { a: 2 });
  assert.deepEqual(counted(TWO, [cameraOf('gate')]), {});
});

test('nothing waits for cameras that no other node may record', () => {
  assert.deepEqual(counted([nodeOf('a')], [recordedBy('gate', 'a')]), {}, 'the only node');
  const others = [nodeOf('b', { drain: true }), nodeOf('c', { canRecord: false })];
  assert.deepEqual(
    counted([nodeOf('a', { drain: true }), ...others], [recordedBy('gate', 'a')]),
    {},
    'no other is open',
  );
  const nodes = [nodeOf('a', { labels: { zone: 'x' } }), nodeOf('b')];
  const pinned = recordedBy('gate', 'a', { nodeSelector: { zone: 'x' } });
  assert.deepEqual(counted(nodes, [pinned, recordedBy('yard', 'a')]), { a: 1 }, 'a camera that must stay there');
});

test('the old node of a handover is waited for until that ends', () => {
  const moving = (handover: 'Pending' | 'Complete') =>
    cameraOf('gate', { assignment: { node: 'b', epoch: 2, previousNode: 'a', handover, reason: 'Drain' } });
  const nodes = [nodeOf('a', { drain: true }), nodeOf('b')];
  assert.deepEqual(counted(nodes, [moving('Pending')]), { a: 1 });
  assert.deepEqual(counted(nodes, [moving('Complete')]), {});
});
