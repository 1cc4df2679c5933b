import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIVE, nodeOf, recordedBy, snapshotOf, UNAVAILABLE } from '../test/support/snapshots.ts';
import { OperatorMetrics } from './metrics.ts';
import { plan } from './plan/plan.ts';

function setup() {
  const replica = { leads: true };
  const metrics = new OperatorMetrics();
  metrics.follow({ isLeader: () => replica.leads, watches: () => [], queues: () => [] });
  const series = async (name: string): Promise<readonly string[]> =>
    (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith(`kube_nvr_operator_${name}{`));
  return { replica, metrics, series };
}

const SNAPSHOT = snapshotOf(
  [nodeOf('a', { liveness: LIVE }), nodeOf('b', { liveness: UNAVAILABLE })],
  [recordedBy('gate', 'a')],
);

test('each node of a pool is live or not, as the leader last saw it; one that left is gone', async () => {
  const { metrics, series } = setup();
  metrics.planned('video', 'default', plan(SNAPSHOT), SNAPSHOT);
  const of = 'namespace="video",pool="default"';
  assert.deepEqual(await series('node_live'), [
    `kube_nvr_operator_node_live{${of},node="a"} 1`,
    `kube_nvr_operator_node_live{${of},node="b"} 0`,
  ]);
  const without = { ...SNAPSHOT, nodes: SNAPSHOT.nodes.slice(0, 1) };
  metrics.planned('video', 'default', plan(without), without);
  assert.deepEqual(await series('node_live'), [`kube_nvr_operator_node_live{${of},node="a"} 1`]);
  assert.deepEqual(await series('cameras'), [
    `kube_nvr_operator_cameras{${of},state="assigned"} 1`,
    `kube_nvr_operator_cameras{${of},state="unassigned"} 0`,
    `kube_nvr_operator_cameras{${of},state="suspended"} 0`,
  ]);
  assert.deepEqual(await series('cameras_suspect'), [`kube_nvr_operator_cameras_suspect{${of}} 0`]);
  const suspect = recordedBy('gate', 'a', {
    assignment: { node: 'a', epoch: 3, handover: 'Complete', reason: 'NodeUnavailable', lostNodes: ['a', 'b'] },
  });
  metrics.planned('video', 'default', plan(SNAPSHOT), { ...SNAPSHOT, cameras: [suspect] });
  assert.deepEqual(await series('cameras_suspect'), [`kube_nvr_operator_cameras_suspect{${of}} 1`]);
  metrics.forget('video', 'default');
  assert.deepEqual(await series('node_live'), []);
});

test('a node whose recorder never started is not offline, but not started', async () => {
  const { metrics, series } = setup();
  const fresh = nodeOf('c', { liveness: UNAVAILABLE, hasReported: false });
  const snapshot = { ...SNAPSHOT, nodes: [nodeOf('a', { liveness: LIVE }), fresh] };
  metrics.planned('video', 'default', plan(snapshot), snapshot);
  const of = 'namespace="video",pool="default"';
  assert.deepEqual(await series('node_live'), [`kube_nvr_operator_node_live{${of},node="a"} 1`]);
  assert.deepEqual(await series('node_started'), [
    `kube_nvr_operator_node_started{${of},node="a"} 1`,
    `kube_nvr_operator_node_started{${of},node="c"} 0`,
  ]);
});

test('a replica that does not lead any more says nothing of pools, so that nothing old is believed', async () => {
  const { replica, metrics, series } = setup();
  metrics.planned('video', 'default', plan(SNAPSHOT), SNAPSHOT);
  replica.leads = false;
  for (const name of ['nodes', 'node_live', 'node_started', 'cameras', 'cameras_suspect', 'failover_suspended'])
    assert.deepEqual(await series(name), []);
  replica.leads = true;
  assert.equal((await series('nodes')).length, 3);
});

test('what never happened is 0, so that the first time is an increase', async () => {
  const { metrics, series } = setup();
  metrics.queue('camera');
  metrics.planned('video', 'default', plan(SNAPSHOT), SNAPSHOT);
  assert.ok((await series('reconcile_total')).includes(line('reconcile_total', 'controller="camera",outcome="error"')));
  const moves = 'namespace="video",pool="default",reason="NodeUnavailable"';
  assert.ok((await series('assignments_total')).includes(line('assignments_total', moves)));
  metrics.knows({ namespace: 'video', name: 'default' }, 'a');
  const failover = 'namespace="video",pool="default",node="a"';
  assert.deepEqual(await series('failovers_total'), [line('failovers_total', failover)]);
});

test('a failover counts for the node that lost the camera; a drain is none', async () => {
  const { metrics, series } = setup();
  for (const reason of ['Drain', 'NodeUnavailable', 'NotTakenUp']) {
    metrics.moved('video', 'default', { node: 'b', previousNode: 'a', epoch: 2, reason });
  }
  assert.deepEqual(await series('failovers_total'), [
    'kube_nvr_operator_failovers_total{namespace="video",pool="default",node="a"} 2',
  ]);
  assert.equal((await series('assignments_total')).length, 3);
});

const line = (name: string, labels: string): string => `kube_nvr_operator_${name}{${labels}} 0`;

test('queues are counted under the names that dashboards for programs of Kubernetes know, and all else under ours', async () => {
  const { metrics } = setup();
  metrics.queue('camera').added();
  metrics.reconciled('camera', 'success', 0.1);
  metrics.informer({ group: '', version: 'v1', plural: 'cameras', kind: 'Camera' }).relisted();
  const names = metrics.registry.getMetricsAsArray().map(({ name }) => name);
  for (const name of [
    'workqueue_depth',
    'workqueue_adds_total',
    'workqueue_queue_duration_seconds',
    'workqueue_work_duration_seconds',
    'workqueue_retries_total',
    'workqueue_unfinished_work_seconds',
    'kube_nvr_operator_reconcile_total',
    'kube_nvr_operator_reconcile_duration_seconds',
    'kube_nvr_operator_watch_age_seconds',
    'kube_nvr_operator_relist_misses_total',
    'kube_nvr_operator_leader',
  ])
    assert.ok(names.includes(name), name);
  const text = await metrics.registry.metrics();
  assert.match(text, /^workqueue_adds_total\{name="camera"\} 1$/m);
  assert.match(text, /^kube_nvr_operator_reconcile_total\{controller="camera",outcome="success"\} 1$/m);
  assert.match(text, /^kube_nvr_operator_leader 1$/m);
});

test('no metric of the operator names a camera', async () => {
  const { metrics } = setup();
  const snapshot = { ...SNAPSHOT, cameras: [recordedBy('garden-gate', 'a')] };
  metrics.planned('video', 'default', plan(snapshot), snapshot);
  metrics.moved('video', 'default', { node: 'b', previousNode: 'a', epoch: 2, reason: 'NodeUnavailable' });
  metrics.queue('camera').added();
  assert.doesNotMatch(await metrics.registry.metrics(), /garden-gate/);
  const ours = metrics.registry.getMetricsAsArray().filter(({ name }) => /^(kube_nvr|workqueue)_/.test(name));
  const labels = new Set(ours.flatMap((metric) => (metric as unknown as { labelNames: readonly string[] }).labelNames));
  assert.deepEqual([...labels].sort(), [
    'controller',
    'name',
    'namespace',
    'node',
    'outcome',
    'pool',
    'reason',
    'resource',
    'state',
    'type',
    'verb',
  ]);
});
