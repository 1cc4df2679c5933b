import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planRollout, type RolloutNode, type RolloutPod, type RolloutView } from './rollout.ts';

const pod = (node: string, facts: Partial<RolloutPod> = {}): RolloutPod => ({
  name: `pod-${node}`,
  node,
  isCurrent: true,
  isReady: true,
  isTerminating: false,
  ageMs: 60_000,
  ...facts,
});
const node = (name: string, facts: Partial<RolloutNode> = {}): RolloutNode => ({
  name,
  isOnline: true,
  isVoter: true,
  drainedForMs: undefined,
  cameras: 5,
  ...facts,
});
const view = (pods: readonly RolloutPod[], nodes: readonly RolloutNode[], more: Partial<RolloutView> = {}) => ({
  type: 'Rolling' as const,
  drain: true,
  progressDeadlineMs: 600_000,
  leader: undefined,
  pods,
  nodes,
  ...more,
});
const old = { isCurrent: false };
const NODES = [node('a'), node('b'), node('c')];

test('a pool that is up to date is left alone', () => {
  const { step, condition, recheckMs, updated } = planRollout(view([pod('a'), pod('b')], NODES));
  assert.deepEqual([step.kind, condition.reason, recheckMs, updated], ['none', 'UpToDate', undefined, 2]);
});

test('an update drains one node first, and the leader last', () => {
  const pods = [pod('a', old), pod('b', old), pod('c', old)];
  assert.deepEqual(planRollout(view(pods, NODES, { leader: 'a' })).step, { kind: 'drain', node: 'b' });
  assert.deepEqual(planRollout(view([pod('a', old), pod('b'), pod('c')], NODES, { leader: 'a' })).step, {
    kind: 'drain',
    node: 'a',
  });
});

test('the pod of a drained node is deleted when its cameras have left, and after a minute in any case', () => {
  const pods = [pod('a', old), pod('b'), pod('c')];
  const drained = (cameras: number, drainedForMs: number) => [node('a', { cameras, drainedForMs }), ...NODES.slice(1)];
  assert.equal(planRollout(view(pods, drained(3, 1_000))).step.kind, 'none');
  assert.deepEqual(planRollout(view(pods, drained(0, 1_000))).step, { kind: 'delete', pod: 'pod-a', node: 'a' });
  assert.equal(planRollout(view(pods, drained(3, 61_000))).step.kind, 'delete');
});

test('no second node is taken away while another is offline', () => {
  const pods = [pod('a', old), pod('b'), pod('c')];
  const nodes = [node('a', { cameras: 0, drainedForMs: 1_000 }), node('b', { isOnline: false }), node('c')];
  assert.equal(planRollout(view(pods, nodes)).step.kind, 'none');
  assert.equal(
    planRollout(view([pod('a', old), pod('b')], [node('a'), node('b', { isOnline: false })])).step.kind,
    'none',
  );
});

test('the next node waits until the new pod is ready and its node online', () => {
  const nodes = [node('a', { drainedForMs: 9_000 }), ...NODES.slice(1)];
  assert.equal(planRollout(view([pod('a', { isReady: false }), pod('b', old)], nodes)).step.kind, 'none');
  const offline = [node('a', { drainedForMs: 9_000, isOnline: false }), ...NODES.slice(1)];
  assert.equal(planRollout(view([pod('a'), pod('b', old)], offline)).step.kind, 'none');
  assert.deepEqual(planRollout(view([pod('a'), pod('b', old)], nodes)).step, { kind: 'undrain', node: 'a' });
  assert.deepEqual(planRollout(view([pod('a'), pod('b', old)], NODES)).step, { kind: 'drain', node: 'b' });
});

test('a version that never becomes ready stops the update, and says so', () => {
  const pods = [pod('a', { isReady: false, ageMs: 601_000 }), pod('b', old)];
  const { step, condition } = planRollout(view(pods, NODES));
  assert.deepEqual([step.kind, condition.status, condition.reason], ['none', 'True', 'ProgressDeadlineExceeded']);
});

test('a roll-back begins with what the roll-out broke', () => {
  const pods = [pod('a', { ...old, isReady: false }), pod('b'), pod('c')];
  assert.deepEqual(planRollout(view(pods, NODES)).step, { kind: 'delete', pod: 'pod-a', node: 'a' });
});

test('a single node, one without cameras and one that shall not be drained are replaced at once', () => {
  const single = planRollout(view([pod('a', old)], [node('a')]));
  const idle = planRollout(view([pod('a', old), pod('b')], [node('a', { cameras: 0 }), node('b')]));
  const undrained = planRollout(view([pod('a', old), pod('b')], NODES, { drain: false }));
  assert.deepEqual(
    [single, idle, undrained].map(({ step }) => step.kind),
    ['delete', 'delete', 'delete'],
  );
});

test('with OnDelete nothing is deleted', () => {
  assert.equal(planRollout(view([pod('a', old)], NODES, { type: 'OnDelete' })).step.kind, 'none');
});

test('an update of any pool ends, with at most one pod away at a time', () => {
  for (let size = 1; size <= 6; size++) {
    let pods = Array.from({ length: size }, (_, i) => pod(`n${i}`, old));
    let nodes = pods.map(({ node: name }) => node(name));
    for (let steps = 0; steps < 100; steps++) {
      const { step } = planRollout(view(pods, nodes, { leader: 'n0' }));
      if (step.kind === 'none') break;
      const change = (facts: Partial<RolloutNode>) => {
        nodes = nodes.map((one) => (one.name === (step as { node: string }).node ? { ...one, ...facts } : one));
      };
      if (step.kind === 'drain') change({ drainedForMs: 1, cameras: 0 });
      else if (step.kind === 'undrain') change({ drainedForMs: undefined, cameras: 5 });
      else pods = pods.map((one) => (one.name === step.pod ? pod(one.node) : one));
    }
    assert.ok(
      pods.every(({ isCurrent }) => isCurrent) && nodes.every(({ drainedForMs }) => drainedForMs === undefined),
    );
  }
});
