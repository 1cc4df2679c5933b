// The list of segments at any node, and redirects while nodes are away.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import fastify, { type FastifyInstance } from 'fastify';
import { Members } from '../../test/support/members.ts';
import { stopwatch } from '../../test/support/stopwatch.ts';
import { until } from '../../test/support/until.ts';
import type { FootageHolder } from '../contract/other-node.ts';
import { as, build, fakeCluster, token } from './test-support.ts';

const FROM = Date.UTC(2026, 0, 1, 12) / 1_000;
const NODES = ['node-1', 'node-2', 'node-3'] as const;

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');
const auth = {
  mode: 'token',
  tokens: [token('viewer'), { name: 'porter', role: 'viewer', sha256: digest('porter'), cameras: ['yard'] }],
} as const;

const noImage = (): never => assert.fail('an image is made where the camera is not recorded');

interface Item {
  readonly filename: string;
  readonly node_id?: string;
}

/** Each node has two segments of gate, in turns; node-3 records it now. */
async function stage(t: TestContext) {
  const members = await Members.open(t);
  const apps = new Map<string, FastifyInstance>();
  for (const [i, nodeId] of NODES.entries()) {
    const segments = [i, i + 3].map((minute) => ({
      path: `2026/01/01/Gate_gate_20260101_120${minute}00000.mp4`,
      startMs: (FROM + minute * 60) * 1_000,
      endMs: (FROM + minute * 60 + 60) * 1_000,
      sizeBytes: 1_000 + i,
      mtimeMs: (FROM + minute * 60 + 60) * 1_000,
      sequence: minute,
      isOpen: false,
    }));
    const holders: FootageHolder[] = NODES.filter((other) => other !== nodeId).map((other) => ({
      nodeId: other,
      oldestMs: FROM * 1_000,
      newestMs: (FROM + 360) * 1_000,
      isOnline: true,
    }));
    const { app, clock } = await build(t, {
      auth,
      segments: {
        list: async (cameraId) => ({
          segments: cameraId === 'gate' ? segments : [],
          days: cameraId === 'gate' ? [`2026-01-0${i + 1}`] : [],
        }),
      },
      peers: await members.requestsOf(nodeId),
      stills: { snapshot: noImage, thumbnail: noImage, archived: noImage },
      cluster: fakeCluster(nodeId, {
        ownerOf: () => (nodeId === 'node-3' ? undefined : { nodeId: 'node-3', url: 'http://node-3:9997', epoch: 3 }),
        holdersOf: () => holders.map((one) => ({ ...one, url: undefined, playbackUrl: undefined, isRecording: false })),
        footageHolders: async () => holders,
      }),
    });
    clock.advance(3_600_000);
    await members.listen(nodeId, { api: app, playback: app });
    apps.set(nodeId, app);
  }
  const ask = async (nodeId: string, query = '', headers: Record<string, string> = as('viewer')) => {
    const url = `/api/archive/gate/segments?from=${FROM}&to=${FROM + 600}${query}`;
    const answer = await (apps.get(nodeId) as FastifyInstance).inject({ url, headers });
    return {
      status: answer.statusCode,
      location: answer.headers.location,
      body: answer.statusCode === 200 ? answer.json<Record<string, never>>() : {},
    };
  };
  const get = (nodeId: string, url: string) =>
    (apps.get(nodeId) as FastifyInstance).inject({ url, headers: as('viewer') });
  return { members, ask, get };
}

/** The query of a request that was redirected before. */
const REDIRECTED = '&assigned=3';

const namesIn = ({ archive }: { archive?: readonly Item[] }, asked: string): string[] =>
  (archive ?? []).map(({ filename, node_id }) => `${filename.slice(-14, -9)} ${node_id ?? asked}`);

test('the list of segments is that of all nodes, at each of them, in order and in pages too', async (t) => {
  const { ask } = await stage(t);
  const expected = [0, 1, 2, 3, 4, 5].map((minute) => `_120${minute} node-${(minute % 3) + 1}`);
  for (const nodeId of NODES) {
    const { status, body } = await ask(nodeId, REDIRECTED);
    assert.equal(status, 200);
    assert.deepEqual(namesIn(body, nodeId), expected, nodeId);
    assert.deepEqual(body['days'], ['2026-01-01', '2026-01-02', '2026-01-03']);
    assert.deepEqual(body['elsewhere'], []);
    for (const limit of [1, 2, 4]) {
      const paged: string[] = [];
      for (let cursor = ''; ;) {
        const page = await ask(nodeId, `${REDIRECTED}&limit=${limit}${cursor}`);
        assert.ok(namesIn(page.body, nodeId).length <= limit);
        paged.push(...namesIn(page.body, nodeId));
        if (page.body['next'] === null) break;
        cursor = `&cursor=${String(page.body['next'])}`;
      }
      assert.deepEqual(paged, expected, `${nodeId}, ${limit} a page`);
    }
    assert.equal(namesIn((await ask(nodeId, '&local=1')).body, nodeId).length, 2);
  }
});

test('for a page, each node is asked for that page alone', async (t) => {
  const { ask, members } = await stage(t);
  const asked: string[] = [];
  const node = fastify();
  node.get('/api/archive/gate/segments', async ({ url }) => {
    asked.push(url);
    return { archive: [], days: [], next: null };
  });
  await members.listen('node-3', { api: node, playback: node });
  const { body } = await ask('node-1', `${REDIRECTED}&limit=2`);
  await ask('node-1', `${REDIRECTED}&limit=2&cursor=${String(body['next'])}`);
  assert.deepEqual(
    asked.map((url) => [new URL(url, 'http://node').searchParams.get('limit'), url.includes('cursor=')]),
    [
      ['2', false],
      ['2', true],
    ],
  );
});

test('a node that is gone is named with what is missing, and no request is redirected to it', async (t) => {
  const { members, ask, get } = await stage(t);
  assert.match((await ask('node-1')).location ?? '', /^http:\/\/node-3:9997/);
  await members.kill('node-3');
  // What was known of node-3 is believed for a moment.
  await until('nobody is redirected to node-3', async () => (await ask('node-1')).location === undefined);
  const elapsedMs = stopwatch();
  const { status, body } = await ask('node-1');
  assert.ok(elapsedMs() < 5_000);
  assert.equal(status, 200);
  assert.equal(namesIn(body, 'node-1').length, 4);
  assert.deepEqual(body['elsewhere'], [
    { node_id: 'node-3', start_ms: FROM * 1_000, end_ms: (FROM + 600) * 1_000, online: false },
  ]);
  for (const path of ['archive/gate/current', 'cameras/gate/snapshot', 'cameras/gate/thumbnail']) {
    const away = await get('node-1', `/api/${path}`);
    const { code, detail } = away.json<{ code: string; detail: string }>();
    assert.deepEqual([away.statusCode, code, away.headers['retry-after']], [503, 'node-away', '5'], path);
    assert.match(detail, /the node node-3, which records this camera, does not answer/);
  }
});

test('a token for other cameras sees no segments of any node', async (t) => {
  const { ask } = await stage(t);
  const { status, body } = await ask('node-1', REDIRECTED, { authorization: 'Bearer porter' });
  assert.equal(status, 200);
  assert.deepEqual([body['archive'], body['days']], [[], []]);
});

test('a node of an older version, which does not tell the length in milliseconds, is listed too', async (t) => {
  const { ask, members } = await stage(t);
  const item = {
    timestamp: new Date(FROM * 1_000).toISOString(),
    start_ms: FROM * 1_000 + 500_000,
    end: new Date((FROM + 560) * 1_000).toISOString(),
    end_ms: FROM * 1_000 + 560_000,
    duration_seconds: 60,
    sequence: 9,
    filename: '2026/01/01/Gate_gate_20260101_120820000.mp4',
    size: 1_000,
    mtime: FROM + 560,
    is_open: false,
  };
  const old = fastify();
  old.get('/api/archive/gate/segments', async () => ({ archive: [item], days: [] }));
  await members.listen('node-3', { api: old, playback: old });
  const { body } = await ask('node-1', REDIRECTED);
  const listed = (body['archive'] ?? []) as readonly Record<string, unknown>[];
  assert.deepEqual(listed.at(-1), { ...item, duration_ms: 60_000, node_id: 'node-3' });
  assert.deepEqual(body['elsewhere'], []);
});
