// Callers whose requests hold the event loop: over real connections, with a processor whose time the test decides.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { AuditEntry } from '../audit/entry.ts';
import { installAccess } from './access.ts';
import { Authenticator } from './auth.ts';
import { buildServer } from './server.ts';

const viewer = (name: string) => ({
  name,
  role: 'viewer' as const,
  sha256: createHash('sha256').update(name).digest('hex'),
});

/** `ask(path, token)`: the status; each digit in the path is so many seconds of the processor. */
async function stage(t: TestContext) {
  const clock = new VirtualClock();
  const registry = new Registry();
  const lines: AuditEntry[] = [];
  let workedMs = 0;
  const work = (ms: number): string => {
    workedMs += ms;
    return 'worked';
  };
  const auth = new Authenticator(
    { mode: 'token', tokens: [viewer('busy'), viewer('other')] },
    { clock, registry, audit: { write: (entry) => void lines.push(entry) }, cpuMs: () => workedMs },
  );
  const app = buildServer({ log: silentLog, maxConnections: 100, trustedProxies: ['127.0.0.1'] });
  t.after(() => app.close());
  installAccess(app, auth);
  const config = { role: 'viewer', cameras: 'none' } as const;
  app.get('/works', { config }, async () => work(800));
  app.get('/checks', { config, preValidation: async () => void work(800) }, async () => 'checked');
  app.get('/waits', { config, preHandler: () => Promise.resolve() }, async () => work(800));
  app.get('/quick', { config }, async () => work(0.9));
  app.post('/reads', { config, preValidation: async () => void work(800) }, async () => 'read');
  app.post('/anybody', async () => work(800));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const ask = async (method: string, path: string, token?: string, from = '192.0.2.1'): Promise<Response> =>
    fetch(`http://127.0.0.1:${(app.addresses()[0] as { port: number }).port}${path}`, {
      method,
      headers: {
        'x-forwarded-for': from,
        'content-type': 'application/json',
        ...(token && { authorization: `Bearer ${token}` }),
      },
      ...(method === 'POST' && { body: '{}' }),
    });
  const status = async (...asked: Parameters<typeof ask>): Promise<number> => (await ask(...asked)).status;
  return { app, clock, registry, lines, ask, status };
}

for (const [method, path] of [
  ['GET', '/works'],
  ['GET', '/checks'],
  ['GET', '/waits'],
  ['POST', '/reads'],
] as const) {
  test(`a caller whose requests hold the event loop waits, and no other does: ${method} ${path}`, async (t) => {
    const { clock, status } = await stage(t);
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push(await status(method, path, 'busy'));
    assert.deepEqual(statuses, [200, 200, 200, 429]);
    assert.deepEqual([await status('GET', '/quick', 'busy'), await status('GET', '/quick', 'other')], [429, 200]);
    // 400 ms more than the credit of two seconds, at 200 ms a second.
    clock.advance(1_999);
    assert.equal(await status('GET', '/quick', 'busy'), 429);
    clock.advance(1);
    assert.equal(await status(method, path, 'busy'), 200);
    assert.equal(await status(method, path, 'busy'), 429);
  });
}

test('a stranger who holds the event loop waits: strangers of other networks and callers with a token do not', async (t) => {
  const { ask, status } = await stage(t);
  for (let i = 0; i < 3; i++) assert.equal(await status('POST', '/anybody'), 200);
  const refused = await ask('POST', '/anybody');
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get('retry-after'), '2');
  assert.equal(((await refused.json()) as { code: string }).code, 'too-much-work');
  assert.equal(await status('POST', '/anybody', undefined, '192.0.2.2'), 200);
  assert.equal(await status('GET', '/quick', 'other'), 200);
});

test('requests that take less than a millisecond are free', async (t) => {
  const { app } = await stage(t);
  const asked = { url: '/quick', headers: { authorization: 'Bearer busy' } };
  for (let i = 0; i < 2_500; i++) assert.equal((await app.inject(asked)).statusCode, 200);
});

test('refusals for too much work are counted, and the audit has a line a minute of each caller', async (t) => {
  const { clock, registry, lines, status } = await stage(t);
  for (let i = 0; i < 10; i++) await status('GET', '/works', 'busy');
  const metric = await registry.getSingleMetric('kube_nvr_requests_over_budget_total')?.get();
  const [api] = metric?.values.filter(({ labels }) => labels['listener'] === 'api') ?? [];
  assert.equal(api?.value, 7);
  const named = lines.map(({ what, caller, address }) => ({ what, caller, address }));
  assert.deepEqual(named, [{ what: 'over-budget', caller: 'busy', address: '192.0.2.1' }]);
  clock.advance(60_000);
  for (let i = 0; i < 5; i++) await status('GET', '/works', 'busy');
  assert.equal(lines.length, 2);
});
