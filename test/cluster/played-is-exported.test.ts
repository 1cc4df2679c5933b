// What is played is exported: a camera that moved and came back, and one whose node was cut off and recorded on beside its
// successor. Numbered pictures, real control plane, operator and recorders, asked at each node in every way there is.

import { suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CameraAssignment } from '../../crds/camera.ts';
import type { Camera } from '../camera/camera.ts';
import { decodeFrameNumbers, decodePictures } from '../camera/frame-numbers.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, poolOfAllNodes, resource, RESOURCES } from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 180_000;
const NODES = ['node-1', 'node-2', 'node-3'] as const;

type CameraObject = KubeObject & { readonly status?: { readonly assignment?: CameraAssignment } };
type Stretch = readonly [fromMs: number, toMs: number];

interface Job {
  readonly job_id: string;
  readonly state: string;
  readonly reason?: string;
  readonly gaps: readonly unknown[];
}

let cluster: Cluster;
let camera: Camera;

const urlOf = (node: string, port: number, path: string): string =>
  `http://${cluster.node(node).address}:${port}${path}`;

const assignment = async (): Promise<CameraAssignment | undefined> =>
  (await cluster.api.get<CameraObject>(`${RESOURCES}/cameras/gate`)).status?.assignment;

/** How much of an interval a node has in its own files. */
async function footageAt(node: string, [fromMs, toMs]: Stretch): Promise<readonly Stretch[]> {
  const path = `/api/archive/gate/gaps?from=${fromMs / 1_000}&to=${toMs / 1_000}&local=1&footage=1`;
  const { footage } = (await (await fetch(urlOf(node, 9997, path))).json()) as {
    footage: readonly { readonly start_ms: number; readonly end_ms: number }[];
  };
  return footage.map(({ start_ms, end_ms }) => [start_ms, end_ms] as const);
}

/** Waits until a node other than `before`, or `node`, has recorded the camera for `ms` from now on. */
async function recordedAt(wanted: (node: string) => boolean, ms: number): Promise<string> {
  const startMs = Date.now();
  return until(
    'the camera is recorded there',
    async () => {
      const { node = '' } = (await assignment()) ?? {};
      if (!wanted(node)) return false;
      const last = (await footageAt(node, [startMs, Date.now()])).at(-1);
      return last !== undefined && last[1] - last[0] > ms && node;
    },
    SLOW_MS,
  );
}

async function place(placement: object): Promise<void> {
  const spec = { source: camera.url, transport: 'Tcp', placement, record: { segmentSeconds: 4 } };
  await apply(cluster.controlPlane, [resource('Camera', 'gate', spec)]);
}

async function moveTo(node: string): Promise<void> {
  await place({ nodeSelector: { 'kubernetes.io/hostname': node } });
  await recordedAt((now) => now === node, 6_000);
}

async function save(name: string, answer: Response): Promise<string> {
  assert.equal(answer.status, 200, `${name}: ${answer.status}`);
  const file = join(cluster.directory, name);
  writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
  return file;
}

/** The numbers in the result of a job that is requested at `node`; `part`: of a case. */
async function jobAt(node: string, path: string, part = '', body?: object): Promise<readonly number[]> {
  const sends = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const submitted = await fetch(urlOf(node, 9997, path), { method: 'POST', ...sends });
  assert.equal(submitted.status, 202, await submitted.clone().text());
  const { job_id } = (await submitted.json()) as Job;
  const job = await until(
    'the job has ended',
    async () => {
      const found = (await (await fetch(urlOf(node, 9997, `/api/archive/jobs/${job_id}`))).json()) as Job;
      return (found.state === 'done' || found.state === 'failed') && found;
    },
    SLOW_MS,
  );
  assert.equal(job.state, 'done', job.reason);
  const file = await save(
    `${job_id}.mp4`,
    await fetch(urlOf(node, 9997, `/api/archive/jobs/${job_id}/download${part}`)),
  );
  const { numbers, complaints } = await decodePictures(file);
  assert.equal(complaints, '');
  return numbers;
}

/** The initialization section and the parts of a run in a playlist, as a player loads them; times go on within a run. */
async function bytesOf(run: string, map: string, address: string): Promise<Buffer[]> {
  const parts: Buffer[] = [];
  const load = async (path: string, range?: string): Promise<void> => {
    const answer = await fetch(new URL(path, address), range === undefined ? {} : { headers: { range } });
    assert.ok(answer.ok, `${path}: ${answer.status}`);
    parts.push(Buffer.from(await answer.arrayBuffer()));
  };
  await load(map);
  let range: string | undefined;
  for (const line of run.split('\n')) {
    const [, size, offset] = /^#EXT-X-BYTERANGE:(\d+)@(\d+)$/.exec(line) ?? [];
    if (size !== undefined) range = `bytes=${offset}-${Number(offset) + Number(size) - 1}`;
    if (line === '' || line.startsWith('#')) continue;
    await load(line, range);
    range = undefined;
  }
  return parts;
}

const KINDS: Readonly<Record<string, (node: string, between: string, window: Stretch) => Promise<readonly number[]>>> =
  {
    window: async (node, between) => {
      const file = await save(`${node}-window.mp4`, await fetch(urlOf(node, 9996, `/window/gate.mp4?${between}`)));
      return (await decodePictures(file)).numbers;
    },
    playlist: async (node, between) => {
      const address = urlOf(node, 9996, `/hls/gate/index.m3u8?${between}`);
      const playlist = await (await fetch(address)).text();
      const numbers: number[] = [];
      let map = '';
      for (const [i, run] of playlist.split('#EXT-X-DISCONTINUITY\n').entries()) {
        // It is named where it changes.
        map = /#EXT-X-MAP:URI="([^"]+)"/.exec(run)?.[1] ?? map;
        const file = join(cluster.directory, `${node}-run-${i}.mp4`);
        const bytes = await bytesOf(run, map, address);
        // A file that has no part in the playlist is a discontinuity, too.
        if (bytes.length === 1) continue;
        writeFileSync(file, Buffer.concat(bytes));
        numbers.push(...(await decodePictures(file)).numbers);
      }
      return numbers;
    },
    stills: async (node, _, [fromMs, toMs]) => {
      const numbers: number[] = [];
      for (let atMs = fromMs + 500; atMs < toMs; atMs += 1_700) {
        const path = `/api/archive/gate/still?at=${atMs / 1_000}`;
        const file = await save(`${node}-still.jpg`, await fetch(urlOf(node, 9997, path)));
        numbers.push(...(await decodeFrameNumbers(file)));
      }
      return numbers;
    },
    export: (node, between) => jobAt(node, `/api/archive/gate/export?${between}&scope=cluster`),
    'time-lapse': (node, between) => jobAt(node, `/api/archive/gate/timelapse?${between}&speed=2&scope=cluster`),
    case: (node, _, [fromMs, toMs]) =>
      jobAt(node, '/api/cases?scope=cluster', '?part=1', {
        cameras: ['gate'],
        from: fromMs / 1_000,
        to: toMs / 1_000,
        name: 'Played',
      }),
  };

suite('what is played of a camera is exported', { skip: clusterMissing() }, () => {
  /** The intervals of the matrix. */
  const windows: Record<string, Stretch> = {};

  onStage({
    nodes: NODES.length,
    begin: async (...stage) => {
      [cluster, camera] = stage;
      await apply(cluster.controlPlane, [poolOfAllNodes()]);
      await moveTo('node-1');
      const startMs = Date.now() - 4_000;
      await moveTo('node-2');
      await moveTo('node-1');
      windows['moved and moved back'] = [startMs, Date.now() - 3_000];

      await place({});
      const cutMs = Date.now();
      cluster.node('node-1').cutOff('api');
      const successor = await recordedAt((node) => node !== 'node-1' && node !== '', 5_000);
      // Only the recording of the node that was cut off has a hole.
      const holeMs = Date.now();
      cluster.node('node-1').cutOff('cameras');
      await recordedAt((node) => node === successor, 5_000);
      cluster.node('node-1').reconnect('cameras');
      await until(
        'the node that was cut off records again',
        async () => (await footageAt('node-1', [holeMs + 4_000, Date.now()])).length > 0,
        SLOW_MS,
      );
      const overlap = [cutMs, Date.now()] as const;
      cluster.node('node-1').reconnect('api');
      await until(
        'the node that was cut off has stopped',
        async () => (await footageAt('node-1', [Date.now() - 4_000, Date.now()])).length === 0,
        SLOW_MS,
      );
      windows['cut off'] = [cutMs - 3_000, Date.now() - 3_000];
      windows['while two nodes recorded'] = [holeMs - 3_000, overlap[1]];
      await until(
        'every node knows what the others hold',
        async () => {
          const lists = await Promise.all(
            NODES.map(async (node) => {
              const [fromMs, toMs] = windows['cut off'] as Stretch;
              const path = `/window/gate.mp4?from=${fromMs / 1_000}&to=${toMs / 1_000}`;
              const { headers, body } = await fetch(urlOf(node, 9996, path));
              await body?.cancel();
              return headers.get('x-elsewhere');
            }),
          );
          return lists.every((missing) => missing === null);
        },
        SLOW_MS,
      );
    },
  });

  for (const name of ['moved and moved back', 'cut off', 'while two nodes recorded']) {
    test(`${name}: window, playlist, stills, export, time-lapse and case have the same pictures at each node`, async () => {
      const window = windows[name] as Stretch;
      const between = `from=${window[0] / 1_000}&to=${window[1] / 1_000}`;
      const shown = new Map<string, readonly number[]>();
      for (const [kind, numbersAt] of Object.entries(KINDS)) {
        for (const node of NODES) {
          const numbers = await numbersAt(node, between, window);
          assert.deepEqual(numbers, shown.get(kind) ?? numbers, `${kind} at ${node} is as at ${NODES[0]}`);
          shown.set(kind, numbers);
        }
      }
      // An export over nodes joins parts at a time, and may show the picture there twice.
      const once = (numbers: readonly number[]): readonly number[] =>
        numbers.filter((one, i) => one !== numbers[i - 1]);
      const of = (kind: string): string => ` ${once(shown.get(kind) ?? []).join(' ')} `;
      // A playlist and a window may begin up to a key frame earlier; either may end a picture sooner.
      const exported = once(shown.get('export') ?? []).slice(1, -1);
      assert.ok(exported.length > 25);
      for (const kind of ['window', 'playlist', 'case']) {
        assert.ok(of(kind).includes(` ${exported.join(' ')} `), `${kind}:${of(kind)}\nexport: ${exported.join(' ')}`);
      }
      for (const kind of ['stills', 'time-lapse']) {
        for (const number of shown.get(kind) ?? [])
          assert.ok(of('playlist').includes(` ${number} `), `${kind} ${number}`);
      }
    });
  }
});
