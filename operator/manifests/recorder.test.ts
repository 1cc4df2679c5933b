import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { configMapOf, daemonSetOf, disruptionBudgetOf, servicesOf } from './recorder.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- an object of any kind, looked at by path
type Manifest = any;

const pool = (spec: object = {}): RecorderPool =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name: 'north', namespace: 'video', uid: 'u' },
    spec: { archive: { hostPath: '/mnt/archive' }, ...spec },
  });

test('one recorder of a pool may be evicted at a time; one that is not ready never blocks a drain', () => {
  const { spec } = disruptionBudgetOf(pool()) as Manifest;
  assert.deepEqual(
    [spec.maxUnavailable, spec.unhealthyPodEvictionPolicy, spec.selector.matchLabels],
    [1, 'AlwaysAllow', { 'kube-nvr.dev/pool': 'north' }],
  );
});

test('the directory of the archive must exist: that of a disk that is not mounted is not made', () => {
  const { spec } = daemonSetOf(pool(), 'image', 'digest') as Manifest;
  const { volumes } = spec.template.spec;
  const hostPath = (name: string): object => volumes.find((volume: Manifest) => volume.name === name).hostPath;
  assert.deepEqual(hostPath('archive'), { path: '/mnt/archive', type: 'Directory' });
  assert.deepEqual(hostPath('state'), { path: '/var/lib/kube-nvr', type: 'DirectoryOrCreate' });
});

test('the operator replaces pods, not the DaemonSet; the pool’s own image wins', () => {
  const { spec } = daemonSetOf(pool({ image: 'its:own' }), 'image', 'digest') as Manifest;
  assert.equal(spec.updateStrategy.type, 'OnDelete');
  assert.equal(spec.template.spec.containers[0].image, 'its:own');
});

test('what Node compiled stays for the next start of the container, and goes with its pod', () => {
  const { spec } = daemonSetOf(pool(), 'image', 'digest') as Manifest;
  const [{ env, volumeMounts }] = spec.template.spec.containers;
  const { value } = env.find(({ name }: Manifest) => name === 'NODE_COMPILE_CACHE');
  const { name } = volumeMounts.find(({ mountPath }: Manifest) => value.startsWith(`${mountPath}/`));
  const volume = spec.template.spec.volumes.find((volume: Manifest) => volume.name === name);
  assert.deepEqual(volume, { name, emptyDir: {} });
});

test('nothing that is made has a finalizer: nothing waits for a dead node to be deleted', () => {
  const made = [
    daemonSetOf(pool(), 'image', 'digest'),
    disruptionBudgetOf(pool()),
    configMapOf(pool()),
    ...servicesOf(pool()),
  ];
  assert.doesNotMatch(JSON.stringify(made), /finalizers/);
});
