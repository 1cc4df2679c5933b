// Footage of one camera that moved over three nodes: what each node answers for it, with real control plane, operator and
// recorders, and what is answered when one of the nodes has died.

import { suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CameraAssignment } from '../../crds/camera.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import type { Camera } from '../camera/camera.ts';
import { decodePictures } from '../camera/frame-numbers.ts';
import { imageAt } from '../support/image-at.ts';
import { stopwatch } from '../support/stopwatch.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, poolOfAllNodes, resource, RESOURCES } from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 120_000;
const NODES = ['node-1', 'node-2', 'node-3'];
/** How long each node records. */
const STAY_MS = 12_000;
const FRAMES_A_SECOND = 25;
/** The camera plays its ten seconds over and over. */
const CLIP_PICTURES = 10 * FRAMES_A_SECOND;
const run = promisify(execFile);

type CameraObject = KubeObject & {
  readonly status?: { readonly assignment?: CameraAssignment; readonly conditions?: readonly Condition[] };
};

let cluster: Cluster;
let camera: Camera;

const urlOf = (node: string, port: number, path: string): string =>
  `http://${cluster.node(node).address}:${port}${path}`;

async function moveTo(node: string): Promise<void> {
  const spec = {
    source: camera.url,
    transport: 'Tcp',
    placement: { nodeSelector: { 'kubernetes.io/hostname': node } },
  };
  await apply(cluster.controlPlane, [resource('Camera', 'gate', spec)]);
  await until(
    `gate is recorded on ${node}`,
    async () => {
      const { status } = await cluster.api.get<CameraObject>(`${RESOURCES}/cameras/gate`);
      const { assignment, conditions } = status ?? {};
      const isReady = conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
      return assignment?.node === node && assignment.handover !== 'Pending' && isReady;
    },
    SLOW_MS,
  );
}

const movieFile = (name: string): string => join(cluster.directory, `${name}.mp4`);

/** Presentation times of the pictures of a movie, as ffprobe reads them. */
async function timesOf(movie: Buffer, name: string): Promise<number[]> {
  const file = movieFile(name);
  writeFileSync(file, movie);
  const args = ['-v', 'error', '-select_streams', 'v', '-show_entries', 'packet=pts_time', '-of', 'csv=p=0', file];
  const { stdout } = await run('ffprobe', args, { maxBuffer: 1 << 24 });
  return stdout
    .trim()
    .split('\n')
    .map((line) => Number.parseFloat(line))
    .sort((a, b) => a - b);
}

interface Listed {
  readonly archive: readonly { readonly filename: string; readonly node_id?: string; readonly is_open: boolean }[];
  readonly elsewhere: readonly { readonly node_id: string; readonly online: boolean }[];
}

suite('footage of a camera on three nodes', { skip: clusterMissing() }, () => {
  let fromMs: number;
  let toMs: number;

  onStage({
    nodes: NODES.length,
    begin: async (...stage) => {
      [cluster, camera] = stage;
      await apply(cluster.controlPlane, [poolOfAllNodes()]);
      for (const node of NODES) {
        await moveTo(node);
        fromMs ??= Date.now() + 1_000;
        await new Promise((resolve) => setTimeout(resolve, STAY_MS));
      }
      toMs = Date.now() - 4_000;
    },
  });

  const between = (): string => `from=${fromMs / 1_000}&to=${toMs / 1_000}`;

  test('a window has every picture of the time once, at any node', async () => {
    let first: readonly number[] | undefined;
    for (const node of NODES) {
      const answer = await fetch(urlOf(node, 9996, `/window/gate.mp4?${between()}`));
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('x-elsewhere'), null);
      const times = await timesOf(Buffer.from(await answer.arrayBuffer()), node);
      const { numbers, complaints } = await decodePictures(movieFile(node));
      assert.equal(complaints, '');
      const others = numbers.slice(1).filter((number, i) => number !== ((numbers[i] as number) + 1) % CLIP_PICTURES);
      assert.deepEqual(others, [], `each picture follows the one before it, at ${node}: ${numbers.join(' ')}`);
      // Pictures before the start, which decoding needs, are shown for a tick. The first one of the window may end soon.
      const shown = times.filter((time, i) => i === 0 || time - (times[i - 1] as number) > 0.001);
      const seconds = (toMs - fromMs) / 1_000;
      assert.ok(Math.abs(shown.length - seconds * FRAMES_A_SECOND) < 5, `${shown.length} pictures in ${seconds} s`);
      const steps = shown.slice(1).map((time, i) => time - (shown[i] as number));
      const least = Math.min(...steps.slice(1));
      assert.ok(least > 0.01 && Math.max(...steps) < 0.12, `${least} to ${Math.max(...steps)} s`);
      first ??= times;
      assert.deepEqual(times, first, `${node} sends what ${NODES[0]} sends`);
    }
  });

  test('a playlist lists the parts of all nodes, and the node that was asked sends them', async () => {
    for (const node of NODES) {
      const address = urlOf(node, 9996, `/hls/gate/index.m3u8?${between()}`);
      const playlist = await (await fetch(address)).text();
      const holders = new Set(
        [...playlist.matchAll(/^\.\.\/\.\.\/node\/([^/]+)\//gm)].map(([, holder = '']) => holder),
      );
      assert.deepEqual([...holders].sort(), [...NODES].sort());
      const args = ['-v', 'error', '-i', address, '-map', '0:v', '-f', 'null', '-'];
      assert.equal((await run('ffmpeg', args)).stderr, '');
    }
  });

  test('the list of segments is the same at any node, and so is what is relayed', async () => {
    const lists = await Promise.all(
      NODES.map(async (node) => {
        const path = `/api/archive/gate/segments?${between()}`;
        const { archive, elsewhere } = (await (await fetch(urlOf(node, 9997, path))).json()) as Listed;
        assert.deepEqual(elsewhere, []);
        // Requests are redirected to the node that records, whose own files have no node.
        return archive.map(({ filename, node_id }) => `${node_id ?? 'node-3'} ${filename}`);
      }),
    );
    assert.deepEqual(new Set(lists[0]?.map((line) => line.split(' ')[0])), new Set(NODES));
    for (const list of lists) assert.deepEqual(list, lists[0]);
    const still = await imageAt(urlOf('node-1', 9997, '/node/node-3/api/cameras/gate/thumbnail'));
    assert.equal(still.headers.get('content-type'), 'image/jpeg');
  });

  test('when a node has died, the others answer soon, and name it and the time that is missing', async () => {
    await cluster.node('node-2').kill();
    const [asked] = (await cluster.node('node-1').processes()).filter(({ container }) => container === 'recorder');
    const elapsedMs = stopwatch(asked?.pid);
    const window = await fetch(urlOf('node-1', 9996, `/window/gate.mp4?${between()}`));
    assert.equal(window.status, 200);
    assert.ok(elapsedMs() < 30_000);
    assert.match(window.headers.get('x-elsewhere') ?? '', /^"node-2";from=[\d.]+;to=[\d.]+;online=\?0$/);
    assert.ok((await timesOf(Buffer.from(await window.arrayBuffer()), 'without')).length > 10 * FRAMES_A_SECOND);
    const path = `/api/archive/gate/segments?${between()}`;
    const { elsewhere } = (await (await fetch(urlOf('node-3', 9997, path))).json()) as Listed;
    assert.deepEqual(
      elsewhere.map(({ node_id, online }) => [node_id, online]),
      [['node-2', false]],
    );
    const relayed = await fetch(urlOf('node-1', 9997, '/node/node-2/api/cameras'));
    assert.equal(relayed.status, 503);
  });
});
