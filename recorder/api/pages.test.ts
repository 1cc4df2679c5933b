// Lists in pages: together they are the list, whatever comes and goes meanwhile.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import type { SegmentReader, JobKeeper } from './deps.ts';
import type { ListQuery } from '../archive/catalogue/listing.ts';
import type { Segment } from '../archive/catalogue/segment.ts';
import type { Protection } from '../contract/protection.ts';
import type { Job } from '../jobs/job.ts';
import { as, build, cameraStatus, fakeCluster, gapReader, noGaps } from './test-support.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);
const DAY = `from=${NOON_MS / 1000}&to=${NOON_MS / 1000 + 86_400}`;

type Answer = Readonly<Record<string, unknown>> & { readonly next?: string | null };

async function ask(app: FastifyInstance, url: string, role: 'viewer' | 'admin' = 'viewer'): Promise<Answer> {
  const answer = await app.inject({ url, headers: as(role) });
  assert.equal(answer.statusCode, 200, answer.body);
  return answer.json();
}

/** All pages of a list, from the first on. `between` is called between two of them. */
async function pagesOf(app: FastifyInstance, url: string, limit: number, between: (page: number) => void = () => {}) {
  const pages: Answer[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const query = `limit=${limit}${cursor === undefined ? '' : `&cursor=${cursor}`}`;
    const page = await ask(app, `${url}${url.includes('?') ? '&' : '?'}${query}`);
    assert.notEqual(page.next, undefined, 'a page says whether there is another');
    pages.push(page);
    assert.ok(pages.length < 100, 'the pages end');
    cursor = page.next;
    between(pages.length);
  }
  return pages;
}

const segment = (minute: number): Segment => ({
  startMs: NOON_MS + minute * 60_000,
  sequence: minute,
  path: `2026/01/01/Gate_gate_20260101_12${String(minute).padStart(2, '0')}00000.mp4`,
  sizeBytes: 1,
  mtimeMs: NOON_MS,
  isOpen: false,
  endMs: NOON_MS + (minute + 1) * 60_000,
});

/** A list of segments that tests change. */
const listOf = (segments: Segment[], asked: ListQuery[] = []): SegmentReader => ({
  async list(_camera, query) {
    asked.push(query);
    return { segments: [...segments], days: ['2026-01-01'] };
  },
});

const minutesOf = (page: Answer): number[] =>
  (page['archive'] as { sequence: number }[]).map(({ sequence }) => sequence);

test('a client that asks for no page gets the whole list, and no cursor', async (t) => {
  const { app } = await build(t, { segments: listOf([0, 1, 2].map(segment)) });
  const whole = await ask(app, `/api/archive/gate/segments?${DAY}`);
  assert.deepEqual(minutesOf(whole), [0, 1, 2]);
  assert.deepEqual(Object.keys(whole).sort(), ['archive', 'days']);
});

test('segments: pages together are the list, the last one says so', async (t) => {
  const { app } = await build(t, { segments: listOf([0, 1, 2, 3, 4].map(segment)) });
  const pages = await pagesOf(app, `/api/archive/gate/segments?${DAY}`, 2);
  assert.deepEqual(pages.map(minutesOf), [[0, 1], [2, 3], [4]]);
  const [full] = await pagesOf(app, `/api/archive/gate/segments?${DAY}`, 5);
  assert.equal(full?.next, null, 'a page that just holds the rest is the last');
});

test('segments: a cursor keeps its place while segments come and go, also the one it names', async (t) => {
  const segments = [0, 1, 2, 3, 4, 5].map(segment);
  const { app } = await build(t, { segments: listOf(segments) });
  const pages = await pagesOf(app, `/api/archive/gate/segments?${DAY}`, 2, (page) => {
    // Retention removes what was told already, and the recorder goes on.
    if (page === 1) segments.splice(0, 2);
    if (page === 2) segments.push(segment(6));
  });
  assert.deepEqual(pages.map(minutesOf), [[0, 1], [2, 3], [4, 5], [6]]);
});

test('segments: the next page is of the same day, also when that is over', async (t) => {
  const asked: ListQuery[] = [];
  const { app, clock } = await build(t, { segments: listOf([0, 1, 2].map(segment), asked) });
  const url = '/api/archive/gate/segments?tz_offset_minutes=0&limit=2';
  const { next } = await ask(app, url);
  clock.advance(13 * 3_600_000);
  assert.deepEqual(minutesOf(await ask(app, `${url}&cursor=${next}`)), [2]);
  assert.deepEqual(asked[1], asked[0]);
});

test('gaps: pages hold gaps and degraded footage by their start; sums are of the whole interval', async (t) => {
  const gap = { isOpen: false, isProvisional: false, cause: 'camera-unreachable' as const };
  const at = (second: number) => NOON_MS + second * 1_000;
  const gaps = [0, 20, 40].map((second) => ({ ...gap, fromMs: at(second), toMs: at(second + 5) }));
  const degraded = [10, 20, 30].map((second) => ({ fromMs: at(second), toMs: at(second + 5), lost: 1, expected: 10 }));
  const report = async (camera: string, fromMs: number, toMs: number) => ({
    ...(await noGaps.ofThisNode(camera, fromMs, toMs)),
    gaps,
    degraded,
    wantedMs: 60_000,
    recordedMs: 45_000,
  });
  const { app } = await build(t, { gaps: gapReader(report) });
  const url = `/api/archive/gate/gaps?${DAY}`;
  const starts = (page: Answer, name: string): number[] =>
    (page[name] as { start_ms: number }[]).map(({ start_ms }) => (start_ms - NOON_MS) / 1_000);
  const whole = await ask(app, url);
  assert.ok(!('next' in whole));
  assert.deepEqual(
    [starts(whole, 'gaps'), starts(whole, 'degraded')],
    [
      [0, 20, 40],
      [10, 20, 30],
    ],
  );
  const pages = await pagesOf(app, url, 3);
  assert.deepEqual(
    pages.map((page) => [starts(page, 'gaps'), starts(page, 'degraded'), page['missing_seconds']]),
    [
      [[0, 20], [10], 15],
      [[40], [20, 30], 15],
    ],
  );
});

const jobOf = (number: number): Job => ({
  kind: 'export',
  cameraId: 'gate',
  fromMs: NOON_MS,
  toMs: NOON_MS + 1_000,
  id: `e${number}`,
  state: 'pending',
  progress: 0,
  // Two of them in the same millisecond.
  createdAtMs: NOON_MS + Math.floor(number / 2),
  completedAtMs: undefined,
  outcome: undefined,
  reason: undefined,
});

test('jobs: newest first over all pages; one that is asked for meanwhile is in none, one that is removed is gone', async (t) => {
  const jobs = [5, 4, 3, 2, 1, 0].map(jobOf);
  const { app } = await build(t, { jobs: { list: async () => [...jobs] } as unknown as JobKeeper });
  const idsOf = (page: Answer): string[] => (page['jobs'] as { job_id: string }[]).map(({ job_id }) => job_id);
  const pages = await pagesOf(app, '/api/archive/jobs', 2, (page) => {
    if (page === 1) jobs.unshift(jobOf(9));
    if (page === 1)
      jobs.splice(
        jobs.findIndex(({ id }) => id === 'e3'),
        1,
      );
  });
  assert.deepEqual(pages.map(idsOf).flat().sort(), ['e0', 'e1', 'e2', 'e4', 'e5']);
  assert.deepEqual(idsOf(pages[0] as Answer).sort(), ['e4', 'e5']);
  assert.deepEqual(idsOf(await ask(app, '/api/archive/jobs')).length, 6);
});

test('protections: of all cameras and of one, in pages', async (t) => {
  const windows = ['gate', 'gate', 'yard'].map((cameraId, i): Protection => ({
    id: `p-${i}`,
    cameraId,
    fromMs: NOON_MS + i,
    toMs: NOON_MS + 1_000,
    createdMs: NOON_MS,
    note: undefined,
    untilMs: undefined,
    by: undefined,
  }));
  const protections = {
    windows: {
      list: async (camera?: string) => windows.filter(({ cameraId }) => camera === undefined || camera === cameraId),
      add: () => Promise.reject(new Error('not asked')),
      remove: async () => undefined,
    },
    keptMs: 1,
  };
  const { app } = await build(t, { protections });
  const idsOf = (page: Answer): string[] => (page['protections'] as { id: string }[]).map(({ id }) => id);
  assert.deepEqual((await pagesOf(app, '/api/archive/protections', 2)).map(idsOf), [['p-0', 'p-1'], ['p-2']]);
  assert.deepEqual((await pagesOf(app, '/api/archive/gate/protections', 1)).map(idsOf), [['p-0'], ['p-1']]);
});

/** An API of a node in a cluster of these cameras. */
async function clusterOf(t: TestContext, ids: readonly string[]): Promise<FastifyInstance> {
  const camera = { name: '', nodeId: 'rack-2', epoch: 1, state: 'recording', archives: [] } as const;
  const unwritten = { reason: undefined, lastWrittenMs: undefined };
  const cameras = ids.map((id) => ({ ...camera, ...unwritten, id }));
  const cluster = fakeCluster('rack-1', { cameras: async () => ({ isCurrent: true, nodes: [], cameras }) });
  return (await build(t, { cluster })).app;
}

test('cameras of a cluster: in pages by their ids', async (t) => {
  const app = await clusterOf(t, ['a', 'b', 'c']);
  const idsOf = (page: Answer): string[] => (page['cameras'] as { id: string }[]).map(({ id }) => id);
  assert.deepEqual((await pagesOf(app, '/cluster/cameras', 2)).map(idsOf), [['a', 'b'], ['c']]);
  assert.ok(!('next' in (await ask(app, '/cluster/cameras'))));
});

test('what is no cursor of the list is refused and named; a made one widens no interval', async (t) => {
  const asked: ListQuery[] = [];
  const { app, cameras } = await build(t, {
    segments: listOf([0, 1, 2].map(segment), asked),
    jobs: { list: async () => [] } as unknown as JobKeeper,
  });
  cameras.push({ status: cameraStatus(), archive: undefined, live: undefined });
  const list = `/api/archive/gate/segments?${DAY}`;
  const { next } = await ask(app, `${list}&limit=1`);
  const made = (place: unknown): string => Buffer.from(JSON.stringify(place)).toString('base64url');
  const wide = made(['segments', 0, 1_795_253_100, 0, '']);
  for (const [url, detail] of [
    [`${list}&cursor=x`, /^cursor: expected the value of next/],
    [`${list}&cursor=`, /^cursor: expected the value of next/],
    [`${list}&cursor=${'x'.repeat(1_025)}`, /^cursor: expected the value of next/],
    [`${list}&cursor=${made(['segments', 0, 1, 'x', 'y'])}`, /^cursor: expected the value of next/],
    [
      `${list}&cursor=${made(['others', NOON_MS / 1000, NOON_MS / 1000 + 60, 0, ''])}`,
      /^cursor: expected the value of next/,
    ],
    [`${list}&cursor=${made({})}`, /^cursor: expected the value of next/],
    [`${list}&cursor=${wide}`, /25 hours/],
    [`/api/archive/jobs?cursor=${next}`, /^cursor: expected the value of next/],
    [`${list}&limit=0`, /^limit: expected a whole number from 1 to 1000/],
    [`${list}&limit=1001`, /^limit: expected/],
    [`${list}&limit=1.5`, /^limit: expected/],
  ] as const) {
    const answer = await app.inject({ url, headers: as('viewer') });
    assert.equal(answer.statusCode, 400, `${url}: ${answer.body}`);
    assert.match(answer.json().detail, detail, url);
  }
  assert.equal(asked.length, 1, 'the archive was read for none of them');
  assert.deepEqual(minutesOf(await ask(app, `${list}&cursor=${next}`)), [1, 2], 'without a limit, a page has 100');
});
