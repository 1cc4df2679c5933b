import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { silentLog } from '../../../base/log.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { Archive } from '../../archive/archive.ts';
import type { ProtectedWindows } from '../../contract/protection.ts';
import { systemError, temporaryDirectory, TestFileSystem } from '../../archive/test-support.ts';
import { as, build, cameraStatus, type TestApi } from '../test-support.ts';

const FROM = Date.UTC(2026, 0, 1, 10) / 1000;

interface Stage extends TestApi {
  readonly fs: TestFileSystem;
}

/** An API over an archive without footage; the camera `gate` is configured. */
async function stage(t: TestContext): Promise<Stage> {
  const root = temporaryDirectory(t);
  const fs = new TestFileSystem(root);
  const limits = () => ({ node: {}, cameras: new Map() });
  const archive = new Archive({ root, fs, clock: new VirtualClock(), log: silentLog, syncIntervalMs: 5_000, limits });
  await archive.recover();
  const { protections: kept } = archive;
  assert.ok(kept);
  const windows: ProtectedWindows = {
    list: async (cameraId) => kept.list(cameraId),
    add: (window, nowMs) => kept.add(window, nowMs),
    remove: (id) => kept.remove(id),
  };
  const warnings = () => [
    { code: 'disk-exhausted', message: 'the disk is full', cameraId: undefined },
    { code: 'protected-over-quota', message: 'too much', cameraId: 'gate' },
  ];
  const api = await build(t, { protections: { windows, keptMs: 90 * 86_400_000 }, warnings });
  api.cameras.push({ status: cameraStatus(), archive: undefined, live: undefined });
  return { ...api, fs };
}

const protect = (camera: string, query: string) => `/api/archive/${camera}/protect?${query}`;

test('an operator protects a window, everybody with a role sees it, an operator lets go of it', async (t) => {
  const { app } = await stage(t);
  const url = protect('gate', `from=${FROM}&to=${FROM + 90.5}&note=the%20red%20car`);
  const made = await app.inject({ method: 'POST', url, headers: as('operator') });
  assert.equal(made.statusCode, 201, made.body);
  const { id, ...rest } = made.json();
  assert.deepEqual(rest, {
    camera_id: 'gate',
    from: '2026-01-01T10:00:00.000+00:00',
    to: '2026-01-01T10:01:30.500+00:00',
    from_ms: FROM * 1000,
    to_ms: FROM * 1000 + 90_500,
    created: '2026-01-01T12:00:00.000+00:00',
    note: 'the red car',
    until: '2026-04-01T12:00:00.000+00:00',
    segments: 0,
  });
  for (const list of ['/api/archive/protections', '/api/archive/gate/protections']) {
    const listed = await app.inject({ url: list, headers: as('viewer') });
    assert.deepEqual(listed.json(), { protections: [{ id, ...rest }] });
  }
  const other = await app.inject({ url: '/api/archive/other/protections', headers: as('viewer') });
  assert.deepEqual(other.json(), { protections: [] });
  const gone = await app.inject({ method: 'DELETE', url: `/api/archive/protections/${id}`, headers: as('operator') });
  assert.equal(gone.statusCode, 204);
  assert.equal(gone.body, '');
  const again = await app.inject({ method: 'DELETE', url: `/api/archive/protections/${id}`, headers: as('operator') });
  assert.equal(again.statusCode, 404);
  assert.equal(again.json().code, 'protection-not-found');
});

for (const { name, url, status, code } of [
  { name: 'no boundary', url: protect('gate', ''), status: 400, code: 'invalid-parameter' },
  { name: 'one boundary', url: protect('gate', `from=${FROM}`), status: 400, code: 'invalid-parameter' },
  { name: 'no number', url: protect('gate', 'from=a&to=2'), status: 400, code: 'invalid-parameter' },
  { name: 'an empty window', url: protect('gate', 'from=2&to=2'), status: 400, code: 'invalid-interval' },
  {
    name: 'a long note',
    url: protect('gate', `from=1&to=2&note=${'x'.repeat(201)}`),
    status: 400,
    code: 'invalid-parameter',
  },
  { name: 'an unknown camera', url: protect('other', 'from=1&to=2'), status: 404, code: 'unknown-camera' },
]) {
  test(`protecting is refused: ${name}`, async (t) => {
    const { app } = await stage(t);
    const answer = await app.inject({ method: 'POST', url, headers: as('operator') });
    assert.equal(answer.statusCode, status, answer.body);
    assert.equal(answer.json().code, code);
    assert.deepEqual((await app.inject({ url: '/api/archive/protections', headers: as('viewer') })).json(), {
      protections: [],
    });
  });
}

test('a viewer can neither protect nor release; nothing is shown without a token', async (t) => {
  const { app } = await stage(t);
  const url = protect('gate', 'from=1&to=2');
  assert.equal((await app.inject({ method: 'POST', url, headers: as('viewer') })).statusCode, 403);
  const remove = { method: 'DELETE', url: '/api/archive/protections/x' } as const;
  assert.equal((await app.inject({ ...remove, headers: as('viewer') })).statusCode, 403);
  assert.equal((await app.inject({ method: 'POST', url })).statusCode, 401);
  assert.equal((await app.inject('/api/archive/protections')).statusCode, 401);
});

test('a disk that does not take the change is answered with 503 and the reason', async (t) => {
  const { app, fs } = await stage(t);
  fs.before = ({ name }) => {
    if (name === 'write') throw systemError('EROFS');
  };
  const url = protect('gate', 'from=1&to=2');
  const answer = await app.inject({ method: 'POST', url, headers: as('operator') });
  assert.equal(answer.statusCode, 503);
  assert.deepEqual(
    [answer.json().code, answer.json().detail],
    ['protection-not-kept', 'the file system is read-only (EROFS)'],
  );
});

test('ready shows problems that need attention, to callers with a role', async (t) => {
  const { app } = await stage(t);
  const seen = (await app.inject({ url: '/api/health/ready', headers: as('viewer') })).json();
  assert.equal(seen.status, 'ready', 'a warning is no failure');
  assert.deepEqual(
    seen.warnings.map(({ code, detail, camera_id }: Record<string, unknown>) => [code, detail, camera_id]),
    [
      ['disk-exhausted', 'the disk is full', undefined],
      ['protected-over-quota', 'too much', 'gate'],
    ],
  );
  assert.equal('warnings' in (await app.inject('/api/health/ready')).json(), false);
});

test('the routes of protected footage are described', async (t) => {
  const { app } = await stage(t);
  const { paths } = (await app.inject('/openapi.json')).json();
  assert.deepEqual(Object.keys(paths['/api/archive/{camera_id}/protect'].post.responses).sort(), [
    '201',
    '400',
    '401',
    '403',
    '404',
    '409',
    '414',
    '429',
    '503',
  ]);
  assert.ok(paths['/api/archive/protections'].get);
  assert.ok(paths['/api/archive/{camera_id}/protections'].get);
  assert.ok(paths['/api/archive/protections/{id}'].delete);
});

test('a protection ends after ninety days; an operator may have it end sooner, an admin later or never', async (t) => {
  const { app, clock } = await stage(t);
  const days = (count: number): number => clock.wallMs() / 1000 + count * 86_400;
  const ask = async (role: 'operator' | 'admin', until?: number | string) => {
    const url = protect('gate', `from=${FROM}&to=253370764799${until === undefined ? '' : `&until=${until}`}`);
    const answer = await app.inject({ method: 'POST', url, headers: as(role) });
    return answer.statusCode === 201 ? answer.json().until : `${answer.statusCode} ${answer.json().code}`;
  };
  assert.equal(await ask('operator'), '2026-04-01T12:00:00.000+00:00');
  assert.equal(await ask('operator', days(1)), '2026-01-02T12:00:00.000+00:00');
  assert.equal(await ask('operator', days(90)), '2026-04-01T12:00:00.000+00:00');
  for (const until of [days(91), 'never']) assert.equal(await ask('operator', until), '403 forbidden');
  assert.equal(await ask('admin', days(365)), '2027-01-01T12:00:00.000+00:00');
  assert.equal(await ask('admin', 'never'), null);
  assert.equal(await ask('admin', days(0)), '400 invalid-interval');
  assert.equal(await ask('admin', 'soon'), '400 invalid-parameter');
});
