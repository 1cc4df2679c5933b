import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planRollout, type RolloutNode, type RolloutPod, type RolloutView } from './rollout.ts';

const pod = (node: string, facts: Partial<RolloutPod> = {}): RolloutPod => ({
  name: `pod-${node}`,
  node,
  isCurrent: true,
  isReady: true,
  isTerminating: false,
  notReadyForMs: 0,
  ...facts,
});
const node = (name: string, facts: Partial<RolloutNode> = {}): RolloutNode => ({
  name,
  isOnline: true,
  isReachable: true,
  isVoter: true,
  updatingForMs: undefined,
  isDrained: false,
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
  const begin = (name: string) => ({ kind: 'begin', node: name, drain: true });
  assert.deepEqual(planRollout(view(pods, NODES, { leader: 'a' })).step, begin('b'));
  assert.deepEqual(planRollout(view([pod('a', old), pod('b'), pod('c')], NODES, { leader: 'a' })).step, begin('a'));
});

test('an operator that has heard of nobody yet replaces nothing', () => {
  const pods = [pod('a', old), pod('b', old), pod('c', old)];
  const silent = { isOnline: false };
  const { step, recheckMs } = planRollout(view(pods, [node('a', silent), node('b', silent), node('c', silent)]));
  assert.deepEqual([step.kind, recheckMs], ['none', 1_000]);
  assert.equal(planRollout(view(pods, [node('a'), node('b', silent), node('c')])).step.kind, 'none');
});

test('while a node’s turn lasts no other one’s comes, also when its old pod is gone and its new one not there yet', () => {
  const nodes = [node('a', { updatingForMs: 5_000 }), ...NODES.slice(1)];
  assert.equal(planRollout(view([pod('b', old), pod('c', old)], nodes)).step.kind, 'none');
  const both = [pod('a', { ...old, isTerminating: true }), pod('a', { isReady: false }), pod('b', old)];
  assert.equal(planRollout(view(both, nodes)).step.kind, 'none');
});

test('a machine that is dead is left out; one that dies in its turn stops the update, and that is said', () => {
  const dead = node('a', { isOnline: false, isReachable: false });
  const pods = [pod('a', { ...old, isReady: false }), pod('b', old), pod('c')];
  assert.deepEqual(planRollout(view(pods, [dead, ...NODES.slice(1)])).step, { kind: 'begin', node: 'b', drain: true });
  const rest = planRollout(view([pods[0]!, pod('b'), pod('c')], [dead, ...NODES.slice(1)]));
  assert.deepEqual([rest.step.kind, rest.condition.reason], ['none', 'RollingOut']);
  const within = node('a', { ...dead, updatingForMs: 601_000 });
  const late = planRollout(view(pods, [within, ...NODES.slice(1)]));
  assert.deepEqual([late.condition.status, late.condition.reason], ['True', 'ProgressDeadlineExceeded']);
});

test('the pod of a drained node is deleted when its cameras have left, and after a minute in any case', () => {
  const pods = [pod('a', old), pod('b'), pod('c')];
  const drained = (cameras: number, updatingForMs: number) => [
    node('a', { cameras, updatingForMs, isDrained: true }),
    ...NODES.slice(1),
  ];
  assert.equal(planRollout(view(pods, drained(3, 1_000))).step.kind, 'none');
  assert.deepEqual(planRollout(view(pods, drained(0, 1_000))).step, { kind: 'delete', pod: 'pod-a', node: 'a' });
  assert.equal(planRollout(view(pods, drained(3, 61_000))).step.kind, 'delete');
});

test('no second node is taken away while another is offline', () => {
  const pods = [pod('a', old), pod('b'), pod('c')];
  const nodes = [node('a', { cameras: 0, updatingForMs: 1_000 }), node('b', { isOnline: false }), node('c')];
  assert.equal(planRollout(view(pods, nodes)).step.kind, 'none');
  assert.equal(
    planRollout(view([pod('a', old), pod('b')], [node('a'), node('b', { isOnline: false })])).step.kind,
    'none',
  );
});

test('the next node waits until the new pod is ready and its node online', () => {
  const nodes = [node('a', { updatingForMs: 9_000 }), ...NODES.slice(1)];
  assert.equal(planRollout(view([pod('a', { isReady: false }), pod('b', old)], nodes)).step.kind, 'none');
  const offline = [node('a', { updatingForMs: 9_000, isOnline: false }), ...NODES.slice(1)];
  assert.equal(planRollout(view([pod('a'), pod('b', old)], offline)).step.kind, 'none');
  assert.deepEqual(planRollout(view([pod('a'), pod('b', old)], nodes)).step, { kind: 'end', node: 'a' });
  assert.equal(planRollout(view([pod('a'), pod('b', old)], NODES)).step.kind, 'begin');
});

test('a version that never becomes ready stops the update, and says so', () => {
  const pods = [pod('a', { isReady: false, notReadyForMs: 601_000 }), pod('b', old)];
  const { step, condition } = planRollout(view(pods, NODES));
  assert.deepEqual([step.kind, condition.status, condition.reason], ['none', 'True', 'ProgressDeadlineExceeded']);
});

test('a pod of long ago that is not ready for a moment stops nothing', () => {
  const { condition } = planRollout(view([pod('a', { isReady: false, notReadyForMs: 2_000 }), pod('b')], NODES));
  assert.deepEqual([condition.status, condition.reason], ['False', 'UpToDate']);
});

test('a roll-back begins with what the roll-out broke', () => {
  const pods = [pod('a', { ...old, isReady: false }), pod('b'), pod('c')];
  assert.deepEqual(planRollout(view(pods, NODES)).step, { kind: 'begin', node: 'a', drain: false });
  const nodes = [node('a', { updatingForMs: 1, isOnline: false }), node('b', { isOnline: false }), node('c')];
  assert.deepEqual(planRollout(view(pods, nodes)).step, { kind: 'delete', pod: 'pod-a', node: 'a' });
});

test('a single node, one without cameras and one that shall not be drained are replaced at once', () => {
  const single = planRollout(view([pod('a', old)], [node('a')]));
  const idle = planRollout(view([pod('a', old), pod('b')], [node('a', { cameras: 0 }), node('b')]));
  const undrained = planRollout(view([pod('a', old), pod('b')], [NODES[0]!, NODES[1]!], { drain: false }));
  for (const { step } of [single, idle, undrained]) assert.deepEqual(step, { kind: 'begin', node: 'a', drain: false });
  const turn = node('a', { updatingForMs: 1 });
  assert.equal(planRollout(view([pod('a', old), pod('b')], [turn, node('b')])).step.kind, 'delete');
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
      if (step.kind === 'begin') change({ updatingForMs: 1, isDrained: step.drain, cameras: 0 });
      else if (step.kind === 'end') change({ updatingForMs: undefined, isDrained: false, cameras: 5 });
      else pods = pods.map((one) => (one.name === step.pod ? pod(one.node) : one));
    }
    assert.ok(
      pods.every(({ isCurrent }) => isCurrent) && nodes.every(({ updatingForMs }) => updatingForMs === undefined),
    );
  }
});
