// `/api/sessions`.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { VirtualClock } from '../../../base/clock.ts';
import { Members } from '../../../test/support/members.ts';
import type { AuditEntry } from '../../audit/entry.ts';
import { IssuerList, type IssuerConfig, type UserConfig } from '../../config/schema.ts';
import { EndedSessions } from '../../http/ended-sessions.ts';
import { publicKeyOf, Seal } from '../../http/seal.ts';
import type { ClusterAccess } from '../cluster-access.ts';
import { as, build, fakeCluster, hashOf, token, type ApiChanges, type TestApi } from '../test-support.ts';

const ANNA: UserConfig = { name: 'anna', role: 'viewer', password: hashOf('correct horse') };
const BERT: UserConfig = { name: 'bert', role: 'admin', password: hashOf('battery staple') };
const PASSWORDS = { anna: 'correct horse', bert: 'battery staple' };
const OWN_PAGE = { 'sec-fetch-site': 'same-origin' };
const HOUR_MS = 3_600_000;
const AUTH = { mode: 'token', tokens: [token('admin'), token('viewer')], users: [ANNA, BERT] } as const;

type Headers = Record<string, string>;

async function stage(t: TestContext, { auth = AUTH, ...changes }: ApiChanges = {}) {
  const audited: AuditEntry[] = [];
  const sink = { write: (entry: AuditEntry) => void audited.push(entry) };
  return { ...(await build(t, { auth, audit: { sink }, ...changes })), audited };
}

async function signIn({ app }: Pick<TestApi, 'app'>, payload: object, remoteAddress = '127.0.0.1'): Promise<Headers> {
  const headers = { 'user-agent': 'Mozilla/5.0 (X11)' };
  const answer = await app.inject({ method: 'POST', url: '/api/session', payload, headers, remoteAddress });
  assert.equal(answer.statusCode, 200, answer.body);
  return { cookie: String([answer.headers['set-cookie']].flat()[0]).split(';', 1)[0] as string, ...OWN_PAGE };
}

const signInAs = (api: Pick<TestApi, 'app'>, name: keyof typeof PASSWORDS, address?: string): Promise<Headers> =>
  signIn(api, { name, password: PASSWORDS[name] }, address);

interface Item {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly is_current: boolean;
  readonly node_id: string;
  readonly last_used_ms: number;
}

async function listOf({ app }: Pick<TestApi, 'app'>, headers: Headers, query = '') {
  const answer = await app.inject({ url: `/api/sessions${query}`, headers });
  assert.equal(answer.statusCode, 200, answer.body);
  return answer.json<{ sessions: Item[]; since_ms: number; nodes_away?: string[] }>();
}

const namesOf = ({ sessions }: { sessions: readonly Item[] }): string[] =>
  sessions.map(({ kind, name }) => `${kind} ${name}`).toSorted();

const end = async ({ app }: Pick<TestApi, 'app'>, headers: Headers, what: string): Promise<number> =>
  (await app.inject({ method: 'DELETE', url: `/api/sessions${what}`, headers })).statusCode;

const statusOf = async ({ app }: Pick<TestApi, 'app'>, headers: Headers): Promise<number> =>
  (await app.inject({ url: '/api/session', headers })).statusCode;

test('an admin sees who is signed in, since when, from where, and when last; others see themselves', async (t) => {
  const api = await stage(t);
  const beganMs = api.clock.wallMs();
  const anna = await signInAs(api, 'anna', '10.0.0.7');
  const byToken = await signIn(api, { token: 'viewer' });
  api.clock.advance(HOUR_MS / 2);
  const headers = { ...anna, 'user-agent': 'Mozilla/5.0 (Windows)' };
  await api.app.inject({ url: '/api/session', headers, remoteAddress: '10.0.0.8' });
  const { sessions, since_ms } = await listOf(api, as('admin'));
  assert.equal(since_ms, beganMs);
  assert.deepEqual(namesOf({ sessions }), ['token viewer', 'user anna']);
  const { id, ...first } = sessions[0] as Item;
  assert.match(id, /^[\da-f-]{36}$/);
  assert.deepEqual(first, {
    kind: 'user',
    name: 'anna',
    role: 'viewer',
    is_current: false,
    since: '2026-01-01T12:00:00.000+00:00',
    since_ms: beganMs,
    last_used: '2026-01-01T12:30:00.000+00:00',
    last_used_ms: beganMs + HOUR_MS / 2,
    expires: '2026-01-02T00:00:00.000+00:00',
    expires_ms: beganMs + 12 * HOUR_MS,
    address: '10.0.0.8',
    browser: 'Mozilla/5.0 (Windows)',
    node_id: '',
  });
  const own = await listOf(api, anna);
  assert.deepEqual([namesOf(own), own.sessions[0]?.is_current], [['user anna'], true]);
  assert.deepEqual(namesOf(await listOf(api, byToken)), ['token viewer']);
  assert.deepEqual(namesOf(await listOf(api, as('viewer'))), ['token viewer'], 'the token of the session');
});

test('sessions that are over are in no list: signed out, expired, with another entry, or of a node that is no member', async (t) => {
  const members = new Map([['node-2', 'x']]);
  const [key, secret] = [randomBytes(32), randomBytes(32)];
  members.set('node-2', publicKeyOf(secret));
  const memberKey = (nodeId: string) => members.get(nodeId);
  const seal = new Seal({ nodeId: 'node-1', secret: randomBytes(32), key, memberKey });
  const api = await stage(t, { auth: { ...AUTH, seal } });
  const other = await stage(t, { auth: { ...AUTH, seal: new Seal({ nodeId: 'node-2', secret, key, memberKey }) } });
  const left = await signInAs(api, 'bert');
  await api.app.inject({ method: 'DELETE', url: '/api/session', headers: left });
  await signInAs(api, 'anna');
  assert.equal(await statusOf(api, await signInAs(other, 'bert')), 200);
  const { sessions } = await listOf(api, as('admin'));
  assert.deepEqual(
    sessions.map(({ name, node_id }) => [name, node_id]),
    [
      ['bert', 'node-2'],
      ['anna', 'node-1'],
    ],
  );
  members.delete('node-2');
  assert.deepEqual(namesOf(await listOf(api, as('admin'))), ['user anna']);
  api.auth.replaceUsers([{ ...ANNA, role: 'operator' }, BERT]);
  assert.deepEqual(namesOf(await listOf(api, as('admin'))), []);
  await signInAs(api, 'bert');
  api.clock.advance(12 * HOUR_MS);
  assert.deepEqual(namesOf(await listOf(api, as('admin'))), []);
});

test('a session that is ended ends with its streams, the others go on, and the audit says whose it was', async (t) => {
  const api = await stage(t);
  const [phone, desk] = [await signInAs(api, 'anna'), await signInAs(api, 'anna')];
  const asked = { headers: phone, query: {}, raw: {}, ip: '127.0.0.1', method: 'GET' } as unknown as FastifyRequest;
  const streaming = await api.auth.identify(asked, 'header');
  const { sessions } = await listOf(api, phone);
  const id = sessions.find(({ is_current }) => is_current)?.id ?? '';
  assert.equal(await end(api, desk, `/${id}`), 204);
  assert.deepEqual([await statusOf(api, phone), await statusOf(api, desk)], [401, 200]);
  assert.equal(api.auth.renewed(streaming), undefined);
  assert.equal(await end(api, desk, `/${id}`), 404, 'it has ended');
  const line = api.audited.find(({ what }) => what === 'end-session');
  assert.deepEqual(
    [line?.caller, line?.['session'], line?.['kind'], line?.['of'], line?.['outcome']],
    ['anna', id, 'user', 'anna', 'done'],
  );
});

test('only admins end sessions of others, and an id that is none is refused', async (t) => {
  const api = await stage(t);
  const [anna, bert] = [await signInAs(api, 'anna'), await signInAs(api, 'bert')];
  const { sessions } = await listOf(api, bert);
  const [ofBert, ofAnna] = ['bert', 'anna'].map((name) => sessions.find((one) => one.name === name)?.id);
  assert.equal(await end(api, anna, `/${ofBert}`), 404);
  assert.equal(await end(api, anna, '?kind=user&name=bert'), 403);
  assert.equal(await statusOf(api, bert), 200);
  assert.equal(await end(api, bert, `/${ofAnna}`), 204);
  assert.equal(await statusOf(api, anna), 401);
  assert.equal(await end(api, bert, `/${'a'.repeat(43)}`), 400);
  assert.equal(await end(api, bert, ''), 400, 'whose?');
  assert.equal(await end(api, bert, '?kind=user&name=carl'), 404);
});

test('all sessions of an account end, also those that the node has not seen, with links; later ones and others go on', async (t) => {
  const [key, secret] = [randomBytes(32), randomBytes(32)];
  const newSeal = () => new Seal({ nodeId: 'node-1', secret, key });
  const before = await stage(t, { auth: { ...AUTH, users: [ANNA, BERT], seal: newSeal() } });
  // It has begun before the restart and was not used since then.
  const unseen = await signInAs(before, 'anna');
  const api = await stage(t, {
    auth: { ...AUTH, tokens: [...AUTH.tokens, { ...token('viewer', 'of anna'), name: 'anna' }], seal: newSeal() },
  });
  const [anna, bert, byToken] = [
    await signInAs(api, 'anna'),
    await signInAs(api, 'bert'),
    await signIn(api, { token: 'of anna' }),
  ];
  const path = '/api/archive/jobs/x/download';
  const link = async (headers: Headers): Promise<string> =>
    (await api.app.inject({ method: 'POST', url: '/api/links', headers, payload: { path } })).json<{ url: string }>()
      .url;
  const url = await link(anna);
  assert.deepEqual(namesOf(await listOf(api, as('admin'))), ['token anna', 'user anna', 'user bert']);
  assert.equal(await end(api, as('admin'), '?kind=user&name=anna'), 204);
  assert.deepEqual(
    await Promise.all([unseen, anna, bert, byToken].map((headers) => statusOf(api, headers))),
    [401, 401, 200, 200],
  );
  const opened = await api.app.inject({ url });
  assert.deepEqual([opened.statusCode, /link/.test(opened.json<{ detail: string }>().detail)], [401, true]);
  assert.deepEqual(namesOf(await listOf(api, as('admin'))), ['token anna', 'user bert']);
  api.clock.advance(1);
  assert.equal(await statusOf(api, await signInAs(api, 'anna')), 200);
});

test('a person of an issuer sees and ends own sessions, and an admin all of the person', async (t) => {
  const rules = [{ claim: 'groups', value: 'guards', role: 'viewer' }];
  const issuers = IssuerList.parse([
    { name: 'plant', issuer: 'https://sso.example', clientId: 'nvr', rules },
  ]) as readonly IssuerConfig[];
  const api = await stage(t, { auth: { ...AUTH, issuers } });
  const begin = (preferred_username: string): Headers => {
    const request = { protocol: 'http', headers: {}, ip: '10.0.0.7' } as FastifyRequest;
    const claims = { sub: `of ${preferred_username}`, preferred_username, groups: ['guards'] };
    const cookie = api.auth.signInPerson(request, 'plant', claims)?.cookies[0]?.split(';', 1)[0] ?? '';
    return { cookie, ...OWN_PAGE };
  };
  const [one, other, carl] = [begin('anna'), begin('anna'), begin('carl')];
  await signInAs(api, 'anna');
  assert.deepEqual(namesOf(await listOf(api, one)), ['person plant/anna', 'person plant/anna']);
  assert.equal(await end(api, one, '?kind=person&name=plant/carl'), 403);
  assert.equal(await end(api, as('admin'), '?kind=person&name=plant/anna'), 204);
  assert.deepEqual(await Promise.all([one, other, carl].map((headers) => statusOf(api, headers))), [401, 401, 200]);
  assert.deepEqual(namesOf(await listOf(api, as('admin'))), ['person plant/carl', 'user anna']);
});

/** Two members of a cluster, each with its own clock, key and list of ended sessions. */
async function twoNodes(t: TestContext) {
  const members = await Members.open(t);
  const key = randomBytes(32);
  const secrets = { 'node-1': randomBytes(32), 'node-2': randomBytes(32) };
  const nodes = Object.keys(secrets).map((nodeId) => ({ nodeId }));
  const memberKey = (nodeId: string): string => publicKeyOf(secrets[nodeId as keyof typeof secrets]);
  const metrics = (async () => ({
    leader: undefined,
    hasMajority: true,
    voters: [],
    nodes,
  })) as unknown as ClusterAccess['metrics'];
  const open = async (nodeId: keyof typeof secrets) => {
    const ended = new EndedSessions(new VirtualClock());
    const api = await stage(t, {
      auth: { ...AUTH, ended, seal: new Seal({ nodeId, secret: secrets[nodeId], key, memberKey }) },
      cluster: fakeCluster(nodeId, { metrics }),
      // However busy the machine is, the other node has time to answer.
      peers: await members.requestsOf(nodeId, { clock: new VirtualClock() }),
    });
    await members.listen(nodeId, { api: api.app, playback: api.app });
    return { ...api, ended };
  };
  return { one: await open('node-1'), two: await open('node-2'), members };
}

test('a list of the cluster has the sessions that any node has seen, each once, and what one ends the others learn', async (t) => {
  const { one, two } = await twoNodes(t);
  const [anna, bert] = [await signInAs(two, 'anna'), await signInAs(one, 'bert')];
  two.clock.advance(5_000);
  assert.equal(await statusOf(two, bert), 200);
  assert.deepEqual(namesOf(await listOf(one, bert)), ['user bert']);
  const { sessions } = await listOf(one, bert, '?scope=cluster');
  assert.deepEqual(
    sessions.map(({ name, node_id, is_current }) => [name, node_id, is_current]),
    [
      ['bert', 'node-1', true],
      ['anna', 'node-2', false],
    ],
  );
  assert.equal(sessions[0]?.last_used_ms, two.clock.wallMs(), 'where it was used last');
  assert.deepEqual(namesOf(await listOf(two, anna, '?scope=cluster')), ['user anna']);
  assert.equal(await end(one, bert, `/${sessions[1]?.id}`), 204);
  two.auth.learnEnded(one.ended.told);
  assert.deepEqual([await statusOf(one, anna), await statusOf(two, anna)], [401, 401]);
  assert.deepEqual(namesOf(await listOf(one, bert, '?scope=cluster')), ['user bert']);
});

test('a list of the cluster names the nodes that do not answer', async (t) => {
  const { one, members } = await twoNodes(t);
  await members.kill('node-2');
  const { sessions, nodes_away } = await listOf(one, await signInAs(one, 'bert'), '?scope=cluster');
  assert.deepEqual([namesOf({ sessions }), nodes_away], [['user bert'], ['node-2']]);
});

test('where no token is required nobody is signed in', async (t) => {
  const { app } = await build(t, { auth: { mode: 'none', tokens: [] } });
  const answer = await app.inject({ url: '/api/sessions', headers: { host: 'localhost' } });
  assert.deepEqual(answer.json<{ sessions: unknown[] }>().sessions, []);
});
