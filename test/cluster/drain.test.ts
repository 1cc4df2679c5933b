// Kubernetes' own ways to empty a node, with kubectl on a real API server: cordon and drain. The footage on all disks tells
// whether a second was lost.

import { suite, test } from 'node:test';
import assert from 'node:assert/strict';
import type { CameraAssignment } from '../../crds/camera.ts';
import { CAMERA_HOSTS, guardName } from '../../crds/names.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import { footageOf, holesIn } from '../bench/failover/footage.ts';
import type { Camera } from '../camera/camera.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import {
  apply,
  archiveOf,
  NAMESPACE,
  poolOfAllNodes,
  resource,
  RESOURCES,
  startOperator,
  untilAllVote,
  type OwnOperator,
} from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 120_000;
const CAMERAS = ['dock', 'gate', 'hall', 'yard'];
const DRAIN = ['--ignore-daemonsets', '--delete-emptydir-data', '--timeout=110s'];

type CameraObject = KubeObject & { readonly status?: { readonly assignment?: CameraAssignment } };
type NodeObject = KubeObject & { readonly status?: RecorderNodeStatus };
type Pod = KubeObject & {
  readonly spec: { readonly nodeName: string };
  readonly status?: { readonly conditions?: readonly Condition[] };
};

let cluster: Cluster;
let camera: Camera;
let operator: OwnOperator;

const assignmentOf = async (name: string): Promise<CameraAssignment | undefined> =>
  (await cluster.api.get<CameraObject>(`${RESOURCES}/cameras/${name}`)).status?.assignment;

/** The cameras of a node, and those that it records until a handover ends. */
async function camerasOf(node: string): Promise<readonly string[]> {
  const cameras = await cluster.api.list<CameraObject>(`${RESOURCES}/cameras`);
  const isOn = ({ status }: CameraObject): boolean =>
    status?.assignment?.node === node ||
    (status?.assignment?.handover === 'Pending' && status.assignment.previousNode === node);
  return cameras.filter(isOn).map(({ metadata }) => metadata.name);
}

async function drainedOf(node: string): Promise<Condition | undefined> {
  const { status } = await cluster.api.get<NodeObject>(`${RESOURCES}/recordernodes/${node}`);
  return status?.conditions?.find(({ type }) => type === 'Drained');
}

const guards = (): Promise<readonly Pod[]> =>
  cluster.api.list<Pod>(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=app.kubernetes.io/component=guard`);

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;

/** Waits until exactly the nodes with cameras have a guard, and none may be evicted. */
async function untilGuarded(): Promise<void> {
  await until(
    'the nodes with cameras are guarded',
    async () => {
      const busy: string[] = [];
      for (const { name } of cluster.nodes) if ((await camerasOf(name)).length > 0) busy.push(name);
      const there = await guards();
      const path = `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets/default-recorder`;
      const budget = await cluster.api.get<KubeObject & { spec: { minAvailable: number }; status?: Json }>(path);
      return (
        there.every(isReady) &&
        there
          .map(({ spec }) => spec.nodeName)
          .sort()
          .join() === busy.sort().join() &&
        budget.spec.minAvailable === busy.length &&
        budget.status?.['currentHealthy'] === busy.length &&
        budget.status['disruptionsAllowed'] === 0
      );
    },
    SLOW_MS,
  );
}

type Json = Readonly<Record<string, unknown>>;

/** Asserts that from one moment to another each camera was written to some disk all the time. */
async function nothingIsMissing(fromMs: number, toMs: number, cameras = CAMERAS): Promise<void> {
  const disks = cluster.nodes.map(({ name }) => ({ node: name, root: archiveOf(cluster, name) }));
  // Of one look: that a file is closed changes its end, of which an open one has only a guess.
  const pieces = await until('the footage of that time is on the disks', async () => {
    const found = await footageOf(disks, cameras, fromMs);
    return cameras.every((name) => found.get(name)?.some((piece) => piece.toMs > toMs)) && found;
  });
  for (const name of cameras) {
    const own = pieces.get(name) ?? [];
    assert.deepEqual(holesIn(own, fromMs, toMs), [], `${name} in ${JSON.stringify(own)}`);
  }
}

const untilAllRecord = (): Promise<unknown> =>
  until(
    'all cameras are recorded',
    async () => {
      const list = await cluster.api.list<CameraObject & { status?: { conditions?: readonly Condition[] } }>(
        `${RESOURCES}/cameras`,
      );
      return (
        list.length === CAMERAS.length &&
        list.every(({ status }) =>
          status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
        )
      );
    },
    SLOW_MS,
  );

/** No camera is on a visit. */
const untilAtHome = (): Promise<unknown> =>
  until(
    'all cameras are at home',
    async () => {
      const assignments = await Promise.all(CAMERAS.map(assignmentOf));
      return assignments.every((one) => one?.handover === 'Complete' && (one.home ?? one.node) === one.node);
    },
    SLOW_MS,
  );

const patchPool = (spec: Json): Promise<unknown> =>
  cluster.api.patch(`${RESOURCES}/recorderpools/default`, 'merge', { spec });
const kubectl = (...args: string[]): Promise<string> => cluster.kubectl(args);
const drain = (node: string): Promise<string> => kubectl('drain', node, ...DRAIN);

suite('cordon and drain', { skip: clusterMissing() }, () => {
  onStage({
    nodes: 3,
    operator: async ({ controlPlane, directory }) => {
      operator = await startOperator(controlPlane, directory);
      return () => operator.program.kill();
    },
    begin: async (...stage) => {
      [cluster, camera] = stage;
      await apply(cluster.controlPlane, [poolOfAllNodes()]);
      await untilAllVote(cluster);
      await apply(
        cluster.controlPlane,
        CAMERAS.map((name) => resource('Camera', name, { source: camera.url, transport: 'Tcp' })),
      );
      await untilAllRecord();
    },
  });

  test('kubectl drain waits until the node has handed over its cameras, of which nothing is missing', async () => {
    await untilGuarded();
    const { node = '' } = (await assignmentOf('gate')) ?? {};
    const before = await camerasOf(node);
    assert.ok(before.length > 0);
    const startMs = Date.now();
    const said = await drain(node);
    const endMs = Date.now();
    assert.deepEqual(await camerasOf(node), [], 'it has none when kubectl is done');
    assert.match(said, new RegExp(`evicting pod ${NAMESPACE}/${guardName(node)}`));
    const drained = await until('it says so', async () => {
      const condition = await drainedOf(node);
      return condition?.status === 'True' && condition;
    });
    assert.deepEqual(
      [drained.reason, drained.message],
      ['Empty', 'the Kubernetes node is cordoned; no camera is recorded here'],
    );
    const shown = await kubectl('get', 'recordernodes', node, '-n', NAMESPACE);
    assert.match(shown, /^NAME +ROLE +DRAIN .*\n\S+ +\w+ +true /, 'the column DRAIN shows it, too');
    await nothingIsMissing(startMs - 1_000, endMs);
    await untilGuarded();

    await kubectl('uncordon', node);
    await until('it is not drained any more', async () => (await drainedOf(node)) === undefined);
    await until('it has its cameras back', async () => (await camerasOf(node)).join() === before.join(), SLOW_MS);
    await nothingIsMissing(startMs - 1_000, Date.now());
    await untilGuarded();
  });

  test('a node that an autoscaler is about to remove hands over its cameras', async () => {
    const { node = '' } = (await assignmentOf('yard')) ?? {};
    const startMs = Date.now();
    await kubectl('taint', 'node', node, `ToBeDeletedByClusterAutoscaler=${Math.round(startMs / 1_000)}:NoSchedule`);
    await until('it is empty', async () => (await camerasOf(node)).length === 0, SLOW_MS);
    await nothingIsMissing(startMs - 1_000, Date.now());
    await kubectl('taint', 'node', node, 'ToBeDeletedByClusterAutoscaler-');
    await untilAllRecord();
  });

  test('a node whose label is removed hands over its cameras before its recorder ends, and has them back with the label', async () => {
    await untilAtHome();
    for (const { name } of cluster.nodes) await kubectl('label', 'node', name, 'recorder=true');
    const pods = (): Promise<readonly Pod[]> =>
      cluster.api.list<Pod>(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=app.kubernetes.io/component=recorder`);
    const uids = (list: readonly Pod[]) => list.map(({ metadata }) => metadata.uid).sort();
    const before = uids(await pods());
    await patchPool({ nodeSelector: { recorder: 'true' } });
    const daemonSet = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/default-recorder`;
    await until('the nodes are selected', async () =>
      JSON.stringify(await cluster.api.get(daemonSet)).includes('"values":["true"]'),
    );
    const { node = '' } = (await assignmentOf('hall')) ?? {};
    const own = await camerasOf(node);
    const startMs = Date.now();
    await kubectl('label', 'node', node, 'recorder-');
    const isThere = async (): Promise<boolean> => (await pods()).some(({ spec }) => spec.nodeName === node);
    await until('its recorder has ended', async () => !(await isThere()), SLOW_MS);
    assert.deepEqual(await camerasOf(node), [], 'they left before');
    await nothingIsMissing(startMs - 1_000, Date.now());

    await kubectl('label', 'node', node, 'recorder=true');
    await until('it has its cameras back', async () => (await camerasOf(node)).join() === own.join(), SLOW_MS);
    await nothingIsMissing(startMs - 1_000, Date.now());
    const after = uids(await pods());
    assert.equal(after.filter((uid) => before.includes(uid)).length, before.length - 1, 'other pods stay as they were');
    await patchPool({ nodeSelector: null });
    await untilGuarded();
  });

  test('cameras of a node that evicts its recorder are moved as soon as the recorder says that it ends', async () => {
    // By its silence alone, the node would be lost long after this test has given up.
    await patchPool({ failover: { unavailableAfterSeconds: 600 } });
    const { node = '' } = (await assignmentOf('hall')) ?? {};
    const own = await camerasOf(node);
    await kubectl('taint', 'node', node, 'maintenance=yes:NoExecute');
    await until('it is empty', async () => (await camerasOf(node)).length === 0, SLOW_MS);
    await untilAllRecord();
    await kubectl('taint', 'node', node, 'maintenance-');
    await until('its recorder is back', async () => (await drainedOf(node)) === undefined, SLOW_MS);
    await patchPool({ failover: { unavailableAfterSeconds: 15, failbackAfterSeconds: 30 } });
    await until('it has its cameras back', async () => (await camerasOf(node)).join() === own.join(), SLOW_MS);
    await patchPool({ failover: null });
    await untilGuarded();
  });

  test('the last node keeps its cameras, and kubectl drain does not wait for them', async () => {
    await untilGuarded();
    const last = cluster.nodes.at(-1)?.name ?? '';
    for (const { name } of cluster.nodes) if (name !== last) await drain(name);
    assert.equal((await camerasOf(last)).length, CAMERAS.length);
    const startMs = Date.now();
    await drain(last);
    assert.equal((await camerasOf(last)).length, CAMERAS.length);
    const drained = await until('it says so', async () => {
      const condition = await drainedOf(last);
      return condition?.status === 'False' && condition;
    });
    assert.equal(drained.reason, 'NoOtherNode');
    await nothingIsMissing(startMs - 1_000, Date.now());
    for (const { name } of cluster.nodes) await kubectl('uncordon', name);
    await untilGuarded();
  });

  test('a camera whose Secret has vanished stays on the node that has its login, also when that is drained', async () => {
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'vault-login', namespace: NAMESPACE, annotations: { [CAMERA_HOSTS]: '*' } },
      stringData: { username: 'viewer', password: 's3cret' },
    };
    const conditionOf = async (type: string): Promise<Condition | undefined> => {
      const vault = await cluster.api.get<KubeObject & { status?: { conditions?: readonly Condition[] } }>(
        `${RESOURCES}/cameras/vault`,
      );
      return vault.status?.conditions?.find((one) => one.type === type);
    };
    await patchPool({ cordon: { progressDeadlineSeconds: 10 } });
    const spec = { source: camera.url, transport: 'Tcp', credentialsSecretRef: { name: 'vault-login' } };
    await apply(cluster.controlPlane, [secret, resource('Camera', 'vault', spec)]);
    await until('it is recorded', async () => (await conditionOf('Ready'))?.status === 'True', SLOW_MS);
    const { node = '' } = (await assignmentOf('vault')) ?? {};
    const startMs = Date.now();
    await kubectl('delete', 'secret', 'vault-login');
    // One that has just started reads every Secret.
    await operator.program.stop();
    operator = await startOperator(cluster.controlPlane, cluster.directory);
    await until(
      'it is shown',
      async () => (await conditionOf('CredentialsResolved'))?.reason === 'SecretGone',
      SLOW_MS,
    );
    assert.equal((await conditionOf('Recording'))?.status, 'True');
    await drain(node);
    assert.deepEqual(await camerasOf(node), ['vault']);
    const isOver = async (): Promise<boolean> => {
      const { time = '' } = (await assignmentOf('vault')) ?? {};
      return Date.now() - Date.parse(time) > 40_000;
    };
    await until('the time is over after which handovers were forced', isOver, SLOW_MS);
    assert.deepEqual(await camerasOf(node), ['vault']);
    assert.deepEqual(
      [(await drainedOf(node))?.reason, (await conditionOf('Recording'))?.status],
      ['NotMoving', 'True'],
    );
    await apply(cluster.controlPlane, [secret]);
    await until('it has left', async () => (await camerasOf(node)).length === 0, SLOW_MS);
    await nothingIsMissing(startMs, Date.now(), ['vault']);
    await kubectl('uncordon', node);
    await kubectl('delete', 'camera', 'vault');
    await patchPool({ cordon: { progressDeadlineSeconds: 600 } });
    await untilGuarded();
  });

  test('a pool that ignores cordons has no guards, and its cameras stay', async () => {
    await patchPool({ cordon: { mode: 'Ignore' } });
    await until('there are no guards', async () => (await guards()).length === 0, SLOW_MS);
    const { node = '' } = (await assignmentOf('gate')) ?? {};
    const before = await camerasOf(node);
    await drain(node);
    assert.deepEqual(await camerasOf(node), before);
    await patchPool({ cordon: { mode: 'Drain' } });
    await until('it is empty', async () => (await camerasOf(node)).length === 0, SLOW_MS);
  });
});
