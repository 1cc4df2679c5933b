import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { jpeg } from '../../../test/camera/still-camera.ts';
import { StillError } from '../../snapshots/error.ts';
import type { StillSource } from '../deps.ts';
import { as, build, token } from '../test-support.ts';

const FROM = Date.UTC(2026, 0, 1, 12) / 1_000;
const SECONDS = 60;

const sha256 = createHash('sha256').update('porter').digest('hex');
const auth = {
  mode: 'token',
  tokens: [token('viewer'), { name: 'porter', role: 'viewer', sha256, cameras: ['yard'] }],
} as const;

/** Footage of the camera gate for a minute from `FROM` + `startSeconds` on, with a key frame each second; the last one grows. */
const stillsFrom = (startSeconds: number, asked: string[] = []): StillSource => ({
  snapshot: () => assert.fail('nobody asked'),
  thumbnail: () => assert.fail('nobody asked'),
  archived: async (cameraId, atMs, width) => {
    asked.push(`${cameraId} ${atMs} ${width}`);
    const startMs = (FROM + startSeconds) * 1_000;
    const endMs = startMs + SECONDS * 1_000;
    if (cameraId !== 'gate' || atMs < startMs || atMs >= endMs) throw new StillError('no-footage', 'none');
    const timeMs = Math.floor(atMs / 1_000) * 1_000;
    const isSettled = atMs < endMs - 1_000;
    return { type: 'image/jpeg', body: jpeg(String(timeMs)), etag: `"${timeMs}"`, remainingMs: 0, timeMs, isSettled };
  },
});

const path = (seconds: number, query = ''): string => `/api/archive/gate/still?at=${FROM + seconds}${query}`;

async function ask(app: FastifyInstance, url: string, headers: Record<string, string> = as('viewer')) {
  const answer = await app.inject({ url, headers });
  const { code } = answer.statusCode >= 400 ? answer.json<{ code?: string }>() : {};
  return { status: answer.statusCode, code, headers: answer.headers, body: answer.rawPayload };
}

test('a still is the picture of the moment, with its time; only the end of what is recorded is not kept', async (t) => {
  const asked: string[] = [];
  const { app } = await build(t, { auth, stills: stillsFrom(0, asked) });
  const { status, headers, body } = await ask(app, path(12.345));
  assert.equal(status, 200);
  assert.ok(body.equals(jpeg(String((FROM + 12) * 1_000))));
  assert.equal(headers['content-type'], 'image/jpeg');
  assert.equal(headers['x-picture-time-ms'], String((FROM + 12) * 1_000));
  assert.equal(headers['cache-control'], 'private, max-age=31536000, immutable');
  assert.match(String(headers['content-security-policy']), /sandbox/);
  assert.equal((await ask(app, path(59.5, '&width=1920'))).headers['cache-control'], 'no-store');
  assert.deepEqual(asked, [`gate ${FROM * 1_000 + 12_345} 640`, `gate ${FROM * 1_000 + 59_500} 1920`]);
  const known = await ask(app, path(12), { ...as('viewer'), 'if-none-match': String(headers.etag) });
  assert.equal(known.status, 304);
  assert.equal((await ask(app, path(12, '&access_token=viewer'), {})).status, 200, 'for img elements');
});

test('without footage, out of scope and with wrong numbers there is none, and the reason is given', async (t) => {
  const { app } = await build(t, { auth, stills: stillsFrom(0) });
  const codeOf = async (url: string, headers?: Record<string, string>): Promise<unknown[]> => {
    const { status, code } = await ask(app, url, headers);
    return [status, code];
  };
  assert.deepEqual(await codeOf(path(60)), [404, 'no-footage']);
  assert.deepEqual(await codeOf('/api/archive/nobody/still?at=1'), [404, 'no-footage']);
  assert.deepEqual(await codeOf(path(5), { authorization: 'Bearer porter' }), [404, 'no-footage']);
  assert.deepEqual(await codeOf(path(5), {}), [401, 'unauthorized']);
  for (const query of ['', '?at=', '?at=noon', '?at=5&width=63', '?at=5&width=1921', '?at=5&width=100.5']) {
    assert.deepEqual(await codeOf(`/api/archive/gate/still${query}`), [400, 'invalid-parameter'], query);
  }
  const broken = new StillError('too-many-thumbnails', 'too many');
  const busy = { ...stillsFrom(0), archived: () => Promise.reject(broken) };
  const other = await build(t, { auth, stills: busy });
  assert.equal((await ask(other.app, path(5))).code, 'too-many-thumbnails');
});

test('the footage of all holders is looked at, except with local=1 and for what the caller may not see', async (t) => {
  const asked: unknown[] = [];
  const archived: StillSource['archived'] = async (cameraId, _atMs, _width, by) => {
    asked.push([cameraId, by?.name]);
    throw new StillError('no-footage', 'none');
  };
  const { app } = await build(t, { auth, stills: { ...stillsFrom(0), archived } });
  await ask(app, path(5));
  await ask(app, path(5, '&local=1'));
  await ask(app, path(5), { authorization: 'Bearer porter' });
  assert.deepEqual(asked, [
    ['gate', 'viewer'],
    ['gate', undefined],
    ['', undefined],
  ]);
});
