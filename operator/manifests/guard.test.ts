import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderNode } from '../../crds/recorder-node.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { disruptionBudgetOf, guardOf } from './guard.ts';
import { daemonSetOf, servicesOf } from './recorder.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- an object of any kind, accessed by path
type Manifest = any;
type Labels = Readonly<Record<string, string>>;

const pool = (spec: object = {}): RecorderPool =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name: 'north', namespace: 'video', uid: 'u' },
    spec: { archive: { hostPath: '/mnt/archive' }, ...spec },
  });
const node = parseRecorderNode({
  apiVersion: API_VERSION,
  kind: 'RecorderNode',
  metadata: { name: 'rack-1.example', namespace: 'video', uid: 'n' },
  spec: { nodeName: 'rack-1.example', poolRef: { name: 'north' } },
});
const guard = guardOf(pool(), node, 'recorder:1') as Manifest;

const matches = (selector: Labels, labels: Labels): boolean =>
  Object.entries(selector).every(([key, value]) => labels[key] === value);

test('a guard runs on its node though that is cordoned, and kubectl drain finds a controller that is no DaemonSet', () => {
  const { spec, metadata } = guard;
  assert.deepEqual([spec.nodeName, spec.tolerations], ['rack-1.example', [{ operator: 'Exists' }]]);
  const [owner] = metadata.ownerReferences;
  assert.deepEqual([owner.kind, owner.uid, owner.controller], ['RecorderNode', 'n', true]);
});

test('a guard has no token, no volume and no capability', () => {
  const { spec } = guard;
  const [{ securityContext }] = spec.containers;
  assert.deepEqual(
    [spec.automountServiceAccountToken, spec.volumes, spec.securityContext.runAsNonRoot, securityContext.capabilities],
    [false, undefined, true, { drop: ['ALL'] }],
  );
});

test('of a pod template, a guard takes what rules of a cluster ask of every pod, and nothing of networks or volumes', () => {
  const podTemplate = {
    metadata: {
      labels: { team: 'video', 'app.kubernetes.io/component': 'mine' },
      annotations: { 'k8s.v1.cni.cncf.io/networks': 'cameras' },
    },
    spec: {
      hostNetwork: true,
      runtimeClassName: 'kata',
      securityContext: { seLinuxOptions: { type: 'container_t' }, fsGroup: 5 },
      volumes: [{ name: 'gpu', hostPath: { path: '/dev/dri' } }],
    },
  };
  const { metadata, spec } = guardOf(
    pool({ podTemplate, imagePullSecretRefs: [{ name: 'registry' }], nodeSelector: { disks: 'yes' } }),
    node,
    'recorder:1',
    'recorders',
  ) as Manifest;
  assert.deepEqual(metadata.labels, { team: 'video', ...guard.metadata.labels });
  assert.equal(metadata.annotations, undefined);
  assert.deepEqual(spec, {
    ...guard.spec,
    priorityClassName: 'recorders',
    imagePullSecrets: [{ name: 'registry' }],
    runtimeClassName: 'kata',
    securityContext: { ...guard.spec.securityContext, seLinuxOptions: { type: 'container_t' } },
  });
});

test('the budget covers all guards of its pool and no recorder; Services and the DaemonSet do not select guards', () => {
  const { spec } = disruptionBudgetOf(pool(), 3) as Manifest;
  assert.equal(spec.minAvailable, 3);
  const daemonSet = daemonSetOf(pool(), 'recorder:1', '') as Manifest;
  const selects = (labels: Labels): boolean => matches(spec.selector.matchLabels, labels);
  assert.deepEqual([selects(guard.metadata.labels), selects(daemonSet.spec.template.metadata.labels)], [true, false]);
  const selectors = [
    daemonSet.spec.selector.matchLabels,
    ...servicesOf(pool()).map((service: Manifest) => service.spec.selector),
  ];
  assert.deepEqual(
    selectors.map((selector) => matches(selector, guard.metadata.labels)),
    [false, false, false],
  );
});
