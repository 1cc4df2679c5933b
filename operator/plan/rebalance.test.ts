import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { carriedOut, LIVE, nodeOf, recordedBy, snapshotOf, UNAVAILABLE } from '../../test/support/snapshots.ts';
import { plan } from './plan.ts';
import type { PlannedCamera, PlannedCondition, Snapshot } from './snapshot.ts';

const NODES = ['a', 'b', 'c', 'd'];

const balanced = (snapshot: Snapshot): PlannedCondition =>
  plan(snapshot).pool.find(({ type }) => type === 'Balanced') ?? assert.fail('no condition');
const idIn = ({ message }: PlannedCondition): string =>
  /kube-nvr\.dev\/rebalance=(\w+)$/.exec(message)?.[1] ?? assert.fail(message);
const approved = (snapshot: Snapshot, rebalance = idIn(balanced(snapshot))): Snapshot => ({
  ...snapshot,
  pool: { ...snapshot.pool, rebalance },
});

function settle(snapshot: Snapshot): Snapshot {
  for (let round = 0; round < 300; round++) {
    const planned = plan(snapshot);
    if (planned.writes.length === 0) return snapshot;
    snapshot = carriedOut(snapshot, planned);
  }
  return assert.fail('there is always something to do');
}

const cameras = (counts: readonly number[], over: Partial<PlannedCamera> = {}): PlannedCamera[] =>
  counts.flatMap((count, n) =>
    Array.from({ length: count }, (_, i) => recordedBy(`${NODES[n]}${i}`, NODES[n] ?? '', over)),
  );
const stage = (counts: readonly number[], over: Partial<PlannedCamera> = {}): Snapshot =>
  snapshotOf(
    counts.map((_, n) => nodeOf(NODES[n] ?? '')),
    cameras(counts, over),
    { pool: { maxConcurrentMoves: 2 } },
  );
const loads = ({ nodes, cameras: all }: Snapshot): readonly number[] =>
  nodes.map(({ name }) => all.filter(({ assignment }) => assignment?.node === name).length);

test('an approved proposal makes the nodes equal with as few moves as that takes, each by a handover', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 2, maxLength: 4 }), (counts) => {
      const before = stage(counts);
      assert.deepEqual(plan(before).writes, [], 'nothing moves unless somebody says so');
      const spread = Math.max(...counts) - Math.min(...counts);
      assert.equal(balanced(before).status, spread < 2 ? 'True' : 'False');
      if (spread < 2) return;
      const first = plan(approved(before));
      assert.ok(first.writes.every(({ isNote, assignment }) => isNote && assignment.epoch === 1));
      const after = settle(approved(before));
      const found = loads(after);
      assert.ok(Math.max(...found) - Math.min(...found) <= 1, found.join());
      const total = counts.reduce((sum, count) => sum + count, 0);
      const share = [Math.floor(total / counts.length), Math.ceil(total / counts.length)] as const;
      const [over, under] = [
        counts.reduce((sum, count) => sum + Math.max(0, count - share[1]), 0),
        counts.reduce((sum, count) => sum + Math.max(0, share[0] - count), 0),
      ];
      const moved = after.cameras.filter(({ name, assignment }) => assignment?.node !== name[0]);
      assert.equal(moved.length, Math.max(over, under));
      for (const { assignment } of moved) assert.equal(assignment?.reason, 'Failback');
      assert.equal(balanced(after).status, 'True');
    }),
  );
});

test('an id approves exactly its proposal, once', () => {
  const before = stage([6, 2]);
  const { message } = balanced(before);
  assert.match(message, /^would move a\d from a to b, a\d from a to b; to approve, annotate the pool: /);
  assert.deepEqual(plan(approved(before, 'another')).writes, []);
  // Another camera has come meanwhile.
  const id = idIn(balanced(before));
  assert.deepEqual(plan(approved(stage([7, 2]), id)).writes, []);
  const after = settle(approved(before));
  assert.deepEqual(loads(after), [4, 4]);
  // The same cameras are back on their first node: their epochs are not.
  const epoch = Math.max(...after.cameras.map(({ assignment }) => assignment?.epoch ?? 0)) + 1;
  const again = after.cameras.map((camera) => ({
    ...camera,
    assignment: { node: camera.name[0], epoch, handover: 'Complete' as const, reason: 'Failback' },
  }));
  const back = snapshotOf([nodeOf('a'), nodeOf('b')], again, { pool: { rebalance: id } });
  assert.equal(balanced(back).status, 'False');
  assert.deepEqual(plan(back).writes, []);
});

test('cameras stay whose node somebody has chosen, that are on a visit, or that no other node may record', () => {
  for (const over of [{ preferredNode: 'a' }, { nodeSelector: { disk: 'ssd' } }]) {
    const nodes = [nodeOf('a', { labels: { disk: 'ssd' } }), nodeOf('b')];
    assert.equal(balanced(snapshotOf(nodes, [...cameras([6], over), ...cameras([0, 2])])).status, 'True');
  }
  const visiting = { node: 'a', home: 'b', epoch: 2, handover: 'Complete', reason: 'NodeUnavailable' } as const;
  const away = [...cameras([3, 0]), ...cameras([0, 3]).map((camera) => ({ ...camera, assignment: visiting }))];
  const nodes = (isBack: boolean) => [nodeOf('a'), nodeOf('b', { liveness: isBack ? LIVE : UNAVAILABLE }), nodeOf('c')];
  const { message } = balanced(snapshotOf(nodes(false), away));
  assert.doesNotMatch(message, /b\d/, 'those that belong to the lost node');
  assert.deepEqual(loads(settle(approved(snapshotOf(nodes(false), away)))), [5, 0, 1]);
});

test('what has the lowest priority moves, and a drained node takes nothing', () => {
  const all = cameras([4, 0]).map((camera, i) => ({ ...camera, priority: i }));
  assert.match(
    balanced(snapshotOf([nodeOf('a'), nodeOf('b')], all)).message,
    /^would move a0 from a to b, a1 from a to b;/,
  );
  assert.equal(balanced(snapshotOf([nodeOf('a'), nodeOf('b', { drain: true })], all)).status, 'True');
});
