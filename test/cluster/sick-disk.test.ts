// A disk that fails under a recorder: its cameras go to nodes with disks that work, and no camera comes to it.

import { suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { CameraAssignment } from '../../crds/camera.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import type { Camera } from '../camera/camera.ts';
import { Mount } from '../support/mount.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, archiveOf, poolOfAllNodes, resource, RESOURCES, untilAllVote } from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 120_000;
const DISK_BYTES = 256 * 1024 * 1024;
const SICK = 'node-2';

type CameraObject = KubeObject & {
  readonly status?: { readonly assignment?: CameraAssignment; readonly conditions?: readonly Condition[] };
};
type NodeObject = KubeObject & { readonly status?: RecorderNodeStatus };

let cluster: Cluster;
let camera: Camera;

/** The node of a camera, once it is recorded there. */
const untilRecorded = (name: string, where: (node: string) => boolean): Promise<CameraAssignment> =>
  until(
    `${name} is recorded`,
    async () => {
      const { status } = await cluster.api.get<CameraObject>(`${RESOURCES}/cameras/${name}`);
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      const { assignment } = status ?? {};
      return ready?.status === 'True' && assignment?.node !== undefined && where(assignment.node) && assignment;
    },
    SLOW_MS,
  );

async function readyOf(node: string): Promise<Condition | undefined> {
  const { status } = await cluster.api.get<NodeObject>(`${RESOURCES}/recordernodes/${node}`);
  return status?.conditions?.find(({ type }) => type === 'Ready');
}

const create = (names: readonly string[], placement: object): Promise<void> =>
  apply(
    cluster.controlPlane,
    names.map((name) => resource('Camera', name, { source: camera.url, transport: 'Tcp', placement })),
  );

suite('a sick disk', { skip: clusterMissing() }, () => {
  onStage({
    nodes: 3,
    begin: async (...stage) => {
      [cluster, camera] = stage;
      await apply(cluster.controlPlane, [poolOfAllNodes()]);
      await untilAllVote(cluster);
    },
  });

  test('a disk that becomes read-only is the fault of its node: its cameras move, and no camera goes there', async (t) => {
    const disk = Mount.make(t, 'ext4', DISK_BYTES);
    if (!disk) return;
    const node = cluster.node(SICK);
    const archive = archiveOf(cluster, SICK);
    await node.kill();
    // Otherwise the recorder would remember its other disk.
    rmSync(join(node.root, 'var'), { recursive: true, force: true });
    execFileSync('mount', ['--bind', disk.path, archive]);
    t.after(async () => {
      await node.kill();
      execFileSync('umount', ['-l', archive]);
    });
    await node.start();
    await until(`${SICK} can record`, async () => (await readyOf(SICK))?.status === 'True', SLOW_MS);
    await create(['gate', 'hall'], { preferredNode: SICK });
    await Promise.all(['gate', 'hall'].map((name) => untilRecorded(name, (on) => on === SICK)));

    disk.abort();
    const moved = await Promise.all(['gate', 'hall'].map((name) => untilRecorded(name, (on) => on !== SICK)));
    assert.deepEqual(
      moved.map(({ reason, home }) => [reason, home]),
      [
        ['Ineligible', SICK],
        ['Ineligible', SICK],
      ],
    );
    const ready = await readyOf(SICK);
    assert.deepEqual([ready?.status, ready?.reason], ['False', 'DiskReadOnly']);
    await create(['dock', 'yard'], {});
    await Promise.all(['dock', 'yard'].map((name) => untilRecorded(name, (on) => on !== SICK)));
  });
});
