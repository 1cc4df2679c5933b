import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestLog } from '../archive/test-support.ts';
import { select } from './selection.ts';
import { buildServer } from './server.ts';

const MODIFIED = 'Thu, 01 Jan 2026 12:00:00 GMT';
const current = { etag: '"a1"', modifiedMs: Date.parse(MODIFIED), sizeBytes: 1000 };

const app = buildServer({ log: new TestLog(), maxConnections: 10 });
app.route({
  method: ['GET', 'HEAD'],
  url: '/',
  handler: async (request, reply) => {
    const selected = select(request, reply, current, { what: 'movie', cacheControl: 'private, no-cache' });
    return reply.header('x-selected', JSON.stringify(selected)).send('');
  },
});

const cases: {
  readonly name: string;
  readonly method?: 'HEAD';
  readonly headers: Readonly<Record<string, string>>;
  readonly selected: unknown;
}[] = [
  { name: 'nothing is asked', headers: {}, selected: 'whole' },
  { name: 'a range', headers: { range: 'bytes=0-9' }, selected: [{ from: 0, to: 10 }] },
  {
    name: 'several ranges',
    headers: { range: 'bytes=990-,0-9' },
    selected: [
      { from: 990, to: 1000 },
      { from: 0, to: 10 },
    ],
  },
  { name: 'a range of a HEAD request', method: 'HEAD', headers: { range: 'bytes=0-9' }, selected: 'whole' },
  {
    name: 'a range of this state',
    headers: { range: 'bytes=0-9', 'if-range': '"a1"' },
    selected: [{ from: 0, to: 10 }],
  },
  { name: 'a range of another state', headers: { range: 'bytes=0-9', 'if-range': '"b2"' }, selected: 'whole' },
  {
    name: 'what the caller has, whatever the range',
    headers: { range: 'bytes=5000-', 'if-none-match': '"a1"' },
    selected: 'not-modified',
  },
];
for (const { name, method = 'GET', headers, selected } of cases) {
  test(`selection: ${name}`, async () => {
    const answer = await app.inject({ method, url: '/', headers });
    assert.deepEqual(JSON.parse(String(answer.headers['x-selected'])), selected);
    const { etag, 'last-modified': modified, 'accept-ranges': unit, 'cache-control': caching } = answer.headers;
    assert.deepEqual([etag, modified, unit, caching], ['"a1"', MODIFIED, 'bytes', 'private, no-cache']);
  });
}

test('selection: a condition that fails comes before the range', async () => {
  const answer = await app.inject({ url: '/', headers: { 'if-match': '"b2"', range: 'bytes=5000-' } });
  assert.deepEqual([answer.statusCode, answer.json().code], [412, 'precondition-failed']);
});

test('selection: a range beyond the end is refused with the size', async () => {
  const answer = await app.inject({ url: '/', headers: { range: 'bytes=5000-' } });
  const { statusCode, headers } = answer;
  assert.deepEqual(
    [statusCode, headers['content-range'], answer.json().code],
    [416, 'bytes */1000', 'range-not-satisfiable'],
  );
});
