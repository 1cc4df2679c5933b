import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PlannedNode } from './snapshot.ts';
import { planRoles, quorumOf } from './voters.ts';
import { carriedOut, LIVE, nodeOf, QUIET, snapshotOf, UNAVAILABLE, UNKNOWN } from '../../test/support/snapshots.ts';
import { plan } from './plan.ts';
import { seeded } from '../../test/support/random.ts';

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

test('automatic voters: two of two live nodes, otherwise an odd number, at most seven', () => {
  const nodes = 'abcdefghi'.split('').map((name) => learner(name));
  const counts = [1, 2, 3, 4, 5, 6, 7, 9].map((count) => settled(nodes.slice(0, count)).voters);
  assert.deepEqual(counts, ['a', 'ab', 'abc', 'abc', 'abcde', 'abcde', 'abcdefg', 'abcdefg']);
});

test('one change at a time, and none while another is written', () => {
  const nodes = [nodeOf('a'), learner('b'), learner('c')];
  assert.equal(settled(nodes).changes, 2);
  assert.equal(planRoles(snapshotOf(nodes, [], { pool: { membership: 'Automatic' }, changingRoles: true })), undefined);
});

test('Manual: only a person changes roles', () => {
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

const ZONE = 'topology.kubernetes.io/zone';
const inZone = (zone: string) => ({ labels: { [ZONE]: zone } });
const votersByZone = (nodes: readonly PlannedNode[], voters: string): string =>
  voters
    .split('')
    .map((name) => nodes.find((node) => node.name === name)?.labels[ZONE] ?? '-')
    .sort()
    .join('');

test('voters are spread over the zones of the nodes, also when they were not before', () => {
  const names = 'abcdefghi'.split('');
  const fresh = names.map((name, i) => learner(name, inZone(i < 5 ? 'x' : i < 8 ? 'y' : 'z')));
  assert.equal(votersByZone(fresh, settled(fresh).voters), 'xxxyyyz');
  const crowded = names.map((name, i) =>
    nodeOf(name, { role: i < 3 ? 'Voter' : 'Learner', ...inZone(i < 7 ? 'x' : 'y') }),
  );
  assert.equal(votersByZone(crowded, settled(crowded).voters), 'xxxxxyy');
});

test('a zone that cannot have more voters does not keep roles changing', () => {
  const nodes = [
    nodeOf('a', inZone('x')),
    nodeOf('b', inZone('x')),
    nodeOf('c', inZone('y')),
    learner('d', inZone('x')),
  ];
  assert.deepEqual(settled(nodes), { voters: 'abc', changes: 0 });
});

test('of two voters that the operator chose, one is a majority; of two that a person chose, both are', () => {
  const nodes = [nodeOf('a'), nodeOf('b', { liveness: UNAVAILABLE })];
  const quorum = (membership: 'Automatic' | 'Manual') => {
    const { needed, live, heard, leader } = quorumOf(snapshotOf(nodes, [], { pool: { membership } }));
    return { needed, live, heard, leader };
  };
  assert.deepEqual(quorum('Automatic'), { needed: 1, live: 1, heard: true, leader: 'a' });
  assert.deepEqual(quorum('Manual'), { needed: 2, live: 1, heard: false, leader: undefined });
});

test('a dead node of two is replaced: the new one votes, and the majority is never lost', () => {
  const dead = nodeOf('b', { liveness: LOST });
  assert.deepEqual(settled([nodeOf('a'), dead, learner('c')]), { voters: 'abc', changes: 1 });
});

test('zones at random: as many voters as there should be, no zone with two more than one that has learners', () => {
  const chance = seeded();
  for (let world = 0; world < 500; world++) {
    const size = 1 + Math.floor(chance() * 12);
    const zones = 1 + Math.floor(chance() * 4);
    const nodes = Array.from({ length: size }, (_, i) =>
      nodeOf(String.fromCodePoint(97 + i), {
        role: chance() < 0.3 && i < 7 ? 'Voter' : 'Learner',
        ...inZone(String(Math.floor(chance() * zones))),
      }),
    );
    const { voters } = settled(nodes);
    const count = size === 2 ? 2 : Math.min(7, size - ((size + 1) % 2));
    assert.equal(voters.length, count, `${size} nodes`);
    const votersIn = (zone: string): number =>
      votersByZone(nodes, voters)
        .split('')
        .filter((one) => one === zone).length;
    for (const { name, labels } of nodes) {
      if (voters.includes(name)) continue;
      for (const zone of votersByZone(nodes, voters)) assert.ok(votersIn(zone) - votersIn(labels[ZONE] ?? '') < 2);
    }
  }
});

test('a role without a vote in etcd is no vote, and a member that does not answer is one that is lost', () => {
  const nodes = [
    nodeOf('a', { member: 'Voting' }),
    nodeOf('b', { member: 'Voting' }),
    nodeOf('c', { member: 'NotVoting' }),
  ];
  const quorumWith = (more: Partial<PlannedNode>) => {
    const { voters, needed, live, available, leader } = quorumOf(
      snapshotOf([...nodes.slice(1), nodeOf('a', { member: 'Voting', ...more })], [], {
        pool: { membership: 'Automatic', leader: 'a' },
      }),
    );
    return { voters: voters.join(''), needed, live, available, leader };
  };
  assert.deepEqual(quorumWith({}), { voters: 'ab', needed: 2, live: 2, available: true, leader: 'a' });
  const silent = { voters: 'b', needed: 2, live: 1, available: false, leader: undefined };
  assert.deepEqual(quorumWith({ member: 'NotAnswering' }), silent);
});

test('the first voter of a new pool is lost: the nodes that were heard decide, and get the votes', () => {
  const lost = nodeOf('a', { liveness: UNAVAILABLE });
  const quorum = (nodes: readonly PlannedNode[], membership: 'Automatic' | 'Manual' = 'Automatic') => {
    const { available, heard, leader } = quorumOf(snapshotOf(nodes, [], { pool: { membership } }));
    return { available, heard, leader };
  };
  const nobody = { available: false, heard: false, leader: undefined };
  assert.deepEqual(quorum([lost, learner('b')]), { available: true, heard: true, leader: undefined });
  assert.deepEqual(settled([lost, learner('b'), learner('c')]), { voters: 'abc', changes: 2 });
  const silent = learner('c', { liveness: UNAVAILABLE });
  assert.deepEqual(quorum([lost, learner('b'), silent]), nobody, 'two of three are lost');
  const never = learner('c', { liveness: UNKNOWN });
  assert.deepEqual(quorum([lost, learner('b'), never]).heard, true, 'a node that was never heard decides nothing');
  assert.deepEqual(quorum([lost, learner('b'), learner('c')], 'Manual'), nobody, 'a person chose the only voter');
  assert.deepEqual(quorum([nodeOf('a'), silent, learner('d', { liveness: UNAVAILABLE })]).leader, 'a');
});
