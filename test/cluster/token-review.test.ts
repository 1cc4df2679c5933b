// Who may do what on a recorder that asks the API server (auth.mode kubernetes), with a real one: service accounts, Roles,
// and tokens as anybody gets them with `kubectl create token`.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { createHash, sign } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { API_VERSION, nodeLeaseName, poolLabels, TOKEN_AUDIENCE } from '../../crds/names.ts';
import { roleBindingOf, roleOf, tokenReviewBindingOf } from '../../operator/manifests/recorder-access.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { apiServerMissing } from './programs.ts';

const NAMESPACE = 'home';
const OTHER = 'neighbours';
const BASE = `/apis/${API_VERSION}/namespaces/${NAMESPACE}`;
const POOL = { namespace: NAMESPACE, name: 'default' };
const BREAK_GLASS = 'break-the-glass';
const CAMERAS = ['gate', 'yard'];

/** What each service account of the tenant may do. */
const VERBS: Readonly<Record<string, { readonly [resource: string]: readonly string[] }>> = {
  viewer: { cameras: ['get'] },
  operator: { cameras: ['get', 'update'] },
  admin: { cameras: ['get', 'update'], recorderpools: ['update'] },
  'gate-viewer': { 'cameras/gate': ['get'] },
  'gate-operator': { 'cameras/gate': ['get', 'update'] },
  mixed: { 'cameras/gate': ['get', 'update'], 'cameras/yard': ['get'] },
  'dock-viewer': { 'cameras/dock': ['get'] },
  'blind-admin': { recorderpools: ['update'] },
  nobody: {},
};

let controlPlane: ControlPlane;
let outer: string;
let recorder: RecorderProcess;
/** The same pool in another namespace, and a recorder that wants tokens meant for it. */
let neighbour: RecorderProcess;
let particular: RecorderProcess;
const tokens = new Map<string, string>();

async function newToken(
  account: string,
  namespace = NAMESPACE,
  spec: object = { audiences: [TOKEN_AUDIENCE] },
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  const { status } = await controlPlane.api.create<{ status: { token: string } }>(path, body);
  return status.token;
}

const apply = (...objects: readonly object[]): Promise<string> =>
  controlPlane.kubectl(['apply', '-f', '-'], {
    input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
  });

const RBAC = 'rbac.authorization.k8s.io';

/** A service account, its Role and the binding of it. */
function accountObjects(name: string, verbs: (typeof VERBS)[string]): readonly object[] {
  const metadata = { name, namespace: NAMESPACE };
  const rules = Object.entries(verbs).map(([resource, allowed]) => {
    const [plural, resourceName] = resource.split('/');
    return {
      apiGroups: ['kube-nvr.dev'],
      resources: [plural],
      verbs: allowed,
      ...(resourceName && { resourceNames: [resourceName] }),
    };
  });
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: `${RBAC}/v1`, kind: 'Role', metadata, rules },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC, kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: NAMESPACE }],
    },
  ];
}

/** As the operator makes it. */
const lease = (node: string) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: nodeLeaseName(node), namespace: NAMESPACE },
});

async function startNode(
  namespace: string,
  name: string,
  { auth, cluster }: { readonly auth?: object; readonly cluster?: object } = {},
): Promise<RecorderProcess> {
  const directory = join(outer, name);
  const account = join(directory, 'account');
  mkdirSync(account, { recursive: true });
  writeFileSync(join(account, 'token'), await newToken('default-recorder', namespace, {}));
  writeFileSync(join(account, 'ca.crt'), readFileSync(controlPlane.authority.certFile));
  writeFileSync(join(account, 'namespace'), namespace);
  const sha256 = createHash('sha256').update(BREAK_GLASS).digest('hex');
  return RecorderProcess.start({
    directory,
    env: {
      ...process.env,
      KUBERNETES_SERVICE_HOST: controlPlane.address,
      KUBERNETES_SERVICE_PORT: String(controlPlane.port),
      KUBE_NVR_SERVICE_ACCOUNT_DIR: account,
    },
    config: {
      nodeName: name,
      ...(cluster && { cluster: { ...cluster, dataDir: join(directory, 'data') } }),
      auth: { mode: 'kubernetes', tokens: [{ name: 'break-glass', role: 'admin', sha256 }], ...auth },
      cameras: CAMERAS.map((id) => ({ id, source: 'rtsp://127.0.0.1:1/none', enabled: false })),
    },
  });
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
const tokenOf = (account: string): string => tokens.get(account) ?? assert.fail(account);

async function ask(path: string, token: string, on = recorder, init: RequestInit = {}): Promise<Response> {
  return fetch(on.url + path, { ...init, headers: { ...bearer(token), 'content-type': 'application/json' } });
}

/** Stopping what is stopped changes nothing. */
const stopCamera = (id: string, token: string): Promise<Response> =>
  ask('/cameras/stop', token, recorder, { method: 'POST', body: JSON.stringify({ id }) });
const setLevel = (token: string): Promise<Response> =>
  ask('/api/log', token, recorder, { method: 'PUT', body: JSON.stringify({ level: 'info' }) });

async function camerasSeen(token: string, on = recorder): Promise<unknown> {
  const answer = await ask('/api/cameras', token, on);
  if (answer.status !== 200) return answer.status;
  return ((await answer.json()) as { cameras: { id: string }[] }).cameras.map(({ id }) => id);
}

/** The same token with other claims, signed as the API server signs. */
function resigned(token: string, claims: object): string {
  const [header, payload] = token.split('.') as [string, string];
  const changed = { ...(JSON.parse(Buffer.from(payload, 'base64url').toString()) as object), ...claims };
  const text = `${header}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}`;
  const key = readFileSync(join(controlPlane.directory, 'pki/service-accounts.key'));
  // RFC 7518 §3.4
  const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' });
  return `${text}.${signature.toString('base64url')}`;
}

const codeOf = async (answer: Response): Promise<string> => ((await answer.json()) as { code: string }).code;

suite('tokens that the API server knows', { skip: apiServerMissing() }, () => {
  before(async () => {
    outer = mkdtempSync(join(tmpdir(), 'kube-nvr-tokens-'));
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    await apply(
      ...[NAMESPACE, OTHER].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
      ...[NAMESPACE, OTHER].map((namespace) => ({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'default-recorder', namespace },
      })),
      roleOf(POOL, [], ['node-c']),
      lease('node-c'),
      roleBindingOf(POOL),
      tokenReviewBindingOf([POOL, { ...POOL, namespace: OTHER }]),
      ...Object.entries(VERBS).flatMap(([name, verbs]) => accountObjects(name, verbs)),
    );
    await controlPlane.installKinds();
    for (const name of Object.keys(VERBS)) tokens.set(name, await newToken(name));
    recorder = await startNode(NAMESPACE, 'node-a');
  });

  after(async () => {
    for (const one of [recorder, neighbour, particular]) await one?.[Symbol.asyncDispose]();
    await controlPlane?.close();
    rmSync(outer, { recursive: true, force: true });
  });

  test('rights on cameras and pools of the namespace are roles', async () => {
    const expected: Readonly<Record<string, readonly unknown[]>> = {
      viewer: [CAMERAS, 403, 403],
      operator: [CAMERAS, 200, 403],
      admin: [CAMERAS, 200, 200],
      // Who may not look is no admin either.
      'blind-admin': [403, 403, 403],
      nobody: [403, 403, 403],
    };
    for (const [account, [seen, stopped, levelSet]] of Object.entries(expected)) {
      const token = tokenOf(account);
      assert.deepEqual(await camerasSeen(token), seen, account);
      assert.equal((await stopCamera('gate', token)).status, stopped, account);
      assert.equal((await setLevel(token)).status, levelSet, account);
    }
    const refusal = (await (await ask('/api/cameras', tokenOf('nobody'))).json()) as { code: string; detail: string };
    assert.equal(refusal.code, 'forbidden');
    assert.match(refusal.detail, /system:serviceaccount:home:nobody has no role here/);
  });

  test('a user who may get named cameras only sees these, and may change them when all of them may be updated', async () => {
    assert.deepEqual(await camerasSeen(tokenOf('mixed')), CAMERAS);
    assert.equal((await stopCamera('gate', tokenOf('mixed'))).status, 403);
    for (const [account, stopped] of Object.entries({ 'gate-viewer': 403, 'gate-operator': 200 })) {
      const token = tokenOf(account);
      assert.deepEqual(await camerasSeen(token), ['gate']);
      assert.equal((await ask('/api/cameras/gate', token)).status, 200);
      assert.equal((await ask('/api/cameras/yard', token)).status, 404);
      assert.equal((await stopCamera('gate', token)).status, stopped);
      assert.equal((await stopCamera('yard', token)).status, stopped === 200 ? 404 : 403);
      assert.equal((await setLevel(token)).status, 403);
    }
  });

  test('a token counts wherever tokens do: as password, in the address, for live streams and playback', async () => {
    const token = tokenOf('viewer');
    const basic = { authorization: `Basic ${Buffer.from(`x:${token}`).toString('base64')}` };
    assert.equal((await fetch(`${recorder.url}/api/cameras`, { headers: basic })).status, 200);
    const window = `/window/gate.mp4?from=1&to=2`;
    assert.equal((await fetch(`${recorder.playbackUrl}${window}&access_token=${token}`)).status, 404);
    assert.equal((await fetch(`${recorder.playbackUrl}${window}&access_token=guess`)).status, 401);
    assert.equal((await fetch(`${recorder.url}/api/cameras?access_token=${token}`)).status, 401);
    const health = (await (await ask('/api/health/ready', token)).json()) as { checks?: object };
    assert.ok(health.checks, 'with a role, the checks are told');
    const closedWith = async (given: string): Promise<unknown> => {
      const socket = new WebSocket(`${recorder.url.replace('http', 'ws')}/websocket/gate?access_token=${given}`);
      const [code] = (await once(socket, 'close')) as [number];
      return code;
    };
    // The camera is stopped: who may see it learns that.
    assert.equal(await closedWith(token), 4503);
    assert.equal(await closedWith(tokenOf('nobody')), 4403);
    assert.equal(await closedWith('guess'), 4401);
  });

  test('an unknown token, one for another audience, and an expired one are wrong; a configured one is right', async () => {
    const real = tokenOf('admin');
    const expired = resigned(real, { exp: Math.floor(Date.now() / 1000) - 60 });
    const forged = `${real.slice(0, -8)}AAAAAAAA`;
    const forOthers = await newToken('admin', NAMESPACE, { audiences: ['vault'] });
    for (const token of [expired, forged, 'guess', BREAK_GLASS.slice(1)]) {
      const answer = await ask('/api/cameras', token);
      assert.deepEqual([answer.status, await codeOf(answer)], [401, 'unauthorized']);
    }
    // As kubectl makes them unless told otherwise: whoever has one can use it at the API server.
    const forTheApiServer = await newToken('admin', NAMESPACE, {});
    for (const token of [forOthers, forTheApiServer]) {
      const answer = await ask('/api/cameras', token);
      assert.deepEqual([answer.status, await codeOf(answer)], [401, 'wrong-audience']);
    }
    assert.equal((await setLevel(BREAK_GLASS)).status, 200);
    // Else the expired one would say nothing.
    assert.equal((await setLevel(resigned(real, {}))).status, 200);
  });

  test('a namespace is a tenant: an admin of one has no rights in the other', async () => {
    neighbour = await startNode(OTHER, 'node-b');
    assert.deepEqual(await camerasSeen(tokenOf('admin'), neighbour), 403);
    assert.deepEqual(await camerasSeen(BREAK_GLASS, neighbour), CAMERAS);
    await neighbour[Symbol.asyncDispose]();
  });

  test('with auth.audiences a token must be meant for one of them', async () => {
    particular = await startNode(NAMESPACE, 'node-c', {
      auth: { audiences: ['nvr.example', 'kube-nvr'] },
      cluster: { mode: 'kubernetes' },
    });
    const meant = await newToken('viewer', NAMESPACE, { audiences: ['kube-nvr'] });
    assert.deepEqual(await camerasSeen(meant, particular), CAMERAS);
    assert.deepEqual(await camerasSeen(tokenOf('viewer'), particular), 401);
  });

  test('a user who may get a camera that another node records is sent there, and others learn nothing of it', async () => {
    const nodes = `${BASE}/recordernodes`;
    const far = createServer((_request, answer) => void answer.end()).listen(0, '127.0.0.1');
    await once(far, 'listening');
    const address = `http://127.0.0.1:${(far.address() as AddressInfo).port}`;
    const node = {
      apiVersion: API_VERSION,
      kind: 'RecorderNode',
      metadata: { name: 'node-z', labels: poolLabels('default') },
      spec: { nodeName: 'node-z', poolRef: { name: 'default' }, role: 'Voter', address },
    };
    const created = await controlPlane.api.create<object>(nodes, node);
    const status = { cameras: [{ name: 'dock', epoch: 3, state: 'Recording' }] };
    await controlPlane.api.replace(`${nodes}/node-z/status`, { ...created, status });
    const camera = await controlPlane.api.create<object>(`${BASE}/cameras`, {
      apiVersion: API_VERSION,
      kind: 'Camera',
      metadata: { name: 'dock' },
      spec: { source: 'rtsp://127.0.0.1:1/none' },
    });
    const time = new Date().toISOString();
    const assignment = { node: 'node-z', epoch: 3, reason: 'Scheduled', time };
    await controlPlane.api.replace(`${BASE}/cameras/dock/status`, { ...camera, status: { assignment } });
    const askAs = async (account: string): Promise<Response> => {
      const token = await newToken(account, NAMESPACE, { audiences: ['kube-nvr'] });
      return fetch(`${particular.url}/api/archive/dock/current`, { headers: bearer(token), redirect: 'manual' });
    };
    const sent = await until('the recorder knows of the other node', async () => {
      const answer = await askAs('dock-viewer');
      return answer.status === 307 && answer;
    });
    assert.ok(sent.headers.get('location')?.startsWith(`${address}/api/archive/dock/current?`));
    assert.equal((await askAs('gate-viewer')).status, 404);
    far.close();
    await particular[Symbol.asyncDispose]();
  });

  test('without the API server a token that was checked a moment ago counts, and others get 503', async () => {
    const late = await newToken('viewer');
    assert.deepEqual(await camerasSeen(tokenOf('viewer')), CAMERAS);
    await controlPlane.kill('kube-apiserver');
    assert.deepEqual(await camerasSeen(tokenOf('viewer')), CAMERAS);
    const answer = await ask('/api/cameras', late);
    assert.equal(answer.status, 503);
    assert.equal(answer.headers.get('content-type')?.split(';')[0], 'application/problem+json');
    assert.equal(answer.headers.get('retry-after'), '5');
    const { code, detail } = (await answer.json()) as { code: string; detail: string };
    assert.equal(code, 'auth-unavailable');
    assert.match(detail, /the API server does not answer/);
    assert.deepEqual(await camerasSeen(BREAK_GLASS), CAMERAS);
    await controlPlane.start('kube-apiserver');
    await until('the API server is asked again, and knows its roles', async () => {
      assert.deepEqual(await camerasSeen(late), CAMERAS);
      return true;
    });
  });

  test('a recorder that may not ask says so', async () => {
    await controlPlane.kubectl(['delete', 'clusterrolebinding', tokenReviewBindingOf([POOL]).metadata.name]);
    const answer = await until('the right is gone', async () => {
      const got = await ask('/api/cameras', await newToken('viewer'));
      return got.status === 503 && got;
    });
    assert.match(((await answer.json()) as { detail: string }).detail, /system:auth-delegator/);
    assert.ok(!recorder.child.output.includes(tokenOf('viewer')), 'no token is in the log');
  });
});
