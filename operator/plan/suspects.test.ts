import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plan } from './plan.ts';
import type { Assignment, Liveness, Plan, PlannedCamera, PlannedNode } from './snapshot.ts';
import { LIVE, nodeOf, recordedBy, snapshotOf, UNAVAILABLE } from '../../test/support/snapshots.ts';

const HOUR_MS = 3_600_000;

/** A camera on node b that was moved there from the lost node a. */
const moved = (over: Partial<Assignment> = {}, camera: Partial<PlannedCamera> = {}): PlannedCamera =>
  recordedBy('x', 'b', {
    assignment: {
      node: 'b',
      epoch: 2,
      previousNode: 'a',
      handover: 'Complete',
      reason: 'NodeUnavailable',
      lostNodes: ['a'],
      ...over,
    },
    assignedForMs: 60_000,
    ...camera,
  });

const planned = (camera: PlannedCamera, b: Partial<PlannedNode>, a: Partial<PlannedNode> = {}): Plan =>
  plan(snapshotOf([nodeOf('a', a), nodeOf('b', b), nodeOf('c'), nodeOf('d'), nodeOf('e')], [camera]));

const silent = (silentMs: number): Liveness => ({ ...UNAVAILABLE, silentMs });

test('a camera that two recorders did not survive is given no third node, and says why', () => {
  const { writes, cameras } = planned(moved(), { liveness: UNAVAILABLE });
  assert.deepEqual(
    writes.map(({ assignment, isNote }) => [assignment.node, assignment.epoch, assignment.lostNodes, isNote]),
    [['b', 2, ['a', 'b'], true]],
    'that is written, so that the next leader knows',
  );
  const suspect = moved({ lostNodes: ['a', 'b'] });
  const after = planned(suspect, { liveness: silent(7_200_000) });
  assert.deepEqual(after.writes, [], 'however long it takes');
  const { status, reason, message } = after.cameras.get('x') ?? assert.fail();
  assert.deepEqual([status, reason], ['False', 'TwoNodesLost']);
  assert.match(message, /^it was on a and b when .* spec\.suspend/);
  assert.ok(cameras.has('x'));
});

test('a suspect is not moved for any other reason either, but for what a person asks', () => {
  const suspect = moved({ lostNodes: ['a', 'b'] });
  const missing = { ...suspect, missingForMs: 20_000 };
  assert.deepEqual(planned(missing, {}).writes, [], 'not named by a recorder that crashes again and again');
  assert.deepEqual(planned({ ...suspect, preferredNode: 'c' }, {}).writes, []);
  const [drained] = planned(suspect, { drain: true }).writes;
  assert.equal(drained?.assignment.handover, 'Pending');
  const [suspended] = planned({ ...suspect, suspend: true }, { liveness: UNAVAILABLE }).writes;
  assert.deepEqual(suspended?.assignment, {
    epoch: 2,
    previousNode: 'b',
    handover: 'Complete',
    reason: 'Suspended',
  });
});

test('silence of a machine, or of a recorder that was never started, counts for nothing', () => {
  const [first] = planned(moved({ lostNodes: undefined }), { liveness: UNAVAILABLE, hasRecorder: false }).writes;
  assert.deepEqual([first?.assignment.node !== 'b', first?.assignment.lostNodes], [true, undefined]);
  const [second] = planned(moved(), { liveness: UNAVAILABLE, hasRecorder: false }).writes;
  assert.deepEqual([second?.assignment.node !== 'b', second?.assignment.lostNodes], [true, ['a']]);
});

test('what counted is struck out once Kubernetes says that the machine was lost, and not for what happens later', () => {
  const gone = { liveness: silent(45_000), hasRecorder: false };
  const [write] = planned(moved(), {}, gone).writes;
  assert.deepEqual([write?.assignment.node, write?.assignment.lostNodes, write?.isNote], ['b', undefined, true]);
  const suspect = moved({ lostNodes: ['a', 'b'] });
  const [move] = planned(suspect, gone, { liveness: UNAVAILABLE }).writes;
  assert.ok(move?.assignment.node !== 'b' && move?.assignment.epoch === 3, 'it moves as soon as that is known');
  assert.deepEqual(planned(suspect, { liveness: silent(600_000), hasRecorder: false }).writes, []);
});

test('the same node twice is the fault of the node', () => {
  const [write] = planned(moved({ lostNodes: ['b'] }), { liveness: UNAVAILABLE }).writes;
  assert.deepEqual(write?.assignment.lostNodes, ['b']);
  assert.notEqual(write?.assignment.node, 'b');
});

test('an hour of recording by a node that lived all the time clears a camera, and less does not', () => {
  const liveness = (liveForMs: number): Liveness => ({ ...LIVE, liveForMs });
  const at = (liveForMs: number, assignedForMs: number): Plan =>
    planned(moved({ lostNodes: ['a', 'b'] }, { assignedForMs }), { liveness: liveness(liveForMs) });
  assert.deepEqual(at(HOUR_MS, HOUR_MS - 1).writes, []);
  assert.deepEqual(at(HOUR_MS - 1, HOUR_MS).writes, []);
  const [write] = at(HOUR_MS, HOUR_MS).writes;
  assert.deepEqual([write?.assignment.node, write?.assignment.lostNodes, write?.isNote], ['b', undefined, true]);
});

test('a node that is silent in a handover counts as well when it is the one that records', () => {
  const handing = recordedBy('x', 'b', {
    assignment: { node: 'b', epoch: 2, previousNode: 'a', handover: 'Pending', reason: 'Drain' },
    assignedForMs: 1_000,
  });
  const [write] = planned(handing, {}, { liveness: UNAVAILABLE }).writes;
  assert.deepEqual([write?.assignment.handover, write?.assignment.lostNodes], ['Complete', ['a']]);
});

test('a node that fell silent before it took the camera up counts, and one that falls silent much later does not', () => {
  const reason = 'NotTakenUp';
  const takenAway = moved({ reason, lostNodes: undefined }, { assignedForMs: 10_000 });
  const [write] = planned(takenAway, {}, { liveness: UNAVAILABLE }).writes;
  assert.deepEqual([write?.assignment.node, write?.assignment.lostNodes, write?.isNote], ['b', ['a'], true]);
  const later = moved({ reason, lostNodes: undefined }, { assignedForMs: 200_000 });
  assert.deepEqual(planned(later, {}, { liveness: UNAVAILABLE }).writes, []);
});
