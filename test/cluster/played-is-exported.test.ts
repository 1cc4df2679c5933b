// What is played is exported: a camera that moved and came back, one whose node was cut off and recorded on beside its successor, one
// whose standby continued for a node that was killed, and one whose next node fetched from the memory of the camera what was missed then.
// Numbered pictures, real control plane, operator and recorders, asked at each node in every way there is.

import { after, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Camera as CameraResource } from '../../crds/camera.ts';
import type { Camera } from '../camera/camera.ts';
import { EdgeCamera } from '../camera/edge-camera.ts';
import { decodePictures } from '../camera/frame-numbers.ts';
import { imageAt } from '../support/image-at.ts';
import { until } from '../support/until.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, poolOfAllNodes, resource, RESOURCES, untilAllVote } from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 180_000;
const NODES = ['node-1', 'node-2', 'node-3'] as const;

type Stretch = readonly [fromMs: number, toMs: number];

interface Job {
  readonly job_id: string;
  readonly state: string;
  readonly reason?: string;
  readonly gaps: readonly unknown[];
}

let cluster: Cluster;
let camera: Camera;
let withMemory: EdgeCamera | undefined;

const urlOf = (node: string, port: number, path: string): string =>
  `http://${cluster.node(node).address}:${port}${path}`;

const statusOf = async (name: string): Promise<NonNullable<CameraResource['status']>> =>
  ((await cluster.api.get(`${RESOURCES}/cameras/${name}`)) as unknown as CameraResource).status ?? {};

/** How much of an interval a node has in its own files. */
async function footageAt(node: string, [fromMs, toMs]: Stretch, name = 'gate'): Promise<readonly Stretch[]> {
  const path = `/api/archive/${name}/gaps?from=${fromMs / 1_000}&to=${toMs / 1_000}&local=1&footage=1`;
  const { footage } = (await (await fetch(urlOf(node, 9997, path))).json()) as {
    footage: readonly { readonly start_ms: number; readonly end_ms: number }[];
  };
  return footage.map(({ start_ms, end_ms }) => [start_ms, end_ms] as const);
}

/** Waits until a node other than `before`, or `node`, has recorded the camera for `ms` from now on. */
async function recordedAt(wanted: (node: string) => boolean, ms: number, name = 'gate'): Promise<string> {
  const startMs = Date.now();
  return until(
    'the camera is recorded there',
    async () => {
      const { node = '' } = (await statusOf(name)).assignment ?? {};
      if (!wanted(node)) return false;
      const last = (await footageAt(node, [startMs, Date.now()], name)).at(-1);
      return last !== undefined && last[1] - last[0] > ms && node;
    },
    SLOW_MS,
  );
}

async function place(placement: object, name = 'gate', more: object = { source: camera.url }): Promise<void> {
  const spec = { transport: 'Tcp', placement, record: { segmentSeconds: 4 }, ...more };
  await apply(cluster.controlPlane, [resource('Camera', name, spec)]);
}

const only = (node: string): object => ({ nodeSelector: { 'kubernetes.io/hostname': node } });

async function moveTo(node: string): Promise<void> {
  await place(only(node));
  await recordedAt((now) => now === node, 6_000);
}

/** Two cameras of node-3: one with a standby, which holds it for a while; and one with a memory. */
async function heldOtherwise(): Promise<void> {
  const host = cluster.network.addresses.cameras;
  withMemory = await EdgeCamera.start({ pace: 'realtime', host, device: { host } });
  const memory = { source: withMemory.camera.url, onvif: withMemory.device.url, edge: { onvif: true } };
  await Promise.all([place(only('node-3'), 'hall'), place(only('node-3'), 'yard', memory)]);
  await Promise.all(['hall', 'yard'].map((name) => recordedAt((node) => node === 'node-3', 2_000, name)));
  await Promise.all([place({ standby: true }, 'hall'), place({}, 'yard', memory)]);
  await until(
    'the standby holds the camera',
    async () =>
      (await statusOf('hall')).conditions?.some(({ type, status }) => type === 'Standby' && status === 'True'),
    SLOW_MS,
  );
}

/** The node of both is killed: until when both have been recorded again, and all that was missed is there. */
async function killTheirNode(): Promise<number> {
  await cluster.node('node-3').kill();
  const isOther = (node: string): boolean => node !== 'node-3' && node !== '';
  const next = await Promise.all(['hall', 'yard'].map((name) => recordedAt(isOther, 4_000, name)));
  const overMs = Date.now() - 2_000;
  await cluster.node('node-3').start();
  await until(
    'the memory of the camera has filled the gap',
    async () => {
      const path = `/api/archive/yard/gaps?from=${overMs / 1_000 - 60}&to=${overMs / 1_000}`;
      const ledger = (await (await fetch(urlOf(next[1] as string, 9997, path))).json()) as {
        readonly filled_seconds: number;
        readonly missing_seconds: number;
      };
      return ledger.filled_seconds > 5 && ledger.missing_seconds === 0;
    },
    SLOW_MS,
    500,
  );
  return overMs;
}

/** By the bytes: most nodes answer with the same ones. */
const decoded = new Map<string, Promise<readonly number[]>>();

/** The numbers of the pictures in these bytes. */
function numbersIn(bytes: Buffer, name: string): Promise<readonly number[]> {
  const digest = hash('sha256', bytes);
  const known = decoded.get(digest);
  if (known) return known;
  const file = join(cluster.directory, `${digest}-${name}`);
  writeFileSync(file, bytes);
  const numbers = decodePictures(file).then((pictures) => {
    if (name.startsWith('job')) assert.equal(pictures.complaints, '');
    return pictures.numbers;
  });
  decoded.set(digest, numbers);
  return numbers;
}

async function bytesIn(answer: Response): Promise<Buffer> {
  assert.equal(answer.status, 200, `${answer.url}: ${answer.status}`);
  return Buffer.from(await answer.arrayBuffer());
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
  const download = await fetch(urlOf(node, 9997, `/api/archive/jobs/${job_id}/download${part}`));
  return numbersIn(await bytesIn(download), 'job.mp4');
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

interface Row {
  readonly camera: string;
  readonly window: Stretch;
}

const betweenOf = ([fromMs, toMs]: Stretch): string => `from=${fromMs / 1_000}&to=${toMs / 1_000}`;

const KINDS: Readonly<Record<string, (node: string, row: Row) => Promise<readonly number[]>>> = {
  window: async (node, { camera: id, window }) => {
    const path = `/window/${id}.mp4?${betweenOf(window)}`;
    return numbersIn(await bytesIn(await fetch(urlOf(node, 9996, path))), 'window.mp4');
  },
  playlist: async (node, { camera: id, window }) => {
    const address = urlOf(node, 9996, `/hls/${id}/index.m3u8?${betweenOf(window)}`);
    const playlist = await (await fetch(address)).text();
    const numbers: number[] = [];
    let map = '';
    for (const run of playlist.split('#EXT-X-DISCONTINUITY\n')) {
      // It is named where it changes.
      map = /#EXT-X-MAP:URI="([^"]+)"/.exec(run)?.[1] ?? map;
      const bytes = await bytesOf(run, map, address);
      // A file that has no part in the playlist is a discontinuity, too.
      if (bytes.length === 1) continue;
      numbers.push(...(await numbersIn(Buffer.concat(bytes), 'run.mp4')));
    }
    return numbers;
  },
  stills: async (node, { camera: id, window: [fromMs, toMs] }) => {
    const numbers: number[] = [];
    for (let atMs = fromMs + 500; atMs < toMs; atMs += 1_700) {
      const path = `/api/archive/${id}/still?at=${atMs / 1_000}`;
      numbers.push(...(await numbersIn(await bytesIn(await imageAt(urlOf(node, 9997, path))), 'still.jpg')));
    }
    return numbers;
  },
  export: (node, { camera: id, window }) => jobAt(node, `/api/archive/${id}/export?${betweenOf(window)}&scope=cluster`),
  'time-lapse': (node, { camera: id, window }) =>
    jobAt(node, `/api/archive/${id}/timelapse?${betweenOf(window)}&speed=2&scope=cluster`),
  case: (node, { camera: id, window: [fromMs, toMs] }) =>
    jobAt(node, '/api/cases?scope=cluster', '?part=1', {
      cameras: [id],
      from: fromMs / 1_000,
      to: toMs / 1_000,
      name: 'Played',
    }),
};

suite('what is played of a camera is exported', { skip: clusterMissing() }, () => {
  const rows: Record<string, Row> = {};

  onStage({
    nodes: NODES.length,
    begin: async (...stage) => {
      [cluster, camera] = stage;
      await apply(cluster.controlPlane, [poolOfAllNodes()]);
      const moving = async (): Promise<void> => {
        await moveTo('node-1');
        const startMs = Date.now() - 4_000;
        await moveTo('node-2');
        await moveTo('node-1');
        rows['moved and moved back'] = { camera: 'gate', window: [startMs, Date.now() - 3_000] };
      };
      await Promise.all([moving(), heldOtherwise(), untilAllVote(cluster)]);

      const strikeMs = Date.now();
      const overMs = await killTheirNode();
      rows['continued by a standby'] = { camera: 'hall', window: [strikeMs - 5_000, overMs] };
      rows['fetched from the memory of the camera'] = { camera: 'yard', window: [strikeMs - 5_000, overMs] };

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
      const overlapMs = Date.now();
      cluster.node('node-1').reconnect('api');
      await until(
        'the node that was cut off has stopped',
        async () => (await footageAt('node-1', [Date.now() - 4_000, Date.now()])).length === 0,
        SLOW_MS,
      );
      rows['cut off'] = { camera: 'gate', window: [cutMs - 3_000, Date.now() - 3_000] };
      rows['while two nodes recorded'] = { camera: 'gate', window: [holeMs - 3_000, overlapMs] };
      await until(
        'every node knows what the others hold',
        async () => {
          const asked = NODES.flatMap((node) => Object.values(rows).map((row) => [node, row] as const));
          const lists = await Promise.all(
            asked.map(async ([node, { camera: id, window }]) => {
              const { headers, body } = await fetch(urlOf(node, 9996, `/window/${id}.mp4?${betweenOf(window)}`));
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
  after(() => withMemory?.close());

  for (const name of [
    'moved and moved back',
    'continued by a standby',
    'fetched from the memory of the camera',
    'cut off',
    'while two nodes recorded',
  ]) {
    test(`${name}: window, playlist, stills, export, time-lapse and case have the same pictures at each node`, async () => {
      const row = rows[name] as Row;
      const shown = new Map<string, readonly number[]>();
      for (const [kind, numbersAt] of Object.entries(KINDS)) {
        const found = await Promise.all(NODES.map((node) => numbersAt(node, row)));
        for (const [i, numbers] of found.entries()) {
          assert.deepEqual(numbers, found[0], `${kind} at ${NODES[i]} is as at ${NODES[0]}`);
        }
        shown.set(kind, found[0] ?? []);
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
