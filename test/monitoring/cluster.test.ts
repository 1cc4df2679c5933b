// A real Prometheus, a real operator and recorders on a real Kubernetes: what alerts of the operator say when nodes die,
// when no node fits and when nobody leads, and that the dashboards' questions about it have answers.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import type { CameraAssignment } from '../../crds/camera.ts';
import { metricsOf, seriesOf } from '../../hack/monitoring/metrics.ts';
import { startCamera } from '../camera/camera.ts';
import type { KubeObject } from '../cluster/api-client.ts';
import { clusterMissing, startCluster } from '../cluster/cluster.ts';
import { OWN_IMAGES } from '../cluster/own-images.ts';
import { apply, makeArchives, poolOfAllNodes, resource, RESOURCES, startOperator } from '../cluster/own-operator.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';
import { unanswered } from './panels.ts';
import { Prometheus } from './prometheus.ts';
import { prometheusMissing } from './rule-files.ts';

const skip = prometheusMissing() || clusterMissing();
const SLOW_MS = 120_000;
const POOL = { namespace: 'default', pool: 'default' };
/** Whether nodes fail over in time is another test's. */
const FAILOVER = { renewSeconds: 1, unavailableAfterSeconds: 6 };

type CameraObject = KubeObject & { readonly status?: { readonly assignment?: CameraAssignment } };
type PoolObject = KubeObject & { readonly status?: { readonly voters?: readonly string[] } };

test(
  'a cluster: every alert about nodes and leader in its fault and after, every panel with data',
  { skip },
  async (t) => {
    const logs = workspace(t);
    await using prometheus = await Prometheus.start();
    await using cluster = await startCluster({ nodes: 3, images: OWN_IMAGES });
    await prometheus.fires('KubeNvrOperatorNotLeading');
    makeArchives(cluster);
    await cluster.controlPlane.installKinds();
    await using source = await startCamera({ pace: 'realtime', host: cluster.network.addresses.cameras });
    let operator = await startOperator(cluster.controlPlane, logs);
    t.after(() => operator.program.kill());
    const camera = (name: string, more: Readonly<Record<string, unknown>> = {}) =>
      resource('Camera', name, { source: source.url, transport: 'Tcp', ...more });

    prometheus.scrape('kube-nvr-operator', { operator: operator.address });
    await apply(cluster.controlPlane, [
      poolOfAllNodes({ failover: FAILOVER }),
      camera('gate'),
      camera('nowhere', { placement: { nodeSelector: { of: 'none' } } }),
    ]);
    prometheus.scrape(
      'kube-nvr-recorder',
      Object.fromEntries(cluster.nodes.map(({ name, address }) => [name, `${address}:9998`])),
    );
    await prometheus.clears('KubeNvrOperatorNotLeading');

    const ownerOfGate = async (): Promise<string | undefined> =>
      (await cluster.api.get<CameraObject>(`${RESOURCES}/cameras/gate`)).status?.assignment?.node;
    await until(
      'three nodes vote and one of them records',
      async () => {
        const pool = await cluster.api.get<PoolObject>(`${RESOURCES}/recorderpools/default`);
        const answers = await prometheus.numbersOf('kube_nvr_camera_state{camera="gate",state="recording"} == 1');
        return pool.status?.voters?.length === 3 && answers > 0;
      },
      SLOW_MS,
    );
    const unassigned = await prometheus.fires('KubeNvrCamerasUnassigned', POOL);
    assert.match(unassigned.annotations['summary'] ?? '', /^[12] cameras of pool default are recorded by no node$/);
    await cluster.api.delete(`${RESOURCES}/cameras/nowhere`);
    await prometheus.clears('KubeNvrCamerasUnassigned');

    // One node dies, then the node that took its camera: less than a majority is left.
    const first = (await ownerOfGate()) ?? '';
    await cluster.node(first).kill();
    const offline = await prometheus.fires('KubeNvrNodeOffline', { ...POOL, node: first });
    assert.equal(offline.annotations['summary'], `Node ${first} of pool default is offline`);
    const moved = await prometheus.fires('KubeNvrFailoverHappened', { ...POOL, node: first });
    assert.equal(moved.annotations['summary'], `Cameras were taken from node ${first}`);
    const second = await until('another node has it', async () => {
      const owner = await ownerOfGate();
      return owner !== first && owner;
    });
    await cluster.node(second).kill();
    const suspended = await prometheus.fires('KubeNvrFailoverSuspended', POOL);
    assert.equal(suspended.annotations['summary'], 'Failover of pool default is suspended');
    await Promise.all([first, second].map((node) => cluster.node(node).start()));
    await prometheus.clears('KubeNvrFailoverSuspended');
    await prometheus.clears('KubeNvrNodeOffline');
    await prometheus.clears('KubeNvrFailoverHappened');

    // The only operator dies, and another one takes over.
    await operator.program.kill();
    await prometheus.fires('KubeNvrOperatorNotLeading');
    operator = await startOperator(cluster.controlPlane, logs);
    prometheus.scrape('kube-nvr-operator', { operator: operator.address });
    await prometheus.clears('KubeNvrOperatorNotLeading');

    assert.deepEqual(await unanswered(prometheus, 'operator'), []);

    // Nothing is scraped that docs/metrics.md does not have, and nothing of it is missing.
    const known = metricsOf('operator').flatMap((metric) => [...seriesOf(metric).keys()]);
    const seen = await prometheus.names('kube-nvr-operator');
    const ours = (names: readonly string[]) => names.filter((name) => name.startsWith('kube_nvr_')).sort();
    assert.deepEqual(ours(seen), ours(known));
  },
);
