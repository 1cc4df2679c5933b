// What the author of a Camera or a RecorderPool gets of Secrets that he may not read, on a real API server with RBAC:
// nothing. Alice has the rights of the chart's ClusterRole edit, Bob may also get one Secret.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { CameraStatus } from '../../crds/camera.ts';
import { API_VERSION, CAMERA_HOSTS } from '../../crds/names.ts';
import { adminRules, editRules } from '../../operator/manifests/user-access.ts';
import { operatorRules } from '../../operator/manifests/operator-access.ts';
import { secretAccessPolicies } from '../../operator/manifests/secret-access-policy.ts';
import { roleOf, type PolicyRule } from '../../operator/manifests/recorder-access.ts';
import { until } from '../support/until.ts';
import type { ApiClient, KubeObject } from './api-client.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { startOperator, type OwnOperator } from './own-operator.ts';
import { apiServerMissing } from './programs.ts';

const NAMESPACE = 'home';
/** That of `startOperator`. */
const DEFAULT = 'default';
const PULL_SECRETS = Array.from({ length: 16 }, (_, i) => `pull-${i}`);
const RBAC = 'rbac.authorization.k8s.io';
const CAMERAS = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/cameras`;
const POOLS = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/recorderpools`;

let controlPlane: ControlPlane;
let alice: ApiClient;
let bob: ApiClient;
let carol: ApiClient;
let operator: ApiClient;
let directory: string;

const camera = (name: string, spec: object) => ({
  apiVersion: API_VERSION,
  kind: 'Camera',
  metadata: { name },
  spec: { source: 'rtsp://10.0.0.9/1', ...spec },
});
const pool = (name: string, spec: object) => ({
  apiVersion: API_VERSION,
  kind: 'RecorderPool',
  metadata: { name },
  spec: { archive: { hostPath: '/mnt/archive' }, ...spec },
});
const refTo = (name: string) => ({ credentialsSecretRef: { name } });
const edit = (user: ApiClient, name: string, spec: object) => user.patch(`${CAMERAS}/${name}`, 'merge', { spec });

async function grant(user: string, rules: readonly PolicyRule[]): Promise<void> {
  const where = `/apis/${RBAC}/v1/namespaces/${NAMESPACE}`;
  const common = { apiVersion: `${RBAC}/v1`, metadata: { name: user } };
  await controlPlane.api.create(`${where}/roles`, { ...common, kind: 'Role', rules });
  await controlPlane.api.create(`${where}/rolebindings`, {
    ...common,
    kind: 'RoleBinding',
    roleRef: { apiGroup: RBAC, kind: 'Role', name: user },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: user }],
  });
}

/** `field`: below spec. */
async function refused(call: Promise<unknown>, field: string, secret: string): Promise<void> {
  await assert.rejects(call, (err: Error & { status?: number }) => {
    assert.equal(err.status, 403, err.message);
    assert.ok(err.message.endsWith(`spec.${field}: you may not read the Secret ${secret}`), err.message);
    return true;
  });
}

const get = (...names: readonly string[]): PolicyRule => ({
  apiGroups: [''],
  resources: ['secrets'],
  verbs: ['get'],
  resourceNames: names,
});

suite('the author of a Camera and the Secrets of others', { skip: apiServerMissing() }, () => {
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kube-nvr-camera-author-'));
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    await controlPlane.kubectl(['create', 'namespace', NAMESPACE]);
    await controlPlane.installKinds();
    await until('the kinds are served', () => controlPlane.api.list(CAMERAS).then(() => true));
    await grant('alice', editRules());
    await grant('bob', [...editRules(), get('smtp')]);
    await grant('carol', [...adminRules(), get('tokens', ...PULL_SECRETS)]);
    await grant('operator', operatorRules());
    [alice, bob, carol, operator] = ['alice', 'bob', 'carol', 'operator'].map((commonName) =>
      controlPlane.clientFor(commonName, { commonName }),
    ) as [ApiClient, ApiClient, ApiClient, ApiClient];
    for (const policy of secretAccessPolicies()) {
      await controlPlane.api.create(
        `/apis/${policy.apiVersion}/${policy.kind.toLowerCase().replace(/y$/, 'ie')}s`,
        policy,
      );
    }
    // The API server learns of policies by a watch of its own.
    await until('the policies are in force', async () => {
      await refused(alice.create(`${CAMERAS}?dryRun=All`, camera('x', refTo('smtp'))), 'credentialsSecretRef', 'smtp');
      await refused(
        carol.create(`${POOLS}?dryRun=All`, pool('x', { licenseSecretRef: { name: 'smtp' } })),
        'licenseSecretRef',
        'smtp',
      );
      return true;
    });
  });

  after(async () => {
    rmSync(directory, { recursive: true, force: true });
    for (const client of [alice, bob, carol, operator]) client?.close();
    await controlPlane?.close();
  });

  test('an author cannot name a Secret that they may not read; one who may read it can', async () => {
    await refused(alice.create(CAMERAS, camera('thief', refTo('smtp'))), 'credentialsSecretRef', 'smtp');
    await refused(bob.create(CAMERAS, camera('thief', refTo('database'))), 'credentialsSecretRef', 'database');
    await alice.create(CAMERAS, camera('open', {}));
    await refused(edit(alice, 'open', refTo('smtp')), 'credentialsSecretRef', 'smtp');
    await bob.create(CAMERAS, camera('gate', refTo('smtp')));
  });

  test('the Camera of another author cannot be pointed elsewhere: the login would go there', async () => {
    await bob.create(CAMERAS, camera('yard', { ...refTo('smtp'), onvif: 'http://10.0.0.9/onvif' }));
    for (const spec of [
      { source: 'rtsp://evil.example/1' },
      { snapshot: 'http://evil.example/s.jpg' },
      { preview: { source: 'rtsp://evil.example/small' } },
      { onvif: 'http://evil.example/' },
      { onvif: null },
      { source: 'rtsp://evil.example/1', ...refTo('smtp') },
    ]) {
      await refused(edit(alice, 'yard', spec), 'credentialsSecretRef', 'smtp');
    }
    await edit(bob, 'yard', { source: 'rtsp://10.0.0.10/1' });
  });

  test('a login of somebody else is not made readable on the way', async () => {
    await bob.create(CAMERAS, camera('shed', { ...refTo('smtp'), tls: { verify: true } }));
    for (const spec of [{ allowPlaintextLogin: true }, { tls: null }, { tls: { verify: false } }]) {
      await refused(edit(alice, 'shed', spec), 'credentialsSecretRef', 'smtp');
    }
    await edit(alice, 'shed', { displayName: 'Shed' });
    await edit(bob, 'shed', { allowPlaintextLogin: true, tls: null });
  });

  test('what has nothing to do with the login is changed by who may change Cameras; the operator changes only their status', async () => {
    await bob.create(CAMERAS, camera('dock', refTo('smtp')));
    await edit(alice, 'dock', { displayName: 'Dock', ptz: true });
    await assert.rejects(edit(operator, 'dock', { suspend: true }), /cannot patch resource "cameras"/);
    await alice.patch(`${CAMERAS}/dock`, 'merge', { metadata: { labels: { by: 'alice' } } });
    await edit(alice, 'dock', { credentialsSecretRef: null, source: 'rtsp://10.0.0.11/1' });
    await refused(edit(alice, 'dock', refTo('smtp')), 'credentialsSecretRef', 'smtp');
    await alice.delete(`${CAMERAS}/dock`);
  });

  test('every reference of a RecorderPool is held to the same, and a pool with Secrets gets no image of a stranger', async () => {
    const references: readonly (readonly [string, object])[] = [
      ['databaseSecretRef', { databaseSecretRef: { name: 'smtp' } }],
      ['redisSecretRef', { redisSecretRef: { name: 'smtp' } }],
      ['licenseSecretRef', { licenseSecretRef: { name: 'smtp' } }],
      ['webhooksSecretRef', { webhooksSecretRef: { name: 'smtp' } }],
      ['auth.tokensSecretRef', { auth: { mode: 'Token', tokensSecretRef: { name: 'smtp' } } }],
      ['tls.secretRef', { tls: { secretRef: { name: 'smtp' } } }],
      ['imagePullSecretRefs', { imagePullSecretRefs: [{ name: 'pull-1' }, { name: 'smtp' }] }],
    ];
    for (const [field, spec] of references) await refused(carol.create(POOLS, pool('thief', spec)), field, 'smtp');
    // As many questions to the authorizer as a pool can give rise to.
    const pulls = PULL_SECRETS.map((name) => ({ name }));
    const tokens = { auth: { mode: 'Token', tokensSecretRef: { name: 'tokens' } } };
    const others = Object.fromEntries(
      ['databaseSecretRef', 'redisSecretRef', 'licenseSecretRef', 'webhooksSecretRef'].map((field) => [
        field,
        { name: 'tokens' },
      ]),
    );
    const tls = { secretRef: { name: 'tokens' } };
    await carol.create(POOLS, pool('hers', { imagePullSecretRefs: pulls, tls, ...tokens, ...others }));

    await controlPlane.api.create(POOLS, pool('ours', { databaseSecretRef: { name: 'smtp' } }));
    const write = (spec: object) => carol.patch(`${POOLS}/ours`, 'merge', { spec });
    await write({ limits: { maxCamerasPerNode: 5 } });
    await refused(write({ image: 'evil.example/recorder' }), 'databaseSecretRef', 'smtp');
    await refused(write({ databaseSecretRef: null, redisSecretRef: { name: 'smtp' } }), 'redisSecretRef', 'smtp');
  });

  // As administrator: an account that applies what is in a repository may often read every Secret.
  test('whatever a Camera names, recorders are granted only Secrets that say which cameras they are for', async (t) => {
    const { api } = controlPlane;
    const secrets = `/api/v1/namespaces/${DEFAULT}/secrets`;
    const secret = (name: string, hosts?: string) =>
      api.create(secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, ...(hosts && { annotations: { [CAMERA_HOSTS]: hosts } }) },
        stringData: { username: 'mailer', password: 'Top-Secret-42' },
      });
    await secret('smtp');
    await secret('old-login');
    await secret('gate-login', '10.0.0.9');
    const ours = (plural: string): string => `/apis/${API_VERSION}/namespaces/${DEFAULT}/${plural}`;
    const { metadata } = await api.create(ours('recorderpools'), pool('default', { auth: { mode: 'None' } }));
    // As a version has left it that granted what Cameras named.
    const { annotations: _, ...named } = roleOf({ namespace: DEFAULT, name: 'default' }, []).metadata;
    const owner = {
      apiVersion: API_VERSION,
      kind: 'RecorderPool',
      name: 'default',
      uid: metadata.uid,
      controller: true,
    };
    const roles = `/apis/${RBAC}/v1/namespaces/${DEFAULT}/roles`;
    await api.create(roles, {
      ...roleOf({ namespace: DEFAULT, name: 'default' }, ['old-login']),
      metadata: { ...named, ownerReferences: [owner] },
    });
    await api.create(ours('cameras'), camera('old', { source: 'rtsp://old.example/1', ...refTo('old-login') }));
    await api.create(ours('cameras'), camera('gate', refTo('gate-login')));
    await api.create(ours('cameras'), camera('thief', { source: 'rtsp://evil.example/1', ...refTo('smtp') }));
    const process: OwnOperator = await startOperator(controlPlane, directory);
    t.after(() => process.program.stop()); // Lets go of its Lease.

    type Role = KubeObject & { readonly rules: readonly PolicyRule[] };
    const granted = async (): Promise<string> => {
      const { rules } = await api.get<Role>(`${roles}/default-recorder`);
      return String(rules.find(({ resources }) => resources.includes('secrets'))?.resourceNames);
    };
    await until('the Role has what it should', async () => (await granted()) === 'gate-login,old-login');
    type Shown = KubeObject & { readonly status?: CameraStatus };
    const credentials = async (name: string): Promise<string> => {
      const { status } = await api.get<Shown>(`${ours('cameras')}/${name}`);
      const found = status?.conditions?.find(({ type }) => type === 'CredentialsResolved');
      return `${found?.status} ${found?.reason}`;
    };
    await until('the Camera says why', async () => (await credentials('thief')) === 'False NoHosts');
    const { status } = await api.get<Shown>(`${ours('cameras')}/old`);
    assert.deepEqual(status?.login, { secretName: 'old-login', hosts: ['old.example'] });

    await api.patch(`${secrets}/smtp`, 'merge', { metadata: { annotations: { [CAMERA_HOSTS]: 'evil.example' } } });
    await until('its owner says that it is one', async () => (await granted()) === 'gate-login,old-login,smtp');
  });

  test("recorders are told the cluster's own networks, and reach what their pool says while it says so", async (t) => {
    const { api } = controlPlane;
    const address = { type: 'InternalIP', address: '10.0.0.7' };
    await api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' } });
    await api.patch('/api/v1/nodes/node-1/status', 'merge', { status: { addresses: [address] } });
    const path = `/apis/${API_VERSION}/namespaces/${DEFAULT}/recorderpools`;
    await api.create(path, pool('north', { auth: { mode: 'None' }, cameraNetworks: ['10.20.0.0/16'] }));
    const args = ['--cluster-network', '10.42.0.0/16', '--api-server-port', '6443', '--database-port', '5432'];
    const { program } = await startOperator(controlPlane, directory, { args });
    t.after(() => program.stop());
    type File = {
      readonly cameraNetworks?: readonly string[];
      readonly cluster: { readonly networks: readonly string[] };
    };
    const file = async (): Promise<File> => {
      const map = await api.get<KubeObject & { readonly data: Record<string, string> }>(
        `/api/v1/namespaces/${DEFAULT}/configmaps/north-recorder`,
      );
      return parse(map.data['config.yaml'] ?? '') as File;
    };
    const written = await until('there are settings', () => file().catch(() => undefined));
    assert.deepEqual(written.cameraNetworks, ['10.20.0.0/16']);
    assert.deepEqual(written.cluster.networks, ['10.0.0.7', '10.42.0.0/16', '10.96.0.0/16']);
    const policy = `/apis/networking.k8s.io/v1/namespaces/${DEFAULT}/networkpolicies/north-recorder`;
    const { spec } = await until('there is a policy', () =>
      api.get<KubeObject & { readonly spec: object }>(policy).catch(() => undefined),
    );
    assert.match(JSON.stringify(spec), /"ipBlock":{"cidr":"10\.20\.0\.0\/16"}/);
    await api.patch(`${path}/north`, 'merge', { spec: { cameraNetworks: null } });
    await until('the policy is gone', () =>
      api.get(policy).then(
        () => false,
        ({ status }: { readonly status: number }) => status === 404,
      ),
    );
    await until('cameras may be anywhere', async () => (await file()).cameraNetworks === undefined);
    await api.patch(`${path}/north`, 'merge', { spec: { cameraNetworks: ['10.20.0.0/16'] } });
    await until('it is back', () => api.get(policy).catch(() => undefined));
  });
});
