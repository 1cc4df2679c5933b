import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  cameraOf,
  carriedOut,
  nodeOf,
  recordedBy,
  snapshotOf,
  UNAVAILABLE,
  UNKNOWN,
} from '../../test/support/snapshots.ts';
import { plan } from './plan.ts';
import type { Plan, PlannedCamera, PlannedNode, Snapshot } from './snapshot.ts';

const NODES = [nodeOf('a', { process: 'a/1' }), nodeOf('b'), nodeOf('c')];

const held = (name: string, owner: string, standby: string, over: Partial<PlannedCamera> = {}): PlannedCamera =>
  recordedBy(name, owner, { wantsStandby: true, standby: { node: standby, epoch: 1, process: `${owner}/1` }, ...over });

const with_ = (snapshot: Snapshot, name: string, over: Partial<PlannedNode>): Snapshot => ({
  ...snapshot,
  nodes: snapshot.nodes.map((node) => (node.name === name ? { ...node, ...over } : node)),
});

const written = ({ writes }: Plan): unknown =>
  writes.map(({ camera, assignment, standby }) => [camera, assignment.node, assignment.epoch, standby]);

const reasonOf = ({ standbys }: Plan, name: string): string | undefined => {
  const found = standbys.get(name);
  return found && `${found.status} ${found.reason}`;
};

test('a new camera gets its node and its standby in one write', () => {
  const { writes } = plan(snapshotOf(NODES, [cameraOf('x', { wantsStandby: true })]));
  assert.deepEqual(
    writes.map(({ assignment, standby }) => [assignment.node, standby]),
    [['a', { node: 'b', epoch: 1, process: 'a/1' }]],
  );
});

test('a standby is chosen in another zone than the node that records, before capacity counts', () => {
  const inZone = (name: string, zone: string) => nodeOf(name, { labels: { 'topology.kubernetes.io/zone': zone } });
  const nodes = [inZone('a', 'east'), inZone('b', 'east'), inZone('c', 'west')];
  const busy = Array.from({ length: 9 }, (_, i) => recordedBy(`o${i}`, 'c'));
  const standbyOf = (all: PlannedNode[]) =>
    plan(snapshotOf(all, [recordedBy('x', 'a', { wantsStandby: true }), ...busy])).writes.find(
      ({ camera }) => camera === 'x',
    )?.standby?.node;
  assert.equal(standbyOf(nodes), 'c');
  assert.equal(
    standbyOf([inZone('a', 'east'), inZone('b', 'east'), inZone('c', 'east')]),
    'b',
    'of one zone: capacity',
  );
  assert.equal(standbyOf([nodeOf('a'), nodeOf('b'), nodeOf('c')]), 'b', 'without zones: capacity');
});

test('the pool says whether cameras have standbys that do not say it themselves', () => {
  const cameras = [recordedBy('own', 'a', { wantsStandby: false }), recordedBy('x', 'a')];
  assert.deepEqual(plan(snapshotOf(NODES, cameras)).writes, []);
  const planned = plan(snapshotOf(NODES, cameras, { pool: { standby: true } }));
  assert.deepEqual(written(planned), [['x', 'a', 1, { node: 'b', epoch: 1, process: 'a/1' }]]);
  assert.equal(reasonOf(planned, 'own'), undefined);
});

test('the cameras of a lost node go to their standbys, wherever else there is more capacity', () => {
  const cameras = [held('x', 'a', 'c'), ...Array.from({ length: 20 }, (_, i) => recordedBy(`o${i}`, 'c'))];
  const lost = with_(snapshotOf(NODES, cameras), 'a', { liveness: UNAVAILABLE });
  const planned = plan(lost);
  // With a lost node held against it, no other one is put at risk.
  assert.deepEqual(written(planned), [['x', 'c', 2, { epoch: 1 }]]);
  assert.equal(reasonOf(planned, 'x'), 'False NodeLost');
  const known = with_(carriedOut(lost, planned), 'a', { hasRecorder: false });
  assert.equal(carriedOut(known, plan(known)).cameras[0]?.standby?.node, 'b', 'the machine was lost');
});

test('a drained node hands its cameras over to their standbys, and gets other ones for them when that is complete', () => {
  const drained = with_(snapshotOf(NODES, [held('x', 'a', 'c')]), 'a', { drain: true });
  const [write] = plan(drained).writes;
  assert.deepEqual(
    [write?.assignment.node, write?.assignment.handover, write?.standby],
    ['c', 'Pending', { epoch: 1 }],
  );
  const next = carriedOut(carriedOut(drained, plan(drained)), plan(carriedOut(drained, plan(drained))));
  assert.deepEqual(next.cameras[0]?.standby?.node, 'b');
});

test('a standby that is lost, drained or cannot record is replaced, and one that is only silent is not', () => {
  const snapshot = snapshotOf(NODES, [held('x', 'a', 'b')]);
  for (const over of [{ liveness: UNAVAILABLE }, { drain: true }, { canRecord: false }]) {
    const [first] = plan(with_(snapshot, 'b', over)).writes;
    const after = carriedOut(with_(snapshot, 'b', over), plan(with_(snapshot, 'b', over)));
    assert.equal(first?.isNote, true);
    assert.equal(carriedOut(after, plan(after)).cameras[0]?.standby?.node, 'c');
  }
  assert.deepEqual(plan(with_(snapshot, 'b', { liveness: UNKNOWN })).writes, []);
});

test('a standby takes a place, and gives it to a camera that no node records', () => {
  const nodes = [nodeOf('a'), nodeOf('b')];
  const pool = { maxCamerasPerNode: 2 };
  const full = snapshotOf(nodes, [held('x', 'a', 'b'), held('y', 'a', 'b'), cameraOf('new')], { pool });
  const planned = plan(full);
  assert.deepEqual(
    written(planned),
    [
      ['y', 'a', 1, { epoch: 1 }],
      ['new', 'b', 1, undefined],
    ].toReversed(),
  );
  assert.equal(reasonOf(plan(carriedOut(full, planned)), 'y'), 'False NoRoom');
});

test('another process of the node that records is written down, once, and not while the node is silent', () => {
  const snapshot = snapshotOf(NODES, [held('x', 'a', 'b')]);
  assert.deepEqual(plan(snapshot).writes, []);
  const again = with_(snapshot, 'a', { process: 'a/2' });
  assert.deepEqual(written(plan(again)), [['x', 'a', 1, { node: 'b', epoch: 1, process: 'a/2' }]]);
  assert.deepEqual(plan(carriedOut(again, plan(again))).writes, []);
  assert.deepEqual(plan(with_(again, 'a', { process: 'a/2', liveness: UNKNOWN })).writes, []);
});

test('a camera without failover, and one that is suspended, have no standby', () => {
  const never = plan(snapshotOf(NODES, [recordedBy('x', 'a', { wantsStandby: true, failover: 'Never' })]));
  assert.deepEqual([never.writes, reasonOf(never, 'x')], [[], 'False FailoverNever']);
  const suspended = plan(snapshotOf(NODES, [held('x', 'a', 'b', { suspend: true })]));
  assert.deepEqual(written(suspended), [['x', undefined, 1, { epoch: 1 }]]);
});

test('while a camera has no recorder, no other one gets a standby', () => {
  const lost = with_(snapshotOf(NODES, [recordedBy('x', 'a'), recordedBy('y', 'b', { wantsStandby: true })]), 'a', {
    liveness: UNAVAILABLE,
  });
  const planned = plan(lost);
  assert.deepEqual(
    planned.writes.map(({ camera }) => camera),
    ['x'],
  );
  assert.equal(reasonOf(planned, 'y'), 'False Waiting');
  const next = carriedOut(lost, planned);
  assert.equal(carriedOut(next, plan(next)).cameras.find(({ name }) => name === 'y')?.standby?.node, 'c');
});
