// The test cluster itself: is it a cluster, are its pods pods, and do its faults do what they say?

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { until } from '../support/until.ts';
import { ApiError } from './api-client.ts';
import { clusterMissing, startCluster, type Cluster } from './cluster.ts';
import type { ContainerStatus, Pod } from './kubelet/types.ts';
import { leftovers } from './leftovers.ts';
import type { ProcessKubelet } from './process-kubelet.ts';
import { reportFailure } from './report.ts';

const WITNESS = join(import.meta.dirname, 'witness.ts');
const MOUNT = '/var/lib/kube-nvr-witness/archive';
const HOST_PATH = '/srv/witness';
const PORT = 8080;
/** The controllers' own pauses grow while the API server is away. */
const PATIENCE_MS = 180_000;

interface Seen {
  readonly hostname: string;
  readonly pid: number;
  readonly env: Readonly<Record<string, string>>;
}

/** What the witness of a node answers; throws when it does not. */
async function ask(node: ProcessKubelet, path: string, port = PORT): Promise<string> {
  const answer = await fetch(`http://${node.address}:${port}${path}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
  const body = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${body}`);
  return body;
}

const look = async (node: ProcessKubelet): Promise<Seen> => JSON.parse(await ask(node, '/')) as Seen;

const reach = (node: ProcessKubelet, url: string): Promise<string> =>
  ask(node, `/reach?url=${encodeURIComponent(url)}`);

const isSilent = (node: ProcessKubelet): Promise<boolean> =>
  fetch(`http://${node.address}:${PORT}/`, { signal: AbortSignal.timeout(1_000) }).then(
    () => false,
    () => true,
  );

const diary = (node: ProcessKubelet): string[] =>
  readFileSync(join(node.root, HOST_PATH, 'witness.log'), 'utf8')
    .trim()
    .split('\n');

const HEALTH = { httpGet: { path: '/health', port: 'http' }, periodSeconds: 1, timeoutSeconds: 5 };

const DAEMON_SET = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'witness', namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: 'witness' } },
    template: {
      metadata: { labels: { app: 'witness' } },
      spec: {
        serviceAccountName: 'witness',
        terminationGracePeriodSeconds: 2,
        containers: [
          {
            name: 'witness',
            image: 'witness:1',
            args: [String(PORT), MOUNT],
            ports: [{ name: 'http', containerPort: PORT }],
            env: [
              { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
              { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
              { name: 'GREETING', value: 'I am on $(NODE_NAME)' },
              { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'login', key: 'password' } } },
            ],
            // A busy machine takes long to start a process; restarts are counted below.
            startupProbe: { ...HEALTH, failureThreshold: 60 },
            readinessProbe: { ...HEALTH, failureThreshold: 1 },
            livenessProbe: { ...HEALTH, failureThreshold: 3 },
            volumeMounts: [
              { name: 'archive', mountPath: MOUNT },
              { name: 'login', mountPath: '/etc/witness/login', readOnly: true },
            ],
          },
        ],
        volumes: [
          { name: 'archive', hostPath: { path: HOST_PATH, type: 'Directory' } },
          { name: 'login', secret: { secretName: 'login' } },
        ],
      },
    },
  },
};

describe('the test cluster', { skip: clusterMissing() }, () => {
  let cluster: Cluster;
  const node = (number: number): ProcessKubelet => cluster.node(`node-${number}`);

  const pods = async (): Promise<readonly Pod[]> =>
    (await cluster.api.list<Pod>('/api/v1/namespaces/default/pods')).filter(
      ({ metadata }) => metadata.labels?.['app'] === 'witness',
    );
  const podOn = async ({ name }: ProcessKubelet): Promise<Pod> => {
    const pod = (await pods()).find(({ spec }) => spec.nodeName === name);
    assert.ok(pod, `no pod on ${name}`);
    return pod;
  };
  const containerOn = async (node: ProcessKubelet): Promise<ContainerStatus> => {
    const [status] = (await podOn(node)).status?.containerStatuses ?? [];
    assert.ok(status);
    return status;
  };
  const ready = (node: ProcessKubelet, restarts: number): Promise<unknown> =>
    until(
      `${node.name} has its pod ready after ${restarts} restarts`,
      async () => {
        const status = await containerOn(node);
        return status.ready && status.restartCount === restarts;
      },
      PATIENCE_MS,
    );

  before(async () => {
    cluster = await startCluster({
      nodes: 3,
      images: { witness: { entrypoint: [process.execPath, WITNESS] } },
      // A fifth of what it is otherwise, so that the test is as much shorter.
      flags: { 'kube-controller-manager': ['--node-monitor-grace-period=10s', '--node-monitor-period=1s'] },
    });
    for (const node of cluster.nodes) mkdirSync(join(node.root, HOST_PATH), { recursive: true });
    await cluster.api.create('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'witness' } });
    await cluster.api.create('/api/v1/namespaces/default/secrets', {
      metadata: { name: 'login' },
      stringData: { password: 'a-password' },
    });
    await cluster.api.create('/apis/apps/v1/namespaces/default/daemonsets', DAEMON_SET);
    await Promise.all(cluster.nodes.map((node) => ready(node, 0)));
  });
  afterEach(reportFailure(() => cluster));
  after(() => cluster.close());

  test('kubectl sees three ready nodes', async () => {
    const lines = (await cluster.kubectl(['get', 'nodes', '--no-headers'])).trim().split('\n');
    assert.deepEqual(
      lines.map((line) => line.split(/ +/).slice(0, 2)),
      [
        ['node-1', 'Ready'],
        ['node-2', 'Ready'],
        ['node-3', 'Ready'],
      ],
    );
  });

  test('a DaemonSet runs on every node with that node’s disk, and leaves nothing on this machine', async () => {
    await cluster.kubectl(['rollout', 'status', 'daemonset/witness', '--timeout=300s']);
    for (const node of cluster.nodes) {
      const seen = await look(node);
      const pod = await podOn(node);
      assert.equal(seen.hostname, pod.metadata.name);
      assert.equal(seen.env['GREETING'], `I am on ${node.name}`);
      assert.equal(seen.env['POD_IP'], node.address);
      assert.equal(seen.env['PASSWORD'], 'a-password');
      assert.equal(await ask(node, '/file?path=/etc/witness/login/password'), 'a-password');
      assert.equal(pod.status?.podIP, node.address);
      assert.deepEqual(diary(node), ['started']);
    }
    assert.equal(existsSync('/var/lib/kube-nvr-witness'), false);
    assert.equal(existsSync('/etc/witness'), false);
  });

  test('the token of a pod is bound to its node', async () => {
    const directory = '/var/run/secrets/kubernetes.io/serviceaccount';
    const token = await ask(node(2), `/file?path=${directory}/token`);
    assert.equal(await ask(node(2), `/file?path=${directory}/namespace`), 'default');
    assert.equal(await ask(node(2), `/file?path=${directory}/ca.crt`), cluster.controlPlane.authority.cert);
    const review = await cluster.api
      .withToken(token)
      .create<{ status: { userInfo: { username: string; extra: Record<string, string[]> } } }>(
        '/apis/authentication.k8s.io/v1/selfsubjectreviews',
        { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      );
    const { username, extra } = review.status.userInfo;
    assert.equal(username, 'system:serviceaccount:default:witness');
    assert.deepEqual(extra['authentication.kubernetes.io/node-name'], ['node-2']);
    assert.deepEqual(extra['authentication.kubernetes.io/pod-name'], [(await podOn(node(2))).metadata.name]);
    const { env } = await look(node(2));
    assert.equal(
      `https://${env['KUBERNETES_SERVICE_HOST']}:${env['KUBERNETES_SERVICE_PORT']}`,
      cluster.controlPlane.server,
    );
  });

  test('a node may not act for another', async () => {
    const stranger = cluster.controlPlane.clientFor('stranger', {
      commonName: 'system:node:node-1',
      organizations: ['system:nodes'],
    });
    const { metadata } = await podOn(node(2));
    await assert.rejects(
      stranger.delete(`/api/v1/namespaces/default/pods/${metadata.name}`),
      (error) => error instanceof ApiError && error.status === 403,
    );
    stranger.close();
  });

  test('kubectl logs shows what a container printed', async () => {
    const { metadata } = await podOn(node(1));
    assert.equal(await cluster.kubectl(['logs', metadata.name]), 'started\n');
  });

  test('a container that crashes is started again in place', async () => {
    await ask(node(1), '/crash').catch(() => {});
    await ready(node(1), 1);
    const { lastState } = await containerOn(node(1));
    assert.equal(lastState.terminated?.exitCode, 7);
    assert.deepEqual(diary(node(1)), ['started', 'started']);
  });

  test('a container that is not well is taken out of service, asked to end, and started again', async () => {
    await ask(node(2), '/unwell');
    await until('it is not ready', async () => !(await containerOn(node(2))).ready);
    await ready(node(2), 1);
    assert.deepEqual(diary(node(2)), ['started', 'asked to end', 'started']);
  });

  test('a deleted pod is asked to end, killed after its grace, and replaced', async () => {
    const { metadata } = await podOn(node(2));
    await ask(node(2), '/stubborn');
    await cluster.kubectl(['delete', 'pod', metadata.name]);
    await ready(node(2), 0);
    assert.notEqual((await podOn(node(2))).metadata.uid, metadata.uid);
    assert.deepEqual(diary(node(2)).slice(-2), ['asked to end', 'started']);
    assert.equal(existsSync(join(cluster.directory, 'nodes/node-2/pods', metadata.uid)), false);
  });

  test('a pod that lacks its host path waits, and says why', async () => {
    const pod = {
      metadata: { name: 'homeless' },
      spec: {
        nodeName: 'node-1',
        containers: [
          { name: 'it', image: 'any', command: ['sleep', '100'], volumeMounts: [{ name: 'disk', mountPath: '/disk' }] },
        ],
        volumes: [{ name: 'disk', hostPath: { path: '/mnt/disk', type: 'Directory' } }],
      },
    };
    const path = '/api/v1/namespaces/default/pods';
    await cluster.api.create(path, pod);
    await until('an event says so', async () =>
      (await cluster.kubectl(['events', '--for', 'pod/homeless'])).includes('/mnt/disk is not a directory'),
    );
    assert.equal((await cluster.api.get<Pod>(`${path}/homeless`)).status?.phase, 'Pending');
    mkdirSync(join(node(1).root, 'mnt/disk'), { recursive: true });
    await until('it runs', async () => (await cluster.api.get<Pod>(`${path}/homeless`)).status?.phase === 'Running');
    await cluster.kubectl(['delete', 'pod', 'homeless', '--grace-period=0', '--force']);
  });

  test('a frozen pod answers nothing, and continues where it was', async () => {
    const { metadata } = await podOn(node(3));
    const { pid } = await look(node(3));
    await node(3).freezePod(metadata.name);
    assert.equal(await isSilent(node(3)), true);
    await node(3).thawPod(metadata.name);
    assert.equal((await look(node(3))).pid, pid);
  });

  test('each cut cuts off its side alone, silently, and heals', async () => {
    const { cameras } = cluster.addresses;
    const camera = createServer().listen(0, cameras);
    await until('the camera listens', () => camera.listening);
    const { port } = camera.address() as { port: number };
    const view = async (): Promise<Record<string, string>> => ({
      api: await reach(node(1), cluster.controlPlane.server),
      cameras: await reach(node(1), `http://${cameras}:${port}`),
      peers: await reach(node(1), `http://${node(2).address}:${PORT}`),
      peersBack: await reach(node(2), `http://${node(1).address}:${PORT}`),
    });
    const whole = { api: 'answers', cameras: 'answers', peers: 'answers', peersBack: 'answers' };
    try {
      assert.deepEqual(await view(), whole);
      node(1).cutOff('api');
      assert.deepEqual(await view(), { ...whole, api: 'silence' });
      node(1).reconnect('api');
      node(1).cutOff('cameras');
      assert.deepEqual(await view(), { ...whole, cameras: 'silence' });
      node(1).reconnect('cameras');
      node(1).cutOff('peers');
      assert.deepEqual(await view(), { ...whole, peers: 'silence', peersBack: 'silence' });
      node(1).reconnect();
      node(1).cutOff('viewers');
      assert.equal(await isSilent(node(1)), true);
      assert.equal(await reach(node(2), `http://${node(1).address}:${PORT}`), 'answers');
      node(1).reconnect();
      assert.deepEqual(await view(), whole);
    } finally {
      camera.close();
    }
  });

  test('a node that is cut off or dead is reported as such, and returns', async () => {
    const cutPod = await podOn(node(2));
    const { pid } = await look(node(2));
    const before = diary(node(3)).length;
    node(2).cutOff('api');
    await node(3).kill();
    assert.equal(await isSilent(node(3)), true);
    await cluster.untilNode('node-3', 'Unknown');
    await cluster.untilNode('node-2', 'Unknown');
    assert.equal((await look(node(2))).pid, pid, 'the pod of a node that is cut off runs on');

    await node(3).start();
    node(2).reconnect();
    await cluster.untilNode('node-3', 'True');
    await cluster.untilNode('node-2', 'True');
    await ready(node(3), 1);
    assert.deepEqual(diary(node(3)).slice(before), ['started']);
    await until('the pod that ran on is ready', async () => (await containerOn(node(2))).ready);
    assert.equal((await podOn(node(2))).metadata.uid, cutPod.metadata.uid);
    assert.equal((await look(node(2))).pid, pid);
  });

  test('a frozen node answers nothing, and continues where it was', async () => {
    const { pid } = await look(node(3));
    await node(3).freeze();
    assert.equal(await isSilent(node(3)), true);
    node(3).thaw();
    assert.equal((await look(node(3))).pid, pid);
  });

  test('with etcd paused nothing is written; afterwards everything is', async () => {
    await cluster.controlPlane.pause('etcd');
    const write = (name: string): Promise<unknown> =>
      cluster.api.create('/api/v1/namespaces/default/configmaps', { metadata: { name } }, AbortSignal.timeout(2_000));
    try {
      await assert.rejects(write('while-paused'));
    } finally {
      cluster.controlPlane.resume('etcd');
    }
    await until('a write succeeds', () => write('after').then(() => true));
  });

  test('a part of the control plane that ends by itself is started again, one that was ended is not', async () => {
    const scheduler = cluster.controlPlane.program('kube-scheduler');
    const { pid, restarts } = scheduler;
    process.kill(pid, 'SIGKILL');
    await until('another scheduler runs', () => scheduler.running && scheduler.pid !== pid);
    await cluster.controlPlane.kill('kube-scheduler');
    await cluster.controlPlane.start('kube-scheduler');
    assert.equal(scheduler.restarts, restarts + 1);
  });

  test('nodes continue after the API server was restarted', async () => {
    const { pid } = await look(node(1));
    await cluster.controlPlane.restart('kube-apiserver');
    const { metadata } = await podOn(node(3));
    await cluster.api.delete(`/api/v1/namespaces/default/pods/${metadata.name}`);
    await until(
      'node-3 has another pod',
      async () => {
        const pod = await podOn(node(3));
        return pod.metadata.uid !== metadata.uid && pod.status?.containerStatuses?.[0]?.ready === true;
      },
      PATIENCE_MS,
    );
    assert.equal((await look(node(1))).pid, pid);
  });
});

test('a cluster leaves no process, network, mount or file', { skip: clusterMissing() }, async () => {
  const cluster = await startCluster({ nodes: 1, images: {} });
  const { directory } = cluster;
  await cluster.api.create('/api/v1/namespaces/default/pods', {
    metadata: { name: 'sleeper' },
    spec: { nodeName: 'node-1', containers: [{ name: 'it', image: 'any', command: ['sleep', '1000'] }] },
  });
  const sleeper = await until('it runs', async () => (await cluster.node('node-1').processes())[0]);
  await until('it sleeps', () => readFileSync(`/proc/${sleeper.pid}/cmdline`, 'utf8').startsWith('sleep'));
  assert.ok(leftovers(directory, cluster.addresses.api).length >= 6);
  await cluster.close();
  assert.equal(existsSync(`/proc/${sleeper.pid}`), false);
  assert.deepEqual(leftovers(directory, cluster.addresses.api), []);
  assert.equal(existsSync(directory), false);
});
