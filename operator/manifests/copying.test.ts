import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { parseArchiveTarget, type ArchiveTarget } from '../../crds/archive-target.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { loadConfig } from '../../recorder/config/load.ts';
import { workspace } from '../../test/support/workspace.ts';
import { copyingOf } from './copying.ts';
import { networkPolicyOf } from './network-policy.ts';
import { configMapOf, daemonSetOf, settingsOf } from './recorder.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- an object of any kind, accessed by path
type Manifest = any;

const named = (name: string) => ({ name, namespace: 'video', uid: 'u' });
const pool = (archive: object = {}, more: object = {}): RecorderPool =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: named('north'),
    spec: { archive: { hostPath: '/mnt/archive', ...archive }, ...more },
  });
const target = (name: string, spec: object = {}): ArchiveTarget =>
  parseArchiveTarget({
    apiVersion: API_VERSION,
    kind: 'ArchiveTarget',
    metadata: named(name),
    spec: {
      endpoint: 'https://s3.example:9000',
      bucket: 'footage',
      credentialsSecretRef: { name: `${name}-key` },
      ...spec,
    },
  });
const camera = (name: string, copies?: object, record: object = {}): Camera =>
  parseCamera({
    apiVersion: API_VERSION,
    kind: 'Camera',
    metadata: named(name),
    spec: { source: 'rtsp://10.0.0.5/', record, ...(copies && { copies }) },
  });
/** Rejects when a recorder refuses them. */
async function accepted(t: TestContext, settings: object): Promise<void> {
  const file = join(workspace(t), 'config.yaml');
  writeFileSync(file, stringify(settings));
  await loadConfig(file);
}
const DAY = 86_400;
const PEM = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
const FULL = {
  region: 'eu',
  ca: PEM,
  objectLock: { mode: 'Governance', forSeconds: DAY },
  serverSideEncryption: 'KeyManagement',
  maxBitrate: 20,
  hours: '22:00-06:00',
};

test('rules and targets become settings that a recorder accepts; the rule of a camera comes before that of the pool', async (t) => {
  const common = pool({ copies: { targets: ['offsite'], afterSeconds: 60 } });
  const cameras = [
    camera('dock', { targets: ['vault'], keepSeconds: 2 * DAY }),
    camera('gate', { targets: ['vault'], keepSeconds: 2 * DAY }),
    camera('hall', { targets: [] }),
    camera('yard'),
  ];
  const copying = copyingOf(common, cameras, [target('offsite'), target('vault', FULL), target('other')]);
  const settings = settingsOf({ ...common, copying }, []) as Manifest;
  assert.deepEqual(copying.refused, []);
  assert.deepEqual(settings.archive.copies, [
    { targets: ['vault'], cameras: ['dock', 'gate'], after: '0s', keep: `${2 * DAY}s` },
    { targets: [], cameras: ['hall'], after: '0s' },
    { targets: ['offsite'], after: '60s' },
  ]);
  const [offsite, vault] = settings.archive.targets;
  assert.deepEqual(offsite, {
    name: 'offsite',
    endpoint: 'https://s3.example:9000',
    region: 'us-east-1',
    bucket: 'footage',
    prefix: 'video/north',
    accessKeyIdFile: '/etc/recorder-targets/offsite/accessKeyId',
    secretAccessKeyFile: '/etc/recorder-targets/offsite/secretAccessKey',
  });
  assert.equal(vault.ca, '/etc/recorder/target-vault.crt');
  assert.equal((configMapOf({ ...common, copying }, []) as Manifest).data['target-vault.crt'], PEM);
  await accepted(t, settings);
});

test('a rule of a camera changes no setting that a recorder reads only at its start, a target does', () => {
  const of = (cameras: readonly Camera[], targets: readonly ArchiveTarget[]) =>
    settingsOf({ ...pool(), copying: copyingOf(pool(), cameras, targets) });
  const cameras = [camera('gate', { targets: ['offsite'] })];
  const before = of(cameras, [target('offsite')]);
  assert.deepEqual(of([...cameras, camera('hall', { targets: ['offsite'] })], [target('offsite')]), before);
  assert.notDeepEqual(of(cameras, [target('offsite', { region: 'eu' })]), before);
  assert.equal(settingsOf(pool())['archive'], undefined);
});

test('a pod mounts the keys of its targets, and starts without a Secret that is missing', () => {
  const copying = copyingOf(pool({ copies: { targets: ['offsite'] } }), [], [target('offsite')]);
  const { containers, volumes } = (daemonSetOf({ ...pool(), copying }, 'recorder:1', '') as Manifest).spec.template
    .spec;
  const [volume] = volumes.filter(({ name }: Manifest) => name === 'targets');
  assert.deepEqual(volume.projected.sources, [
    {
      secret: {
        name: 'offsite-key',
        optional: true,
        items: ['accessKeyId', 'secretAccessKey'].map((key) => ({ key, path: `offsite/${key}` })),
      },
    },
  ]);
  const [mount] = containers[0].volumeMounts.filter(({ name }: Manifest) => name === 'targets');
  assert.deepEqual(mount, { name: 'targets', mountPath: '/etc/recorder-targets', readOnly: true });
});

test('what a recorder would refuse is left out, and said', async (t) => {
  const limited = pool({ retention: { maxAgeSeconds: DAY }, copies: { targets: ['nowhere'] } });
  const targets = [
    target('locked', { objectLock: { mode: 'Compliance', forSeconds: 2 * DAY } }),
    target('port', { endpoint: 'https://s3.example:99999' }),
    ...['a', 'b', 'c', 'd', 'e'].map((name) => target(name)),
  ];
  const cameras = [
    camera('c1', { targets: ['locked'] }),
    camera('c2', { targets: ['a'], keepSeconds: 2 * DAY }),
    camera('c3', { targets: ['port'] }),
    camera('c4', { targets: ['a', 'b', 'c'] }),
    camera('c5', { targets: ['d'] }),
    camera('c6', { targets: ['e'] }),
    camera('c7', { targets: ['a'], keepSeconds: 3600 }, { retention: { maxAgeSeconds: 1800 } }),
  ];
  const copying = copyingOf(limited, cameras, targets);
  assert.deepEqual(copying.refused, [
    'the pool: there is no ArchiveTarget nowhere',
    'c1: objectLock of locked is longer than copies and footage may be kept',
    'c2: copies.keepSeconds is longer than maxAgeSeconds, which holds for copies, too',
    'the endpoint of port is no address',
    'c6: e would be the 5th target of the pool',
    'c7: copies.keepSeconds is longer than maxAgeSeconds, which holds for copies, too',
  ]);
  await accepted(t, settingsOf({ ...limited, copying }, []));
  const many = Array.from({ length: 150 }, (_, i) => camera(`m${i}`, { targets: ['a'], afterSeconds: i }));
  const all = copyingOf(pool({ copies: { targets: ['b'] } }), many, targets);
  await accepted(t, settingsOf({ ...pool(), copying: all }, []));
  assert.equal(all.refused.length, 51);
});

test('recorders that may reach only their cameras reach the ports of their targets, too', () => {
  const common = pool({ copies: { targets: ['offsite'] } }, { cameraNetworks: ['10.20.0.0/16'] });
  const egress = (copying?: ReturnType<typeof copyingOf>) =>
    JSON.stringify(networkPolicyOf({ ...common, copying }, { apiServer: [6443], databases: [] }, []));
  assert.ok(!egress().includes('9000'));
  assert.ok(egress(copyingOf(common, [], [target('offsite')])).includes('{"ports":[{"port":9000,"protocol":"TCP"}]}'));
});
