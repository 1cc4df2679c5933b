import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderNode, type RecorderNode } from '../../crds/recorder-node.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import { LIVE, UNAVAILABLE, UNKNOWN } from '../../test/support/snapshots.ts';
import type { Liveness } from '../plan/snapshot.ts';
import { statusOfNode, type DrainFacts } from './node-status.ts';

const node = (conditions: readonly Condition[], status: object = {}, spec: object = {}): RecorderNode =>
  parseRecorderNode({
    apiVersion: API_VERSION,
    kind: 'RecorderNode',
    metadata: { name: 'a', namespace: 'default', uid: 'u', generation: 7 },
    spec: { nodeName: 'a', poolRef: { name: 'default' }, ...spec },
    status: { conditions, ...status },
  });
const ready: Condition = {
  type: 'Ready',
  status: 'True',
  reason: 'Recording',
  message: '',
  lastTransitionTime: '2026-11-21T10:00:00Z',
};

test('a node shows whether anything is heard of it; what its recorder says of itself is not touched', () => {
  const shown = (liveness: Liveness | undefined) => {
    const { status } = statusOfNode(node([ready]), { liveness, drain: undefined, nowMs: 0 });
    return (status['conditions'] as readonly Condition[]).map(({ type, status: is, reason }) => [type, is, reason]);
  };
  assert.deepEqual(shown(LIVE), [['Online', 'True', 'LeaseRenewed']]);
  assert.deepEqual(shown(UNAVAILABLE), [['Online', 'False', 'NodeUnavailable']]);
  assert.deepEqual(shown(UNKNOWN), [['Online', 'Unknown', 'NotHeard']]);
  assert.deepEqual(shown(undefined), [['Online', 'Unknown', 'NotHeard']]);
});

const facts = (liveness: Liveness) => ({ liveness, drain: undefined, nowMs: 60_000 });

test('it is written when it changes, and not again', () => {
  const first = statusOfNode(node([ready]), facts(LIVE));
  assert.deepEqual([first.isChanged, first.transitions.length], [true, 1]);
  const conditions = first.status['conditions'] as readonly Condition[];
  assert.equal(statusOfNode(node([ready, ...conditions], { drain: false }), facts(LIVE)).isChanged, false);
  assert.equal(statusOfNode(node([ready, ...conditions], { drain: false }), facts(UNAVAILABLE)).isChanged, true);
});

test('a node that is drained says why, what it still has, and what becomes of that', () => {
  const shown = (drain: Partial<DrainFacts>) => {
    const all = { cause: 'the Kubernetes node is cordoned', held: 2, cameras: 2, isGivenUp: false, ...drain };
    const { status } = statusOfNode(node([ready]), { liveness: LIVE, drain: all, nowMs: 0 });
    const [drained] = status['conditions'] as readonly Condition[];
    return [drained?.type, drained?.status, drained?.reason, drained?.message];
  };
  const two = 'the Kubernetes node is cordoned; 2 cameras are still recorded here';
  assert.deepEqual(shown({}), ['Drained', 'False', 'HandingOver', two]);
  assert.deepEqual(shown({ isGivenUp: true }), [
    'Drained',
    'False',
    'NotMoving',
    `${two}, and none could leave for too long`,
  ]);
  assert.deepEqual(shown({ cameras: 0 }), [
    'Drained',
    'False',
    'NoOtherNode',
    `${two}, and no other node may record them`,
  ]);
  assert.deepEqual(shown({ held: 0, cameras: 0 }).slice(1), [
    'True',
    'Empty',
    'the Kubernetes node is cordoned; no camera is recorded here',
  ]);
});

test('the column DRAIN of kubectl get shows a cordoned node, and not one that was removed', () => {
  const cordoned = { cause: 'the Kubernetes node is cordoned', held: 0, cameras: 0, isGivenUp: false };
  const shown = (drain: DrainFacts | undefined, spec: object = {}) =>
    statusOfNode(node([ready], {}, spec), { liveness: LIVE, drain, nowMs: 0 }).status['drain'];
  assert.equal(shown(undefined), false);
  assert.equal(shown(cordoned), true);
  const removed = { ...cordoned, cause: 'spec.role is Removed' };
  assert.equal(shown(removed, { role: 'Removed' }), false);
  assert.equal(shown(removed, { role: 'Removed', drain: true }), true);
});
