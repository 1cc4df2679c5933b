// The chart on nodes that have IPv6 only: every address of node, pod, API server, Service and camera is an IPv6 address. And on a
// cluster with both families.

import { after, afterEach, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { API_VERSION } from '../../crds/names.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { clusterMissing, startCluster, type Cluster } from '../cluster/cluster.ts';
import { startControlPlane } from '../cluster/control-plane.ts';
import { OWN_IMAGES } from '../cluster/own-images.ts';
import { apiServerMissing } from '../cluster/programs.ts';
import { reportFailure } from '../cluster/report.ts';
import { until } from '../support/until.ts';
import { CHART, Helm, helmMissing, type Manifest } from './helm.ts';
import { startOperatorOf } from './operator.ts';

const NAMESPACE = 'video';
const ARCHIVE = '/mnt/archive';
const NODES = ['node-1', 'node-2'];
const SLOW_MS = 120_000;
const VALUES = { pool: { enabled: true, spec: { archive: { hostPath: ARCHIVE } } } };
const OURS = `/apis/${API_VERSION}/namespaces/${NAMESPACE}`;
const CORE = `/api/v1/namespaces/${NAMESPACE}`;

suite('the chart on nodes that have only IPv6', { skip: helmMissing() || clusterMissing() }, () => {
  let cluster: Cluster;
  let camera: Camera;
  let helm: Helm;
  let headers: Record<string, string>;

  before(async () => {
    cluster = await startCluster({ nodes: NODES.length, images: OWN_IMAGES, family: 'IPv6' });
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
  const addressOf = async (node: string): Promise<string> =>
    (await get(`${OURS}/recordernodes/${node}`)).spec.address as string;
  const ask = async <T>(node: string, path: string): Promise<T> => {
    const answer = await fetch(`${await addressOf(node)}${path}`, { headers });
    assert.equal(answer.status, 200, `${node} ${path}: ${await answer.clone().text()}`);
    return (await answer.json()) as T;
  };
  /** The node that records the camera, once it does. */
  const recordedOn = (isWanted: (node: string) => boolean = () => true): Promise<string> =>
    until(
      'the camera is recorded',
      async () => {
        const { status } = await get(`${OURS}/cameras/gate`);
        const isReady = status?.conditions?.some(({ type, status: is }: Manifest) => type === 'Ready' && is === 'True');
        const node = status?.assignment?.node as string | undefined;
        return isReady && node !== undefined && isWanted(node) && node;
      },
      SLOW_MS,
    );

  test('operator and recorders are ready by their probes, and a camera is recorded', async () => {
    const args = ['install', 'nvr', CHART, '--namespace', NAMESPACE, '--create-namespace', '--wait', '--timeout'];
    await helm.run([...args, '120s'], VALUES);
    const spec = { source: camera.url, transport: 'Tcp', record: { segmentSeconds: 4 } };
    assert.match(camera.url, /^rtsp:\/\/\[2001:2:/);
    await cluster.api.create(`${OURS}/cameras`, {
      apiVersion: API_VERSION,
      kind: 'Camera',
      metadata: { name: 'gate' },
      spec,
    });
    await recordedOn();
    const { data } = await get(`${CORE}/secrets/default-admin-token`);
    headers = { authorization: `Bearer ${Buffer.from(data.token, 'base64').toString()}` };
  });

  test('recorders are known by addresses with brackets, and every one knows all', async () => {
    for (const node of NODES) {
      assert.match(await addressOf(node), /^https?:\/\/\[2001:2:[\da-f:]+\]:\d+$/);
      const { nodes } = await ask<{ nodes: readonly { node_id: string; address: string }[] }>(node, '/cluster/metrics');
      assert.deepEqual(nodes.map(({ node_id }) => node_id).sort(), NODES);
    }
  });

  test('a node that does not record the camera redirects to the one that does, or relays its answers', async () => {
    const owner = await recordedOn();
    const other = NODES.find((node) => node !== owner)!;
    const fromS = Date.now() / 1_000 - 60;
    const path = `/api/archive/gate/segments?from=${fromS}`;
    const url = `${await addressOf(other)}${path}`;
    const location = await until(`${other} knows who records it`, async () => {
      const redirect = await fetch(url, { headers, redirect: 'manual' });
      assert.equal(redirect.status, 307);
      return redirect.headers.get('location') ?? undefined;
    });
    assert.ok(location.startsWith(`${await addressOf(owner)}${path}`));
    await until(
      `${other} relays the list with a closed segment of ${owner}`,
      async () => {
        const { archive } = await ask<{ archive: readonly { is_open: boolean }[] }>(other, `/node/${owner}${path}`);
        return archive.some(({ is_open }) => !is_open);
      },
      SLOW_MS,
    );
    const still = await fetch(`${await addressOf(other)}/node/${owner}/api/cameras/gate/thumbnail`, { headers });
    assert.deepEqual([still.status, still.headers.get('content-type')], [200, 'image/jpeg']);
  });

  test('the listeners of a recorder answer on both families, and Services have the one that there is', async () => {
    const [process_] = await cluster.node('node-1').processes();
    assert.ok(process_);
    const { protocol, port } = new URL(await addressOf('node-1'));
    for (const host of ['127.0.0.1', '[::1]']) {
      const code = `process.env.NODE_TLS_REJECT_UNAUTHORIZED='0';
        fetch('${protocol}//${host}:${port}/api/cameras').then(({ status }) => console.log(status))`;
      const inNode: readonly string[] = [
        `--net=/proc/${process_.pid}/ns/net`,
        process.execPath,
        '--no-warnings',
        '-e',
        code,
      ];
      assert.equal(execFileSync('nsenter', inNode, { encoding: 'utf8' }).trim(), '401', host);
    }
    const services = await cluster.api.list<Manifest>(`${CORE}/services`);
    assert.ok(services.length > 0);
    for (const { metadata, spec } of services) assert.deepEqual(spec.ipFamilies, ['IPv6'], metadata.name);
  });

  test('a node that dies hands its camera over', async () => {
    const owner = await recordedOn();
    await until(
      'both nodes vote',
      async () => (await ask<{ voters: readonly string[] }>(owner, '/cluster/metrics')).voters.length === NODES.length,
      SLOW_MS,
    );
    await cluster.node(owner).kill();
    await recordedOn((node) => node !== owner);
  });
});

test(
  'in a cluster with both families the Services have both',
  { skip: helmMissing() || apiServerMissing() },
  async () => {
    const range = '--service-cluster-ip-range=10.96.0.0/16,fd00:10::/108';
    await using controlPlane = await startControlPlane({
      parts: ['etcd', 'kube-apiserver'],
      flags: { 'kube-apiserver': [range] },
    });
    const helm = new Helm(controlPlane.kubeconfig);
    try {
      await helm.kinds(NAMESPACE);
      await helm.run(['install', 'nvr', CHART, '--namespace', NAMESPACE, '--create-namespace'], VALUES);
      await using _operator = await startOperatorOf(controlPlane, helm, NAMESPACE, VALUES);
      const services = await until(
        'the operator makes the Service of its recorders',
        async () => {
          const found = await controlPlane.api.list<Manifest>(`${CORE}/services`);
          return found.some(({ metadata }) => metadata.name.startsWith('default-recorder')) && found;
        },
        SLOW_MS,
      );
      for (const { metadata, spec } of services) {
        assert.deepEqual(spec.ipFamilies, ['IPv4', 'IPv6'], metadata.name);
        if (spec.clusterIP !== 'None') assert.equal(spec.clusterIPs.length, 2, metadata.name);
      }
    } finally {
      helm.close();
    }
  },
);
