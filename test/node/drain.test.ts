// kubectl drain of a node with a real kubelet: its cameras move to another node, whose recorder is a process of this machine.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CameraAssignment } from '../../crds/camera.ts';
import { directoryOfPool, guardName } from '../../crds/names.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import { footageOf, holesIn } from '../bench/failover/footage.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import type { KubeObject } from '../cluster/api-client.ts';
import { OWN_IMAGES } from '../cluster/own-images.ts';
import {
  apply,
  ARCHIVE,
  NAMESPACE,
  poolOfAllNodes,
  resource,
  RESOURCES,
  startOperator,
  type OwnOperator,
} from '../cluster/own-operator.ts';
import { ProcessKubelet } from '../cluster/process-kubelet.ts';
import { until } from '../support/until.ts';
import { ownImages, RECORDER_IMAGE, VERSION } from './own-images.ts';
import { realClusterMissing, startRealCluster, type RealCluster } from './real-cluster.ts';

const SLOW_MS = 180_000;
const CAMERAS = ['gate', 'yard'];
const REAL = 'node-1';
const OTHER = 'node-2';

type CameraObject = KubeObject & { readonly status?: { readonly assignment?: CameraAssignment } };
type NodeObject = KubeObject & { readonly status?: RecorderNodeStatus };
type Pod = KubeObject & {
  readonly spec: { readonly nodeName: string };
  readonly status?: { readonly phase?: string; readonly qosClass?: string };
};

suite('kubectl drain of a real node', { skip: realClusterMissing() }, () => {
  let cluster: RealCluster;
  let other: ProcessKubelet | undefined;
  let operator: OwnOperator | undefined;
  let camera: Camera | undefined;
  let directory = '';

  const archiveOf = (root: string): string =>
    join(root, ARCHIVE, directoryOfPool({ namespace: NAMESPACE, pool: 'default' }));
  const camerasOf = async (node: string): Promise<readonly string[]> => {
    const cameras = await cluster.controlPlane.api.list<CameraObject>(`${RESOURCES}/cameras`);
    const holds = ({ status }: CameraObject): boolean =>
      status?.assignment?.node === node ||
      (status?.assignment?.handover === 'Pending' && status.assignment.previousNode === node);
    return cameras.filter(holds).map(({ metadata }) => metadata.name);
  };

  before(async () => {
    const images = ownImages();
    cluster = await startRealCluster();
    const { controlPlane, network, node } = cluster;
    for (const archive of images) await node.importImages(archive);
    directory = join(node.root, '..', OTHER);
    mkdirSync(directory, { recursive: true });
    const imagesFile = join(directory, 'images.json');
    writeFileSync(imagesFile, JSON.stringify(OWN_IMAGES));
    const { authority, server } = controlPlane;
    other = new ProcessKubelet({ name: OTHER, directory, network, authority, server, imagesFile });
    await other.start();
    for (const root of [node.root, other.root]) mkdirSync(join(root, ARCHIVE), { recursive: true });
    await controlPlane.installKinds();
    camera = await startCamera({ pace: 'realtime', host: network.addresses.cameras });
    operator = await startOperator(controlPlane, directory);
    await apply(controlPlane, [poolOfAllNodes({ image: `${RECORDER_IMAGE}:${VERSION}` })]);
    await until(
      'both nodes report',
      async () => {
        const nodes = await controlPlane.api.list<NodeObject>(`${RESOURCES}/recordernodes`);
        return nodes.length === 2 && nodes.every(({ status }) => status?.archiveID);
      },
      SLOW_MS,
    );
    const spec = { source: camera.url, transport: 'Tcp', placement: { preferredNode: REAL } };
    await apply(
      controlPlane,
      CAMERAS.map((name) => resource('Camera', name, spec)),
    );
  });

  after(async () => {
    await operator?.program.kill();
    await other?.kill();
    await camera?.close();
    await cluster?.close();
  });

  test('kubectl waits for the guard until the cameras have left, of which nothing is missing', async () => {
    const { controlPlane, node } = cluster;
    const { api } = controlPlane;
    const path = `/api/v1/namespaces/${NAMESPACE}/pods/${guardName(REAL)}`;
    const guard = await until(
      'the real node records and is guarded',
      async () => {
        const nodes = await api.list<NodeObject>(`${RESOURCES}/recordernodes`);
        const real = nodes.find(({ metadata }) => metadata.name === REAL);
        const recorded = real?.status?.cameras?.filter(({ state }) => state === 'Recording') ?? [];
        const pod = await api.get<Pod>(path);
        return recorded.length === CAMERAS.length && pod.status?.phase === 'Running' && pod;
      },
      SLOW_MS,
    );
    assert.deepEqual([guard.spec.nodeName, guard.status?.qosClass], [REAL, 'Burstable']);
    await until('its program waits in a megabyte', () => node.run('ps', 'axo', 'args').includes('\npause'), SLOW_MS);
    const startMs = Date.now();
    await controlPlane.kubectl(['drain', REAL, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=150s']);
    assert.deepEqual([await camerasOf(REAL), (await camerasOf(OTHER)).length], [[], CAMERAS.length]);
    const endMs = Date.now();
    const disks = [
      { node: REAL, root: archiveOf(node.root) },
      { node: OTHER, root: archiveOf(other?.root ?? '') },
    ];
    await until('the footage of that time is on the disks', async () => {
      const pieces = await footageOf(disks, CAMERAS, startMs);
      return CAMERAS.every((name) => pieces.get(name)?.some(({ toMs }) => toMs > endMs));
    });
    const pieces = await footageOf(disks, CAMERAS, startMs - 1_000);
    for (const name of CAMERAS) assert.deepEqual(holesIn(pieces.get(name) ?? [], startMs - 1_000, endMs), [], name);
    await controlPlane.kubectl(['uncordon', REAL]);
  });
});
