// What a stolen token of one recorder is good for against the others: real API server, operator and recorder, the policies of
// the chart in force, tokens that are bound to pods on nodes as the kubelet has them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { promisify } from 'node:util';
import { after, before, suite, test } from 'node:test';
import { newKey, newRequest } from '../../base/x509.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import { nodeIdentityPolicies } from '../../operator/manifests/node-identity-policy.ts';
import { freePorts, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import type { ApiClient, KubeObject } from './api-client.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import {
  apply,
  NAMESPACE,
  poolOfAllNodes,
  resource,
  RESOURCES,
  startOperator,
  type OwnOperator,
} from './own-operator.ts';
import { apiServerMissing } from './programs.ts';

const run = promisify(execFile);
const SLOW_MS = 180_000;
const CORE = `/api/v1/namespaces/${NAMESPACE}`;
const NODES = ['node-1', 'node-2'];
/** Of the pods; nothing listens there. */
const IPS: Readonly<Record<string, string>> = { 'node-1': '127.0.7.1', 'node-2': '127.0.7.2' };

interface ClusterCameras {
  readonly nodes: readonly { readonly node_id: string; readonly url: string | null }[];
  readonly cameras: readonly { readonly id: string; readonly node_id: string | null; readonly epoch: number }[];
}

let controlPlane: ControlPlane;
let operator: OwnOperator;
let recorder: RecorderProcess;
let outer: string;
let peersPort: number;
/** As whoever has the token of node-2. */
let thief: ApiClient;

const readNode = (name: string): Promise<KubeObject & RecorderNode> =>
  controlPlane.api.get(`${RESOURCES}/recordernodes/${name}`);
const report = (node: string, status: object): Promise<unknown> =>
  thief.patch(`${RESOURCES}/recordernodes/${node}/status`, 'merge', { status });
const told = async (): Promise<ClusterCameras> => (await recorder.get('/cluster/cameras')) as ClusterCameras;

/** A pod as the DaemonSet makes it, with the address that its kubelet tells of; its token. */
async function podOn(node: string): Promise<string> {
  const { api } = controlPlane;
  await api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
  const daemonSet = await until('the DaemonSet is there', () =>
    api.get<KubeObject & { spec: { template: KubeObject } }>(
      `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/default-recorder`,
    ),
  );
  const { labels, annotations } = daemonSet.spec.template.metadata as unknown as Record<string, object>;
  const pod = await api.create(`${CORE}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `recorder-${node}`, labels, annotations },
    spec: { nodeName: node, serviceAccountName: 'default-recorder', containers: [{ name: 'recorder', image: 'none' }] },
  });
  const podIP = IPS[node];
  await api.patch(`${CORE}/pods/recorder-${node}/status`, 'merge', {
    status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }] },
  });
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: pod.metadata.name, uid: pod.metadata.uid };
  const { status } = await api.create<KubeObject & { status: { token: string } }>(
    `${CORE}/serviceaccounts/default-recorder/token`,
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: [], expirationSeconds: 3600, boundObjectRef },
    },
  );
  return status.token;
}

suite('a stolen token of one recorder', { skip: apiServerMissing() }, () => {
  before(async () => {
    outer = mkdtempSync(join(tmpdir(), 'kube-nvr-stolen-'));
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    await controlPlane.installKinds();
    await apply(controlPlane, nodeIdentityPolicies());
    await apply(controlPlane, [
      poolOfAllNodes(),
      resource('Camera', 'gate', { source: 'rtsp://127.0.0.1:9/1', placement: { preferredNode: 'node-1' } }),
    ]);
    operator = await startOperator(controlPlane, outer);
    const account = join(outer, 'account');
    mkdirSync(account);
    const [own, stolen] = [await podOn('node-1'), await podOn('node-2')];
    writeFileSync(join(account, 'token'), own);
    writeFileSync(join(account, 'ca.crt'), readFileSync(controlPlane.authority.certFile));
    writeFileSync(join(account, 'namespace'), NAMESPACE);
    thief = controlPlane.api.withToken(stolen);
    await until('both nodes have a RecorderNode', () => Promise.all(NODES.map(readNode)), SLOW_MS);
    [peersPort = 0] = await freePorts(1);
    recorder = await RecorderProcess.start({
      directory: outer,
      env: {
        ...process.env,
        KUBERNETES_SERVICE_HOST: controlPlane.address,
        KUBERNETES_SERVICE_PORT: String(controlPlane.port),
        KUBE_NVR_SERVICE_ACCOUNT_DIR: account,
        KUBE_NVR_PEERS_LISTEN: `127.0.0.1:${peersPort}`,
      },
      config: { nodeName: 'node-1', cluster: { mode: 'kubernetes', dataDir: join(outer, 'data') } },
    });
    await until('the recorder knows both nodes', async () => (await told()).nodes.length === 2, SLOW_MS);
  });

  after(async () => {
    await recorder?.child[Symbol.asyncDispose]();
    await operator?.program.kill();
    thief?.close();
    await controlPlane?.close();
    rmSync(outer, { recursive: true, force: true });
  });

  test('cannot say where its node is: pages, CORS and redirects use what the kubelet reported', async () => {
    const evil = 'https://evil.example';
    const archives = [{ camera: 'elsewhere', oldestTime: '2026-01-01T00:00:00Z', newestTime: '2026-12-31T00:00:00Z' }];
    await report('node-2', { address: evil, playbackAddress: evil, archiveID: 'x', archives });
    assert.equal((await readNode('node-2')).status?.address, evil, 'the API server takes it');
    const expected = NODES.map((node) => [node, `http://${IPS[node]}:9997`]);
    await until('the recorder knows the addresses', async () => (await told()).nodes.every(({ url }) => url !== null));
    assert.deepEqual(
      (await told()).nodes.map(({ node_id, url }) => [node_id, url]),
      expected,
    );
    const asked = await recorder.fetch('/api/cameras', { headers: { origin: evil } });
    assert.equal(asked.headers.get('access-control-allow-origin'), null);
    const member = await recorder.fetch('/api/cameras', { headers: { origin: `http://${IPS['node-2']}:9997` } });
    assert.equal(member.headers.get('access-control-allow-origin'), `http://${IPS['node-2']}:9997`);
    const page = await (await recorder.fetch('/')).text();
    assert.ok(!page.includes('evil.example'));
    assert.ok(page.includes(`ws://${IPS['node-2']}:9997`), 'the page may go to the node');
    const seen: string[] = [];
    const far = createServer(({ url = '' }, answer) => {
      seen.push(url);
      answer.writeHead(404).end();
    }).listen(9996, IPS['node-2']);
    await once(far, 'listening');
    const url = `${recorder.playbackUrl}/window/elsewhere.mp4?from=1777000000&to=1777000060&access_token=T`;
    const named = await until('the recorder knows of the footage', async () => {
      const answer = await fetch(url, { redirect: 'manual' });
      return answer.status === 503 && answer;
    });
    assert.match(named.headers.get('x-elsewhere') ?? '', /^"node-2";/);
    assert.match(seen.join(), /^\/footage\/elsewhere\?/, 'the node is asked where the kubelet says it is');
    far.close();
    type Listed = { readonly archives: readonly { readonly url: string }[] };
    const listed = (await recorder.get('/api/archive/elsewhere/segments')) as Listed;
    assert.deepEqual(
      listed.archives.map(({ url }) => new URL(url).origin),
      [`http://${IPS['node-2']}:9997`],
    );
  });

  test('cannot draw a camera to its node: an epoch that the Camera never had does not count', async () => {
    const epoch = await until(
      'gate is assigned',
      async () => {
        const { status } = await controlPlane.api.get<KubeObject & { status?: { assignment?: { epoch: number } } }>(
          `${RESOURCES}/cameras/gate`,
        );
        return status?.assignment?.epoch;
      },
      SLOW_MS,
    );
    const lie = { name: 'gate', epoch: Number.MAX_SAFE_INTEGER, state: 'Recording' };
    await report('node-2', { cameras: [lie, { ...lie, name: 'nobody' }] });
    const { spec } = await until(
      'the operator refuses it',
      async () => {
        const node = await readNode('node-2');
        return node.spec.refusedReports && node;
      },
      SLOW_MS,
    );
    assert.deepEqual(spec.refusedReports, ['gate', 'nobody']);
    await until('the recorder knows', async () => {
      const found = (await told()).cameras.find(({ id }) => id === 'gate');
      return found?.epoch === epoch;
    });
    await report('node-2', { cameras: [] });
    await until('what is no lie any more counts', async () => !(await readNode('node-2')).spec.refusedReports, SLOW_MS);
  });

  test('writes neither the spec of its node nor anything of another', async () => {
    for (const node of NODES) {
      const spec = { spec: { address: 'https://evil.example' } };
      const path = `${RESOURCES}/recordernodes/${node}`;
      await assert.rejects(thief.patch(path, 'merge', spec), { status: 403 });
      const before = (await readNode(node)).spec;
      // By way of the status it gets no further.
      await thief.patch(`${path}/status`, 'merge', { ...spec, status: { version: '9' } }).catch(() => {});
      assert.deepEqual((await readNode(node)).spec, before);
    }
    await assert.rejects(report('node-1', { version: '9' }), { status: 403 });
  });

  test('gets a certificate of its own node, and reads no key of the CA', async () => {
    const key = newKey();
    await report('node-2', { certificateRequest: await newRequest(key) });
    const { certificate } = (
      await until(
        'it is signed',
        async () => (await readNode('node-2')).spec.certificate && readNode('node-2'),
        SLOW_MS,
      )
    ).spec;
    const leaf = new X509Certificate(certificate?.certificate ?? '');
    assert.deepEqual([leaf.checkHost('node-2'), leaf.checkIP(IPS['node-2'] ?? '')], ['node-2', IPS['node-2']]);
    assert.deepEqual([leaf.checkHost('node-1'), leaf.checkIP(IPS['node-1'] ?? '')], [undefined, undefined]);
    assert.match(leaf.subjectAltName ?? '', /URI:kube-nvr:\/\/default\/default\/node-2/);
    assert.doesNotMatch(leaf.subjectAltName ?? '', /URI:[^,]*node-1/);
    await assert.rejects(thief.get(`${CORE}/secrets/kube-nvr-authorities`), { status: 403 });
    // What it may ask of another recorder is the result of a job whose id it knows.
    const files = { cert: certificate?.certificate ?? '', key, ca: certificate?.authorities ?? '' };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(outer, `thief.${name}`), text);
    const curl = async (path: string): Promise<string> => {
      const args = [
        '-s',
        '-o',
        '/dev/null',
        '-w',
        '%{http_code}',
        '--noproxy',
        '*',
        '--cacert',
        join(outer, 'thief.ca'),
      ];
      const own = ['--cert', join(outer, 'thief.cert'), '--key', join(outer, 'thief.key')];
      const at = `node-1:${peersPort}`;
      const to = ['--connect-to', `${at}:127.0.0.1:${peersPort}`, `https://${at}${path}`];
      return (await run('curl', [...args, ...own, ...to])).stdout;
    };
    assert.equal(await curl('/api/archive/jobs/e0123456789abcdef01234567'), '404');
    for (const path of ['/api/archive/jobs', '/api/cameras', '/cluster/cameras'])
      assert.match(await curl(path), /40[45]/);
  });

  test('every recorder has a certificate of the CA that the pool publishes, over a key that never left it', async () => {
    const { spec, status } = await until(
      'node-1 has one',
      async () => {
        const node = await readNode('node-1');
        return node.spec.certificate && node;
      },
      SLOW_MS,
    );
    assert.equal(spec.peerAddress, `https://${IPS['node-1']}:9995`);
    const { data } = await controlPlane.api.get<KubeObject & { data: Record<string, string> }>(
      `${CORE}/configmaps/default-recorder-ca`,
    );
    assert.equal(data['ca.crt'], spec.certificate?.authorities);
    const file = join(outer, 'ca.crt');
    writeFileSync(file, data['ca.crt'] ?? '');
    const verify = ['-CAfile', file, '-verify_return_error', '-verify_hostname', 'node-1'];
    await until('its listener shows it', async () => {
      const at = ['s_client', '-connect', `127.0.0.1:${peersPort}`, ...verify];
      const { stdout } = await run('sh', ['-c', 'openssl "$@" </dev/null 2>/dev/null || true', 'sh', ...at]);
      return stdout.includes('Verify return code: 0 (ok)');
    });
    const own = readFileSync(join(outer, 'work/tls/key.pem'), 'utf8').split('\n')[1] ?? '';
    assert.ok(own.length > 60 && !JSON.stringify([spec, status]).includes(own));
  });
});
