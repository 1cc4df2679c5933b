// The link that makes the first admin.

import assert from 'node:assert/strict';
import { statSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { silentLog } from '../../../base/log.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { workspace } from '../../../test/support/workspace.ts';
import type { AuditEntry } from '../../audit/entry.ts';
import { AdminCode } from '../../http/admin-code.ts';
import { PageUsers } from '../../http/page-users.ts';
import { build, token } from '../test-support.ts';

const DAY_MS = 86_400_000;
const PASSWORD = 'correct horse';

async function stage(t: TestContext) {
  const directory = workspace(t);
  const clock = new VirtualClock();
  const code = new AdminCode(directory, clock);
  const users = await PageUsers.open(directory, silentLog);
  const audited: AuditEntry[] = [];
  const api = await build(t, {
    auth: { mode: 'token', tokens: [token('admin')], made: { users, code } },
    audit: { sink: { write: (entry) => void audited.push(entry) } },
  });
  const post = (payload: object) => api.app.inject({ method: 'POST', url: '/api/session', payload });
  return { ...api, directory, code, codeClock: clock, audited, post };
}

test('the link makes an admin who is signed in, and signs in with the password from then on', async (t) => {
  const { app, auth, code, post, directory, audited } = await stage(t);
  const made = await post({ name: 'anna', password: PASSWORD, code: await code.make() });
  assert.equal(made.statusCode, 200, made.body);
  const cookie = String(made.headers['set-cookie']).split(';', 1)[0] ?? '';
  const session = (await app.inject({ url: '/api/session', headers: { cookie } })).json<{
    name: string;
    role: string;
  }>();
  assert.deepEqual([session.name, session.role], ['anna', 'admin']);
  assert.equal((await post({ name: 'anna', password: PASSWORD })).statusCode, 200);
  auth.replaceUsers([]);
  assert.equal((await post({ name: 'anna', password: PASSWORD })).statusCode, 200, 'a reload keeps those of the page');
  const file = join(directory, 'users.json');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.doesNotMatch(readFileSync(file, 'utf8'), /correct horse/);
  assert.deepEqual(
    (await PageUsers.open(directory, silentLog)).list.map(({ name, role }) => [name, role]),
    [['anna', 'admin']],
  );
  const line = audited.find(({ what }) => what === 'add-user');
  assert.deepEqual([line?.['user'], line?.['outcome']], ['anna', 'done']);
});

test('a link is used once, also by two at the same moment', async (t) => {
  const { code, post, directory } = await stage(t);
  const one = await code.make();
  const names = ['anna', 'bert', 'carl'];
  const answers = await Promise.all(names.map((name) => post({ name, password: PASSWORD, code: one })));
  const codes = answers.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b);
  assert.deepEqual(codes, [200, 401, 401]);
  assert.equal((await PageUsers.open(directory, silentLog)).list.length, 1);
  assert.match(
    answers.find(({ statusCode }) => statusCode === 401)?.json().detail,
    /^this link was used or has expired/,
  );
});

test('a link is valid for a day, until there is another one, and until the recorder starts again', async (t) => {
  const { code, post, codeClock } = await stage(t);
  const status = async (given: string): Promise<number> =>
    (await post({ name: 'anna', password: PASSWORD, code: given })).statusCode;
  const old = await code.make();
  const late = await code.make();
  assert.equal(await status(old), 401);
  codeClock.advance(DAY_MS);
  assert.equal(await status(late), 401);
  const withdrawn = await code.make();
  await code.withdraw();
  assert.equal(await status(withdrawn), 401);
  assert.equal(await status(await code.make()), 200);
});

test('codes are guessed as slowly as passwords', async (t) => {
  const { code, post, clock } = await stage(t);
  const right = await code.make();
  const status = async (given: string): Promise<number> =>
    (await post({ name: 'anna', password: PASSWORD, code: given })).statusCode;
  for (let i = 0; i < 10; i++) assert.equal(await status(`guess-${i}`), 401);
  assert.deepEqual([await status('guess'), await status(right)], [429, 429]);
  clock.advance(6_000);
  assert.equal(await status(right), 200);
});

test('a name or a password that will not do leaves the link valid', async (t) => {
  const { auth, code, post } = await stage(t);
  auth.replaceUsers([{ name: 'dora', role: 'viewer', password: 'scrypt$16384$8$1$x$y' }]);
  const next = await code.make();
  for (const [name, password, detail] of [
    ['dora', PASSWORD, /^name: the configuration has a user of this name/],
    ['dora the second', PASSWORD, /^name: the name of a user has no spaces/],
    ['emil', 'short', /^password: expected at least 8 characters/],
    ['emil', 'sunshine', /^password: it is one of the most common passwords/],
    ['emil', 'EmilEmil1', /^password: it is little more than the name/],
  ] as const) {
    const answer = await post({ name, password, code: next });
    assert.equal(answer.statusCode, 400, answer.body);
    assert.match(answer.json<{ detail: string }>().detail, detail);
  }
  assert.equal((await post({ name: 'emil', password: PASSWORD, code: next })).statusCode, 200);
});

test('without a file for users, as in a pool, no link makes one', async (t) => {
  const { app } = await build(t);
  const payload = { name: 'anna', password: PASSWORD, code: 'any' };
  assert.equal((await app.inject({ method: 'POST', url: '/api/session', payload })).statusCode, 401);
});
