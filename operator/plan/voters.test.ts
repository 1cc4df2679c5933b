import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PlannedNode } from './snapshot.ts';
import { planRoles } from './voters.ts';
import { carriedOut, LIVE, nodeOf, QUIET, snapshotOf, UNAVAILABLE, UNKNOWN } from '../../test/support/snapshots.ts';
import { plan } from './plan.ts';

const LOST = { ...UNAVAILABLE, silentMs: 700_000 };

const learner = (name: string, over: Partial<PlannedNode> = {}): PlannedNode =>
  nodeOf(name, { role: 'Learner', ...over });

/** Applies role changes until none is left; returns the voters and the number of changes. */
function settled(nodes: readonly PlannedNode[]): { voters: string; changes: number } {
  let world = snapshotOf(nodes, [], { pool: { membership: 'Automatic' } });
  for (let changes = 0; changes < 20; changes++) {
    const planned = plan(world);
    if (!planned.role) return { voters: planned.voters.join(''), changes };
    world = carriedOut(world, planned);
  }
  throw new Error('roles change for ever');
}

test('automatic voters: an odd number of all live nodes, at most seven', () => {
  const nodes = 'abcdefghi'.split('').map((name) => learner(name));
  const counts = [1, 2, 3, 4, 5, 6, 7, 9].map((count) => settled(nodes.slice(0, count)).voters);
  assert.deepEqual(counts, ['a', 'a', 'abc', 'abc', 'abcde', 'abcde', 'abcdefg', 'abcdefg']);
});

test('one change at a time, and none while another is written', () => {
  const nodes = [nodeOf('a'), learner('b'), learner('c')];
  assert.equal(settled(nodes).changes, 2);
  assert.equal(planRoles(snapshotOf(nodes, [], { pool: { membership: 'Automatic' }, changingRoles: true })), undefined);
});

test('Manual: nobody but a person changes roles', () => {
  assert.equal(planRoles(snapshotOf([learner('a'), learner('b')], [], { pool: { membership: 'Manual' } })), undefined);
});

test('a voter that is gone for long gives its vote to a learner; without one it keeps it', () => {
  const dead = nodeOf('c', { liveness: LOST });
  assert.deepEqual(settled([nodeOf('a'), nodeOf('b'), dead, learner('d')]), { voters: 'abd', changes: 2 });
  assert.deepEqual(settled([nodeOf('a'), nodeOf('b'), dead]), { voters: 'abc', changes: 0 });
});

test('a voter that is gone for a short time keeps its vote', () => {
  const nodes = [nodeOf('a'), nodeOf('b'), nodeOf('c', { liveness: UNAVAILABLE }), learner('d')];
  assert.deepEqual(settled(nodes), { voters: 'abc', changes: 0 });
});

test('after a node was removed an even number of voters becomes odd, and the one that is not heard goes', () => {
  const nodes = [nodeOf('a'), nodeOf('b', { liveness: QUIET }), nodeOf('c'), nodeOf('d')];
  assert.deepEqual(settled(nodes), { voters: 'acd', changes: 1 });
});

test('without a majority no role changes', () => {
  const nodes = [
    nodeOf('a'),
    nodeOf('b', { liveness: LOST }),
    nodeOf('c', { liveness: UNKNOWN }),
    learner('d'),
    learner('e'),
  ];
  assert.equal(settled(nodes).changes, 0);
});

test('a node votes only when it has been live for some time, is not drained and can record', () => {
  const fresh = learner('b', { liveness: { ...LIVE, liveForMs: 1_000 } });
  const unfit = [learner('c', { drain: true }), learner('d', { canRecord: false })];
  assert.deepEqual(settled([nodeOf('a'), fresh, ...unfit]), { voters: 'a', changes: 0 });
});
