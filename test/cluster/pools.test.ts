// Two pools of one namespace that select the same nodes: created at the same moment, neither disturbs the other.

import { suite, test } from 'node:test';
import assert from 'node:assert/strict';
import type { CameraAssignment } from '../../crds/camera.ts';
import { nodeLeaseName, POOL_LABEL } from '../../crds/names.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import type { Camera } from '../camera/camera.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, NAMESPACE, poolOfAllNodes, resource, RESOURCES } from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 120_000;
const NODES = ['node-1', 'node-2'];
const POOLS = ['default', 'second'];

type WithConditions = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };
type NodeObject = KubeObject & {
  readonly spec: { readonly poolRef: { readonly name: string } };
  readonly status?: RecorderNodeStatus;
};
type CameraObject = WithConditions & { readonly status?: { readonly assignment?: CameraAssignment } };
type Lease = KubeObject & { readonly spec?: { readonly leaseTransitions?: number; readonly renewTime?: string } };
type Pod = KubeObject & { readonly spec: { readonly nodeName?: string } };

let cluster: Cluster;
let camera: Camera;

const nodes = (): Promise<readonly NodeObject[]> => cluster.api.list(`${RESOURCES}/recordernodes`);
const podsOf = (pool: string): Promise<readonly Pod[]> =>
  cluster.api.list(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=${POOL_LABEL}=${pool}`);
const leaseOf = (node: string): Promise<Lease> =>
  cluster.api.get(`/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${nodeLeaseName(node)}`);

suite('two pools of a namespace', { skip: clusterMissing() }, () => {
  onStage({
    nodes: NODES.length,
    begin: async (...stage) => {
      [cluster, camera] = stage;
    },
  });

  test('of two pools that are created at once, each node records for one, and the other runs nothing there', async () => {
    const pool = poolOfAllNodes();
    const second = { ...pool, metadata: { name: 'second', namespace: NAMESPACE } };
    const cameras = POOLS.map((poolName) =>
      resource('Camera', `of-${poolName}`, { source: camera.url, transport: 'Tcp', poolRef: { name: poolName } }),
    );
    await apply(cluster.controlPlane, [pool, second, ...cameras]);
    const poolOf = await until(
      'each node has one recorder, which reports its archive',
      async () => {
        const found = await nodes();
        const owners = new Map(found.map(({ metadata, spec }) => [metadata.name, spec.poolRef.name]));
        for (const name of POOLS) {
          for (const { spec } of await podsOf(name)) if (owners.get(spec.nodeName ?? '') !== name) return false;
        }
        return found.length === NODES.length && found.every(({ status }) => status?.archiveID) && owners;
      },
      SLOW_MS,
    );
    for (const name of POOLS) {
      const isLeftOut = NODES.some((node) => poolOf.get(node) !== name);
      await until(
        `${name} says which nodes it does not get`,
        async () => {
          const { status } = await cluster.api.get<WithConditions>(`${RESOURCES}/recorderpools/${name}`);
          const taken = status?.conditions?.find(({ type }) => type === 'NodesTaken');
          return taken?.status === (isLeftOut ? 'True' : 'False');
        },
        SLOW_MS,
      );
    }
    const recorded = POOLS.filter((name) => NODES.some((node) => poolOf.get(node) === name));
    const untilRecorded = (name: string): Promise<CameraObject> =>
      until(
        `of-${name} is recorded`,
        async () => {
          const found = await cluster.api.get<CameraObject>(`${RESOURCES}/cameras/of-${name}`);
          return found.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') && found;
        },
        SLOW_MS,
      );
    const before = await Promise.all(recorded.map(untilRecorded));
    const leases = await Promise.all(NODES.map(leaseOf));
    const archives = (await nodes()).map(({ status }) => status?.archiveID);
    // Over ten renewals of each node.
    await Promise.all(
      NODES.map(async (node) => {
        const seen = new Set<string | undefined>();
        const renewedOften = async (): Promise<boolean> => seen.add((await leaseOf(node)).spec?.renewTime).size > 10;
        await until(`${node} has renewed its Lease ten times`, renewedOften, SLOW_MS);
      }),
    );
    assert.deepEqual(
      (await Promise.all(NODES.map(leaseOf))).map(({ spec }) => spec?.leaseTransitions),
      leases.map(({ spec }) => spec?.leaseTransitions),
      'nobody else takes a Lease',
    );
    assert.deepEqual(
      (await nodes()).map(({ status }) => status?.archiveID),
      archives,
      'nobody else reports for a node',
    );
    const now = await Promise.all(recorded.map(untilRecorded));
    assert.deepEqual(
      now.map(({ status }) => status?.assignment?.epoch),
      before.map(({ status }) => status?.assignment?.epoch),
      'no camera has moved',
    );
  });
});
