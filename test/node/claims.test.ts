// A pool with claims on a real node: a local volume, in a namespace that enforces the Pod Security Standard baseline.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { API_VERSION } from '../../crds/names.ts';
import { CHART, Helm, helmMissing, type Manifest, type Values } from '../chart/helm.ts';
import { localVolume } from '../cluster/local-volume.ts';
import { gstreamerMissing, type GstreamerCamera } from '../support/gstreamer-cameras.ts';
import { until } from '../support/until.ts';
import { cameraPod, cameraUrl } from './camera-pod.ts';
import { machineImage } from './images.ts';
import { ownImages } from './own-images.ts';
import { realClusterMissing, startRealCluster, type RealCluster } from './real-cluster.ts';

const VIDEO = 'video';
const SIGHTS = 'sights';
const DISK = '/mnt/disk';
const CLASS = 'local-disks';
const SLOW_MS = 180_000;
const CAMERAS: readonly GstreamerCamera[] = [
  { name: 'gate', video: 'h264', audio: 'none', width: 320, height: 180, fps: 15, gop: 15 },
];

suite(
  'a pool with claims on a real node',
  { skip: realClusterMissing() || helmMissing() || gstreamerMissing() },
  () => {
    let cluster: RealCluster;
    let helm: Helm;

    before(async () => {
      const images = ownImages();
      cluster = await startRealCluster();
      helm = new Helm(cluster.controlPlane.kubeconfig);
      const { node } = cluster;
      await node.importImages(machineImage());
      for (const archive of images) await node.importImages(archive);
      mkdirSync(join(node.root, DISK), { recursive: true });
      await cluster.kubectl(['label', 'nodes', '--all', 'kube-nvr.dev/recorder=true']);
      await apply([
        { apiVersion: 'v1', kind: 'Namespace', metadata: baseline(VIDEO) },
        ...localVolume({ storageClass: CLASS, node: node.name, path: DISK }),
        ...cameraPod(SIGHTS, CAMERAS),
      ]);
    });

    after(async () => {
      helm?.close();
      await cluster?.close();
    });

    const apply = (items: readonly object[]): Promise<string> =>
      cluster.kubectl(['apply', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });
    const list = (path: string): Promise<readonly Manifest[]> => cluster.controlPlane.api.list(path);
    const footage = (): number => {
      const names = readdirSync(join(cluster.node.root, DISK), { recursive: true }) as string[];
      const files = names.filter((name) => name.startsWith(`archive/${VIDEO}_default/`) && name.endsWith('.mp4'));
      return files.reduce((sum, name) => sum + statSync(join(cluster.node.root, DISK, name)).size, 0);
    };

    test('its recorder writes to the claim of its node, and uses no directory of the node', async () => {
      const { ranges } = cluster.network;
      const values: Values = {
        operator: { replicas: 1 },
        pool: {
          enabled: true,
          spec: {
            archive: {
              volumeClaimTemplate: { spec: { storageClassName: CLASS, resources: { requests: { storage: '5Gi' } } } },
            },
            cameraNetworks: [ranges.services, ranges.pods],
          },
        },
      };
      await helm.kinds(VIDEO);
      await helm.run(['install', 'nvr', CHART, '--namespace', VIDEO, '--wait', '--timeout', '300s'], values);
      const spec = { source: cameraUrl(SIGHTS, CAMERAS, 'gate'), transport: 'Tcp' };
      await apply([{ apiVersion: API_VERSION, kind: 'Camera', metadata: { name: 'gate', namespace: VIDEO }, spec }]);
      const recorders = (await list(`/api/v1/namespaces/${VIDEO}/pods`)).flatMap((pod) => pod.spec.volumes);
      assert.ok(recorders.every((volume) => volume.hostPath === undefined));
      await until('footage is on the volume', () => footage() > 0, SLOW_MS).catch(async (err: unknown) => {
        throw new Error(await cluster.kubectl(['-n', VIDEO, 'get', 'pods,pvc,ds,events,rpool', '-o', 'wide']), {
          cause: err,
        });
      });
      const [claim] = await list(`/api/v1/namespaces/${VIDEO}/persistentvolumeclaims`);
      assert.deepEqual([claim.status.phase, claim.spec.volumeName], ['Bound', `disk-of-${cluster.node.name}`]);
    });

    test('without the pool its pods go, and claim and footage stay', async () => {
      await cluster.kubectl(['-n', VIDEO, 'delete', 'recorderpools', '--all', '--timeout=300s']);
      await until(
        'the recorder is gone',
        async () =>
          (await list(`/api/v1/namespaces/${VIDEO}/pods`)).every(
            ({ metadata }) => metadata.labels['app.kubernetes.io/component'] !== 'recorder',
          ),
        SLOW_MS,
      );
      const [claim] = await list(`/api/v1/namespaces/${VIDEO}/persistentvolumeclaims`);
      assert.equal(claim.metadata.deletionTimestamp, undefined);
      assert.ok(footage() > 0);
    });
  },
);

const baseline = (name: string) => ({ name, labels: { 'pod-security.kubernetes.io/enforce': 'baseline' } });
