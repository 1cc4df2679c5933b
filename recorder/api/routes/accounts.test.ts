// `GET /api/accounts`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { as, build, token } from '../test-support.ts';

test('admins see users and tokens with their rights and last use, and no secret', async (t) => {
  const password = `scrypt$ln=4,r=8,p=1$${'A'.repeat(22)}$${'B'.repeat(43)}`;
  const tokens = [token('admin'), { ...token('viewer'), cameras: ['yard-*'], export: true }];
  const { app, clock } = await build(t, {
    auth: { mode: 'token', tokens, users: [{ name: 'anna', role: 'operator', password }] },
  });
  const ask = async () => {
    const { body } = await app.inject({ url: '/api/accounts', headers: as('admin') });
    assert.ok(!body.includes(password) && tokens.every(({ sha256 }) => !body.includes(sha256)));
    return JSON.parse(body) as { accounts: Record<string, unknown>[]; since_ms: number };
  };
  const { accounts, since_ms } = await ask();
  assert.equal(since_ms, clock.wallMs());
  assert.deepEqual(
    accounts.map(({ kind, name, role, may_export, cameras, last_used_ms }) => [
      kind,
      name,
      role,
      may_export,
      cameras,
      last_used_ms,
    ]),
    [
      ['user', 'anna', 'operator', true, null, null],
      ['token', 'admin', 'admin', true, null, clock.wallMs()],
      ['token', 'viewer', 'viewer', true, ['yard-*'], null],
    ],
  );
  clock.advance(5_000);
  await app.inject({ url: '/api/session', headers: as('viewer') });
  assert.equal((await ask()).accounts[2]?.['last_used_ms'], clock.wallMs());
});

test('where no token is required there are no accounts', async (t) => {
  const { app } = await build(t, { auth: { mode: 'none', tokens: [] } });
  const answer = await app.inject({ url: '/api/accounts', headers: { host: 'localhost' } });
  assert.deepEqual(answer.json().accounts, []);
});
