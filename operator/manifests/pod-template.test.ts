import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { OWN_VOLUMES } from '../../crds/pod-template.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { allowsNode } from '../../base/kubernetes/node-affinity.ts';
import type { Placement } from './pod-template.ts';
import { daemonSetOf } from './recorder.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- an object of any kind, accessed by path
type Manifest = any;

const pool = (podTemplate?: object, more = {}): RecorderPool =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name: 'north', namespace: 'video', uid: 'u' },
    spec: { archive: { hostPath: '/mnt/archive' }, ...(podTemplate && { podTemplate }), ...more },
  });
const templateOf = (made: RecorderPool, nodes: Pick<Placement, 'without' | 'named'> = {}): Manifest =>
  (daemonSetOf(made, 'recorder:1', 'digest', '', nodes) as Manifest).spec.template;

test('a template adds what networks and rules of a cluster need', () => {
  const { metadata, spec } = templateOf(
    pool({
      metadata: { labels: { team: 'video' }, annotations: { 'k8s.v1.cni.cncf.io/networks': 'cameras' } },
      spec: {
        runtimeClassName: 'kata',
        securityContext: { seLinuxOptions: { type: 'spc_t' }, seccompProfile: { type: 'Unconfined' } },
        containers: [{ name: 'recorder', env: [{ name: 'TZ', value: 'Europe/Berlin' }] }],
      },
    }),
  );
  assert.equal(metadata.labels.team, 'video');
  assert.equal(metadata.annotations['k8s.v1.cni.cncf.io/networks'], 'cameras');
  assert.equal(spec.runtimeClassName, 'kata');
  assert.deepEqual(
    [spec.securityContext.seLinuxOptions.type, spec.securityContext.seccompProfile.type],
    ['spc_t', 'Unconfined'],
  );
  assert.equal(spec.securityContext.runAsUser, 65_532);
  const [recorder, directories] = spec.containers;
  assert.deepEqual(recorder.env.at(-1), { name: 'TZ', value: 'Europe/Berlin' });
  assert.equal(directories.env, undefined);
});

test('a template adds volumes to those of the operator, mounted by the recorder only', () => {
  const template = {
    spec: {
      volumes: [{ name: 'camera-ca', configMap: { name: 'camera-ca' } }],
      containers: [
        { name: 'recorder', volumeMounts: [{ name: 'camera-ca', mountPath: '/etc/ssl/cameras', readOnly: true }] },
      ],
    },
  };
  const before = templateOf(pool()).spec;
  const { volumes, containers } = templateOf(pool(template)).spec;
  assert.deepEqual(volumes, [...before.volumes, { name: 'camera-ca', configMap: { name: 'camera-ca' } }]);
  const mounts = ({ volumeMounts }: Manifest): unknown => volumeMounts;
  assert.deepEqual(containers.map(mounts), [
    [...before.containers[0].volumeMounts, { name: 'camera-ca', mountPath: '/etc/ssl/cameras', readOnly: true }],
    before.containers[1].volumeMounts,
  ]);
});

test('a security context of the container replaces fields of the same name, and capabilities one by one', () => {
  const securityContext = { seLinuxOptions: { type: 'container_t' }, capabilities: { add: ['NET_RAW'] } };
  const { containers } = templateOf(pool({ spec: { containers: [{ name: 'recorder', securityContext }] } })).spec;
  assert.deepEqual(containers[0].securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    seLinuxOptions: { type: 'container_t' },
    capabilities: { drop: ['ALL'], add: ['NET_RAW'] },
  });
  assert.deepEqual(containers[1], templateOf(pool()).spec.containers[1]);
});

test('no volume of a template can have the name of one that the operator makes', () => {
  const secrets = {
    tls: { secretRef: { name: 'tls' } },
    licenseSecretRef: { name: 'l' },
    licensePublicKey: `${'A'.repeat(43)}=`,
    audit: { syslog: { address: 'logs.example:6514', caSecretRef: { name: 'a' } } },
  };
  const all = templateOf(pool(undefined, { ...secrets, webhooksSecretRef: { name: 'w' } })).spec.volumes;
  for (const { name } of all) assert.ok((OWN_VOLUMES as readonly string[]).includes(name), name);
});

test('what the operator needs stays: labels by which it finds its pods, and the digest of the settings', () => {
  const { metadata } = templateOf(
    pool({
      metadata: {
        labels: { 'kube-nvr.dev/pool': 'south' },
        annotations: { 'kube-nvr.dev/settings': 'mine' },
      },
    }),
  );
  assert.equal(metadata.labels['kube-nvr.dev/pool'], 'north');
  assert.equal(metadata.annotations['kube-nvr.dev/settings'], 'digest');
});

test('pods in the network of the node still find Services, unless the template says otherwise', () => {
  const { spec } = templateOf(pool({ spec: { hostNetwork: true } }));
  assert.deepEqual([spec.hostNetwork, spec.dnsPolicy], [true, 'ClusterFirstWithHostNet']);
  assert.equal(templateOf(pool({ spec: { hostNetwork: true, dnsPolicy: 'Default' } })).spec.dnsPolicy, 'Default');
  assert.equal(templateOf(pool()).spec.dnsPolicy, undefined);
});

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const required = (...nodeSelectorTerms: object[]) => ({
  spec: { affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms } } } },
});
const zone = (...values: string[]) => ({ matchExpressions: [{ key: 'zone', operator: 'In', values }] });

test('nodes of other pools are excluded in each term of an affinity, and the rest of it stays', () => {
  const notB = [{ key: 'metadata.name', operator: 'NotIn', values: ['b'] }];
  const podAffinity = { [REQUIRED]: [] };
  const template = { spec: { affinity: { podAffinity, ...required(zone('x'), zone('y')).spec.affinity } } };
  assert.deepEqual(templateOf(pool(template), { without: ['b'] }).spec.affinity, {
    podAffinity,
    nodeAffinity: {
      [REQUIRED]: {
        nodeSelectorTerms: [
          { ...zone('x'), matchFields: notB },
          { ...zone('y'), matchFields: notB },
        ],
      },
    },
  });
});

test('a named node keeps its pod, whatever its labels are and the affinity is', () => {
  const chosen = { nodeSelector: { recorder: 'true' }, podTemplate: required(zone('x')) };
  const made = pool(chosen.podTemplate, { nodeSelector: chosen.nodeSelector });
  const { affinity, nodeSelector } = templateOf(made, { without: ['b'], named: ['a'] }).spec;
  assert.equal(nodeSelector, undefined, 'it would have to hold beside each term');
  const own = { key: 'recorder', operator: 'In', values: ['true'] };
  const { nodeSelectorTerms } = affinity.nodeAffinity[REQUIRED];
  assert.deepEqual(nodeSelectorTerms, [
    {
      matchExpressions: [...zone('x').matchExpressions, own],
      matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['b'] }],
    },
    { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] },
  ]);
  for (const name of ['a', 'b', 'c']) {
    assert.equal(allowsNode(affinity, name, {}), name === 'a');
    assert.equal(allowsNode(affinity, name, { zone: 'x', recorder: 'true' }), name !== 'b');
  }
  assert.deepEqual(templateOf(pool(), { named: ['a'] }), templateOf(pool()), 'every node has a pod anyway');
});

test('an affinity chooses nodes as the scheduler does', () => {
  const allowed = (template: object, labels: Record<string, string>): boolean =>
    allowsNode(pool(template).spec.podTemplate?.spec?.affinity, 'a', labels);
  assert.ok(allowed({}, {}));
  assert.ok(allowed(required(zone('x'), zone('y')), { zone: 'y' }), 'one term is enough');
  assert.ok(!allowed(required(zone('x')), { zone: 'y' }));
  assert.ok(!allowed(required({}), { zone: 'y' }), 'an empty term matches nothing');
  const cases = [
    ['NotIn', ['x'], {}, true],
    ['NotIn', ['x'], { zone: 'x' }, false],
    ['Exists', [], { zone: '' }, true],
    ['DoesNotExist', [], { zone: '' }, false],
    ['Gt', ['3'], { zone: '10' }, true],
    ['Lt', ['3'], {}, false],
  ] as const;
  for (const [operator, values, labels, is] of cases) {
    const matchExpressions = [{ key: 'zone', operator, values: [...values] }];
    assert.equal(allowed(required({ matchExpressions }), labels), is, operator);
  }
  const byName = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['b'] }] };
  assert.ok(!allowed(required(byName), {}));
});

test('a pool without a template has the pods that it had: nothing is rolled out by an upgrade of the operator', () => {
  const { spec } = templateOf(pool());
  assert.deepEqual(Object.keys(spec).sort(), [
    'automountServiceAccountToken',
    'containers',
    'enableServiceLinks',
    'securityContext',
    'serviceAccountName',
    'terminationGracePeriodSeconds',
    'volumes',
  ]);
});

test('the image is pulled when the pool says', () => {
  const pulled = (more: object): unknown[] =>
    templateOf(pool(undefined, more)).spec.containers.map(({ imagePullPolicy }: Manifest) => imagePullPolicy);
  assert.deepEqual(pulled({ imagePullPolicy: 'Always' }), ['Always', 'Always']);
  assert.deepEqual(pulled({}), [undefined, undefined]);
});
