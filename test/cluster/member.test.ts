// Recorders as members of a cluster on a real API server (docs/design/cluster.md). What an operator would write, the test
// writes: assignments, roles, answers. What recorders write, it reads.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { CameraAssignment } from '../../crds/camera.ts';
import { API_VERSION, CAMERA_HOSTS, nodeLeaseName, poolLabels } from '../../crds/names.ts';
import type { RecorderNodeStatus, RecorderRequest, ReportedCamera } from '../../crds/recorder-node.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { EventReader } from '../support/event-reader.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { untilRemovalIsTold } from '../support/removal.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { apiServerMissing } from './programs.ts';

const NAMESPACE = 'members';
const BASE = `/apis/${API_VERSION}/namespaces/${NAMESPACE}`;
const ADMIN = 'system:serviceaccount:members:recorders';

type Json = Record<string, unknown>;
type CameraObject = KubeObject & { spec: Json; status?: { assignment?: CameraAssignment } };
type NodeObject = KubeObject & { spec: Json; status?: RecorderNodeStatus };

let controlPlane: ControlPlane;
let camera: Camera;
let outer: string;
const recorders = new Map<string, RecorderProcess>();

const url = (node: string): string => recorders.get(node)!.url;

async function createNode(name: string): Promise<void> {
  await controlPlane.api.create(`${BASE}/recordernodes`, {
    apiVersion: API_VERSION,
    kind: 'RecorderNode',
    metadata: { name, labels: poolLabels('default') },
    spec: { nodeName: name, poolRef: { name: 'default' }, role: 'Voter' },
  });
  await controlPlane.api.create(`/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: nodeLeaseName(name) },
  });
}

/** Files of a service account as a kubelet puts them into a pod. */
async function serviceAccount(): Promise<string> {
  const directory = mkdtempSync(join(outer, 'account-'));
  const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/recorders/token`;
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const { status } = await controlPlane.api.create<{ status: { token: string } }>(path, body);
  writeFileSync(join(directory, 'token'), status.token);
  writeFileSync(join(directory, 'ca.crt'), readFileSync(controlPlane.authority.certFile));
  writeFileSync(join(directory, 'namespace'), NAMESPACE);
  return directory;
}

let account: string;
const env = (): NodeJS.ProcessEnv => ({
  ...process.env,
  KUBERNETES_SERVICE_HOST: controlPlane.address,
  KUBERNETES_SERVICE_PORT: String(controlPlane.port),
  KUBE_NVR_SERVICE_ACCOUNT_DIR: account,
});

async function startNode(name: string, waitUntilReady = true): Promise<RecorderProcess> {
  const directory = join(outer, name);
  mkdirSync(directory, { recursive: true });
  const recorder = await RecorderProcess.start({
    directory,
    env: env(),
    waitUntilReady,
    config: {
      nodeName: name,
      cluster: { mode: 'kubernetes', renewInterval: '1s', dataDir: join(directory, 'data') },
      cameraNetworks: ['127.0.0.0/8'],
      archive: { segmentDuration: '2s' },
    },
  });
  recorders.set(name, recorder);
  return recorder;
}

/** What the operator says of its pod. */
async function tellAddress(name: string): Promise<void> {
  await controlPlane.api.patch(`${BASE}/recordernodes/${name}`, 'merge', { spec: { address: url(name) } });
}

async function createCamera(name: string, spec: Json = {}): Promise<void> {
  await controlPlane.api.create(`${BASE}/cameras`, {
    apiVersion: API_VERSION,
    kind: 'Camera',
    metadata: { name },
    spec: { source: camera.url, transport: 'Tcp', ...spec },
  });
}

const readCamera = (name: string): Promise<CameraObject> => controlPlane.api.get(`${BASE}/cameras/${name}`);
const readNode = (name: string): Promise<NodeObject> => controlPlane.api.get(`${BASE}/recordernodes/${name}`);

/** What the operator does: another assignment with the next epoch. */
async function assign(name: string, assignment: Partial<CameraAssignment>): Promise<number> {
  const read = await readCamera(name);
  const epoch = (read.status?.assignment?.epoch ?? 0) + (assignment.epoch === undefined ? 1 : 0);
  const time = new Date().toISOString();
  const next = { epoch, reason: 'Scheduled', time, ...assignment };
  await controlPlane.api.replace(`${BASE}/cameras/${name}/status`, {
    ...read,
    status: { ...read.status, assignment: next },
  });
  return next.epoch;
}

async function report(node: string, name: string): Promise<ReportedCamera | undefined> {
  return (await readNode(node)).status?.cameras?.find((one) => one.name === name);
}

async function untilReported(node: string, name: string, wanted: Partial<ReportedCamera>): Promise<ReportedCamera> {
  try {
    return await reported(node, name, wanted);
  } catch (error) {
    const told = JSON.stringify((await readNode(node)).status?.cameras);
    throw new Error(`${node} tells ${told}\n${recorders.get(node)!.child.output.slice(-2000)}`, { cause: error });
  }
}

const reported = (node: string, name: string, wanted: Partial<ReportedCamera>): Promise<ReportedCamera> =>
  until(`${node} reports ${name} as ${JSON.stringify(wanted)}`, async () => {
    const found = await report(node, name);
    return (
      found && Object.entries(wanted).every(([key, value]) => found[key as keyof ReportedCamera] === value) && found
    );
  });

const untilGone = (node: string, name: string): Promise<boolean> =>
  until(`${node} reports ${name} no more`, async () => (await report(node, name)) === undefined);

/** Cameras as the recorder itself tells, whatever the API server knows. */
async function stateOn(node: string, name: string): Promise<string | undefined> {
  return (await recorders.get(node)!.cameras()).find(({ id }) => id === name)?.state;
}

const untilStateOn = (node: string, name: string, state: string | undefined): Promise<boolean> =>
  until(`${name} on ${node} is ${state}`, async () => (await stateOn(node, name)) === state);

async function request(node: string): Promise<RecorderRequest> {
  return until(`${node} asks something`, async () => (await readNode(node)).status?.requests?.[0]);
}

async function answer(node: string, id: string, code: number, message: string): Promise<void> {
  const spec = { responses: [{ id, code, message }] };
  await controlPlane.api.patch(`${BASE}/recordernodes/${node}`, 'merge', { spec });
}

suite('recorders in a cluster', { skip: apiServerMissing() }, () => {
  before(async () => {
    outer = mkdtempSync(join(tmpdir(), 'kube-nvr-members-'));
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    await controlPlane.kubectl(['create', 'namespace', NAMESPACE]);
    await controlPlane.kubectl(['-n', NAMESPACE, 'create', 'serviceaccount', 'recorders']);
    await controlPlane.kubectl(['create', 'clusterrolebinding', 'r', '--clusterrole=cluster-admin', `--user=${ADMIN}`]);
    await controlPlane.installKinds();
    camera = await startCamera({ pace: 'realtime' });
    account = await serviceAccount();
    await createNode('node-a');
    await createNode('node-b');
    await Promise.all([startNode('node-a'), startNode('node-b')]);
    await Promise.all([tellAddress('node-a'), tellAddress('node-b')]);
  });

  after(async () => {
    await Promise.all([...recorders.values()].map((recorder) => recorder.child[Symbol.asyncDispose]()));
    await camera?.close();
    await controlPlane?.close();
    rmSync(outer, { recursive: true, force: true });
  });

  test('a node shows that it lives by a Lease that changes, and says where it is reached', async () => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${nodeLeaseName('node-a')}`;
    type Lease = KubeObject & { spec: { holderIdentity?: string; leaseTransitions: number } };
    const first = await until('it is held', async () => {
      const lease = await controlPlane.api.get<Lease>(path);
      return lease.spec.holderIdentity !== undefined && lease;
    });
    assert.match(first.spec.holderIdentity ?? '', /^node-a\/[0-9a-f]{12}$/);
    assert.deepEqual(first.metadata.labels?.['kube-nvr.dev/pool'], 'default');
    const next = await until('it changes', async () => {
      const lease = await controlPlane.api.get<Lease>(path);
      return lease.metadata.resourceVersion !== first.metadata.resourceVersion && lease;
    });
    assert.equal(next.spec.holderIdentity, first.spec.holderIdentity);
    const status = await until('it reports', async () => (await readNode('node-a')).status);
    assert.match(status.version ?? '', /^\d+\.\d+\.\d+/);
    assert.match(status.archiveID ?? '', /^[0-9a-f-]{36}$/);
    assert.deepEqual(status.cameras, []);
  });

  test('an assigned camera is recorded, and reported under its epoch once a key frame is on the disk', async () => {
    await createCamera('gate');
    const epoch = await assign('gate', { node: 'node-a' });
    const { lastWrittenTime } = await untilReported('node-a', 'gate', { epoch, state: 'Recording' });
    assert.ok(lastWrittenTime, 'with the time of what was written');
    await until('it has a file', async () =>
      (await recorders.get('node-a')!.files()).some((file) => file.includes('_gate_')),
    );
  });

  test('a planned move: the old node records until the handover is complete, and then stops', async () => {
    const epoch = await assign('gate', {
      node: 'node-b',
      previousNode: 'node-a',
      handover: 'Pending',
      reason: 'Drain',
    });
    await untilReported('node-b', 'gate', { epoch, state: 'Recording' });
    assert.deepEqual((await report('node-a', 'gate'))?.epoch, epoch - 1, 'under its own epoch');
    assert.equal(await stateOn('node-a', 'gate'), 'recording');
    await assign('gate', { node: 'node-b', epoch, previousNode: 'node-a', handover: 'Complete', reason: 'Drain' });
    await untilGone('node-a', 'gate');
    await untilStateOn('node-a', 'gate', undefined);
    assert.equal((await report('node-b', 'gate'))?.epoch, epoch);
  });

  test('each node tells in its events which cameras it has taken and given up', async () => {
    /** Of the camera, without those of other tests. */
    const told = async (node: string): Promise<readonly (readonly [string, Json])[]> => {
      const query = 'types=camera.taken,camera.given_up&last_event_id=0&seconds=0';
      const events = await EventReader.open(`${url(node)}/api/events?${query}`);
      await events.ended;
      return events.events.filter(({ data }) => data.subject === 'gate').map(({ type, data }) => [type, data.data]);
    };
    const data = { camera_id: 'gate', node_lost: false };
    // An event is shown when it is on the disk.
    await until(
      'the events are there',
      async () => (await told('node-a')).length >= 2 && (await told('node-b')).length >= 1,
    );
    assert.deepEqual(await told('node-a'), [
      ['camera.taken', data],
      ['camera.given_up', data],
    ]);
    assert.deepEqual(await told('node-b'), [['camera.taken', data]]);
  });

  test('a request for a camera of another node is sent there with its query, and never to and fro', async () => {
    const owner = recorders.get('node-b')!.url.replace('http://', '');
    const ask = (node: string, path: string): Promise<Response> => fetch(`${url(node)}${path}`, { redirect: 'manual' });
    const epoch = (await report('node-b', 'gate'))!.epoch;
    for (const path of ['/api/archive/gate/segments?from=1&to=2', '/api/archive/gate/current?']) {
      const sent = await ask('node-a', path);
      const expected = `http://${owner}${path}${path.endsWith('?') ? '' : '&'}assigned=${epoch}`;
      assert.deepEqual([sent.status, sent.headers.get('location')], [307, expected]);
    }
    const followed = await fetch(`${url('node-a')}/api/archive/gate/current`);
    assert.equal(followed.status, 200);
    assert.equal(((await followed.json()) as { camera_id: string }).camera_id, 'gate');
    // A node that was sent here under this epoch knows no better place.
    assert.equal((await ask('node-a', `/api/archive/gate/current?assigned=${epoch}`)).status, 404);
    assert.equal((await ask('node-a', '/api/archive/nobody/current')).status, 404);
    // The other node's footage is told of, with the way to it.
    const { archives } = (await (await fetch(`${url('node-b')}/api/archive/gate/segments`)).json()) as {
      archives: { node_id: string; url: string }[];
    };
    const elsewhere = `${url('node-a')}/api/archive/gate/segments?local=1`;
    assert.deepEqual(
      archives.map(({ node_id, url: place }) => [node_id, place]),
      [['node-a', elsewhere]],
    );
    // What node-a has itself can be asked for.
    const own = await ask('node-a', '/api/archive/gate/segments?local=1');
    const { archive } = (await own.json()) as { archive: unknown[] };
    assert.ok(own.status === 200 && archive.length > 0, `${own.status}, ${archive.length} segments`);
  });

  test('strangers who ask for thousands of made-up cameras cost the API server no read, and the Lease continues', async () => {
    /** Reads of single Cameras that the API server has answered. */
    const reads = async (): Promise<number> => {
      const metrics = await controlPlane.kubectl(['get', '--raw', '/metrics']);
      const lines = metrics.split('\n').filter((line) => /^apiserver_request_total\{.*resource="cameras"/.test(line));
      return lines
        .filter((line) => line.includes('verb="GET"'))
        .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    };
    const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${nodeLeaseName('node-a')}`;
    const before = await reads();
    const signs = new Map<string, number>();
    const end = new AbortController();
    const watching = (async () => {
      while (!end.signal.aborted) {
        const { metadata } = await controlPlane.api.get(path);
        if (!signs.has(metadata.resourceVersion)) signs.set(metadata.resourceVersion, performance.now());
        await setTimeout(100);
      }
    })();
    const statuses = new Set<number>();
    let made = 0;
    const agent = new Agent({ keepAlive: true });
    const stranger = async (): Promise<void> => {
      while (made < 6_000) {
        const asked = get(`${url('node-a')}/api/archive/made-up-${made++}/current`, { agent });
        const [answer] = (await once(asked, 'response')) as [IncomingMessage];
        statuses.add(answer.statusCode ?? 0);
        await once(answer.resume(), 'end');
      }
    };
    await Promise.all(Array.from({ length: 200 }, stranger));
    agent.destroy();
    // Three more, so that the last distance ends.
    const count = signs.size;
    await until('the Lease is renewed afterwards', () => signs.size >= count + 3);
    end.abort();
    await watching;
    assert.deepEqual([...statuses], [404]);
    // A node reads the limits of a camera that has left it, one read in ten minutes each.
    const cost = (await reads()) - before;
    assert.ok(cost <= 2, `${cost} reads`);
    const times = [...signs.values()];
    const longestMs = Math.max(...times.slice(1).map((ms, i) => ms - (times[i] ?? ms)));
    assert.ok(longestMs < 15_000, `${Math.round(longestMs)} ms without a sign of life are a failover`);
  });

  test('without the API server a camera is recorded on, also by a process that starts then', async () => {
    await untilReported('node-b', 'gate', { state: 'Recording' });
    const epoch = (await report('node-b', 'gate'))!.epoch;
    await controlPlane.stop('kube-apiserver');
    await recorders.get('node-b')!.child.stop('SIGKILL');
    // It says that nobody can tell it what changed, and records.
    await startNode('node-b', false);
    await untilStateOn('node-b', 'gate', 'recording');
    await controlPlane.start('kube-apiserver');
    await tellAddress('node-b');
    await untilReported('node-b', 'gate', { epoch, state: 'Recording' });
  });

  test('a camera that was moved while the API server was away ends within seconds of its return', async () => {
    const epoch = (await report('node-b', 'gate'))!.epoch;
    recorders.get('node-b')!.child.signal('SIGSTOP');
    const next = await assign('gate', { node: 'node-a', previousNode: 'node-b', reason: 'NodeUnavailable' });
    assert.equal(next, epoch + 1);
    await untilReported('node-a', 'gate', { epoch: next, state: 'Recording' });
    recorders.get('node-b')!.child.signal('SIGCONT');
    await untilStateOn('node-b', 'gate', undefined);
    await untilGone('node-b', 'gate');
  });

  test('a camera waits for the Secret with its login, says so, and is recorded when it is there', async () => {
    await createCamera('vault', { credentialsSecretRef: { name: 'vault-login' } });
    const epoch = await assign('vault', { node: 'node-a' });
    // After `LoginUnread`, while the recorder reads the Secret for the first time.
    const failed = await untilReported('node-a', 'vault', { epoch, state: 'Failed', reason: 'NoCredentials' });
    assert.match(failed.message ?? '', /Secret vault-login/);
    const data = ['--from-literal=username=viewer', '--from-literal=password=s3cret'];
    await controlPlane.kubectl(['-n', NAMESPACE, 'create', 'secret', 'generic', 'vault-login', ...data]);
    const nobody = await until('it is known that the Secret is for no host', async () => {
      const { message = '' } = (await report('node-a', 'vault')) ?? {};
      return message.includes('is not for') && message;
    });
    assert.match(nobody, /kube-nvr.dev\/camera-hosts is missing$/);
    const annotate = (hosts: string): Promise<string> =>
      controlPlane.kubectl([
        '-n',
        NAMESPACE,
        'annotate',
        '--overwrite',
        'secret',
        'vault-login',
        `${CAMERA_HOSTS}=${hosts}`,
      ]);
    await annotate('10.0.0.0/8');
    await until('another host is told', async () =>
      (await report('node-a', 'vault'))?.message?.endsWith(`${CAMERA_HOSTS} names 10.0.0.0/8`),
    );
    await annotate('10.0.0.0/8,127.0.0.0/8');
    await untilReported('node-a', 'vault', { epoch, state: 'Recording' });
    // It reads a Secret that works every ten minutes, and at once when the operator says that it names hosts no more.
    await annotate('');
    const time = new Date().toISOString();
    const condition = {
      type: 'CredentialsResolved',
      status: 'False',
      reason: 'NoHosts',
      message: '',
      lastTransitionTime: time,
    };
    await controlPlane.api.patch(`${BASE}/cameras/vault/status`, 'merge', { status: { conditions: [condition] } });
    await until(
      'it is used for no host any more',
      async () => (await report('node-a', 'vault'))?.message?.endsWith('camera-hosts is missing'),
      60_000,
    );
    await until('it is not recorded any more', async () => (await stateOn('node-a', 'vault')) === undefined);
    const everything = await controlPlane.kubectl(['-n', NAMESPACE, 'get', 'cameras,recordernodes', '-o', 'yaml']);
    assert.ok(!everything.includes('s3cret'), 'the password is nowhere but in the Secret');
  });

  test('a node lists the nodes of the cluster, and the leader that the operator names', async () => {
    const metrics = (await (await fetch(`${url('node-a')}/cluster/metrics`)).json()) as {
      leader: string | null;
      has_majority: boolean;
      nodes: { node_id: string; role: string; online: boolean; cameras: number }[];
    };
    assert.deepEqual([metrics.leader, metrics.has_majority], [null, false]);
    assert.deepEqual(
      metrics.nodes.map(({ node_id, role, online }) => [node_id, role, online]),
      [
        ['node-a', 'voter', true],
        ['node-b', 'voter', true],
      ],
    );
    const post = (node: string, path: string, body: object): Promise<Response> =>
      fetch(`${url(node)}${path}`, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const refused = await post('node-a', '/cluster/remove-node', { node_id: 'node-b' });
    assert.deepEqual([refused.status, ((await refused.json()) as { code: string }).code], [503, 'no-leader']);
    const { api } = controlPlane;
    await api.create(`${BASE}/recorderpools`, {
      apiVersion: API_VERSION,
      kind: 'RecorderPool',
      metadata: { name: 'default' },
      spec: { archive: { hostPath: '/mnt/archive' } },
    });
    const status = { leader: 'node-b', voters: ['node-a', 'node-b'], quorum: { needed: 2, live: 2 } };
    await api.patch(`${BASE}/recorderpools/default/status`, 'merge', { status });
    const sent = await until('node-a knows the leader', async () => {
      const answer = await post('node-a', '/cluster/remove-node', { node_id: 'node-b' });
      return answer.status === 307 && answer;
    });
    assert.equal(sent.headers.get('location'), `${url('node-b')}/cluster/remove-node`);
    const asking = post('node-b', '/cluster/remove-node', { node_id: 'node-a', force: true });
    const asked = await request('node-b');
    assert.deepEqual([asked.kind, asked.nodeID, asked.force], ['RemoveNode', 'node-a', true]);
    await answer('node-b', asked.id, 409, 'node-a is live');
    const answered = await asking;
    assert.deepEqual(
      [answered.status, ((await answered.json()) as { detail: string }).detail],
      [409, 'node-a is live'],
    );
  });

  test('stop and start on the recorder ask the operator, and do what it answers', async () => {
    const stopping = fetch(`${url('node-a')}/cameras/stop`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'gate' }),
    });
    const asked = await request('node-a');
    assert.deepEqual([asked.kind, asked.camera, asked.suspend], ['Suspend', 'gate', true]);
    const override = { suspend: true, time: asked.time, node: 'node-a' };
    await controlPlane.api.patch(`${BASE}/cameras/gate/status`, 'merge', { status: { override } });
    await assign('gate', { previousNode: 'node-a', reason: 'Suspended' });
    await answer('node-a', asked.id, 200, 'suspended');
    const stopped = await stopping;
    assert.deepEqual([stopped.status, await stopped.json()], [200, { status: 'ok', stopped: 1 }]);
    await untilStateOn('node-a', 'gate', 'stopped');
    await until('the request is taken back', async () => !(await readNode('node-a')).status?.requests?.length);
  });

  test('a deleted camera stops, and its files stay', async () => {
    const before = (await recorders.get('node-a')!.files()).filter((file) => file.includes('_vault_')).length;
    assert.ok(before > 0, 'the test of its Secret has recorded it');
    await controlPlane.api.delete(`${BASE}/cameras/vault`);
    await untilStateOn('node-a', 'vault', undefined);
    await untilGone('node-a', 'vault');
    await untilRemovalIsTold(recorders.get('node-a')!, 'vault');
    const files = (await recorders.get('node-a')!.files()).filter((file) => file.includes('_vault_')).length;
    assert.ok(files >= before, `${files} of ${before} files`);
  });

  test('a node keeps the maxAge of cameras that were moved away or deleted, also when it is restarted', async () => {
    const limited = { record: { retention: { maxAgeSeconds: 60 } } };
    const names = ['moved', 'deleted', 'unlimited'];
    await Promise.all(names.map((name) => createCamera(name, name === 'unlimited' ? {} : limited)));
    for (const name of names) await assign(name, { node: 'node-a' });
    for (const name of names) await untilReported('node-a', name, { state: 'Recording' });
    const held = async (): Promise<readonly string[]> => {
      const files = await recorders.get('node-a')!.files();
      return names.filter((name) => files.some((file) => file.includes(`_${name}_`)));
    };
    await until('all have files', async () => (await held()).length === names.length);
    await controlPlane.api.delete(`${BASE}/cameras/deleted`);
    for (const name of ['moved', 'unlimited']) {
      await assign(name, { node: 'node-b', previousNode: 'node-a', reason: 'Drain' });
    }
    for (const name of names) await untilStateOn('node-a', name, undefined);
    const kept = join(recorders.get('node-a')!.recordPath, '.kube-nvr/camera-limits.json');
    await until(
      'the limits are stored',
      () => existsSync(kept) && /"deleted".*"moved"/.test(readFileSync(kept, 'utf8')),
    );
    await recorders.get('node-a')!.child.stop('SIGKILL');
    assert.deepEqual(await held(), names);
    await startNode('node-a', false);
    const gone = async (): Promise<boolean> => (await held()).join() === 'unlimited';
    await until('footage of both is gone', gone, 180_000);
  });

  test('the disk of another node is not recorded to, and the node says why', async () => {
    const node = recorders.get('node-b')!;
    await node.stop();
    const marker = join(node.recordPath, '.kube-nvr/archive.json');
    const whole = readFileSync(marker, 'utf8');
    writeFileSync(marker, JSON.stringify({ ...(JSON.parse(whole) as object), node: 'node-z' }));
    const directory = join(outer, 'node-b');
    const again = await RecorderProcess.start({
      directory,
      env: env(),
      waitUntilReady: false,
      config: {
        nodeName: 'node-b',
        cluster: { mode: 'kubernetes', renewInterval: '1s', dataDir: join(directory, 'data') },
        cameraNetworks: ['127.0.0.0/8'],
      },
    });
    recorders.set('node-b', again);
    const ready = await until('the node says that it cannot record', async () =>
      (await readNode('node-b')).status?.conditions?.find(({ type, status }) => type === 'Ready' && status === 'False'),
    );
    assert.equal(ready.reason, 'ArchiveForeign');
    assert.match(ready.message, /archive of the node node-z, but this is node-b/);
  });
});
