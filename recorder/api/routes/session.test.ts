import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { FastifyRequest, LightMyRequestResponse } from 'fastify';
import type { UserConfig } from '../../config/schema.ts';
import { credentialOf } from '../../http/credentials.ts';
import { publicKeyOf, Seal } from '../../http/seal.ts';
import { as, build, hashOf, token, type TestApi } from '../test-support.ts';

const HOUR_MS = 3_600_000;

const ANNA: UserConfig = { name: 'anna', role: 'operator', password: hashOf('correct horse') };
const GUARD: UserConfig = {
  name: 'guard',
  role: 'viewer',
  password: hashOf('battery staple'),
  cameras: ['gate', 'dock-*'],
  export: true,
};
const OWN_PAGE = { 'sec-fetch-site': 'same-origin' };

const withUsers = (t: TestContext, seal?: Seal): Promise<TestApi> =>
  build(t, {
    auth: { mode: 'token', tokens: [token('admin')], users: [ANNA, GUARD], ...(seal ? { seal } : {}) },
    site: { name: 'Plant 7', timeZone: 'Europe/Berlin' },
  });

const signIn = (
  { app }: TestApi,
  payload: object,
  headers: Record<string, string> = {},
  remoteAddress = '127.0.0.1',
): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'POST', url: '/api/session', payload, headers, remoteAddress });

const cookiesOf = (answer: LightMyRequestResponse): string[] =>
  [answer.headers['set-cookie'] ?? []].flat().map((cookie) => cookie.split(';', 1)[0] as string);

/** That of the session. */
const cookieOf = (answer: LightMyRequestResponse): string => cookiesOf(answer)[0] ?? '';

const password = { name: 'anna', password: 'correct horse' };

test('a user signs in with name and password, and the cookie says who it is', async (t) => {
  const api = await withUsers(t);
  const answer = await signIn(api, password);
  assert.equal(answer.statusCode, 200, answer.body);
  const { expires_ms, server_time_ms, ...session } = answer.json();
  assert.equal(server_time_ms, api.clock.wallMs());
  assert.equal(expires_ms, server_time_ms + 12 * HOUR_MS);
  assert.deepEqual(session, {
    name: 'anna',
    role: 'operator',
    may_export: true,
    cameras: null,
    expires_at: '2026-01-02T00:00:00.000+00:00',
    time_zone: 'Europe/Berlin',
    server_time: '2026-01-01T12:00:00.000+00:00',
    node: 'rack-1',
    version: '1.2.3',
    site: 'Plant 7',
    features: { export: false, timelapse: false, thumbnails: false, ptz: true, discover: true, cluster: false },
  });
  const [ofSession = '', ofDevice = ''] = answer.headers['set-cookie'] as string[];
  assert.match(ofSession, /^kube_nvr_session=[\w-]{100,}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  assert.match(ofDevice, /^kube_nvr_device=[\w-]{100,}; Path=\/; Max-Age=15552000; HttpOnly; SameSite=Strict$/);
  const again = await api.app.inject({ url: '/api/session', headers: { cookie: `a=b; ${cookieOf(answer)}; c=d` } });
  assert.equal(again.json().name, 'anna');
  assert.equal(again.headers['set-cookie'], undefined);
});

test('the session of a guard says which cameras it covers, and that it may export', async (t) => {
  const { cameras, may_export, role } = (
    await signIn(await withUsers(t), { name: 'guard', password: 'battery staple' })
  ).json();
  assert.deepEqual([cameras, may_export, role], [['gate', 'dock-*'], true, 'viewer']);
});

test('with TLS the cookie is sent over TLS only', async (t) => {
  const api = await build(t, {
    auth: { mode: 'token', tokens: [], users: [ANNA] },
    trustedProxies: ['127.0.0.1'],
  });
  const answer = await signIn(api, password, { 'x-forwarded-proto': 'https' });
  assert.match(String(answer.headers['set-cookie']), /; Secure$/);
});

test('a token begins a session as well, and a caller with a token needs none', async (t) => {
  const api = await withUsers(t);
  const answer = await signIn(api, { token: 'admin' });
  assert.equal(answer.json().role, 'admin');
  const headers = { cookie: cookieOf(answer) };
  assert.equal((await api.app.inject({ url: '/api/accounts', headers })).statusCode, 200);
  const { expires_at, expires_ms, name } = (await api.app.inject({ url: '/api/session', headers: as('admin') })).json();
  assert.deepEqual([expires_at, expires_ms, name], [null, null, 'admin']);
});

test('a request with the cookie of a token is passed on to other nodes with that token', async (t) => {
  const api = await withUsers(t);
  const cookie = cookieOf(await signIn(api, { token: 'admin' }));
  const request = {
    headers: { cookie },
    query: {},
    raw: {},
    ip: '127.0.0.1',
    method: 'GET',
  } as unknown as FastifyRequest;
  assert.equal((await api.auth.identify(request, 'header')).name, 'admin');
  assert.equal(credentialOf(request), 'Bearer admin');
});

test('the cookie holds neither the token nor anything that can be read', async (t) => {
  const api = await withUsers(t);
  const cookie = cookieOf(await signIn(api, { token: 'admin' })).split('=')[1] ?? '';
  const bytes = Buffer.from(cookie, 'base64url').toString('latin1');
  // Long ones: a short word is among random bytes now and then.
  for (const word of ['admin', 'token', 'issuedMs', token('admin').sha256]) assert.ok(!bytes.includes(word), word);
});

test('wrong passwords and unknown names get the same answer', async (t) => {
  const api = await withUsers(t);
  const answers = [
    await signIn(api, { name: 'anna', password: 'wrong' }),
    await signIn(api, { name: 'nobody', password: 'correct horse' }),
    await signIn(api, { name: 'guard', password: 'correct horse' }),
  ];
  for (const answer of answers) {
    assert.equal(answer.statusCode, 401);
    const { detail, code } = answer.json();
    assert.deepEqual([detail, code], ['wrong name or password', 'unauthorized']);
    assert.equal(answer.headers['set-cookie'], undefined);
  }
});

test('ten wrong passwords hold an address off, the right one included, and sessions continue', async (t) => {
  const api = await withUsers(t);
  const headers = { cookie: cookieOf(await signIn(api, password)) };
  // The same wrong password counts each time, because each check costs processor time.
  const statuses = [];
  for (let i = 0; i < 11; i++) statuses.push((await signIn(api, { name: 'anna', password: 'wrong' })).statusCode);
  assert.deepEqual(statuses, [...Array(10).fill(401), 429]);
  const held = await signIn(api, password);
  assert.equal(held.json().code, 'too-many-attempts');
  assert.equal(held.headers['retry-after'], '6');
  assert.equal((await api.app.inject({ url: '/api/session', headers })).statusCode, 200);
  api.clock.advance(6_000);
  assert.equal((await signIn(api, password)).statusCode, 200);
});

test('attempts at the same time count as attempts one after the other', async (t) => {
  const api = await withUsers(t);
  const all = await Promise.all(Array.from({ length: 30 }, () => signIn(api, { name: 'anna', password: 'wrong' })));
  const checked = all.filter(({ statusCode }) => statusCode === 401).length;
  assert.ok(checked <= 10, `${checked} were checked`);
  assert.ok(all.every(({ statusCode }) => statusCode === 401 || statusCode === 429));
});

test('a browser that signed in before is held off for its own wrong passwords only, also where others guess', async (t) => {
  const api = await withUsers(t);
  const [, cookie = ''] = cookiesOf(await signIn(api, password));
  const wrong = { name: 'anna', password: 'wrong' };
  for (let i = 0; i < 10; i++) await signIn(api, wrong);
  assert.equal((await signIn(api, password)).statusCode, 429, 'another browser at the same address');
  const again = await signIn(api, password, { cookie });
  assert.equal(again.statusCode, 200);
  assert.equal((await signIn(api, { name: 'guard', password: 'battery staple' }, { cookie })).statusCode, 429);
  const [session = '', device = ''] = cookiesOf(again);
  assert.equal((await signIn(api, password, { cookie: session })).statusCode, 429, 'a session is no device');
  assert.equal((await api.app.inject({ url: '/api/session', headers: { cookie: device } })).statusCode, 401);
  const statuses = [];
  for (let i = 0; i < 11; i++) statuses.push((await signIn(api, wrong, { cookie: device })).statusCode);
  assert.deepEqual(statuses, [...Array(10).fill(401), 429]);
  assert.equal((await signIn(api, password, { cookie }, '10.0.0.1')).statusCode, 429, 'wherever it is');
  assert.equal((await signIn(api, password, {}, '10.0.0.1')).statusCode, 200, 'others are not held off');
});

test('guards who share a browser are all known there, and a browser is forgotten after half a year', async (t) => {
  const api = await withUsers(t);
  const [, first = ''] = cookiesOf(await signIn(api, password));
  const guard = { name: 'guard', password: 'battery staple' };
  const [, cookie = ''] = cookiesOf(await signIn(api, guard, { cookie: first }));
  for (let i = 0; i < 10; i++) await signIn(api, { name: 'anna', password: 'wrong' });
  assert.equal((await signIn(api, guard, { cookie })).statusCode, 200);
  assert.equal((await signIn(api, password, { cookie })).statusCode, 200);
  api.clock.advance(180 * 24 * HOUR_MS);
  for (let i = 0; i < 10; i++) await signIn(api, { name: 'anna', password: 'wrong' });
  assert.equal((await signIn(api, guard, { cookie })).statusCode, 429);
});

test('forty strangers who guess from ever new addresses keep nobody from signing in', async (t) => {
  const api = await withUsers(t);
  const [, cookie = ''] = cookiesOf(await signIn(api, password));
  let answered = 0;
  const guesses = Array.from({ length: 40 }, async (_, i) => {
    const { statusCode } = await signIn(api, { name: 'anna', password: 'wrong' }, {}, `10.0.0.${i}`);
    answered++;
    return statusCode;
  });
  const fresh = signIn(api, password, {}, '10.1.0.1');
  assert.equal((await signIn(api, password, { cookie }, '10.1.0.2')).statusCode, 200);
  assert.ok(answered < 40, 'a browser that signed in before waits for no stranger');
  assert.equal((await fresh).statusCode, 200);
  assert.deepEqual(await Promise.all(guesses), Array(40).fill(401));
});

test('of one address one sign-in is checked and one waits: others of it are refused, those of other addresses are not', async (t) => {
  const api = await withUsers(t);
  const of = (address: string) => signIn(api, password, {}, address);
  const answers = await Promise.all([of('10.0.0.1'), of('10.0.0.1'), of('10.0.0.1'), of('10.0.0.2')]);
  assert.deepEqual(
    answers.map(({ statusCode }) => statusCode),
    [200, 200, 429, 200],
  );
  assert.equal(answers[2]?.headers['retry-after'], '5');
});

test('a session lasts twelve hours after its last use, and thirty days at most', async (t) => {
  const api = await withUsers(t);
  let cookie = cookieOf(await signIn(api, password));
  const ask = () => api.app.inject({ url: '/api/session', headers: { cookie } });
  for (let hours = 0; hours < 30 * 24 - 11; hours += 11) {
    const answer = await ask();
    assert.equal(answer.statusCode, 200, `after ${hours} h`);
    if (answer.headers['set-cookie'] !== undefined) cookie = cookieOf(answer);
    api.clock.advance(11 * HOUR_MS);
  }
  api.clock.advance(11 * HOUR_MS);
  assert.equal((await ask()).statusCode, 401);
  cookie = cookieOf(await signIn(api, password));
  api.clock.advance(12 * HOUR_MS);
  assert.equal((await ask()).statusCode, 401);
});

test('with a cookie, only the own page may change anything', async (t) => {
  const api = await withUsers(t);
  const cookie = cookieOf(await signIn(api, password));
  const signOut = async (headers: Record<string, string>): Promise<number> =>
    (
      await api.app.inject({
        method: 'DELETE',
        url: '/api/session',
        headers: { cookie, host: 'nvr.example:9997', ...headers },
      })
    ).statusCode;
  assert.equal(await signOut({}), 403);
  assert.equal(await signOut({ origin: 'http://nvr.example:8080' }), 403);
  assert.equal(await signOut({ 'sec-fetch-site': 'same-site', origin: 'http://nvr.example:9997' }), 403);
  assert.equal(await signOut({ 'sec-fetch-site': 'cross-site' }), 403);
  assert.equal(await signOut({ 'sec-fetch-site': 'none' }), 403);
  assert.equal(await signOut({ origin: 'null' }), 403);
  assert.equal(await signOut({ origin: 'http://nvr.example:9997' }), 204);
});

test('a cookie of a session that was signed out is worth nothing', async (t) => {
  const api = await withUsers(t);
  const cookie = cookieOf(await signIn(api, password));
  const other = cookieOf(await signIn(api, password));
  const out = await api.app.inject({ method: 'DELETE', url: '/api/session', headers: { cookie, ...OWN_PAGE } });
  assert.equal(out.statusCode, 204);
  assert.match(String(out.headers['set-cookie']), /^kube_nvr_session=; Path=\/; Max-Age=0;/);
  assert.equal((await api.app.inject({ url: '/api/session', headers: { cookie } })).statusCode, 401);
  assert.equal((await api.app.inject({ url: '/api/session', headers: { cookie: other } })).statusCode, 200);
});

test('a session ends when the entry of its user changes or goes, or its token', async (t) => {
  const changed = { ...ANNA, role: 'viewer' } as const;
  const others: readonly UserConfig[][] = [[GUARD], [changed, GUARD], [{ ...ANNA, password: hashOf('another one') }]];
  const api = await withUsers(t);
  for (const users of others) {
    api.auth.replaceUsers([ANNA, GUARD]);
    const cookie = cookieOf(await signIn(api, password));
    const ask = async () => (await api.app.inject({ url: '/api/session', headers: { cookie } })).statusCode;
    assert.equal(await ask(), 200);
    api.auth.replaceUsers(users);
    assert.equal(await ask(), 401);
  }
  const cookie = cookieOf(await signIn(api, { token: 'admin' }));
  api.auth.replaceTokens([]);
  assert.equal((await api.app.inject({ url: '/api/session', headers: { cookie } })).statusCode, 401);
});

/** Two members of a cluster with these keys of their own; `members` has those that the nodes know of each other. */
async function twoNodes(t: TestContext) {
  const key = randomBytes(32);
  const secrets = { 'node-1': randomBytes(32), 'node-2': randomBytes(32) };
  const members = new Map(Object.entries(secrets).map(([nodeId, secret]) => [nodeId, publicKeyOf(secret)]));
  const memberKey = (nodeId: string): string | undefined => members.get(nodeId);
  const sealOf = (nodeId: keyof typeof secrets): Seal => new Seal({ nodeId, secret: secrets[nodeId], key, memberKey });
  const [one, two] = [await withUsers(t, sealOf('node-1')), await withUsers(t, sealOf('node-2'))];
  return { one, two, members, key, secret: secrets['node-1'] };
}

const statusOf = async ({ app }: TestApi, headers: Record<string, string>): Promise<number> =>
  (await app.inject({ url: '/api/session', headers })).statusCode;

test('every node of the cluster accepts the cookie, and no other node', async (t) => {
  const { one, two, key, secret } = await twoNodes(t);
  const headers = { cookie: cookieOf(await signIn(one, password)) };
  const strangers = [
    await withUsers(t),
    await withUsers(t, new Seal({ nodeId: 'node-3', secret: randomBytes(32), key })),
    await withUsers(t, new Seal({ nodeId: 'node-1', secret })),
  ];
  assert.deepEqual([await statusOf(one, headers), await statusOf(two, headers)], [200, 200]);
  for (const stranger of strangers) assert.equal(await statusOf(stranger, headers), 401);
});

test('sessions of a node end everywhere with its membership, also those that another node has prolonged', async (t) => {
  const { one, two, members } = await twoNodes(t);
  const first = { cookie: cookieOf(await signIn(one, password)), ...OWN_PAGE };
  two.clock.advance(2 * HOUR_MS);
  const prolonged = await two.app.inject({ url: '/api/session', headers: first });
  const later = { cookie: cookieOf(prolonged), ...OWN_PAGE };
  const own = { cookie: cookieOf(await signIn(two, password)), ...OWN_PAGE };
  assert.notEqual(later.cookie, first.cookie);
  assert.deepEqual(await Promise.all([first, later, own].map((one) => statusOf(two, one))), [200, 200, 200]);
  const request = { headers: later, query: {}, raw: {}, ip: '127.0.0.1', method: 'GET' } as unknown as FastifyRequest;
  const streaming = await two.auth.identify(request, 'header');
  members.delete('node-1');
  assert.deepEqual(await Promise.all([first, later, own].map((one) => statusOf(two, one))), [401, 401, 200]);
  assert.equal(two.auth.renewed(streaming), undefined);
});

test('a node whose key is another one since its restart has ended its sessions', async (t) => {
  const { one, two, members } = await twoNodes(t);
  const headers = { cookie: cookieOf(await signIn(one, password)) };
  assert.equal(await statusOf(two, headers), 200);
  members.set('node-1', publicKeyOf(randomBytes(32)));
  assert.equal(await statusOf(two, headers), 401);
  members.set('node-1', 'x'.repeat(43));
  assert.equal(await statusOf(two, headers), 401, 'a key that is none');
});

test('where no token is required, everybody is signed in without a cookie', async (t) => {
  const api = await build(t, { auth: { mode: 'none', tokens: [] } });
  const answer = await signIn(api, password);
  assert.deepEqual([answer.statusCode, answer.headers['set-cookie']], [200, undefined]);
  assert.equal(answer.json().role, 'admin');
});

test('a body without name and password or token is refused', async (t) => {
  const api = await withUsers(t);
  for (const body of [{}, { name: 'anna' }, { password: 'x' }, { name: 'anna', password: 'x', token: 'y' }]) {
    const answer = await signIn(api, body);
    assert.equal(answer.statusCode, 400);
    assert.equal(answer.json().detail, 'expected name and password, or a token');
  }
});

test('another key of sessions ends all that were sealed with the one before, and their streams', async (t) => {
  const api = await withUsers(t, new Seal({ nodeId: '', secret: randomBytes(32), key: Buffer.alloc(32, 1) }));
  const headers = { cookie: cookieOf(await signIn(api, password)) };
  const request = { headers, query: {}, raw: {}, ip: '127.0.0.1', method: 'GET' } as unknown as FastifyRequest;
  const caller = await api.auth.identify(request, 'header');
  let changes = 0;
  api.auth.onChange(() => changes++);
  assert.equal(api.auth.replaceSessionKey(Buffer.alloc(32, 1)), false);
  assert.deepEqual([api.auth.renewed(caller)?.name, changes], ['anna', 0]);
  assert.equal(api.auth.replaceSessionKey(Buffer.alloc(32, 2)), true);
  assert.deepEqual([api.auth.renewed(caller), changes], [undefined, 1]);
  assert.equal((await api.app.inject({ url: '/api/session', headers })).statusCode, 401);
  const again = { cookie: cookieOf(await signIn(api, password)) };
  assert.equal((await api.app.inject({ url: '/api/session', headers: again })).statusCode, 200);
});

test('a stranger sends at most 4 KiB: a larger sign-in is refused before anything is parsed', async (t) => {
  const api = await withUsers(t);
  const answer = await signIn(api, { ...password, note: 'x'.repeat(4_096) });
  assert.equal(answer.statusCode, 413, answer.body);
  assert.equal((await signIn(api, password)).statusCode, 200);
});
