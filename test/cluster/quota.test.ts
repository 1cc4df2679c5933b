// A ResourceQuota that admits no pod: the API server refuses it, the DaemonSet controller goes on trying, and the pool says so.

import { suite, test } from 'node:test';
import assert from 'node:assert/strict';
import type { Condition } from '../../crds/schema-parts.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, NAMESPACE, poolOfAllNodes, RESOURCES } from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 180_000;
const QUOTA = `/api/v1/namespaces/${NAMESPACE}/resourcequotas`;

type Pool = KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } };

let cluster: Cluster;

async function placed(): Promise<Condition | undefined> {
  const { status } = await cluster.api.get<Pool>(`${RESOURCES}/recorderpools/default`);
  return status?.conditions?.find(({ type }) => type === 'PodsPlaced');
}

suite('a quota of pods', { skip: clusterMissing() }, () => {
  onStage({
    nodes: 1,
    begin: async (started) => {
      cluster = started;
      await cluster.api.create(QUOTA, { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } });
      // The API server enforces a quota once the controller has counted what is used.
      await until(
        'the quota is counted',
        async () =>
          (await cluster.api.get<KubeObject & { status?: { hard?: object } }>(`${QUOTA}/none`)).status?.hard !==
          undefined,
        SLOW_MS,
      );
      await apply(cluster.controlPlane, [poolOfAllNodes()]);
    },
  });

  test('the pool names the node for which no pod is made, and the place that says why, until the quota allows it', async () => {
    const condition = await until(
      'the pool says so',
      async () => {
        const found = await placed();
        return found?.status === 'False' && found;
      },
      SLOW_MS,
    );
    const command = `kubectl -n ${NAMESPACE} describe daemonset default-recorder`;
    assert.deepEqual(
      [condition.reason, condition.message],
      ['NoPod', `no pod is made for node-1; its events say why: ${command}`],
    );
    const said = await cluster.kubectl(command.split(' ').slice(1));
    assert.match(said, /exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0/);

    await cluster.api.delete(`${QUOTA}/none`);
    await until('the node has its pod', async () => (await placed())?.reason === 'AllPlaced', SLOW_MS);
  });
});
