import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LevelSwitch } from '../../../base/log-level.ts';
import { as, build } from '../test-support.ts';

test('an admin sees and changes how much is logged; an unknown level is refused and named', async (t) => {
  const logLevels = new LevelSwitch('warn');
  const { app } = await build(t, { logLevels });
  const get = await app.inject({ url: '/api/log', headers: as('admin') });
  assert.deepEqual([get.statusCode, get.json()], [200, { level: 'warn', configured: 'warn' }]);
  const put = (payload?: object) =>
    app.inject({ method: 'PUT', url: '/api/log', headers: as('admin'), ...(payload ? { payload } : {}) });
  const changed = await put({ level: 'debug' });
  assert.deepEqual([changed.statusCode, changed.json()], [200, { level: 'debug', configured: 'warn' }]);
  assert.equal(logLevels.level, 'debug');
  for (const wrong of [undefined, {}, { level: 'loud' }, { level: 7 }, []]) {
    const answer = await put(wrong);
    assert.equal(answer.statusCode, 400);
    assert.match(answer.json<{ detail: string }>().detail, /^level: expected/);
  }
  for (const role of ['viewer', 'operator'] as const) {
    assert.equal((await app.inject({ url: '/api/log', headers: as(role) })).statusCode, 403);
  }
  assert.equal(logLevels.level, 'debug');
});
