import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import type { FoundChange, RegionQuery } from '../../activity/region.ts';
import type { PeerSender } from '../../peers/peer-requests.ts';
import { as, build, emptyArchive, fakeCluster, token, type ApiChanges } from '../test-support.ts';

const FROM = 1_767_268_800;
const FROM_MS = FROM * 1000;
const WINDOW = `from=${FROM}&to=${FROM + 86_400}`;

const change = (seconds: number): FoundChange => ({
  fromMs: FROM_MS + seconds * 1000 + 0.4,
  toMs: FROM_MS + seconds * 1000 + 1_999.5,
  cells: 12,
  confidence: 80,
});
const told = (seconds: number) => ({
  start_ms: FROM_MS + seconds * 1000,
  end_ms: FROM_MS + seconds * 1000 + 2_000,
  cells: 12,
  confidence: 80,
});

async function stage(t: TestContext, found: readonly FoundChange[], changes: ApiChanges = {}) {
  const asked: RegionQuery[] = [];
  const { app } = await build(t, {
    auth: { mode: 'token', tokens: [token('viewer'), { ...token('operator'), cameras: ['door'] }] },
    archive: { ...emptyArchive, countSegments: (id) => (id === 'gate' ? 1 : 0) },
    activity: {
      bands: async (_, { fromMs }, stepMs) => [{ kind: 'active', fromMs: fromMs + 0.7, toMs: fromMs + stepMs }],
      async search(query) {
        asked.push(query);
        return found.slice(0, query.limit);
      },
    },
    ...changes,
  });
  const get = async (url: string, role: 'viewer' | 'operator' = 'viewer') => {
    const { statusCode, body } = await app.inject({ url, headers: as(role) });
    return { status: statusCode, body: JSON.parse(body) as Record<string, unknown> };
  };
  return { asked, get };
}

test('a rectangle is searched as it was drawn, and the newest changes come first', async (t) => {
  const { asked, get } = await stage(t, [change(60), change(20)]);
  const answer = await get(`/api/cameras/gate/activity?${WINDOW}&region=0.5,0.25,1,0.75&confidence=30`);
  assert.deepEqual(answer, { status: 200, body: { changes: [told(60), told(20)], more: false } });
  const region = { left: 0.5, top: 0.25, right: 1, bottom: 0.75 };
  const interval = { fromMs: FROM_MS, toMs: FROM_MS + 86_400_000 };
  assert.deepEqual(asked, [{ cameraId: 'gate', region, ...interval, leastConfidence: 30, limit: 201 }]);
});

test('an answer says when there are older changes', async (t) => {
  const { get } = await stage(t, [change(60), change(20)]);
  const { body } = await get(`/api/cameras/gate/activity?${WINDOW}&limit=1`);
  assert.deepEqual(body, { changes: [told(60)], more: true });
});

test('what is no rectangle, no camera or too long is refused, and a camera of others is unknown', async (t) => {
  const { get } = await stage(t, []);
  for (const region of ['1', '0,0,1', '0,0,0,1', '0.5,0,0.4,1', '0,0,1,2', 'a,b,c,d', '-1,0,1,1', '0,0,1,1,1']) {
    assert.equal((await get(`/api/cameras/gate/activity?${WINDOW}&region=${region}`)).status, 400, region);
  }
  assert.equal((await get(`/api/cameras/gate/activity?from=${FROM}&to=${FROM + 32 * 86_400}`)).status, 400);
  assert.equal((await get(`/api/cameras/nowhere/activity?${WINDOW}`)).status, 404);
  assert.equal((await get(`/api/cameras/gate/activity?${WINDOW}`, 'operator')).status, 404);
});

test('with scope=cluster the changes of all nodes are one list', async (t) => {
  const paths: string[] = [];
  const peers: PeerSender = {
    async request(_, { path }) {
      paths.push(path);
      const body = JSON.stringify({ changes: [told(40)], more: false });
      return { status: 200, headers: {}, body: Readable.from([Buffer.from(body)]) };
    },
    upgrade: () => Promise.reject(new Error('not asked')),
    answers: async () => true,
  };
  const cluster = fakeCluster('a', {
    metrics: async () => ({
      leader: undefined,
      hasMajority: true,
      voters: [],
      nodes: [{ nodeId: 'a' }, { nodeId: 'b' }] as never,
    }),
  });
  const { get } = await stage(t, [change(60), change(20)], { cluster, peers });
  const { body } = await get(`/api/cameras/gate/activity?${WINDOW}&region=0,0,0.5,1&scope=cluster`);
  assert.deepEqual(body['changes'], [told(60), told(40), told(20)]);
  const asked = new URL(`http://b${paths[0]}`).searchParams;
  assert.deepEqual([asked.get('region'), asked.get('scope')], ['0,0,0.5,1', 'node']);
});

test('the timeline has the bands of the pictures beside the events, and only where they are asked for', async (t) => {
  const { get } = await stage(t, []);
  const path = `/api/archive/timeline?camera=gate&${WINDOW}`;
  const [camera] = (await get(`${path}&activity=1`)).body['cameras'] as { bands?: unknown; events?: unknown }[];
  // 2000 steps of a day.
  assert.deepEqual(camera?.bands, [{ start_ms: FROM_MS, end_ms: FROM_MS + 43_200, kind: 'active' }]);
  assert.equal(camera?.events, undefined);
  const [plain] = (await get(path)).body['cameras'] as { bands?: unknown }[];
  assert.equal(plain?.bands, undefined);
});

test('the timeline says when there are more events than it has', async (t) => {
  const event = (i: number) => ({
    camera_id: 'gate',
    id: `${i}`,
    source: 'frigate',
    type: 'person',
    start_ms: FROM_MS + i,
    end_ms: null,
    reported_by: 'frigate',
    received_ms: FROM_MS,
  });
  let count = 1_000;
  const find = async ({ limit }: { readonly limit: number }) =>
    Array.from({ length: count }, (_, i) => event(i)).slice(0, limit);
  const { get } = await stage(t, [], { happenings: { add: async (events) => events, find } });
  const path = `/api/archive/timeline?camera=gate&${WINDOW}&events=1`;
  assert.equal((await get(path)).body['more_events'], false);
  count = 1_001;
  assert.equal((await get(path)).body['more_events'], true);
});
