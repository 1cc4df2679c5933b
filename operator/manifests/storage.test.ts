import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { daemonSetOf, settingsOf } from './recorder.ts';
import { claimsOf, nodeRecorderName } from './storage.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- an object of any kind, accessed by path
type Manifest = any;

const CLAIM = { spec: { storageClassName: 'local', resources: { requests: { storage: '1Ti' } } } };
const pool = (archive: object = { volumeClaimTemplate: CLAIM }, more = {}): RecorderPool =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name: 'north', namespace: 'video', uid: 'u' },
    spec: { archive, ...more },
  });
const daemonSet = (of: RecorderPool, node = ''): Manifest => daemonSetOf(of, 'recorder:1', '', '', {}, node);

test('each node has a claim and a DaemonSet of its own, and its pod runs nowhere else', () => {
  const [claim] = claimsOf(pool(), 'node-a') as Manifest[];
  assert.deepEqual(claim.spec, { ...CLAIM.spec, accessModes: ['ReadWriteOnce'] });
  assert.equal(claim.metadata.ownerReferences, undefined);
  const [a, b] = [daemonSet(pool(), 'node-a'), daemonSet(pool(), 'node-b')];
  assert.equal(a.metadata.name, nodeRecorderName('north', 'node-a'));
  assert.notEqual(a.metadata.name, b.metadata.name);
  assert.notDeepEqual(a.spec.selector, b.spec.selector);
  const { labels } = a.spec.template.metadata;
  assert.deepEqual({ ...labels, ...a.spec.selector.matchLabels }, labels);
  const { affinity, volumes } = a.spec.template.spec;
  const [term] = affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
  assert.deepEqual(term, { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-a'] }] });
  const [storage] = volumes.filter((volume: Manifest) => volume.persistentVolumeClaim);
  assert.equal(storage.persistentVolumeClaim.claimName, claim.metadata.name);
});

test('names stay short enough, whatever node and pool are called', () => {
  const name = nodeRecorderName('p'.repeat(40), 'n'.repeat(239));
  assert.ok(name.length <= 63, name);
});

test('a pod with a claim uses no directory of its node, and mounts the same paths as before', () => {
  const { volumes, containers } = daemonSet(pool(), 'node-a').spec.template.spec;
  assert.ok(volumes.every((volume: Manifest) => volume.hostPath === undefined));
  const mounts = (of: Manifest): unknown[] =>
    of.volumeMounts
      .filter(({ name }: Manifest) => name === 'storage')
      .map(({ mountPath, subPath }: Manifest) => [mountPath, subPath]);
  assert.deepEqual(mounts(containers[0]), [
    ['/var/lib/recorder', 'state/video_north'],
    ['/var/lib/recorder/recordings', 'archive/video_north'],
  ]);
  assert.deepEqual(mounts(containers[1]), [
    ['/archive', 'archive'],
    ['/state', 'state'],
  ]);
});

test('a pool with directories of the node has the pods that it had', () => {
  const { volumes, containers } = daemonSet(pool({ hostPath: '/mnt/archive' })).spec.template.spec;
  assert.deepEqual(volumes.slice(0, 2), [
    { name: 'archive', hostPath: { path: '/mnt/archive', type: 'Directory' } },
    { name: 'state', hostPath: { path: '/var/lib/kube-nvr', type: 'DirectoryOrCreate' } },
  ]);
  assert.deepEqual(containers[0].volumeMounts.slice(0, 2), [
    { name: 'state', mountPath: '/var/lib/recorder', subPath: 'video_north' },
    { name: 'archive', mountPath: '/var/lib/recorder/recordings', subPath: 'video_north' },
  ]);
  assert.deepEqual(containers[1].volumeMounts, [
    { name: 'archive', mountPath: '/archive' },
    { name: 'state', mountPath: '/state' },
  ]);
});

test('further disks are directories of the node: the recorder sees those of its pool, outside of the volume of its state', () => {
  const disks = [{ name: 'b', hostPath: '/mnt/b', weight: 2 }];
  const { volumes, containers } = daemonSet(pool({ hostPath: '/mnt/archive', disks })).spec.template.spec;
  const isDisk = ({ name }: Manifest): boolean => name === 'disk-b';
  assert.deepEqual(volumes.filter(isDisk), [{ name: 'disk-b', hostPath: { path: '/mnt/b', type: 'Directory' } }]);
  const [own] = containers[0].volumeMounts.filter(isDisk);
  assert.deepEqual(own, { name: 'disk-b', mountPath: '/var/lib/recorder-disks/b', subPath: 'video_north' });
  const settings = settingsOf(pool({ hostPath: '/mnt/archive', disks })) as Manifest;
  assert.deepEqual(settings.archive.disks, [{ path: own.mountPath, weight: 2 }]);
  const [whole] = containers[1].volumeMounts.filter(isDisk);
  assert.equal(whole.subPath, undefined);
  assert.equal(containers[1].args.at(-1), `--disk=${whole.mountPath}`);
});

test('with claims, each node has another claim for each further disk, and its pod mounts that one', () => {
  const of = pool({ volumeClaimTemplate: CLAIM, disks: [{ name: 'b', volumeClaimTemplate: CLAIM }] });
  const [storage, disk] = claimsOf(of, 'node-a') as Manifest[];
  assert.notEqual(storage.metadata.name, disk.metadata.name);
  assert.deepEqual(disk.spec, storage.spec);
  const { volumes } = daemonSet(of, 'node-a').spec.template.spec;
  const [mounted] = volumes.filter(({ name }: Manifest) => name === 'disk-b');
  assert.equal(mounted.persistentVolumeClaim.claimName, disk.metadata.name);
  const other = claimsOf(of, 'node-b') as Manifest[];
  assert.ok(other.every(({ metadata }) => ![storage, disk].some((one) => one.metadata.name === metadata.name)));
});
