import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seeded } from '../../test/support/random.ts';
import { planRollout, type RolloutNode, type RolloutPod, type RolloutView } from './rollout.ts';

const pod = (node: string, facts: Partial<RolloutPod> = {}): RolloutPod => ({
  name: `pod-${node}`,
  node,
  isCurrent: true,
  isReady: true,
  hasStarted: true,
  isTerminating: false,
  notReadyForMs: 0,
  problem: undefined,
  unscheduled: undefined,
  ...facts,
});
const node = (name: string, facts: Partial<RolloutNode> = {}): RolloutNode => ({
  name,
  isOnline: true,
  lostForMs: undefined,
  fault: undefined,
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
  maxUnavailable: 1,
  progressDeadlineMs: 600_000,
  stalledForMs: 0,
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

test('an operator that has seen no renewal yet replaces nothing', () => {
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

test('a dead machine is left out; one that dies in its turn stops the update, and the message says so', () => {
  const dead = node('a', { isOnline: false, isReachable: false });
  const pods = [pod('a', { ...old, isReady: false }), pod('b', old), pod('c')];
  assert.deepEqual(planRollout(view(pods, [dead, ...NODES.slice(1)])).step, { kind: 'begin', node: 'b', drain: true });
  const rest = planRollout(view([pods[0]!, pod('b'), pod('c')], [dead, ...NODES.slice(1)]));
  assert.deepEqual([rest.step.kind, rest.condition.reason], ['none', 'RollingOut']);
  const within = node('a', { ...dead, updatingForMs: 601_000 });
  const late = planRollout(view(pods, [within, ...NODES.slice(1)]));
  assert.deepEqual([late.condition.status, late.condition.reason], ['True', 'ProgressDeadlineExceeded']);
});

/** Of three nodes, b is lost; a and c are fit. */
const lost = (lostForMs: number, over: Partial<RolloutNode> = {}): readonly RolloutNode[] => [
  node('a'),
  node('b', { isOnline: false, lostForMs, ...over }),
  node('c'),
];

test('a node that dies holds the update for ten minutes, whatever Kubernetes says of its machine and pod', () => {
  for (const facts of [{}, { isReachable: false }])
    for (const dead of [old, { ...old, isReady: false, notReadyForMs: 90_000 }]) {
      const pods = [pod('a', old), pod('b', dead), pod('c', old)];
      const held = planRollout(view(pods, lost(599_000, facts)));
      assert.deepEqual([held.step.kind, held.recheckMs], ['none', 1_000]);
      assert.match(held.condition.message, /waits for b/);
      assert.deepEqual(planRollout(view(pods, lost(600_000, facts))).step, { kind: 'begin', node: 'a', drain: true });
    }
});

test('a node that dies while another is updated keeps the pod of that one', () => {
  const pods = [pod('a', old), pod('b', old), pod('c', old)];
  const [, b, c] = lost(1_000);
  const turn = node('a', { updatingForMs: 5_000, isDrained: true, cameras: 0 });
  assert.equal(planRollout(view(pods, [turn, b!, c!])).step.kind, 'none');
});

test('no update of a node begins while no window is open; one that has begun is completed', () => {
  const closedUntilMs = Date.parse('2026-11-28T02:00:00Z');
  const pods = [pod('a', old), pod('b', old), pod('c', old)];
  const closed = planRollout(view(pods, NODES, { closedUntilMs }));
  assert.deepEqual(
    [closed.step.kind, closed.recheckMs, closed.isStalled, closed.condition.message],
    [
      'none',
      30_000,
      false,
      '3 of 3 pods are to be replaced; waits for the window that opens at 2026-11-28T02:00:00.000Z',
    ],
  );
  const turn = [node('a', { updatingForMs: 5_000, isDrained: true, cameras: 0 }), ...NODES.slice(1)];
  assert.equal(planRollout(view(pods, turn, { closedUntilMs })).step.kind, 'delete');
  const broken = [pod('a', { ...old, isReady: false, hasStarted: false }), ...pods.slice(1)];
  const step = { kind: 'delete', pod: 'pod-a', node: 'a' };
  assert.deepEqual(planRollout(view(broken, NODES, { closedUntilMs })).step, step, 'it records nothing anyway');
  const never = planRollout(view(pods, NODES, { closedUntilMs: Infinity }));
  assert.match(never.condition.message, /its time zone is unknown$/);
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
  assert.deepEqual(planRollout(view(pods, NODES)).step, { kind: 'delete', pod: 'pod-a', node: 'a' });
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

const NEVER_STARTED = { isReady: false, hasStarted: false, notReadyForMs: 3_600_000, problem: 'ContainerCreating' };
const OFFLINE = { isOnline: false, lostForMs: 600_000, cameras: 0 };
/** Ways in which a node does not work, and what is said of it. */
const SICK: readonly (readonly [string, Partial<RolloutPod>, Partial<RolloutNode>, RegExp])[] = [
  ['whose pod never started', NEVER_STARTED, OFFLINE, /c \(its pod has not started: ContainerCreating\)/],
  [
    'without its archive',
    { isReady: false, notReadyForMs: 5_000 },
    { fault: 'ArchiveMissing: gone' },
    /cannot record: Arch/,
  ],
  ['that is not ready for a minute', { isReady: false, notReadyForMs: 61_000 }, OFFLINE, /its recorder is not ready/],
  ['whose Lease is silent although its pod is ready', {}, OFFLINE, /its Lease does not change/],
];

for (const [what, podFacts, nodeFacts, said] of SICK) {
  test(`a node ${what} is updated last, and the others do not wait for it`, () => {
    const nodes = [node('a'), node('b'), node('c', nodeFacts)];
    const sick = pod('c', { ...podFacts, ...old });
    const first = planRollout(view([pod('a', old), pod('b', old), sick], nodes));
    assert.deepEqual(first.step, { kind: 'begin', node: 'a', drain: true });
    assert.match(first.condition.message, said);
    const turn = [node('a', { updatingForMs: 5_000, isDrained: true, cameras: 0 }), ...nodes.slice(1)];
    assert.equal(planRollout(view([pod('a', old), pod('b', old), sick], turn)).step.kind, 'delete');
    assert.equal(planRollout(view([pod('a'), pod('b'), sick], turn)).step.kind, 'end');
    assert.deepEqual(planRollout(view([pod('a'), pod('b'), sick], nodes)).step, {
      kind: 'delete',
      pod: 'pod-c',
      node: 'c',
    });
  });
}

test('a pool that is up to date but for a node that does not work says which one, and is not stopped', () => {
  const nodes = [node('a'), node('b'), node('c', OFFLINE)];
  const { step, condition } = planRollout(view([pod('a'), pod('b'), pod('c', NEVER_STARTED)], nodes));
  assert.deepEqual([step.kind, condition.status, condition.reason], ['none', 'False', 'UpToDate']);
  assert.match(condition.message, /^does not wait for c \(its pod has not started/);
});

test('a pod of the new version that started and fails holds up the update: the version may be the cause', () => {
  const nodes = [node('a', OFFLINE), node('b'), node('c')];
  const pods = [pod('a', { isReady: false, notReadyForMs: 100_000 }), pod('b', old), pod('c', old)];
  const { step, condition } = planRollout(view(pods, nodes));
  assert.deepEqual([step.kind, condition.status], ['none', 'False']);
  assert.match(condition.message, /^2 of 3 pods are to be replaced; waits for a \(its recorder is not ready\)$/);
});

test('an update that waits for too long is stopped, and names whom it waits for', () => {
  const nodes = [node('a', { isOnline: false }), node('b'), node('c')];
  const pods = [pod('a', old), pod('b', old), pod('c', old)];
  const waiting = planRollout(view(pods, nodes, { stalledForMs: 599_000 }));
  assert.deepEqual([waiting.isStalled, waiting.condition.status], [true, 'False']);
  const { condition } = planRollout(view(pods, nodes, { stalledForMs: 601_000 }));
  assert.deepEqual([condition.status, condition.reason], ['True', 'ProgressDeadlineExceeded']);
  assert.match(
    condition.message,
    /no pod could be replaced for 600 s: a \(its Lease does not change\); the update waits/,
  );
});

test('maxUnavailable nodes are updated at a time, but no voter that the majority needs', () => {
  const begun = (facts: Partial<RolloutNode>, count: number): (string | undefined)[] => {
    let nodes = ['a', 'b', 'c', 'd', 'e'].map((name) => node(name, facts));
    const pods = nodes.map(({ name }) => pod(name, old));
    return Array.from({ length: count }, () => {
      const { step } = planRollout(view(pods, nodes, { maxUnavailable: 3 }));
      if (step.kind !== 'begin') return undefined;
      nodes = nodes.map((one) => (one.name === step.node ? { ...one, updatingForMs: 1, isDrained: true } : one));
      return step.node;
    });
  };
  assert.deepEqual(begun({ isVoter: false }, 4), ['a', 'b', 'c', undefined]);
  assert.deepEqual(begun({ isVoter: true }, 4), ['a', 'b', undefined, undefined]);
});

test('a share of all nodes is updated at a time, at least one, and the first one alone', () => {
  const away = (share: string, size: number, first: Partial<RolloutPod> = {}): number => {
    const pods = Array.from({ length: size }, (_, i) => pod(`n${i}`, i === 0 ? first : old));
    let nodes = pods.map((one) => node(one.node, { isVoter: false }));
    for (let count = 0; ; count++) {
      const { step } = planRollout(view(pods, nodes, { maxUnavailable: share }));
      if (step.kind !== 'begin') return count;
      nodes = nodes.map((one) => (one.name === step.node ? { ...one, updatingForMs: 1, isDrained: true } : one));
    }
  };
  assert.deepEqual([away('2%', 3), away('2%', 99), away('2%', 400), away('100%', 5)], [1, 1, 8, 4]);
  assert.equal(away('2%', 400, old), 1);
});

test('an update of any pool, some of whose nodes do not work, replaces every pod and takes no more away than it may', () => {
  const chance = seeded();
  for (let world = 0; world < 300; world++) {
    const size = 1 + Math.floor(chance() * 7);
    const maxUnavailable = 1 + Math.floor(chance() * 3);
    let pods: RolloutPod[] = [];
    let nodes: RolloutNode[] = [];
    for (let i = 0; i < size; i++) {
      const sick = chance() < 0.3 ? SICK[Math.floor(chance() * SICK.length)] : undefined;
      pods.push(pod(`n${i}`, { ...sick?.[1], ...old }));
      nodes.push(node(`n${i}`, { isVoter: chance() < 0.5, ...sick?.[2] }));
    }
    const sickNodes = new Set(nodes.filter((one, i) => !one.isOnline || !pods[i]?.isReady).map(({ name }) => name));
    const replacedSick: string[] = [];
    for (let steps = 0; steps < 200; steps++) {
      const { step, condition } = planRollout(view(pods, nodes, { leader: 'n0', maxUnavailable }));
      assert.equal(condition.status, 'False');
      if (step.kind === 'none') break;
      const change = (facts: Partial<RolloutNode>) => {
        nodes = nodes.map((one) => (one.name === step.node ? { ...one, ...facts } : one));
      };
      if (step.kind === 'begin') change({ updatingForMs: 1, isDrained: step.drain, cameras: 0 });
      else if (step.kind === 'end') change({ updatingForMs: undefined, isDrained: false, cameras: 5 });
      else {
        if (sickNodes.has(step.node)) replacedSick.push(step.node);
        else assert.deepEqual(replacedSick, [], 'those that do not work come last');
        pods = pods.map((one) => (one.name === step.pod ? { ...one, isCurrent: true } : one));
      }
      const away = nodes.filter(({ updatingForMs }) => updatingForMs !== undefined);
      assert.ok(away.length <= maxUnavailable, `${away.length} away`);
    }
    assert.ok(pods.every(({ isCurrent }) => isCurrent) && nodes.every((one) => one.updatingForMs === undefined));
  }
});

test('an update that gets no new pod for a node stops there, and says so', () => {
  const pods = [pod('b', old), pod('c', old)];
  const without = (updatingForMs: number) =>
    planRollout(view(pods, [node('a', { updatingForMs }), ...NODES.slice(1)])).condition;
  assert.equal(without(600_000).status, 'False');
  assert.deepEqual(
    [without(600_001).status, without(600_001).message],
    ['True', 'no pod was made on a within 600 s; the update waits'],
  );
});

test('a pod that cannot be scheduled says so, also while its machine is not ready', () => {
  const full = pod('a', { ...old, isReady: false, hasStarted: false, unscheduled: '1 Insufficient memory' });
  for (const isReachable of [true, false]) {
    const nodes = [node('a', { isOnline: false, isReachable }), ...NODES.slice(1)];
    const { step, condition } = planRollout(view([full, pod('b', old), pod('c')], nodes));
    assert.deepEqual(step, { kind: 'begin', node: 'b', drain: true });
    assert.match(condition.message, /does not wait for a \(its pod cannot be scheduled: 1 Insufficient memory\)/);
  }
});
