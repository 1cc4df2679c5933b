// What a stolen token of a recorder is good for, on a real API server with RBAC: its node's own Lease and report. Tokens
// are real ones, bound to pods that are bound to nodes.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION, AUTHORITIES_SECRET, nodeLeaseName } from '../../crds/names.ts';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject as ObjectToApply, Resource } from '../../operator/kube/api.ts';
import { RestKubeApi } from '../../operator/kube/client.ts';
import { EventRecorder } from '../../operator/kube/events.ts';
import { KubeConfigConnection, loadKubeConfig } from '../../operator/kube/kube-config.ts';
import { applyOwned } from '../../operator/kube/owned.ts';
import {
  CAMERA,
  CONFIG_MAP,
  DAEMON_SET,
  ENDPOINT_SLICE,
  LEASE,
  NETWORK_POLICY,
  NODE,
  PERSISTENT_VOLUME_CLAIM,
  POD,
  POD_DISRUPTION_BUDGET,
  RECORDER_NODE,
  RECORDER_POOL,
  ROLE,
  ROLE_BINDING,
  SERVICE,
  SERVICE_ACCOUNT,
} from '../../operator/kube/resources.ts';
import { applyStatus } from '../../operator/kube/status.ts';
import { networkPolicyOf } from '../../operator/manifests/network-policy.ts';
import { nodeIdentityPolicies } from '../../operator/manifests/node-identity-policy.ts';
import {
  operatorAuthorityRules,
  operatorClusterRules,
  operatorLeaseRules,
  operatorRules,
  operatorSecretRules,
} from '../../operator/manifests/operator-access.ts';
import { disruptionBudgetOf } from '../../operator/manifests/guard.ts';
import { configMapOf, daemonSetOf, servicesOf } from '../../operator/manifests/recorder.ts';
import {
  roleBindingOf,
  roleOf,
  serviceAccountOf,
  tokenReviewBindingOf,
  type PolicyRule,
} from '../../operator/manifests/recorder-access.ts';
import { claimsOf } from '../../operator/manifests/storage.ts';
import { ClusterNetworks } from '../../operator/observe/cluster-networks.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import type { ApiClient, KubeObject } from './api-client.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { apiServerMissing } from './programs.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMESPACE = 'home';
/** The API server's default. */
const SERVICE_NETWORK = '10.96.0.0/16';
const OTHER = 'neighbours';
const POOL = { namespace: NAMESPACE, name: 'default' };
const ACCOUNT = serviceAccountOf(POOL).metadata.name;

let controlPlane: ControlPlane;
/** The recorder on node-1, and a token of the same account that no pod is bound to. */
let recorder: ApiClient;
let unbound: ApiClient;
let operator: ApiClient;

const leases = (namespace = NAMESPACE): string => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
const ours = (plural: string, namespace = NAMESPACE): string =>
  `/apis/${API_VERSION}/namespaces/${namespace}/${plural}`;
const core = (plural: string, namespace = NAMESPACE): string => `/api/v1/namespaces/${namespace}/${plural}`;
const RBAC = '/apis/rbac.authorization.k8s.io/v1';

const lease = (node: string, holder = `${node}/1`, namespace = NAMESPACE) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: nodeLeaseName(node), namespace },
  spec: { holderIdentity: holder, leaseDurationSeconds: 15 },
});

const report = (node: string) => ({
  apiVersion: API_VERSION,
  kind: 'RecorderNode',
  metadata: { name: node },
  status: { version: '1.0.0' },
});

const reportPath = (node: string): string =>
  `${ours('recordernodes')}/${node}/status?fieldManager=kube-nvr-recorder&force=true`;

async function denied(call: Promise<unknown>, words: RegExp): Promise<void> {
  await assert.rejects(call, (err: Error & { status?: number }) => {
    assert.equal(err.status, 403, err.message);
    assert.match(err.message, words);
    return true;
  });
}

/** The recorder of node-1 renews the Lease of a node. */
async function renew(node: string, holder: string): Promise<KubeObject> {
  const path = `${leases()}/${nodeLeaseName(node)}`;
  const { metadata } = await recorder.get(path);
  return recorder.replace(path, { ...lease(node, holder), metadata });
}

/** A token as the kubelet asks for it; without a pod, as anybody may who has the right to. */
async function tokenFor(pod?: KubeObject): Promise<string> {
  const bound = pod && {
    boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: pod.metadata.name, uid: pod.metadata.uid },
  };
  const answer = await controlPlane.api.create<KubeObject & { status: { token: string } }>(
    `${core('serviceaccounts')}/${ACCOUNT}/token`,
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: [], expirationSeconds: 600, ...bound },
    },
  );
  return answer.status.token;
}

async function recorderPodOn(node: string): Promise<KubeObject> {
  await controlPlane.api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
  return controlPlane.api.create(core('pods'), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `recorder-${node}` },
    spec: { nodeName: node, serviceAccountName: ACCOUNT, containers: [{ name: 'recorder', image: 'none' }] },
  });
}

/** Roles as the chart makes them. */
async function grant(user: string, rules: readonly PolicyRule[], namespace?: string): Promise<void> {
  const kind = namespace === undefined ? 'ClusterRole' : 'Role';
  const where = namespace === undefined ? RBAC : `${RBAC}/namespaces/${namespace}`;
  const name = `test-${user}-${rules.length}`;
  const common = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name } };
  await controlPlane.api.create(`${where}/${kind.toLowerCase()}s`, { ...common, kind, rules });
  await controlPlane.api.create(`${where}/${kind.toLowerCase()}bindings`, {
    ...common,
    kind: `${kind}Binding`,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  });
}

/** Nobody who only records needs to list these. */
const OF_OTHERS = [
  '/api/v1/nodes',
  '/api/v1/namespaces',
  '/api/v1/pods',
  core('pods'),
  core('configmaps'),
  `/apis/${API_VERSION}/cameras`,
  `/apis/${API_VERSION}/recordernodes`,
  ours('cameras', OTHER),
  leases(OTHER),
  '/apis/coordination.k8s.io/v1/leases',
  `${RBAC}/namespaces/${NAMESPACE}/roles`,
];

async function seesNobodyElse(): Promise<void> {
  for (const path of OF_OTHERS) await denied(recorder.list(path), /cannot list resource/);
  await denied(recorder.create(leases(OTHER), lease('node-1', 'node-1/1', OTHER)), /cannot create resource "leases"/);
}

const secret = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  stringData: { username: 'u', password: 'p' },
});

suite('rights on a real API server', { skip: apiServerMissing() }, () => {
  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    const { api } = controlPlane;
    for (const namespace of [NAMESPACE, OTHER]) await controlPlane.kubectl(['create', 'namespace', namespace]);
    await controlPlane.kubectl(['apply', '--server-side', '-f', join(ROOT, 'crds/yaml')]);
    await until('the kinds are served', () => api.list(ours('recordernodes')).then(() => true));

    operator = controlPlane.clientFor('operator', { commonName: 'operator' });
    await grant('operator', operatorRules(), NAMESPACE);
    await grant('operator', [...operatorSecretRules()], NAMESPACE);
    await grant('operator', operatorClusterRules());
    await grant('operator', operatorLeaseRules(), 'kube-system');
    await grant('operator', operatorAuthorityRules(), 'kube-system');

    // What the operator does for a pool, with the operator's own rights.
    await operator.create(core('serviceaccounts'), serviceAccountOf(POOL));
    await operator.create(`${RBAC}/namespaces/${NAMESPACE}/roles`, roleOf(POOL, ['gate-login'], ['node-1', 'node-2']));
    await operator.create(`${RBAC}/namespaces/${NAMESPACE}/rolebindings`, roleBindingOf(POOL));
    for (const node of ['node-1', 'node-2']) {
      await operator.create(ours('recordernodes'), {
        apiVersion: API_VERSION,
        kind: 'RecorderNode',
        metadata: { name: node },
        spec: { nodeName: node, poolRef: { name: 'default' } },
      });
    }
    for (const node of ['node-1', 'node-2', 'node-3']) await operator.create(leases(), lease(node));
    await api.create(core('secrets'), secret('gate-login'));
    await api.create(core('secrets'), secret('database'));
    await api.create(ours('cameras'), {
      apiVersion: API_VERSION,
      kind: 'Camera',
      metadata: { name: 'gate' },
      spec: { source: 'rtsp://10.0.0.9/1' },
    });

    recorder = api.withToken(await tokenFor(await recorderPodOn('node-1')));
    unbound = api.withToken(await tokenFor());
    for (const policy of nodeIdentityPolicies()) {
      await api.create(`/apis/${policy.apiVersion}/${policy.kind.toLowerCase().replace(/y$/, 'ie')}s`, policy);
    }
    // The API server learns of policies by a watch of its own.
    await until('the policies are in force', async () => {
      await denied(renew('node-2', 'node-1/1'), /may only write/);
      await denied(recorder.patch(`${reportPath('node-2')}&dryRun=All`, 'apply', report('node-2')), /may only write/);
      return true;
    });
  });

  after(async () => {
    for (const client of [recorder, unbound, operator]) client?.close();
    await controlPlane?.close();
  });

  test("a recorder renews its own node's Lease, and writes its own report", async () => {
    await renew('node-1', 'node-1/2');
    const written = await recorder.patch<KubeObject & { status: unknown }>(
      reportPath('node-1'),
      'apply',
      report('node-1'),
    );
    assert.deepEqual(written.status, { version: '1.0.0' });
  });

  test("another node's Lease is denied: made, renewed, taken away", async () => {
    const words = /the recorder on node node-1 may only write kube-nvr-node-node-1/;
    await denied(recorder.create(leases(), lease('node-4', 'node-1/1')), /cannot create resource "leases"/);
    await denied(renew('node-2', 'node-1/1'), words);
    await denied(renew('node-3', 'node-1/1'), /cannot update resource "leases"/);
    await denied(recorder.delete(`${leases()}/${nodeLeaseName('node-2')}`), /cannot delete resource "leases"/);
  });

  test("a Lease of other things is denied: the operator's, a name of one's own making", async () => {
    for (const name of ['kube-nvr-operator', 'node-1', 'kube-nvr-node-node-1x']) {
      const body = { ...lease('node-1'), metadata: { name } };
      await denied(recorder.create(leases(), body), /cannot create resource "leases"/);
      await denied(recorder.replace(`${leases()}/${name}`, body), /cannot update resource "leases"/);
    }
  });

  test('its own Lease in the name of another holder is denied', async () => {
    await denied(renew('node-1', 'node-2/1'), /holderIdentity/);
  });

  test("another node's report is denied, and so is its own spec", async () => {
    await denied(
      recorder.patch(reportPath('node-2'), 'apply', report('node-2')),
      /the recorder on node node-1 may only write node-1/,
    );
    const spec = { spec: { role: 'Voter', drain: false } };
    for (const node of ['node-1', 'node-2']) {
      await denied(
        recorder.patch(`${ours('recordernodes')}/${node}`, 'merge', spec),
        /cannot patch resource "recordernodes"/,
      );
    }
  });

  test('a token of the account that is bound to no pod writes nothing', async () => {
    const words = /not bound to a pod on a node/;
    const own = `${leases()}/${nodeLeaseName('node-1')}`;
    await denied(unbound.replace(own, { ...lease('node-1'), metadata: (await recorder.get(own)).metadata }), words);
    await denied(unbound.patch(reportPath('node-1'), 'apply', report('node-1')), words);
  });

  test('no Camera is written, made or deleted, and no status of one', async () => {
    const gate = `${ours('cameras')}/gate`;
    await denied(recorder.patch(gate, 'merge', { spec: { suspend: true } }), /cannot patch resource "cameras"/);
    await denied(recorder.patch(`${gate}/status`, 'merge', { status: {} }), /cannot patch resource "cameras\/status"/);
    await denied(recorder.delete(gate), /cannot delete resource "cameras"/);
    await denied(recorder.create(ours('cameras'), {}), /cannot create resource "cameras"/);
    assert.equal((await recorder.get(gate)).metadata.name, 'gate', 'it is read');
    for (const field of ['node', 'previousNode']) {
      await recorder.get(`${ours('cameras')}?fieldSelector=status.assignment.${field}%3Dnode-1`);
    }
  });

  test('a Secret that a camera refers to is read by name; no other is, and none is listed', async () => {
    assert.equal((await recorder.get(`${core('secrets')}/gate-login`)).metadata.name, 'gate-login');
    await denied(recorder.get(`${core('secrets')}/database`), /cannot get resource "secrets"/);
    await denied(recorder.list(core('secrets')), /cannot list resource "secrets"/);
    await denied(recorder.get(`${core('secrets', OTHER)}/gate-login`), /cannot get resource "secrets"/);
  });

  test('neither the cluster nor another tenant is seen', seesNobodyElse);

  test('a recorder may review tokens and access only once its pool is bound to that role', async () => {
    const [reviews, accesses] = [
      '/apis/authentication.k8s.io/v1/tokenreviews',
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    ];
    const token = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token: recorder.credentials.token },
    };
    const access = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: `system:serviceaccount:${NAMESPACE}:${ACCOUNT}`,
        resourceAttributes: {
          namespace: NAMESPACE,
          group: API_VERSION.split('/')[0],
          resource: 'cameras',
          verb: 'get',
        },
      },
    };
    await denied(recorder.create(reviews, token), /cannot create resource "tokenreviews"/);
    await denied(recorder.create(accesses, access), /cannot create resource "subjectaccessreviews"/);

    await controlPlane.api.create(`${RBAC}/clusterrolebindings`, tokenReviewBindingOf([POOL]));
    interface Answer {
      readonly status: { readonly authenticated?: boolean; readonly allowed?: boolean };
    }
    const answer = await until('the binding is in force', () =>
      recorder.create<KubeObject & Answer>(reviews, token).catch(() => undefined),
    );
    assert.equal(answer.status.authenticated, true);
    assert.equal((await recorder.create<KubeObject & Answer>(accesses, access)).status.allowed, true);
    // That binding is the cluster's.
    await seesNobodyElse();
  });

  test('rights are not handed on, tokens not made, users not impersonated', async () => {
    await denied(recorder.create(`${RBAC}/namespaces/${NAMESPACE}/rolebindings`, roleBindingOf(POOL)), /rolebindings/);
    await denied(
      recorder.create(`${core('serviceaccounts')}/${ACCOUNT}/token`, { spec: {} }),
      /serviceaccounts\/token/,
    );
  });

  const skip = !LONG && 'takes 10 s, for which API servers remember tokens; LONG=1 runs it';
  test('the token of a pod that was deleted is refused', { skip }, async () => {
    const pod = await recorderPodOn('node-9');
    const stale = controlPlane.api.withToken(await tokenFor(pod));
    await stale.get(`${ours('cameras')}/gate`);
    await controlPlane.api.delete(`${core('pods')}/${pod.metadata.name}`, { gracePeriodSeconds: 0 });
    await until('the token is refused', () =>
      stale.get(`${ours('cameras')}/gate`).then(
        () => false,
        (err: { status?: number }) => err.status === 401,
      ),
    );
    stale.close();
  });

  test('policies do not restrict other programs whose accounts have similar names, with rights over everything or over Leases', async () => {
    const rules = [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] }];
    const all = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
    for (const [name, granted] of [['flight-recorder', rules] as const, ['omnipotent-recorder', all] as const]) {
      const account = `system:serviceaccount:${OTHER}:${name}`;
      await grant(account, granted, OTHER);
      const other = controlPlane.clientFor(name, { commonName: account });
      await until(`${name} has its rights`, () =>
        other.create(leases(OTHER), { ...lease('x', 'me', OTHER), metadata: { name } }).then(
          () => true,
          (err: { message?: string }) => {
            assert.doesNotMatch(err.message ?? '', /ValidatingAdmissionPolicy/);
            return false;
          },
        ),
      );
      other.close();
    }
  });

  test('policies do not stand in the way of others: the operator and kubelets write their Leases', async () => {
    await operator.create(leases('kube-system'), { ...lease('x'), metadata: { name: 'kube-nvr-operator' } });
    const kubelet = controlPlane.clientFor('kubelet-1', {
      commonName: 'system:node:node-1',
      organizations: ['system:nodes'],
    });
    const own = { ...lease('x', 'node-1'), metadata: { name: 'node-1' } };
    await controlPlane.kubectl(['create', 'namespace', 'kube-node-lease']).catch(() => {});
    await kubelet.create(leases('kube-node-lease'), own);
    kubelet.close();
  });

  test('the keys of the CAs are kept in one Secret beside the operator, which no recorder reads', async () => {
    const path = core('secrets', 'kube-system');
    const named = (name: string): object => ({ ...secret(name), metadata: { name } });
    await operator.create(path, named(AUTHORITIES_SECRET));
    const { metadata } = await operator.get(`${path}/${AUTHORITIES_SECRET}`);
    await operator.replace(`${path}/${AUTHORITIES_SECRET}`, { ...named(AUTHORITIES_SECRET), metadata });
    await controlPlane.api.create(path, named('other'));
    await denied(operator.get(`${path}/other`), /cannot get resource "secrets"/);
    await denied(operator.delete(`${path}/${AUTHORITIES_SECRET}`), /cannot delete resource "secrets"/);
    await denied(recorder.get(`${path}/${AUTHORITIES_SECRET}`), /cannot get resource "secrets"/);
  });

  test('the operator reads no Secret of another tenant, lists none', async () => {
    await operator.get(`${core('secrets')}/gate-login`);
    await denied(operator.list(core('secrets')), /cannot list resource "secrets"/);
    await denied(operator.get(`${core('secrets', OTHER)}/x`), /cannot get resource "secrets"/);
    await denied(operator.list('/api/v1/secrets'), /cannot list resource "secrets"/);
    await denied(operator.list(`/apis/${API_VERSION}/cameras`), /cannot list resource "cameras"/);
  });

  test('the operator can do all that a pool needs, twice', async (t) => {
    const file = controlPlane.kubeconfigFor('operator', { commonName: 'operator' });
    const client = new RestKubeApi(new KubeConfigConnection(loadKubeConfig(file), systemClock));
    t.after(() => client.close());
    const yaml = readFileSync(join(ROOT, 'crds/examples/recorder-pool-full.yaml'), 'utf8');
    const made = await controlPlane.api.create(ours('recorderpools'), parse(yaml));
    const pool = parseRecorderPool(made);
    const name = { namespace: NAMESPACE, name: pool.metadata.name };
    const owner = { apiVersion: API_VERSION, kind: 'RecorderPool', name: name.name, uid: made.metadata.uid };
    const objects: [Resource, ObjectToApply][] = [
      [SERVICE_ACCOUNT, serviceAccountOf(name)],
      [ROLE, roleOf(name, ['gate-login', 'yard-login'])],
      [ROLE_BINDING, roleBindingOf(name)],
      [CONFIG_MAP, configMapOf(pool, ['10.96.0.0/12'])],
      [
        NETWORK_POLICY,
        networkPolicyOf(pool, { apiServer: [6443], databases: [5432] }, ['10.96.0.0/12']) as ObjectToApply,
      ],
      ...servicesOf(pool).map((service): [Resource, ObjectToApply] => [SERVICE, service]),
      [POD_DISRUPTION_BUDGET, disruptionBudgetOf(pool, 1)],
      [DAEMON_SET, daemonSetOf(pool, 'kube-nvr', 'digest')],
    ];
    const versions = async () => {
      const applied = [];
      for (const [resource, object] of objects) applied.push(await applyOwned(client, resource, object, owner));
      return applied.map(({ metadata }) => metadata.resourceVersion);
    };
    const first = await versions();
    assert.deepEqual(await versions(), first, 'what is as it should be is not written');
    await client.apply(
      RECORDER_NODE,
      { metadata: { ...name, name: 'node-5' }, spec: { nodeName: 'node-5', poolRef: { name: 'north' } } },
      { fieldManager: 'kube-nvr-operator' },
    );
    for (const resource of [CAMERA, RECORDER_POOL, RECORDER_NODE, LEASE, POD]) {
      await client.list(resource, { namespace: NAMESPACE });
    }
    await client.list(NODE, {});
    const networks = new ClusterNetworks({
      api: client,
      nodes: () => [],
      told: [],
      clock: systemClock,
      log: silentLog,
    });
    // An API server on the loopback stands in no EndpointSlice; that it may be read is said by the answer.
    assert.deepEqual(await networks.list(), [SERVICE_NETWORK]);
    await assert.rejects(client.get(ENDPOINT_SLICE, { namespace: 'default', name: 'kubernetes' }), { status: 404 });
    const events = new EventRecorder({ api: client, clock: systemClock, log: silentLog, instance: 'test' });
    const event = { type: 'Normal', reason: 'Updated', action: 'Apply', note: 'tried' } as const;
    for (let i = 0; i < 3; i++) events.record(pool, event);
    await events.close();
    const written = await controlPlane.api.list<KubeObject & { note: string; series: { count: number } }>(
      `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`,
    );
    assert.deepEqual(
      written.map(({ note, series }) => [note, series.count]),
      [['tried', 3]],
    );
    await applyStatus(client, RECORDER_POOL, name, { observedGeneration: 1 });
    const override = { suspend: true, time: new Date().toISOString(), node: 'node-1' };
    await client.mergePatch(CAMERA, { ...name, name: 'gate' }, { status: { override } }, { subresource: 'status' });
    await denied(client.mergePatch(CAMERA, { ...name, name: 'gate' }, { spec: { suspend: true } }), /cannot patch/);
    await client.mergePatch(CAMERA, { ...name, name: 'gate' }, { status: { archives: [] } }, { subresource: 'status' });
    await client.delete(RECORDER_NODE, { ...name, name: 'node-5' });
    const spec = { accessModes: ['ReadWriteOnce'] as const, resources: { requests: { storage: '1Ti' } } };
    const archive = { ...pool.spec.archive, volumeClaimTemplate: { spec } };
    const [claim] = claimsOf({ ...pool, spec: { ...pool.spec, archive } }, 'node-1') as [ObjectToApply];
    const applyClaim = (): Promise<ObjectToApply> =>
      client.apply(PERSISTENT_VOLUME_CLAIM, claim, { fieldManager: 'kube-nvr-operator' });
    assert.equal((await applyClaim()).metadata.uid, (await applyClaim()).metadata.uid);
    const claims = `/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims`;
    await denied(
      operator.delete(`${claims}/${claim.metadata.name}`),
      /cannot delete resource "persistentvolumeclaims"/,
    );
  });

  test('the operator cannot give recorders what it does not have itself', async () => {
    const role = roleOf({ ...POOL, name: 'greedy' }, []);
    const rules = [{ apiGroups: [''], resources: ['nodes/proxy'], verbs: ['get'] }];
    await denied(
      operator.create(`${RBAC}/namespaces/${NAMESPACE}/roles`, { ...role, rules }),
      /is attempting to grant RBAC permissions not currently held/,
    );
  });
});
