// A real Prometheus, a real operator and recorders on a real Kubernetes: what alerts of the operator say when nodes die,
// when no node fits, when nobody leads, when the API server refuses, hangs or is not heard, and that the dashboards'
// questions about it have answers.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import type { CameraAssignment } from '../../crds/camera.ts';
import { CAMERA_HOSTS, recorderName } from '../../crds/names.ts';
import { metricsOf, seriesOf } from '../../monitoring/metrics.ts';
import { startCamera } from '../camera/camera.ts';
import { AdmissionWebhook } from '../cluster/admission-webhook.ts';
import type { KubeObject } from '../cluster/api-client.ts';
import { clusterMissing, startCluster } from '../cluster/cluster.ts';
import { OWN_IMAGES } from '../cluster/own-images.ts';
import {
  apply,
  makeArchives,
  metricsToken,
  NAMESPACE,
  poolOfAllNodes,
  resource,
  RESOURCES,
  startOperator,
} from '../cluster/own-operator.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';
import { unanswered } from './panels.ts';
import { Prometheus } from './prometheus.ts';
import { prometheusMissing } from './rule-files.ts';

const skip = prometheusMissing() || clusterMissing();
const SLOW_MS = 120_000;
/** Of the pool's recorders. */
const ROLE = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/roles/${recorderName('default')}`;
const POOL = { namespace: NAMESPACE, pool: 'default' };
/** Whether nodes fail over in time is another test's. */
const FAILOVER = { renewSeconds: 1, unavailableAfterSeconds: 6 };

type CameraObject = KubeObject & { readonly status?: { readonly assignment?: CameraAssignment } };
type Role = KubeObject & { readonly rules: readonly { readonly resourceNames?: readonly string[] }[] };
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
    // Another replica, which stands by; its way to the API server is the test's.
    const { address, port } = cluster.controlPlane;
    const link = await TcpProxy.to(port, address);
    t.after(() => link.close());
    const detour = cluster.controlPlane.kubeconfigFor(
      'detour',
      { commonName: 'detour', organizations: ['system:masters'] },
      `https://${address}:${link.port}`,
    );
    const standby = await startOperator(cluster.controlPlane, logs, { kubeconfig: detour });
    t.after(() => standby.program.kill());
    const camera = (name: string, more: Readonly<Record<string, unknown>> = {}) =>
      resource('Camera', name, { source: source.url, transport: 'Tcp', ...more });

    prometheus.scrape('kube-nvr-operator', { operator: operator.address, standby: standby.address });
    await apply(cluster.controlPlane, [
      poolOfAllNodes({ failover: FAILOVER }),
      camera('gate'),
      camera('nowhere', { placement: { nodeSelector: { of: 'none' } } }),
    ]);
    const token = (): Promise<string | undefined> =>
      metricsToken(cluster.controlPlane, NAMESPACE, 'default').catch(() => undefined);
    prometheus.authorize(await until('the pool has a token for metrics', token, SLOW_MS));
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

    // It hears nothing any more, and is not told.
    link.silence();

    // The API server does not answer one kind of write, then refuses it, because of somebody's webhook: the Role that lets
    // recorders read Secrets is due.
    const webhook = await AdmissionWebhook.start(cluster.controlPlane, {
      apiGroups: ['rbac.authorization.k8s.io'],
      apiVersions: ['v1'],
      operations: ['CREATE', 'UPDATE'],
      resources: ['roles'],
    });
    // A Secret that names no hosts of cameras would be granted to nobody.
    await cluster.api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'login', annotations: { [CAMERA_HOSTS]: '*' } },
    });
    await apply(cluster.controlPlane, [camera('locked', { suspend: true, credentialsSecretRef: { name: 'login' } })]);
    const stuck = await prometheus.fires('KubeNvrOperatorQueueStuck', { name: 'pool' });
    assert.equal(stuck.annotations['summary'], "The operator's queue pool is stuck");
    webhook.answers = 'no';
    const failing = await prometheus.fires('KubeNvrOperatorErrors', { controller: 'pool' });
    assert.equal(failing.annotations['summary'], 'The operator fails repeatedly (pool)');
    await webhook.close();
    await prometheus.clears('KubeNvrOperatorQueueStuck');
    await prometheus.clears('KubeNvrOperatorErrors');
    await until(
      'the Role is written',
      async () => {
        const role = await cluster.api.get<Role>(ROLE);
        return role.rules.some(({ resourceNames }) => resourceNames?.includes('login'));
      },
      SLOW_MS,
    );

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

    const old = await prometheus.fires('KubeNvrOperatorWatchOld', { resource: 'cameras' });
    assert.equal(old.annotations['summary'], 'The operator has received nothing about cameras for a long time');
    assert.equal(old.labels['instance'], standby.address);
    link.heal();
    await prometheus.clears('KubeNvrOperatorWatchOld');
    await standby.program.kill();

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
    const ours = (names: readonly string[]) => names.filter((name) => /^(kube_nvr|workqueue)_/.test(name)).sort();
    assert.deepEqual(ours(seen), ours(known));
  },
);
