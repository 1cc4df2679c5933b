// Copies of a pool: ArchiveTargets and their conditions, several disks of a node, and the footage of a node that is lost for good, on a
// real control plane and with a real object storage.

import { after, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Camera as CameraResource } from '../../crds/camera.ts';
import { directoryOfPool } from '../../crds/names.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import type { Camera } from '../camera/camera.ts';
import { KEY, ObjectStorage, storageMissing } from '../support/object-storage.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, archiveOf, NAMESPACE, poolOfAllNodes, resource, RESOURCES } from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 180_000;
const SECOND = '/mnt/second';
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;

let cluster: Cluster;
let storage: ObjectStorage;
let ends: (() => Promise<void>)[] = [];

const secondOf = (node: string): string =>
  join(cluster.node(node).root, SECOND, directoryOfPool({ namespace: NAMESPACE, pool: 'default' }));
const target = (name: string, spec: object = {}) =>
  resource('ArchiveTarget', name, {
    endpoint: storage.endpoint,
    bucket: 'footage',
    credentialsSecretRef: { name: 'offsite-key' },
    ...spec,
  });

/** The reason of `Ready` of a target. */
async function reasonOf(name: string): Promise<string | undefined> {
  const { status } = await cluster.api.get<KubeObject & { status?: { conditions?: Condition[] } }>(
    `${RESOURCES}/archivetargets/${name}`,
  );
  return status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
}

const isReason = (name: string, reason: string): Promise<unknown> =>
  until(`${name} has the reason ${reason}`, async () => (await reasonOf(name)) === reason, SLOW_MS, 500);

async function ownerOfGate(): Promise<string | undefined> {
  const { status } = (await cluster.api.get(`${RESOURCES}/cameras/gate`)) as unknown as CameraResource;
  const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
  return isReady ? status?.assignment?.node : undefined;
}

const filesIn = (directory: string): string[] =>
  existsSync(directory)
    ? (readdirSync(directory, { recursive: true }) as string[]).filter((path) => path.endsWith('.mp4')).sort()
    : [];

interface Listed {
  readonly archive: readonly {
    readonly filename: string;
    readonly start_ms: number;
    readonly end_ms: number;
    readonly copies?: readonly string[];
    readonly node_id?: string;
  }[];
}

const get = async <T>(node: string, path: string): Promise<T> => {
  const answer = await fetch(`http://${cluster.node(node).address}:9997${path}`);
  assert.equal(answer.status, 200);
  return (await answer.json()) as T;
};

suite('copies of a pool', { skip: clusterMissing() || storageMissing() }, () => {
  after(async () => {
    for (const end of ends) await end();
    ends = [];
  });

  onStage({
    nodes: 2,
    begin: async (started: Cluster, camera: Camera) => {
      cluster = started;
      const directory = join(cluster.directory, 'storage');
      storage = await ObjectStorage.start(
        { after: (end) => void ends.push(end) },
        directory,
        cluster.network.addresses.cameras,
      );
      for (const node of ['node-1', 'node-2']) mkdirSync(dirname(secondOf(node)), { recursive: true });
      // As another pool has left it.
      const identity = join(storage.directory('footage', 'taken'), '.kube-nvr/archive.json');
      mkdirSync(dirname(identity), { recursive: true });
      writeFileSync(identity, JSON.stringify({ archive: 'video/other' }));
      const disks = [{ name: 'second', hostPath: SECOND }];
      const archive = { hostPath: '/mnt/archive', disks, copies: { targets: ['offsite', 'nowhere', 'taken'] } };
      await apply(cluster.controlPlane, [
        target('offsite'),
        target('nowhere', { bucket: 'elsewhere' }),
        target('taken', { prefix: 'taken' }),
        poolOfAllNodes({ archive }),
        resource('Camera', 'gate', {
          source: camera.url,
          transport: 'Tcp',
          placement: { preferredNode: 'node-1' },
          record: { segmentSeconds: 2 },
        }),
      ]);
    },
  });

  test('each node has both disks, as one archive', async () => {
    await until('node-1 records', async () => (await ownerOfGate()) === 'node-1', SLOW_MS, 500);
    const markers = [archiveOf(cluster, 'node-1'), secondOf('node-1')].map((root) =>
      join(root, '.kube-nvr/archive.json'),
    );
    await until('both disks are used', () => markers.every((marker) => existsSync(marker)), SLOW_MS);
    const [first, second] = markers.map(
      (marker) => JSON.parse(readFileSync(marker, 'utf8')) as { readonly id: string; readonly set?: string },
    );
    assert.equal(second?.set, first?.id);
  });

  test('what is wrong with a target is its condition: a Secret that is missing, a bucket, the prefix of another pool', async () => {
    await isReason('offsite', 'WrongCredentials');
    await cluster.api.create(SECRETS, {
      metadata: { name: 'offsite-key' },
      stringData: { accessKeyId: KEY.accessKeyId, secretAccessKey: KEY.secretAccessKey },
    });
    await isReason('offsite', 'Copying');
    await isReason('nowhere', 'NoBucket');
    await isReason('taken', 'ForeignPrefix');
    assert.deepEqual(readdirSync(storage.directory('footage', 'taken')), ['.kube-nvr']);
  });

  test('a camera that says so is not copied, and its recorder is not restarted for that', async () => {
    const copied = (): number => filesIn(storage.directory('footage', `${NAMESPACE}/default`)).length;
    const pods = async () =>
      (await cluster.node('node-1').processes()).flatMap(({ container, pid }) => (container === 'recorder' ? pid : []));
    const before = await pods();
    await until('files are copied', () => copied() > 2, SLOW_MS);
    await cluster.api.patch(`${RESOURCES}/cameras/gate`, 'merge', { spec: { copies: { targets: [] } } });
    await until(
      'the newest file has no copy for longer than it takes to copy one',
      async () => {
        const [older] = (await get<Listed>('node-1', '/api/archive/gate/segments')).archive.slice(-10);
        return older !== undefined && older.copies === undefined;
      },
      SLOW_MS,
      500,
    );
    await cluster.api.patch(`${RESOURCES}/cameras/gate`, 'merge', { spec: { copies: null } });
    assert.deepEqual(await pods(), before);
  });

  test('the footage of a node that is lost for good is listed and played from its target', async () => {
    const all = await until(
      'all closed files of node-1 are copied',
      async () => {
        const { archive } = await get<Listed>('node-1', '/api/archive/gate/segments');
        const closed = archive.slice(0, -1);
        return closed.length > 5 && closed.every(({ copies }) => copies?.includes('offsite')) && closed;
      },
      SLOW_MS,
      500,
    );
    await cluster.node('node-1').kill();
    await until('node-2 records', async () => (await ownerOfGate()) === 'node-2', SLOW_MS, 500);
    const [first, last] = [all[0], all.at(-1)];
    assert.ok(first && last);
    const window = `from=${first.start_ms / 1_000}&to=${last.end_ms / 1_000}`;
    const found = await until(
      'node-2 lists all of it',
      async () => {
        const { archive } = await get<Listed>('node-2', `/api/archive/gate/segments?${window}`);
        const names = new Set(archive.map(({ filename }) => filename));
        return all.every(({ filename }) => names.has(filename)) && archive;
      },
      SLOW_MS,
      500,
    );
    const ofNode1 = new Set(all.map(({ filename }) => filename));
    for (const one of found) if (ofNode1.has(one.filename)) assert.equal(one.node_id, 'target:offsite');
    const played = await fetch(`http://${cluster.node('node-2').address}:9996/window/gate.mp4?${window}`);
    assert.equal(played.status, 200);
    assert.ok((await played.arrayBuffer()).byteLength > 10_000);
  });
});
