import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { LightMyRequestResponse } from 'fastify';
import type { Log } from '../../../base/log.ts';
import { silentLog } from '../../../base/log.ts';
import type { AuditEntry } from '../../audit/entry.ts';
import type { UserConfig } from '../../config/schema.ts';
import { Seal } from '../../http/seal.ts';
import type { StillSource } from '../deps.ts';
import { archiveStatus, as, build, cameraStatus, hashOf, token, type TestApi } from '../test-support.ts';

const MINUTE_MS = 60_000;
const ANNA: UserConfig = { name: 'anna', role: 'viewer', password: hashOf('correct horse') };
const OWN_PAGE = { 'sec-fetch-site': 'same-origin' };
const STILL = '/api/cameras/gate/thumbnail?fresh=1';

const image = { type: 'image/jpeg', body: Buffer.from('image'), etag: '"1"', remainingMs: 1000 } as const;
const stills = { snapshot: async () => image, thumbnail: async () => image } as unknown as StillSource;

interface Stage extends TestApi {
  readonly audited: readonly AuditEntry[];
  readonly logged: readonly string[];
}

async function stage(t: TestContext, seal = new Seal({ nodeId: 'node-1', secret: randomBytes(32) })): Promise<Stage> {
  const audited: AuditEntry[] = [];
  const logged: string[] = [];
  const write = (...said: unknown[]): void => void logged.push(JSON.stringify(said));
  const log: Log = { ...silentLog, debug: write, info: write, warn: write, error: write };
  const auth = { mode: 'token', users: [ANNA], tokens: [token('admin'), token('viewer')], seal } as const;
  const audit = { sink: { write: (entry: AuditEntry) => void audited.push(entry) } };
  const api = await build(t, { auth, log, stills, audit });
  api.cameras.push({ status: cameraStatus(), archive: archiveStatus(), live: undefined });
  return { ...api, audited, logged };
}

async function signedIn({ app }: TestApi): Promise<Record<string, string>> {
  const payload = { name: 'anna', password: 'correct horse' };
  const answer = await app.inject({ method: 'POST', url: '/api/session', payload });
  return { cookie: String(answer.headers['set-cookie']).split(';', 1)[0] ?? '', ...OWN_PAGE };
}

const make = ({ app }: TestApi, headers: Record<string, string>, path = STILL): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'POST', url: '/api/links', headers, payload: { path } });

const linkOf = async (api: TestApi, headers: Record<string, string>, path = STILL): Promise<string> =>
  (await make(api, headers, path)).json<{ url: string }>().url;

const status = async ({ app }: TestApi, url: string, method: 'GET' | 'HEAD' | 'POST' = 'GET'): Promise<number> =>
  (await app.inject({ method, url })).statusCode;

test('a link opens its address without header or cookie, for five minutes', async (t) => {
  const api = await stage(t);
  const answer = await make(api, await signedIn(api));
  const { url, expires_ms } = answer.json<{ url: string; expires_ms: number }>();
  assert.equal(answer.statusCode, 201, answer.body);
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.equal(expires_ms, api.clock.wallMs() + 5 * MINUTE_MS);
  assert.match(url, /^\/api\/cameras\/gate\/thumbnail\?fresh=1&access_link=[\w-]{80,}$/);
  assert.deepEqual([await status(api, url), await status(api, url, 'HEAD')], [200, 200]);
  api.clock.advance(5 * MINUTE_MS - 1);
  assert.equal(await status(api, url), 200);
  api.clock.advance(1);
  const late = await api.app.inject({ url });
  assert.deepEqual([late.statusCode, late.json<{ code: string }>().code], [401, 'unauthorized']);
  assert.match(late.json<{ detail: string }>().detail, /^this link has expired, or is for another address/);
});

test('a link opens one path with one query, and nothing else', async (t) => {
  const api = await stage(t);
  const url = await linkOf(api, as('admin'));
  const [link = ''] = /access_link=.*/.exec(url) ?? [];
  for (const other of [
    `/api/cameras/gate/thumbnail?${link}`,
    `/api/cameras/gate/thumbnail?fresh=0&${link}`,
    `/api/cameras/gate/thumbnail?fresh=1&fresh=1&${link}`,
    `/api/cameras/gate/thumbnail?fresh=1&x=&${link}`,
    `/api/cameras/gate/snapshot?fresh=1&${link}`,
    `/api/cameras?fresh=1&${link}`,
    `/api/session?${link}`,
  ]) {
    assert.equal(await status(api, other), 401, other);
  }
  assert.equal(await status(api, `/api/cameras/gate/thumbnail?${link}&fresh=1`), 200, 'wherever the link stands');
});

test('a link is no session, and a session no link', async (t) => {
  const api = await stage(t);
  const headers = await signedIn(api);
  const [, sealed = ''] = (await linkOf(api, headers)).split('access_link=');
  const asCookie = { cookie: `kube_nvr_session=${sealed}`, ...OWN_PAGE };
  assert.equal((await api.app.inject({ url: '/api/session', headers: asCookie })).statusCode, 401);
  const [, session = ''] = (headers['cookie'] ?? '').split('=');
  assert.equal(await status(api, `${STILL}&access_link=${session}`), 401);
});

test('a link ends with the session, the token or the user that made it, and with the key', async (t) => {
  const api = await stage(t);
  const headers = await signedIn(api);
  const signedOut = await linkOf(api, headers);
  await api.app.inject({ method: 'DELETE', url: '/api/session', headers });
  assert.equal(await status(api, signedOut), 401);
  const ofUser = await linkOf(api, await signedIn(api));
  const ofToken = await linkOf(api, as('viewer'));
  assert.deepEqual([await status(api, ofUser), await status(api, ofToken)], [200, 200]);
  api.auth.replaceUsers([{ ...ANNA, cameras: ['dock'] }]);
  api.auth.replaceTokens([token('admin')]);
  assert.deepEqual([await status(api, ofUser), await status(api, ofToken)], [401, 401]);
  const sealed = await linkOf(api, as('admin'));
  assert.equal(await status(api, sealed), 200);
  api.auth.replaceSessionKey(randomBytes(32));
  assert.equal(await status(api, sealed), 401);
});

test('a link has the rights of its maker and no others', async (t) => {
  const api = await stage(t);
  api.auth.replaceTokens([{ ...token('viewer'), cameras: ['dock'] }]);
  assert.equal(await status(api, await linkOf(api, as('viewer'))), 404);
});

test('links are for addresses of files and pictures', async (t) => {
  const api = await stage(t);
  for (const [path, detail] of [
    ['/api/cameras', /^path: links are for single files and pictures/],
    ['/websocket/gate', /^path: links are for/],
    ['/nowhere', /^path: links are for/],
    ['/api/cameras/gate/../gate/thumbnail', /^path: expected a path with its query/],
    ['//evil.example/api/cameras/gate/thumbnail', /^path: expected/],
    ['https://evil.example/', /^path: expected/],
    ['api/cameras/gate/thumbnail', /^path: expected/],
    [`${STILL}#x`, /^path: expected/],
    [`${STILL}&access_token=admin`, /^path: expected a path without a token/],
    [`${STILL}&access_link=x`, /^path: expected a path without a token/],
    ['', /^path: expected/],
  ] as const) {
    const answer = await make(api, as('admin'), path);
    assert.equal(answer.statusCode, 400, path);
    assert.match(answer.json<{ detail: string }>().detail, detail, path);
  }
  assert.equal((await make(api, as('admin'), `/node/other${STILL}`)).statusCode, 201, 'at another node');
});

test('the audit says who made a link and for what; neither it nor the log has the link', async (t) => {
  const api = await stage(t);
  const url = await linkOf(api, await signedIn(api));
  const [, sealed = ''] = url.split('access_link=');
  await status(api, url);
  await status(api, `/nowhere&access_link=${sealed}`);
  await status(api, `/nowhere%3faccess_link=${sealed}`);
  await api.app.inject({ method: 'POST', url: `/cameras/stop?access_link=${sealed}`, payload: { id: 'gate' } });
  const line = api.audited.find(({ what }) => what === 'link');
  assert.deepEqual([line?.caller, line?.['link'], line?.['outcome']], ['anna', STILL, 'done']);
  assert.ok(api.logged.some((said) => said.includes('/api/cameras/gate/thumbnail')));
  assert.ok(!JSON.stringify([api.audited, api.logged]).includes(sealed.slice(0, 20)));
});

test('where no token is required, a link is the address itself', async (t) => {
  const api = await build(t, { auth: { mode: 'none', tokens: [] }, stills });
  assert.equal(await linkOf(api, {}), STILL);
});
