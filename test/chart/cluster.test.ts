// The chart on a cluster whose nodes run its pods: from `helm install` to footage, through an upgrade and an uninstall.

import { after, afterEach, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { API_VERSION } from '../../crds/names.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { clusterMissing, startCluster, type Cluster } from '../cluster/cluster.ts';
import { OWN_IMAGES } from '../cluster/own-images.ts';
import { reportFailure } from '../cluster/report.ts';
import { until } from '../support/until.ts';
import { CHART, Helm, helmMissing, type Manifest, type Values } from './helm.ts';

const NAMESPACE = 'video';
const ARCHIVE = '/mnt/archive';
const NODES = ['node-1', 'node-2'];
const SLOW_MS = 120_000;
const VALUES = { pool: { enabled: true, spec: { archive: { hostPath: ARCHIVE } } } };
const NEXT = { image: { tag: 'next' }, recorderImage: { tag: 'next' } };
const OURS = `/apis/${API_VERSION}/namespaces/${NAMESPACE}`;

suite('the chart on nodes', { skip: helmMissing() || clusterMissing() }, () => {
  let cluster: Cluster;
  let camera: Camera;
  let helm: Helm;

  before(async () => {
    cluster = await startCluster({ nodes: NODES.length, images: OWN_IMAGES });
    for (const node of NODES) mkdirSync(join(cluster.node(node).root, ARCHIVE), { recursive: true });
    camera = await startCamera({ pace: 'realtime', host: cluster.network.addresses.cameras });
    helm = new Helm(cluster.kubeconfig);
    await helm.kinds(NAMESPACE);
    await cluster.kubectl(['label', 'nodes', '--all', 'kube-nvr.dev/recorder=true']);
  });

  afterEach(reportFailure(() => cluster));
  after(async () => {
    helm?.close();
    await camera?.close();
    await cluster?.close();
  });

  const get = (path: string): Promise<Manifest> => cluster.api.get(path);
  /** Of operator and recorders; guards come and go with cameras. */
  const pods = async (): Promise<readonly Manifest[]> =>
    (await cluster.api.list<Manifest>(`/api/v1/namespaces/${NAMESPACE}/pods`)).filter(({ metadata }: Manifest) =>
      ['operator', 'recorder'].includes(metadata.labels['app.kubernetes.io/component']),
    );
  const run = (command: string, values: Values = VALUES, ...more: readonly string[]): Promise<string> =>
    helm.run([command, 'nvr', CHART, '--namespace', NAMESPACE, '--wait', '--timeout', '300s', ...more], values);

  const footageBytes = (): number =>
    NODES.flatMap((node) => {
      const root = join(cluster.node(node).root, ARCHIVE);
      const files = (readdirSync(root, { recursive: true }) as string[]).filter((file) => file.endsWith('.mp4'));
      return files.map((file) => statSync(join(root, file)).size);
    }).reduce((sum, size) => sum + size, 0);

  const untilFootageGrows = async (): Promise<void> => {
    const before = footageBytes();
    await until('footage grows', () => footageBytes() > before, SLOW_MS);
  };

  test('one command, one camera, and there is footage', async () => {
    await run('install', VALUES, '--create-namespace');
    const spec = { source: camera.url, transport: 'Tcp' };
    await cluster.api.create(`${OURS}/cameras`, {
      apiVersion: API_VERSION,
      kind: 'Camera',
      metadata: { name: 'gate' },
      spec,
    });
    await untilFootageGrows();
    const nodes = (await pods())
      .filter(({ metadata }) => metadata.labels['app.kubernetes.io/component'] === 'operator')
      .map(({ spec }) => spec.nodeName as string);
    assert.deepEqual(nodes.sort(), NODES, 'replicas of the operator are on different nodes');
  });

  test('the admin token that was made opens every recorder', async () => {
    const { data } = await get(`/api/v1/namespaces/${NAMESPACE}/secrets/default-admin-token`);
    const token = Buffer.from(data.token, 'base64').toString();
    for (const node of NODES) {
      const { spec } = await get(`${OURS}/recordernodes/${node}`);
      const ask = async (headers: Record<string, string>): Promise<number> =>
        (await fetch(`${spec.address}/api/cameras`, { headers })).status;
      assert.deepEqual([await ask({ authorization: `Bearer ${token}` }), await ask({})], [200, 401], node);
    }
  });

  test('an upgrade to another version replaces operator and recorders, and the camera is recorded on', async () => {
    await run('upgrade', { ...VALUES, ...NEXT });
    await until(
      'every pod is of the new version',
      async () => {
        const all = await pods();
        const isNew = ({ spec, status }: Manifest): boolean =>
          spec.containers[0].image.endsWith(':next') &&
          status.conditions?.some(({ type, status }: Manifest) => type === 'Ready' && status === 'True');
        return all.length === 4 && all.every(isNew);
      },
      SLOW_MS,
    );
    await untilFootageGrows();
  });

  test('after an uninstall recorders continue, and the next install finds camera and footage', async () => {
    const assigned = async (): Promise<Manifest> => (await get(`${OURS}/cameras/gate`)).status.assignment;
    const before = await until(
      'the camera is back at home after the upgrade',
      async () => {
        const assignment = await assigned();
        return assignment.node === assignment.home && assignment.handover !== 'Pending' && assignment;
      },
      SLOW_MS,
    );
    await helm.run(['uninstall', 'nvr', '--namespace', NAMESPACE, '--wait']);
    await until('the operator is gone', async () => (await pods()).length === NODES.length, SLOW_MS);
    await untilFootageGrows();
    assert.deepEqual(await assigned(), before);
    // Of the version that runs, so that nothing has a reason to move.
    await run('install', { ...VALUES, ...NEXT });
    await untilFootageGrows();
    assert.deepEqual(await assigned(), before);
  });
});
