import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import {
  image,
  jpeg,
  loginPage,
  silence,
  startStillCamera,
  type StillCamera,
} from '../../../test/camera/still-camera.ts';
import { until } from '../../../test/support/until.ts';
import { StillError } from '../../snapshots/error.ts';
import { Snapshots } from '../../snapshots/snapshots.ts';
import type { StillSource } from '../deps.ts';
import { DatabaseError } from '../../database/error.ts';
import { as, build, token, type TestApi } from '../test-support.ts';
import { anywhere } from '../../reach/reach.ts';

interface Setting extends TestApi {
  readonly camera: StillCamera;
  /** The clock of the images. */
  readonly stillClock: VirtualClock;
}

async function setup(t: TestContext, thumbnail?: StillSource['thumbnail']): Promise<Setting> {
  const camera = await startStillCamera();
  const stillClock = new VirtualClock();
  const snapshots = new Snapshots({
    find(id) {
      if (id === 'bare') return { source: 'rtsp://a/', snapshot: undefined, tls: { verify: false } };
      return id === 'gate' ? { source: 'rtsp://a/', snapshot: camera.url, tls: { verify: false } } : undefined;
    },
    reach: anywhere(),
    clock: stillClock,
  });
  t.after(async () => {
    await snapshots.close();
    await camera.close();
  });
  const stills: StillSource = {
    snapshot: (id) => snapshots.get(id),
    thumbnail: thumbnail ?? (() => Promise.reject(new StillError('nothing-recorded', 'there is none'))),
    archived: () => Promise.reject(new StillError('no-footage', 'there is none')),
  };
  const scoped = { ...token('viewer', 'scoped'), cameras: ['dock-*'] };
  const auth = { mode: 'token', tokens: [token('viewer'), scoped] } as const;
  return { ...(await build(t, { stills, auth })), camera, stillClock };
}

const get = ({ app }: TestApi, url: string, headers: Record<string, string> = as('viewer')) =>
  app.inject({ method: 'GET', url, headers });

test('a snapshot is the bytes of the camera, with its age in Cache-Control', async (t) => {
  const api = await setup(t);
  api.camera.options.answer = image(jpeg('one'), 'text/html');
  const first = await get(api, '/api/cameras/gate/snapshot');
  assert.equal(first.statusCode, 200);
  assert.ok(first.rawPayload.equals(jpeg('one')));
  assert.equal(first.headers['content-type'], 'image/jpeg', 'by its bytes, not by what the camera says');
  assert.equal(first.headers['content-length'], `${jpeg('one').length}`);
  assert.equal(first.headers['cache-control'], 'private, max-age=15');
  assert.equal(first.headers['x-content-type-options'], 'nosniff');
  assert.equal(first.headers['age'], undefined, 'it would be taken off max-age');
  api.stillClock.advance(9_000);
  api.camera.options.answer = image(jpeg('two'));
  const second = await get(api, '/api/cameras/gate/snapshot?access_token=viewer', {});
  assert.ok(second.rawPayload.equals(jpeg('one')));
  assert.equal(second.headers['cache-control'], 'private, max-age=6');
  api.stillClock.advance(6_000);
  assert.ok((await get(api, '/api/cameras/gate/snapshot')).rawPayload.equals(jpeg('two')));
});

test('a hundred requests at once are one question to the camera', async (t) => {
  const api = await setup(t);
  const answers = await Promise.all(Array.from({ length: 100 }, () => get(api, '/api/cameras/gate/snapshot')));
  assert.ok(answers.every(({ statusCode, rawPayload }) => statusCode === 200 && rawPayload.equals(jpeg())));
  assert.equal(api.camera.requests.length, 1);
});

test('an image that the caller has is not sent again', async (t) => {
  const api = await setup(t);
  const { etag } = (await get(api, '/api/cameras/gate/snapshot')).headers;
  for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const answer = await get(api, '/api/cameras/gate/snapshot', { ...as('viewer'), 'if-none-match': `${tag}` });
    assert.deepEqual([answer.statusCode, answer.payload, answer.headers.etag], [304, '', etag], `${tag}`);
    assert.equal(answer.headers['cache-control'], 'private, max-age=15');
  }
  const other = await get(api, '/api/cameras/gate/snapshot', { ...as('viewer'), 'if-none-match': '"other"' });
  assert.equal(other.statusCode, 200);
});

test('404, 502 and 504 are told apart', async (t) => {
  const api = await setup(t);
  const problem = async (url: string, headers?: Record<string, string>): Promise<[number, string]> => {
    const answer = await get(api, url, headers);
    assert.match(String(answer.headers['content-type']), /^application\/problem\+json/);
    return [answer.statusCode, answer.json<{ code: string }>().code];
  };
  assert.deepEqual(await problem('/api/cameras/nobody/snapshot'), [404, 'unknown-camera']);
  assert.deepEqual(await problem('/api/cameras/bare/snapshot'), [404, 'no-snapshot-address']);
  const scoped = { authorization: 'Bearer scoped' };
  assert.deepEqual(await problem('/api/cameras/gate/snapshot', scoped), [404, 'unknown-camera']);
  assert.deepEqual(await problem('/api/cameras/gate/snapshot', {}), [401, 'unauthorized']);
  assert.equal(api.camera.requests.length, 0);

  api.camera.options.answer = loginPage;
  assert.deepEqual(await problem('/api/cameras/gate/snapshot'), [502, 'not-an-image']);
  api.stillClock.advance(1_000);
  api.camera.options.answer = silence;
  const late = problem('/api/cameras/gate/snapshot');
  await until('the camera is asked', () => api.camera.requests.length === 2);
  api.stillClock.advance(10_000);
  assert.deepEqual(await late, [504, 'camera-timeout']);
});

test('thumbnails: an image, or why there is none', async (t) => {
  const answers: Record<string, () => ReturnType<StillSource['thumbnail']>> = {
    gate: async () => ({ type: 'image/jpeg', body: jpeg(), etag: '"x"', remainingMs: 9_600 }),
    new: async () => Promise.reject(new StillError('nothing-recorded', 'there is no picture of this camera')),
    bare: async () => Promise.reject(new StillError('ffmpeg-missing', 'ffmpeg is not installed')),
    odd: async () => Promise.reject(new StillError('thumbnail-failed', 'ffmpeg could not decode the picture')),
  };
  const unknown = () => Promise.reject(new StillError('unknown-camera', 'no such camera'));
  const api = await setup(t, (id) => (answers[id] ?? unknown)());
  const good = await get(api, '/api/cameras/gate/thumbnail');
  assert.ok(good.rawPayload.equals(jpeg()));
  assert.equal(good.headers['cache-control'], 'private, max-age=10');
  for (const [id, status, code] of [
    ['new', 404, 'nothing-recorded'],
    ['nobody', 404, 'unknown-camera'],
    ['bare', 503, 'ffmpeg-missing'],
    ['odd', 503, 'thumbnail-failed'],
  ] as const) {
    const answer = await get(api, `/api/cameras/${id}/thumbnail`);
    assert.deepEqual([answer.statusCode, answer.json<{ code: string }>().code], [status, code]);
  }
});

test('what a camera did wrong is a line of the log without a trace, and no error; its database is not for viewers', async (t) => {
  const lines: unknown[] = [];
  const line = (level: string) => (fields: object, message: string) =>
    void lines.push([level, message, 'err' in fields]);
  const log = { ...silentLog, warn: line('warn'), error: line('error'), bug: line('bug') };
  const stills: StillSource = {
    snapshot: () => Promise.reject(new StillError('camera-error', 'the camera answered 500')),
    thumbnail: () => Promise.reject(new Error('a fault of ours')),
    archived: () => Promise.reject(new Error('a fault of ours')),
  };
  const away = () => Promise.reject(new DatabaseError('UNAVAILABLE', 'connect ECONNREFUSED 10.0.0.5:5432'));
  const api = await build(t, { stills, log, segments: { list: away } });
  const ask = async (url: string) => (await api.app.inject({ url, headers: as('viewer') })).json<{ detail: string }>();
  await ask('/api/cameras/gate/snapshot');
  await ask('/api/cameras/gate/thumbnail');
  assert.doesNotMatch((await ask('/api/archive/gate/segments')).detail, /ECONNREFUSED|10\.0\.0\.5/);
  assert.deepEqual(lines, [
    ['warn', 'the camera answered 500', false],
    ['bug', 'a request failed', true],
  ]);
});
