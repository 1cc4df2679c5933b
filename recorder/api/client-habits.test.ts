// What the HTTP clients of integrators do out of habit, and what they are told.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { LevelSwitch } from '../../base/log-level.ts';
import { as, build } from './test-support.ts';

const segment = (n: number) => ({
  startMs: Date.UTC(2026, 0, 1, 12) + n * 60_000,
  sequence: n,
  path: `2026/01/01/Gate_gate_20260101_12${String(n).padStart(2, '0')}00000.mp4`,
  sizeBytes: 123,
  mtimeMs: 0,
  isOpen: false,
  endMs: Date.UTC(2026, 0, 1, 12) + n * 60_000 + 59_960.5,
});
const listing = {
  list: async () => ({ segments: Array.from({ length: 30 }, (_, n) => segment(n)), days: [] }),
};

for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain; charset=utf-8', 'nonsense']) {
  test(`a POST without body may name the type ${type}`, async (t) => {
    const { app } = await build(t);
    const post = {
      method: 'POST',
      url: '/cameras/none',
      headers: { ...as('operator'), 'content-type': type },
    } as const;
    assert.equal((await app.inject(post)).statusCode, 404);
    const live = { ...post, url: '/api/health/live' };
    assert.equal((await app.inject(live)).json().code, 'method-not-allowed');
  });
}

for (const [query, meant] of [
  ['form=1', 'from'],
  ['From=1', 'from'],
  ['from[]=1', 'from'],
  ['fron=1', 'from'],
  ['TO=1', 'to'],
  ['to[]=1', 'to'],
  ['tz_offset_minute=60', 'tz_offset_minutes'],
  ['tzOffsetMinutes=60', 'tz_offset_minutes'],
] as const) {
  test(`${query} of the archive is refused: ${meant} was meant`, async (t) => {
    const { app } = await build(t);
    const answer = await app.inject({ url: `/api/archive/gate/segments?${query}`, headers: as('viewer') });
    assert.equal(answer.statusCode, 400);
    assert.equal(answer.json().code, 'invalid-parameter');
    assert.equal(answer.json().detail, `${query.split('=')[0]}: no such parameter, did you mean ${meant}?`);
  });
}

test('parameters that caches and programs add are passed over', async (t) => {
  const { app } = await build(t);
  for (const query of ['_=17', 't=17', 'ts=17', 'v=2', 'utm_source=mail', 'limit=5', '=', '[]=1']) {
    const answer = await app.inject({ url: `/api/archive/gate/segments?${query}`, headers: as('viewer') });
    assert.equal(answer.statusCode, 200, `${query}: ${answer.body}`);
  }
});

test('a segment tells its end, its length, and the numbers with which to ask again', async (t) => {
  const { app } = await build(t, { segments: listing });
  const answer = await app.inject({ url: '/api/archive/gate/segments', headers: as('viewer') });
  const { start_ms, end, end_ms, duration_seconds, duration_ms } = answer.json().archive[0];
  assert.deepEqual(
    { start_ms, end, end_ms, duration_seconds, duration_ms },
    {
      start_ms: Date.UTC(2026, 0, 1, 12),
      end: '2026-01-01T12:00:59.961+00:00',
      end_ms: Date.UTC(2026, 0, 1, 12) + 59_961,
      duration_seconds: 59.961,
      duration_ms: 59_961,
    },
  );
});

test('an answer of some length is packed for those who take it, and for nobody else', async (t) => {
  const { app } = await build(t, { segments: listing });
  const ask = (encoding?: string) =>
    app.inject({
      url: '/api/archive/gate/segments',
      headers: { ...as('viewer'), ...(encoding === undefined ? {} : { 'accept-encoding': encoding }) },
    });
  const plain = await ask();
  assert.match(String(plain.headers.vary), /accept-encoding/);
  for (const encoding of ['gzip', 'gzip, deflate, br', 'br;q=1.0, gzip;q=0.5', '*']) {
    const packed = await ask(encoding);
    assert.equal(packed.headers['content-encoding'], 'gzip', encoding);
    assert.ok(packed.rawPayload.length < plain.rawPayload.length / 3);
    assert.equal(gunzipSync(packed.rawPayload).toString(), plain.body);
  }
  for (const encoding of ['identity', 'gzip;q=0', 'br, gzip; q=0.0', 'x-gzipped']) {
    assert.equal((await ask(encoding)).headers['content-encoding'], undefined, encoding);
  }
});

test('a request for what has not changed is answered with 304', async (t) => {
  const { app } = await build(t, { segments: listing });
  const url = '/api/archive/gate/segments';
  const first = await app.inject({ url, headers: as('viewer') });
  const { etag } = first.headers;
  assert.match(String(etag), /^W\//);
  const again = await app.inject({ url, headers: { ...as('viewer'), 'if-none-match': String(etag) } });
  assert.deepEqual([again.statusCode, again.body], [304, '']);
  const other = await app.inject({ url, headers: { ...as('viewer'), 'if-none-match': 'W/"other"' } });
  assert.equal(other.statusCode, 200);
});

test('errors are explained in our words, of JSON, not in those of a library or of YAML', async (t) => {
  const change = async (): Promise<number> => 1;
  const { app } = await build(t, { logLevels: new LevelSwitch('info'), cameraSwitch: { start: change, stop: change } });
  const level = 'level: expected one of debug, info, warn, error';
  const object = 'level: expected a JSON object with a level';
  for (const [method, url, payload, status, detail, type = 'application/json'] of [
    ['GET', '/api/archive/gate/segments?from=', undefined, 400, 'from: expected a number of seconds since 1970'],
    ['PUT', '/api/log', '{"level":5}', 400, level],
    ['PUT', '/api/log', '{}', 400, level],
    ['PUT', '/api/log', '[]', 400, object],
    ['PUT', '/api/log', '', 400, object],
    ['PUT', '/api/log', undefined, 400, object],
    ['PUT', '/api/log', '{', 400, 'the body is not valid JSON'],
    ['PUT', '/api/log', '<level/>', 415, 'Content-Type: expected application/json', 'text/xml'],
    ['POST', '/cameras/start', '{"id":5}', 400, 'id: expected the id of a camera'],
  ] as const) {
    const headers = { ...as('admin'), ...(payload !== undefined && { 'content-type': type }) };
    const answer = await app.inject({ method, url, headers, ...(payload !== undefined && { payload }) });
    assert.deepEqual([answer.statusCode, answer.json().detail], [status, detail], `${method} ${url} ${payload}`);
  }
});
