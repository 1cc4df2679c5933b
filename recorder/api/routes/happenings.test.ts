import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { DAY_MS } from '../../../base/units.ts';
import { byStart, HappeningError, type Happening } from '../../happenings/happening.ts';
import type { Role } from '../../config/schema.ts';
import type { AuditEntry } from '../../audit/entry.ts';
import type { PeerSender } from '../../peers/peer-requests.ts';
import { as, build, emptyArchive, fakeCluster, token, type ApiChanges } from '../test-support.ts';

const NOON_MS = Date.UTC(2026, 0, 10, 12);
const REPORTER = { ...token('reporter'), cameras: ['gate'] };

const EVENT = { specversion: '1.0', id: 'e1', source: 'frigate', type: 'person' };

/** An API whose events are in memory. */
async function stage(t: TestContext, changes: ApiChanges = {}) {
  const kept: Happening[] = [];
  const lines: AuditEntry[] = [];
  const clock = new VirtualClock(NOON_MS);
  const { app } = await build(t, {
    auth: { mode: 'token', tokens: [token('viewer'), token('operator'), REPORTER] },
    archive: { ...emptyArchive, countSegments: (id) => (id === 'gate' ? 1 : 0) },
    happenings: {
      async add(events) {
        const fresh = events.filter(({ id }) => !kept.some((one) => one.id === id));
        kept.push(...fresh);
        return fresh;
      },
      find: async ({ cameraIds, fromMs, toMs, wants, limit }) =>
        kept
          .filter((one) => cameraIds.includes(one.camera_id) && one.start_ms >= fromMs && one.start_ms < toMs)
          .filter(wants)
          .sort(byStart)
          .slice(0, limit),
    },
    audit: { sink: { write: (entry) => void lines.push(entry) } },
    clock,
    ...changes,
  });
  const report = async (
    body: unknown,
    { role = 'reporter', id = 'gate', type = 'application/json' }: { role?: Role; id?: string; type?: string } = {},
  ) => {
    const headers = { ...as(role), 'content-type': type };
    const payload = JSON.stringify(body);
    const answer = await app.inject({ method: 'POST', url: `/api/cameras/${id}/events`, headers, payload });
    return { status: answer.statusCode, body: answer.json() as Record<string, unknown> };
  };
  const search = async (query: string) => {
    const answer = await app.inject({ url: `/api/events/search?${query}`, headers: as('viewer') });
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json() as { events: Happening[]; next: string | null; nodes_away?: string[] };
  };
  return { app, kept, lines, report, search };
}

const WINDOW = `from=${NOON_MS / 1000 - 86_400}&to=${NOON_MS / 1000 + 86_400}`;

test('a CloudEvent is kept with its times, its data and who reported it', async (t) => {
  const { report, kept } = await stage(t);
  const times = { time: '2026-01-10T12:50:00+01:00', endtime: '2026-01-10T11:50:08.500Z' };
  const answer = await report({ ...EVENT, ...times, data: { score: 0.5 }, subject: 'x', datacontenttype: 'y' });
  assert.deepEqual(answer, { status: 200, body: { stored: 1, known: 0 } });
  const startMs = Date.UTC(2026, 0, 10, 11, 50);
  assert.deepEqual(kept, [
    {
      camera_id: 'gate',
      id: 'e1',
      source: 'frigate',
      type: 'person',
      start_ms: startMs,
      end_ms: startMs + 8_500,
      reported_by: 'reporter',
      received_ms: NOON_MS,
      data: { score: 0.5 },
    },
  ]);
  assert.deepEqual((await report(EVENT)).body, { stored: 0, known: 1 });
});

test('the usual content types of CloudEvents are read, and a batch is kept as a whole or not at all', async (t) => {
  const { report, kept } = await stage(t);
  const type = 'application/cloudevents-batch+json; charset=utf-8';
  assert.equal((await report(EVENT, { type: 'application/cloudevents+json' })).status, 200);
  assert.deepEqual((await report([EVENT, { ...EVENT, id: 'e2' }], { type })).body, { stored: 1, known: 1 });
  const { status, body } = await report(
    [
      { ...EVENT, id: 'e3' },
      { ...EVENT, id: 'e4', time: 'noon' },
    ],
    { type },
  );
  assert.equal(status, 400);
  assert.match(String(body['detail']), /1\.time: expected a time such as/);
  assert.deepEqual(
    kept.map(({ id }) => id),
    ['e1', 'e2'],
  );
});

test('what is wrong in an event is named, and nothing is kept', async (t) => {
  const { report, kept } = await stage(t);
  const at = (ms: number): string => new Date(ms).toISOString();
  for (const [change, message] of [
    [{ specversion: '0.3' }, /^specversion: expected 1\.0/],
    [{ id: '' }, /^id: /],
    [{ id: undefined }, /^id: /],
    [{ source: 7 }, /^source: /],
    [{ source: 'camera' }, /^source: expected another name than camera/],
    [{ type: 'a person' }, /^type: expected at most 100 letters/],
    [{ time: '10:30' }, /^time: expected a time such as/],
    [{ time: at(NOON_MS - DAY_MS - 1) }, /^time: .*at most a day ago/],
    [{ time: at(NOON_MS + 600_000) }, /^time: .*not in the future/],
    [{ endtime: at(NOON_MS - 1) }, /^endtime: .*not before time/],
    [{ endtime: at(NOON_MS + 600_000) }, /^endtime: .*not in the future/],
    [{ data: 'text' }, /^data: /],
    [{ data: { text: 'x'.repeat(5_000) } }, /^data: .*4096/],
  ] as const) {
    const { status, body } = await report({ ...EVENT, ...change });
    assert.equal(status, 400, JSON.stringify(change));
    assert.match(String(body['detail']), message);
  }
  assert.equal((await report([])).status, 400);
  assert.equal((await report(Array.from({ length: 101 }, () => EVENT))).status, 400);
  assert.deepEqual(kept, []);
});

test('reporters, operators and admins report; viewers do not, and nobody of a camera that there is not', async (t) => {
  const { report, lines } = await stage(t);
  assert.equal((await report(EVENT, { role: 'operator' })).status, 200);
  assert.equal((await report(EVENT, { role: 'viewer' })).status, 403);
  for (const id of ['yard', 'none']) assert.equal((await report(EVENT, { id })).body['code'], 'unknown-camera');
  // What was kept names its reporter itself.
  assert.deepEqual(
    lines.map(({ what, caller, outcome }) => [what, caller, outcome]),
    [
      ['report-event', 'viewer', 'denied'],
      ['report-event', 'reporter', 'failed'],
      ['report-event', 'reporter', 'failed'],
    ],
  );
});

test('a day that is full and a disk that does not take events are told apart', async (t) => {
  for (const [code, status, told] of [
    ['too-many', 429, 'too-many-events'],
    ['not-kept', 503, 'events-not-kept'],
  ] as const) {
    const happenings = { add: () => Promise.reject(new HappeningError(code, 'no')), find: async () => [] };
    const { report } = await stage(t, { happenings });
    const { status: found, body } = await report(EVENT);
    assert.deepEqual([found, body['code']], [status, told]);
  }
});

test('a search gives the newest first, in pages, by type', async (t) => {
  const { app, report, search } = await stage(t);
  const types = ['person', 'door.opened', 'door.closed', 'car', 'person'];
  // Two of each moment.
  await report(
    types.map((type, i) => ({ ...EVENT, id: `e${i}`, type, time: new Date(NOON_MS - (i >> 1)).toISOString() })),
  );
  const ids: string[] = [];
  let cursor = '';
  do {
    const { events, next } = await search(`camera=gate&${WINDOW}&limit=2${cursor}`);
    assert.ok(events.length <= 2);
    ids.push(...events.map(({ id }) => id));
    cursor = next === null ? '' : `&cursor=${next}`;
  } while (cursor !== '');
  assert.deepEqual(ids, ['e0', 'e1', 'e2', 'e3', 'e4']);
  const doors = await search(`camera=gate&camera=none&${WINDOW}&type=door.*,bus`);
  assert.deepEqual(
    doors.events.map(({ type }) => type),
    ['door.opened', 'door.closed'],
  );
  assert.equal(doors.next, null);
  assert.deepEqual((await search(`camera=none&${WINDOW}`)).events, []);
  const many = await app.inject({
    url: `/api/events/search?camera=gate&${WINDOW}&type=${'a,'.repeat(16)}a`,
    headers: as('viewer'),
  });
  assert.deepEqual([many.statusCode, many.json().detail], [400, 'type: expected at most 16 types']);
});

/** Another node that answers searches, and one that is away. */
function nodes(
  told: (query: URLSearchParams) => { readonly events: readonly Happening[]; readonly next: string | null },
) {
  const node = (nodeId: string) => ({ nodeId });
  const cluster = fakeCluster('rack-1', {
    metrics: async () =>
      ({ leader: undefined, hasMajority: true, voters: [], nodes: ['rack-1', 'rack-2', 'rack-3'].map(node) }) as never,
  });
  const request: PeerSender['request'] = async (nodeId, { path }) => {
    if (nodeId === 'rack-3') return { status: 500, headers: {}, body: Readable.from([Buffer.from('{}')]) };
    const answer = told(new URL(path, 'http://node').searchParams);
    return { status: 200, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(answer))]) };
  };
  const peers = { request, upgrade: () => assert.fail('no WebSocket'), answers: async () => true };
  return { cluster, peers };
}

const told = (id: string, changes: Partial<Happening> = {}): Happening => ({
  camera_id: 'gate',
  id,
  source: 'frigate',
  type: 'person',
  start_ms: NOON_MS - 1,
  end_ms: null,
  reported_by: 'other',
  received_ms: NOON_MS,
  ...changes,
});

test('with scope=cluster those of all nodes are found, each once, and nodes that do not tell theirs are named', async (t) => {
  const asked: string[] = [];
  const other = nodes((query) => {
    asked.push(query.toString());
    return { events: [told('e1'), told('e2'), told('x', { camera_id: 'yard' })], next: 'more' };
  });
  const { report, search } = await stage(t, other);
  await report(EVENT);
  const { nodes_refusing, ...page } = (await search(`camera=gate&${WINDOW}&scope=cluster&type=per*`)) as never as {
    events: Happening[];
    next: string | null;
    nodes_refusing: { node_id: string }[];
  };
  assert.deepEqual(
    page.events.map(({ id }) => id),
    ['e1', 'e2'],
  );
  assert.ok(page.next);
  assert.deepEqual(
    nodes_refusing.map(({ node_id }) => node_id),
    ['rack-3'],
  );
  const query = new URLSearchParams(asked[0]);
  assert.deepEqual([query.get('scope'), query.get('type'), query.getAll('camera')], ['node', 'per*', ['gate']]);
  assert.deepEqual(
    (await search(`camera=gate&${WINDOW}`)).events.map(({ id }) => id),
    ['e1'],
  );
});

test('a timeline has the events where they are asked for, of all nodes with scope=cluster', async (t) => {
  const { app, report } = await stage(
    t,
    nodes(() => ({ events: [told('e2')], next: null })),
  );
  await report(EVENT);
  const marks = async (more: string): Promise<unknown> => {
    const url = `/api/archive/timeline?camera=gate&camera=none&${WINDOW}${more}`;
    const answer = await app.inject({ url, headers: as('viewer') });
    const { cameras } = answer.json() as { cameras: { events?: Happening[] }[] };
    return cameras.map(({ events }) => events?.map(({ id }) => id));
  };
  assert.deepEqual(await marks(''), [undefined, undefined]);
  assert.deepEqual(await marks('&events=1'), [['e1'], []]);
  assert.deepEqual(await marks('&events=1&scope=cluster'), [['e1', 'e2'], []]);
});
