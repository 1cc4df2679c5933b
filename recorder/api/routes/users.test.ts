// Users who are made, changed and removed on the page.

import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { silentLog } from '../../../base/log.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { workspace } from '../../../test/support/workspace.ts';
import type { AuditEntry } from '../../audit/entry.ts';
import { AdminCode } from '../../http/admin-code.ts';
import { PageUsers } from '../../http/page-users.ts';
import { as, build, hashOf, token } from '../test-support.ts';

const PASSWORD = 'correct horse';
const OTHER = 'battery staple';
const OWN_PAGE = { 'sec-fetch-site': 'same-origin' };

async function stage(t: TestContext) {
  const directory = workspace(t);
  const users = await PageUsers.open(directory, silentLog);
  const audited: AuditEntry[] = [];
  const { app } = await build(t, {
    auth: {
      mode: 'token',
      tokens: [token('admin'), token('operator'), { ...token('admin', 'gates'), name: 'gates', cameras: ['gate'] }],
      users: [{ name: 'dora', role: 'viewer', password: hashOf(PASSWORD) }],
      made: { users, code: new AdminCode(directory, new VirtualClock()) },
    },
    audit: { sink: { write: (entry) => void audited.push(entry) } },
  });
  const ask = async (method: 'GET' | 'PUT' | 'DELETE' | 'POST', url: string, payload?: object, headers = {}) =>
    app.inject({ method, url, headers: { ...as('admin'), ...headers }, ...(payload && { payload }) });
  const signIn = async (name: string, password: string): Promise<string | number> => {
    const answer = await app.inject({ method: 'POST', url: '/api/session', payload: { name, password } });
    return answer.statusCode === 200 ? cookiesOf(answer.headers['set-cookie']) : answer.statusCode;
  };
  const withCookie = (cookie: string, method: 'GET' | 'PUT' | 'DELETE', url: string, payload?: object) =>
    app.inject({ method, url, headers: { cookie, ...OWN_PAGE }, ...(payload && { payload }) });
  return { app, ask, signIn, withCookie, users, audited, file: join(directory, 'users.json') };
}

const cookiesOf = (set: string | readonly string[] | undefined): string =>
  [set ?? []]
    .flat()
    .map((one) => one.split(';', 1)[0])
    .join('; ');

test('an admin makes a user, who has these rights at once and after a restart; the audit has who did it', async (t) => {
  const { ask, signIn, withCookie, file, audited } = await stage(t);
  const made = await ask('PUT', '/api/users/guard', {
    role: 'viewer',
    cameras: ['gate'],
    export: true,
    password: PASSWORD,
  });
  assert.equal(made.statusCode, 200, made.body);
  const cookie = String(await signIn('guard', PASSWORD));
  const session = (await withCookie(cookie, 'GET', '/api/session')).json();
  assert.deepEqual([session.role, session.cameras, session.may_export], ['viewer', ['gate'], true]);
  const { accounts, may_add } = (await ask('GET', '/api/accounts')).json();
  assert.equal(may_add, true);
  assert.deepEqual(
    accounts.map(({ name, is_made }: Record<string, unknown>) => [name, is_made]),
    [
      ['dora', false],
      ['guard', true],
      ['admin', false],
      ['operator', false],
      ['gates', false],
    ],
  );
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.doesNotMatch(readFileSync(file, 'utf8'), /correct horse/);
  const kept = (await PageUsers.open(join(file, '..'), silentLog)).list;
  assert.deepEqual(
    kept.map(({ name, role, cameras, export: exports }) => [name, role, cameras, exports]),
    [['guard', 'viewer', ['gate'], true]],
  );
  const line = audited.find(({ what }) => what === 'add-user');
  assert.deepEqual(
    [line?.caller, line?.['user'], line?.['role'], line?.['outcome']],
    ['admin', 'guard', 'viewer', 'done'],
  );
  assert.doesNotMatch(JSON.stringify(audited), /correct horse/);
});

test('a change of a user keeps the password that is left out, and ends the sessions', async (t) => {
  const { ask, signIn, withCookie, audited } = await stage(t);
  await ask('PUT', '/api/users/guard', { role: 'viewer', password: PASSWORD });
  const before = String(await signIn('guard', PASSWORD));
  assert.equal((await ask('PUT', '/api/users/guard', { role: 'operator' })).statusCode, 200);
  assert.equal((await withCookie(before, 'GET', '/api/session')).statusCode, 401);
  const after = String(await signIn('guard', PASSWORD));
  assert.equal((await withCookie(after, 'GET', '/api/session')).json().role, 'operator');
  assert.equal((await ask('PUT', '/api/users/guard', { role: 'operator', password: OTHER })).statusCode, 200);
  assert.equal(await signIn('guard', PASSWORD), 401);
  assert.equal(typeof (await signIn('guard', OTHER)), 'string');
  assert.equal((await ask('DELETE', '/api/users/guard')).statusCode, 200);
  assert.equal(await signIn('guard', OTHER), 401);
  assert.equal((await ask('DELETE', '/api/users/guard')).statusCode, 404);
  const lines = audited.filter(({ what }) => what.endsWith('-user')).map(({ what }) => what);
  assert.deepEqual(lines, ['add-user', 'change-user', 'change-user', 'remove-user', 'remove-user']);
});

test('users of the configuration are changed there, and what is wrong is told at its field', async (t) => {
  const { ask } = await stage(t);
  for (const answer of [
    await ask('PUT', '/api/users/dora', { role: 'admin', password: PASSWORD }),
    await ask('DELETE', '/api/users/dora'),
  ]) {
    assert.deepEqual([answer.statusCode, answer.json().code], [409, 'user-in-configuration']);
  }
  for (const [name, body, detail] of [
    ['emil', { role: 'viewer' }, /^password: is missing/],
    ['emil', { role: 'viewer', password: 'short' }, /^password: expected at least 8 characters/],
    ['emil', { role: 'viewer', password: 'EmilEmil1' }, /^password: it is little more than the name/],
    ['emil', { role: 'king', password: PASSWORD }, /^role: expected one of/],
    ['emil', { role: 'viewer', password: PASSWORD, cameras: ['a_b'] }, /^cameras\.0: expected a camera id/],
    ['emil%20a', { role: 'viewer', password: PASSWORD }, /^name: the name of a user has no spaces/],
  ] as const) {
    const answer = await ask('PUT', `/api/users/${name}`, body);
    assert.equal(answer.statusCode, 400, answer.body);
    assert.match(answer.json().detail, detail);
  }
});

test('only an admin for all cameras makes users, and nobody shuts themselves out', async (t) => {
  const { ask, signIn, withCookie } = await stage(t);
  const wanted = { role: 'admin', password: PASSWORD };
  for (const headers of [as('operator'), { authorization: 'Bearer gates' }]) {
    assert.equal((await ask('PUT', '/api/users/eve', wanted, headers)).statusCode, 403);
    assert.equal((await ask('DELETE', '/api/users/dora', undefined, headers)).statusCode, 403);
  }
  await ask('PUT', '/api/users/anna', wanted);
  const cookie = String(await signIn('anna', PASSWORD));
  assert.equal((await withCookie(cookie, 'DELETE', '/api/users/anna')).statusCode, 400);
  assert.equal((await withCookie(cookie, 'PUT', '/api/users/anna', { role: 'viewer' })).statusCode, 400);
  assert.equal((await withCookie(cookie, 'PUT', '/api/users/bert', wanted)).statusCode, 200);
});

test('users change their own password, stay signed in, and their other sessions end', async (t) => {
  const { ask, signIn, withCookie } = await stage(t);
  await ask('PUT', '/api/users/guard', { role: 'viewer', cameras: ['gate'], password: PASSWORD });
  const [here, elsewhere] = [String(await signIn('guard', PASSWORD)), String(await signIn('guard', PASSWORD))];
  const path = '/api/users/me/password';
  const wrong = await withCookie(here, 'PUT', path, { password: OTHER, new_password: OTHER });
  assert.deepEqual([wrong.statusCode, wrong.json().errors[0].field], [400, 'password']);
  const weak = await withCookie(here, 'PUT', path, { password: PASSWORD, new_password: 'short' });
  assert.deepEqual([weak.statusCode, weak.json().errors[0].field], [400, 'new_password']);
  const changed = await withCookie(here, 'PUT', path, { password: PASSWORD, new_password: OTHER });
  assert.equal(changed.statusCode, 200, changed.body);
  const now = cookiesOf(changed.headers['set-cookie']);
  assert.deepEqual(
    [
      (await withCookie(now, 'GET', '/api/session')).json().cameras,
      (await withCookie(elsewhere, 'GET', '/api/session')).statusCode,
      await signIn('guard', PASSWORD),
    ],
    [['gate'], 401, 401],
  );
  assert.equal(
    (await ask('PUT', path, { password: PASSWORD, new_password: OTHER })).statusCode,
    403,
    'a token has none',
  );
  const dora = String(await signIn('dora', PASSWORD));
  const configured = await withCookie(dora, 'PUT', path, { password: PASSWORD, new_password: OTHER });
  assert.equal(configured.json().code, 'user-in-configuration');
});

test('a change that cannot be stored is told, and changes nothing', async (t) => {
  const { ask, signIn, users } = await stage(t);
  await ask('PUT', '/api/users/guard', { role: 'viewer', password: PASSWORD });
  t.mock.method(users, 'put', () => Promise.reject(new Error('ENOSPC')));
  const answer = await ask('PUT', '/api/users/guard', { role: 'admin', password: OTHER });
  assert.deepEqual([answer.statusCode, answer.json().code], [503, 'user-not-kept']);
  assert.equal(typeof (await signIn('guard', PASSWORD)), 'string');
});

test('where users are in a Secret or the configuration alone, none can be made', async (t) => {
  const { app } = await build(t);
  const answer = await app.inject({
    method: 'PUT',
    url: '/api/users/guard',
    headers: as('admin'),
    payload: { role: 'viewer', password: PASSWORD },
  });
  assert.deepEqual([answer.statusCode, answer.json().code], [409, 'user-in-configuration']);
  assert.equal((await app.inject({ url: '/api/accounts', headers: as('admin') })).json().may_add, false);
});
