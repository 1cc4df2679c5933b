import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { jpeg } from '../../../test/camera/still-camera.ts';
import { Members } from '../../../test/support/members.ts';
import { StillError } from '../../still/error.ts';
import type { StillSource } from '../deps.ts';
import { as, build, fakeCluster, token, type ApiChanges } from '../test-support.ts';

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

/** node-1 has the first minute, node-2 the second, node-3 the third. */
async function cluster(t: TestContext) {
  const members = await Members.open(t);
  const asked: string[] = [];
  const nodes = ['node-1', 'node-2', 'node-3'];
  const apps = new Map<string, FastifyInstance>();
  for (const [i, nodeId] of nodes.entries()) {
    const holders = nodes
      .map((other, n) => ({
        nodeId: other,
        oldestMs: (FROM + n * SECONDS) * 1_000,
        newestMs: (FROM + (n + 1) * SECONDS) * 1_000,
        isOnline: true,
      }))
      .filter((holder) => holder.nodeId !== nodeId);
    const changes: ApiChanges = {
      auth,
      stills: stillsFrom(i * SECONDS, asked),
      peers: await members.requestsOf(nodeId),
      cluster: fakeCluster(nodeId, { footageHolders: async () => holders }),
    };
    const { app } = await build(t, changes);
    await members.listen(nodeId, { api: app, playback: app });
    apps.set(nodeId, app);
  }
  return { members, asked, app: apps.get('node-1') as FastifyInstance };
}

test('in a cluster, a node fetches the picture from the node that has it, with the rights of the caller', async (t) => {
  const { app, asked } = await cluster(t);
  for (const seconds of [30, 90, 150]) {
    const { status, headers, body } = await ask(app, path(seconds + 0.5, '&width=320'));
    const timeMs = (FROM + seconds) * 1_000;
    assert.deepEqual([status, headers['x-picture-time-ms']], [200, String(timeMs)], `${seconds} s`);
    assert.ok(body.equals(jpeg(String(timeMs))));
    assert.equal(headers['content-type'], 'image/jpeg');
    assert.match(String(headers['cache-control']), /immutable/);
    assert.match(String(headers['content-security-policy']), /sandbox/);
    assert.equal(asked.pop(), `gate ${timeMs + 500} 320`);
  }
  assert.deepEqual((await ask(app, path(90, '&local=1'))).code, 'no-footage');
  asked.length = 0;
  assert.equal((await ask(app, path(90), { authorization: 'Bearer porter' })).code, 'no-footage');
  assert.equal(asked.length, 1, 'no other node is asked about what the caller may not see');
});

test('a picture on a node that does not answer is away, not missing', async (t) => {
  const { app, members } = await cluster(t);
  await members.kill('node-2');
  const away = await ask(app, path(90));
  assert.deepEqual([away.status, away.code], [503, 'node-away']);
  assert.ok(Number(away.headers['retry-after']) > 0);
  assert.equal((await ask(app, path(-3_600))).code, 'no-footage', 'no node reports so old footage');
});
