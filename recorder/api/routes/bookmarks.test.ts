import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { DAY_MS } from '../../../base/units.ts';
import { nodeFileSystem } from '../../archive/disk/file-system.ts';
import { temporaryDirectory } from '../../archive/test-support.ts';
import type { AuditEntry } from '../../audit/entry.ts';
import type { Role } from '../../config/schema.ts';
import type { Happening } from '../../happenings/happening.ts';
import { Happenings } from '../../happenings/happenings.ts';
import { as, build, emptyArchive, token } from '../test-support.ts';

const NOON_MS = Date.UTC(2026, 0, 10, 12);
const NOON = NOON_MS / 1000;

async function stage(t: TestContext) {
  const lines: AuditEntry[] = [];
  const clock = new VirtualClock(NOON_MS);
  const happenings = new Happenings({
    root: temporaryDirectory(t),
    fs: nodeFileSystem,
    clock,
    log: silentLog,
    checkDisk: async () => {},
    keptFromMs: () => -Infinity,
    told: () => {},
  });
  const { app } = await build(t, {
    auth: { mode: 'token', tokens: [token('viewer'), { ...token('operator'), cameras: ['gate', 'yard'] }] },
    archive: { ...emptyArchive, countSegments: (id) => (['gate', 'secret'].includes(id) ? 1 : 0) },
    happenings,
    audit: { sink: { write: (entry) => void lines.push(entry) } },
    clock,
  });
  const make = async (body: unknown, { role = 'operator', id = 'gate' }: { role?: Role; id?: string } = {}) => {
    const headers = { ...as(role), 'content-type': 'application/json' };
    const payload = JSON.stringify(body);
    const answer = await app.inject({ method: 'POST', url: `/api/cameras/${id}/bookmarks`, headers, payload });
    return { status: answer.statusCode, body: answer.json() as Happening & { readonly detail?: string } };
  };
  const remove = async (id: string, { role = 'operator', camera = 'gate' }: { role?: Role; camera?: string } = {}) =>
    (await app.inject({ method: 'DELETE', url: `/api/cameras/${camera}/bookmarks/${id}`, headers: as(role) }))
      .statusCode;
  const found = async (): Promise<readonly Happening[]> => {
    const url = `/api/events/search?camera=gate&type=bookmark&from=${NOON - 86_400}&to=${NOON + 86_400}`;
    return (await app.inject({ url, headers: as('viewer') })).json<{ events: Happening[] }>().events;
  };
  return { make, remove, found, lines };
}

test('a bookmark has a name, a note and an author, is found as an event, and is gone when it was removed', async (t) => {
  const { make, remove, found, lines } = await stage(t);
  const { status, body } = await make({ name: ' White van ', note: 'twice', from: NOON - 60, to: NOON - 40.5 });
  assert.equal(status, 201);
  const { id, ...rest } = body;
  assert.deepEqual(rest, {
    camera_id: 'gate',
    source: 'person',
    type: 'bookmark',
    start_ms: NOON_MS - 60_000,
    end_ms: NOON_MS - 40_500,
    reported_by: 'operator',
    received_ms: NOON_MS,
    data: { name: 'White van', note: 'twice' },
  });
  assert.deepEqual(await found(), [body]);
  assert.equal(await remove(id, { camera: 'yard' }), 404, 'it is of another camera');
  assert.equal(await remove(`${body.start_ms}-00000000`), 404, 'it is another bookmark of that moment');
  assert.equal(await remove(id), 204);
  assert.deepEqual(await found(), []);
  assert.equal(await remove(id), 404);
  assert.deepEqual(
    lines
      .filter(({ outcome }) => outcome === 'done')
      .map(({ what, caller, camera, bookmark }) => [what, caller, camera, bookmark]),
    [
      ['bookmark', 'operator', 'gate', id],
      ['remove-bookmark', 'operator', 'gate', id],
    ],
  );
});

test('a bookmark may be of a moment, and of footage that is older than a day', async (t) => {
  const { make, found } = await stage(t);
  const at = NOON - 20 * (DAY_MS / 1000);
  const { body } = await make({ name: 'Parcel', from: at });
  assert.deepEqual([body.start_ms, body.end_ms, body.data], [at * 1000, at * 1000, { name: 'Parcel' }]);
  assert.deepEqual(await found(), [], 'it is older than what was asked for');
});

test('viewers make and remove no bookmarks, and nobody does of a camera that the token does not cover', async (t) => {
  const { make, remove, found } = await stage(t);
  const { body } = await make({ name: 'Van', from: NOON });
  assert.equal((await make({ name: 'Van', from: NOON }, { role: 'viewer' })).status, 403);
  assert.equal(await remove(body.id, { role: 'viewer' }), 403);
  assert.equal((await make({ name: 'Van', from: NOON }, { id: 'secret' })).status, 404);
  assert.equal((await make({ name: 'Van', from: NOON }, { id: 'yard' })).status, 404, 'there is no such camera');
  assert.equal((await found()).length, 1);
});

test('a wrong bookmark is refused with what is wrong, and nothing is kept', async (t) => {
  const { make, remove, found } = await stage(t);
  for (const [body, detail] of [
    [{ from: NOON }, 'name: expected a text'],
    [{ name: '  ', from: NOON }, 'name: expected a text'],
    [{ name: 'Van', from: NOON, to: NOON - 1 }, 'to: expected a time that is not before from'],
    [{ name: 'Van', from: NOON + 3_600 }, 'from: expected a time that is not in the future'],
    [{ name: 'Van', note: 'x'.repeat(2_001), from: NOON }, 'note: expected at most 2000 characters'],
  ] as const) {
    const answer = await make(body);
    assert.deepEqual([answer.status, answer.body.detail], [400, detail]);
  }
  for (const id of ['x', '1-', '999999999999999999-x']) assert.equal(await remove(id), 404, id);
  assert.deepEqual(await found(), []);
});
