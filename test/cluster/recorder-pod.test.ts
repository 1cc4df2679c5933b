// The recorder as a pod of the test cluster: a real recorder, on a node that really dies.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { startCamera, type Camera } from '../camera/camera.ts';
import { probe } from '../support/probe.ts';
import { until } from '../support/until.ts';
import { clusterMissing, startCluster, type Cluster } from './cluster.ts';
import { OWN_IMAGES } from './own-images.ts';
import { reportFailure } from './report.ts';

const HOST_PATH = '/srv/recordings';
const PORT = 9997;
const PATIENCE_MS = 180_000;

const configuration = (camera: Camera): unknown => ({
  nodeName: 'node-1',
  listen: `0.0.0.0:${PORT}`,
  record_path: '/var/lib/recorder/recordings',
  workDir: '/var/lib/recorder',
  auth: { mode: 'none', allowAnonymousNetwork: true },
  cameras: [{ id: 'gate', name: 'Gate', source: camera.url, transport: 'tcp' }],
});

const POD = {
  metadata: { name: 'recorder' },
  spec: {
    nodeName: 'node-1',
    terminationGracePeriodSeconds: 10,
    containers: [
      {
        name: 'recorder',
        image: 'kube-nvr-recorder:test',
        readinessProbe: { httpGet: { path: '/api/health/ready', port: PORT }, periodSeconds: 1 },
        volumeMounts: [
          { name: 'config', mountPath: '/etc/recorder' },
          { name: 'work', mountPath: '/var/lib/recorder' },
          { name: 'recordings', mountPath: '/var/lib/recorder/recordings' },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    volumes: [
      { name: 'config', configMap: { name: 'recorder' } },
      { name: 'recordings', hostPath: { path: HOST_PATH, type: 'Directory' } },
      { name: 'work', emptyDir: {} },
      // Volumes and checkout may lie in this machine's.
      { name: 'tmp', emptyDir: {} },
    ],
  },
};

describe('a recorder in a pod', { skip: clusterMissing() }, () => {
  let cluster: Cluster;
  let camera: Camera;

  const recordings = (): string[] => {
    const root = join(cluster.node('node-1').root, HOST_PATH);
    return readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.mp4') && !name.startsWith('.kube-nvr'))
      .map((name) => join(root, name))
      .sort();
  };
  /** The newest recording, when there are so many and it grows. */
  const growing = (count: number): Promise<string> => {
    const seen = new Map<string, number>();
    return until(`recording ${count} grows`, () => {
      const file = recordings()[count - 1];
      if (file === undefined) return false;
      const { size } = statSync(file);
      const before = seen.get(file) ?? size;
      seen.set(file, before);
      return size > before && file;
    });
  };

  before(async () => {
    cluster = await startCluster({ nodes: 1, images: OWN_IMAGES });
    camera = await startCamera({ host: cluster.addresses.cameras, pace: 'realtime' });
    mkdirSync(join(cluster.node('node-1').root, HOST_PATH), { recursive: true });
    await cluster.api.create('/api/v1/namespaces/default/configmaps', {
      metadata: { name: 'recorder' },
      data: { 'config.yaml': JSON.stringify(configuration(camera)) },
    });
    await cluster.api.create('/api/v1/namespaces/default/pods', POD);
    await cluster.kubectl(['wait', '--for=condition=Ready', 'pod/recorder', '--timeout=300s']).catch(async (error) => {
      throw new Error(`the recorder is not ready:\n${await cluster.kubectl(['logs', 'recorder'])}`, { cause: error });
    });
  });
  afterEach(reportFailure(() => cluster));
  after(async () => {
    await camera.close();
    await cluster.close();
  });

  test('records to the disk of its node, and to no other', async () => {
    await growing(1);
    assert.equal(existsSync('/var/lib/recorder'), false);
    const state = async (): Promise<unknown> => {
      const answer = await fetch(`http://${cluster.node('node-1').address}:${PORT}/api/cameras/gate`);
      return ((await answer.json()) as { state: string }).state;
    };
    assert.equal(await state(), 'recording');
  });

  test('a node that dies leaves a file that plays, and records again after its return', async () => {
    const file = recordings()[0]!;
    await cluster.node('node-1').kill();
    const { size } = statSync(file);
    assert.ok((await probe(file)).durationSeconds > 0.5);
    assert.equal(statSync(file).size, size);
    await cluster.node('node-1').start();
    await growing(2);
  });

  test('cut off from its cameras it reports that; reconnected it records again', async () => {
    const count = recordings().length;
    const { address } = cluster.node('node-1');
    cluster.node('node-1').cutOff('cameras');
    await until(
      'the camera is not recorded',
      async () => {
        const answer = await fetch(`http://${address}:${PORT}/api/cameras/gate`);
        return ((await answer.json()) as { state: string }).state !== 'recording';
      },
      PATIENCE_MS,
    );
    cluster.node('node-1').reconnect('cameras');
    await growing(count + 1);
  });

  test('a deleted pod closes its file and says goodbye to the camera', async () => {
    const file = recordings().at(-1)!;
    await cluster.kubectl(['delete', 'pod', 'recorder', '--timeout=300s']);
    assert.ok((await probe(file)).durationSeconds > 0);
    assert.equal(camera.requests.at(-1)?.method, 'TEARDOWN');
  });
});
