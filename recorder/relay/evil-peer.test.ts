// A node that was taken over: its key and certificate serve the program of an attacker. What does that program get of callers who ask
// another node, and what can it do with what it got?

import assert from 'node:assert/strict';
import { hash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { WebSocket } from 'ws';
import { VirtualClock } from '../../base/clock.ts';
import { LevelSwitch } from '../../base/log-level.ts';
import { Members, certificateOf } from '../../test/support/members.ts';
import { build, fakeCluster, hashOf, token } from '../api/test-support.ts';
import type { ClusterAccess } from '../api/cluster-access.ts';
import type { ApiDeps, StillSource } from '../api/deps.ts';
import type { AuditEntry } from '../audit/entry.ts';
import { IssuerList, type IssuerConfig } from '../config/schema.ts';
import { publicKeyOf, Seal } from '../http/seal.ts';

const ANNA = { name: 'anna', role: 'admin', password: hashOf('correct horse') } as const;
const SECRET = 'admin-token-0123456789abcdef';
const ISSUERS = IssuerList.parse([
  { name: 'plant', issuer: 'https://sso.example', clientId: 'nvr', rules: [{ role: 'admin' }] },
]) as readonly IssuerConfig[];
const auth = { mode: 'token', users: [ANNA], tokens: [token('admin', SECRET)], issuers: ISSUERS } as const;
const JOB = `node-2.e${'0'.repeat(24)}`;

const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
const stills = {} as unknown as StillSource;
const noJobs = { ffmpegIsThere: async () => true } as unknown as NonNullable<ApiDeps['jobs']>;

type Metrics = ClusterAccess['metrics'];

interface Got {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** node-1, and node-2, which was taken over. */
async function stage(t: TestContext) {
  const members = await Members.open(t);
  const got: Got[] = [];
  const { certificate: cert, key, ca } = await certificateOf(members.authority, 'node-2');
  const evil = createServer({ cert, key, ca, requestCert: true }, (request, answer) => {
    got.push({ url: request.url ?? '', headers: request.headers as Record<string, string> });
    answer.writeHead(200, { 'content-type': 'text/html', 'content-security-policy': "script-src 'unsafe-inline'" });
    answer.end('<script>fetch("/api/accounts")</script>');
  });
  evil.on('upgrade', (request, socket) => {
    got.push({ url: request.url ?? '', headers: request.headers as Record<string, string> });
    socket.destroy();
  });
  await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve));
  t.after(() => evil.close());
  members.place('node-2', `https://127.0.0.1:${(evil.address() as AddressInfo).port}`);
  const places = () => ['node-1', 'node-2'].map((nodeId) => ({ nodeId, url: `http://${nodeId}:9997` }));
  const nodes = [{ nodeId: 'node-1' }, { nodeId: 'node-2' }];
  const metrics = (async () => ({ leader: undefined, hasMajority: true, voters: [], nodes })) as unknown as Metrics;
  const { app, auth: identities } = await build(t, {
    auth,
    jobs: noJobs,
    cluster: fakeCluster('node-1', { places, metrics }),
    // However busy the machine is, the other node has time to answer.
    peers: await members.requestsOf('node-1', { clock: new VirtualClock() }),
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return { app, identities, got, port: (app.server.address() as AddressInfo).port };
}

test('a node that was taken over gets nothing of callers of another node that works elsewhere or later', async (t) => {
  const { app, identities, got, port } = await stage(t);
  /** All cookies that a browser gets. */
  const cookies = (set: unknown): string =>
    [set]
      .flat()
      .map((one) => String(one).split(';')[0])
      .join('; ');
  const signIn = async (payload: object): Promise<string> =>
    cookies((await app.inject({ method: 'POST', url: '/api/session', payload })).headers['set-cookie']);
  const [user, tokens] = [await signIn({ name: 'anna', password: 'correct horse' }), await signIn({ token: SECRET })];
  const request = { protocol: 'http', headers: {}, ip: '127.0.0.1' } as FastifyRequest;
  const person = cookies(identities.signInPerson(request, 'plant', { sub: 'u-1' })?.cookies);
  const own = { host: 'nvr.example', origin: 'http://nvr.example' };
  const basic = `Basic ${Buffer.from(`x:${SECRET}`).toString('base64')}`;
  const callers: Record<string, Record<string, string>> = {
    token: bearer(SECRET),
    basic: { authorization: basic },
    'session of a user': { cookie: user, ...own },
    'session of a token': { cookie: tokens, ...own },
    'session of a person': { cookie: person, ...own },
  };
  const download = `/api/archive/jobs/${JOB}/download`;
  const links: string[] = [];
  for (const headers of Object.values(callers)) {
    await app.inject({ url: '/node/node-2/api/cameras', headers });
    await app.inject({ url: '/node/node-2/api/log', method: 'PUT', headers, payload: { level: 'debug' } });
    await app.inject({ url: '/node/node-2/playback/hls/gate/index.m3u8', headers });
    await app.inject({ url: download, headers });
    await app.inject({ url: '/api/sessions?scope=cluster', headers });
    const made = await app.inject({
      url: '/api/links',
      method: 'POST',
      headers,
      payload: { path: `/node/node-2${download}` },
    });
    links.push(made.json<{ url: string }>().url);
  }
  for (const url of links) await app.inject({ url });
  for (const name of ['access_token', 'access%5Ftoken']) {
    for (const path of ['/node/node-2/api/cameras', '/node/node-2/playback/hls/gate/index.m3u8', download])
      await app.inject({ url: `${path}?a=b&${name}=${SECRET}&c` });
  }
  for (const [query, headers] of [
    [`?access_token=${SECRET}`, {}],
    ['', { cookie: user }],
  ] as const) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/node/node-2/websocket/gate${query}`, {
      headers,
      origin: `http://127.0.0.1:${port}`,
    });
    await once(socket, 'error');
  }
  await app.inject({ url: '/api/session', method: 'DELETE', headers: { cookie: user, ...own } });
  // 5 callers, 5 requests and a link each; addresses, WebSockets, and that the user has signed out.
  assert.ok(got.length >= 5 * 6 + 6 + 2 + 1, `${got.length}: it was asked each time`);

  const all = JSON.stringify(got);
  const sealed = links.map((url) => url.split('access_link=')[1] as string);
  const kept = [user, tokens, person].flatMap((all) => all.split('; ')).map((one) => one.split('=')[1] as string);
  assert.equal(kept.length, 4, 'three sessions, and the cookie of the browser of a user');
  for (const secret of [SECRET, basic, ...kept, ...sealed]) assert.ok(!all.includes(secret));
  for (const { url, headers } of got) {
    const query = new URL(url, 'http://x').search;
    const answer = await app.inject({ url: `/api/accounts${query}`, headers: { ...headers, connection: '' } });
    assert.equal(answer.statusCode, 401);
  }
});

test('what a node that was taken over answers runs no script in the origin of the node that was asked', async (t) => {
  const { app } = await stage(t);
  for (const url of ['/node/node-2/api/cameras', `/api/archive/jobs/${JOB}/download`]) {
    const { statusCode, headers, body } = await app.inject({ url, headers: bearer(SECRET) });
    assert.deepEqual([statusCode, body.slice(0, 8)], [200, '<script>']);
    assert.equal(headers['content-type'], 'application/octet-stream');
    assert.equal(headers['content-security-policy'], "default-src 'none'; sandbox");
  }
});

test('a caller whom a member vouches for may do what the list of this node says, and the audit names the member', async (t) => {
  const members = await Members.open(t);
  const audited: AuditEntry[] = [];
  const tokens = [token('admin', 'both'), token('viewer', 'weak')];
  const { app } = await build(t, {
    auth: { mode: 'token', tokens },
    cluster: fakeCluster('node-2'),
    audit: { sink: { write: (entry) => void audited.push(entry) } },
  });
  await members.listen('node-2', { api: app, playback: app });
  const near = await build(t, {
    // `weak` is an admin at node-1; `lone` is known at node-1 only.
    auth: { mode: 'token', tokens: [tokens[0] as (typeof tokens)[0], token('admin', 'weak'), token('admin', 'lone')] },
    cluster: fakeCluster('node-1'),
    peers: await members.requestsOf('node-1'),
  });
  const leave = async (name: string): Promise<number> =>
    (
      await near.app.inject({
        url: '/node/node-2/cluster/remove-node',
        method: 'POST',
        headers: bearer(name),
        payload: {},
      })
    ).statusCode;
  assert.deepEqual([await leave('both'), await leave('weak'), await leave('lone')], [400, 403, 401]);
  assert.deepEqual(
    audited.map(({ caller, role, statedBy }) => [caller, role, statedBy]),
    [
      ['admin', 'admin', 'node-1'],
      ['viewer', 'viewer', 'node-1'],
      [null, null, 'node-1'],
    ],
  );
});

test('a caller of Kubernetes is passed on without the token, and the other node asks the API server what the user may do there', async (t) => {
  const members = await Members.open(t);
  const user = { username: 'anna', uid: '7', groups: ['ops'], extra: { tenant: ['north'] } };
  const reviewed = (role: 'admin' | 'viewer', asked: unknown[]) => ({
    mode: 'kubernetes' as const,
    tokens: [],
    allowPlaintext: true,
    reviewer: {
      review: async (whom: unknown) => {
        asked.push(whom);
        const isKnown = whom === 'kubernetes-token' || typeof whom === 'object';
        return isKnown
          ? ({ kind: 'known', name: 'anna', role, cameras: undefined, user } as const)
          : ({ kind: 'wrong' } as const);
      },
    },
  });
  const [askedHere, askedThere, audited, got]: [unknown[], unknown[], AuditEntry[], unknown[]] = [[], [], [], []];
  // What the API server tells at the other node counts there.
  const far = await build(t, {
    auth: reviewed('viewer', askedThere),
    cluster: fakeCluster('node-2'),
    audit: { sink: { write: (entry) => void audited.push(entry) } },
  });
  far.app.server.prependListener('request', ({ headers }: IncomingMessage) => got.push(headers));
  await members.listen('node-2', { api: far.app, playback: far.app });
  const near = await build(t, {
    auth: reviewed('admin', askedHere),
    cluster: fakeCluster('node-1'),
    peers: await members.requestsOf('node-1'),
  });
  const headers = bearer('kubernetes-token');
  const read = await near.app.inject({ url: '/node/node-2/api/cameras', headers });
  const payload = { level: 'debug' };
  const changed = await near.app.inject({ url: '/node/node-2/api/log', method: 'PUT', headers, payload });
  const wrong = await near.app.inject({ url: '/node/node-2/api/cameras', headers: bearer('another') });
  assert.deepEqual([read.statusCode, changed.statusCode, wrong.statusCode], [200, 403, 401]);
  assert.deepEqual([askedHere, askedThere], [['kubernetes-token', 'another'], [user]]);
  assert.equal(got.length, 2);
  assert.ok(!JSON.stringify(got).includes('kubernetes-token'));
  assert.deepEqual(
    audited.map(({ caller, role, statedBy }) => [caller, role, statedBy]),
    [['anna', 'viewer', 'node-1']],
  );
});

test('all files of a node make sessions and links of that node only, which end with its membership and which the audit names', async (t) => {
  const audited: AuditEntry[] = [];
  const [key, secret, honest] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const members = new Map([['node-2', publicKeyOf(secret)]]);
  const seal = new Seal({ nodeId: 'node-1', secret: honest, key, memberKey: (nodeId) => members.get(nodeId) });
  const audit = { sink: { write: (entry: AuditEntry) => void audited.push(entry) } };
  const { app, clock } = await build(t, { auth: { ...auth, seal }, audit, stills, logLevels: new LevelSwitch('info') });
  // The thief has the key of all nodes, the key of node-2, and the list of users.
  const user = hash('sha256', JSON.stringify([ANNA.name, ANNA.role, undefined, undefined, ANNA.password]), 'base64url');
  const forged = async (nodeId: string, from: string): Promise<readonly number[]> => {
    const evil = new Seal({ nodeId, secret, key });
    const nowMs = clock.wallMs();
    const session = JSON.stringify({ id: randomUUID(), of: { user }, sinceMs: nowMs, issuedMs: nowMs });
    const headers = {
      cookie: `kube_nvr_session=${evil.close('session', session, from)}`,
      'sec-fetch-site': 'same-origin',
    };
    const link = JSON.stringify({ id: randomUUID(), of: { user }, untilMs: nowMs + 60_000 });
    const path = '/api/cameras/gate/thumbnail';
    const url = `${path}?access_link=${evil.close(`link ${path}`, link, from)}`;
    const log = { url: '/api/log', method: 'PUT', headers, payload: { level: 'debug' } } as const;
    return [(await app.inject(log)).statusCode, (await app.inject({ url })).statusCode];
  };
  assert.deepEqual(await forged('node-1', 'node-1'), [401, 401]);
  assert.deepEqual(await forged('node-1', 'node-2'), [401, 401]);
  assert.deepEqual(await forged('node-3', 'node-1'), [401, 401]);
  audited.length = 0;
  assert.deepEqual((await forged('node-2', 'node-2'))[0], 200);
  assert.deepEqual((await forged('node-2', 'node-1'))[0], 200);
  assert.deepEqual(
    audited.filter(({ what }) => what === 'log-level').map(({ caller, statedBy }) => [caller, statedBy]),
    [
      ['anna', 'node-2'],
      ['anna', 'node-2'],
    ],
  );
  members.delete('node-2');
  assert.deepEqual(await forged('node-2', 'node-2'), [401, 401]);
  assert.deepEqual(await forged('node-2', 'node-1'), [401, 401]);
});

test('a node that was removed vouches for nobody any more, and other nodes ask it as before', async (t) => {
  const members = await Members.open(t);
  const { app } = await build(t, { auth, cluster: fakeCluster('node-2') });
  await members.listen('node-2', { api: app, playback: app });
  const removed = await build(t, { auth, cluster: fakeCluster('node-1'), peers: await members.requestsOf('node-1') });
  await members.listen('node-1', { api: removed.app, playback: removed.app });
  const near = await build(t, { auth, cluster: fakeCluster('node-2'), peers: await members.requestsOf('node-2') });
  const asks = async (from: typeof near, nodeId: string): Promise<number> =>
    (await from.app.inject({ url: `/node/${nodeId}/api/cameras`, headers: bearer(SECRET) })).statusCode;
  assert.equal(await asks(removed, 'node-2'), 200);
  members.removed.add('node-1');
  assert.deepEqual([await asks(removed, 'node-2'), await asks(near, 'node-1')], [403, 200]);
});

test('nobody signs in at a node through another one', async (t) => {
  const members = await Members.open(t);
  const { app } = await build(t, { auth, cluster: fakeCluster('node-2') });
  await members.listen('node-2', { api: app, playback: app });
  const near = await build(t, { auth, cluster: fakeCluster('node-1'), peers: await members.requestsOf('node-1') });
  const ask = { method: 'POST', url: '/node/node-2/api/session', headers: bearer(SECRET) } as const;
  for (const password of ['correct horse', 'wrong']) {
    assert.equal((await near.app.inject({ ...ask, payload: { name: 'anna', password } })).statusCode, 404);
  }
  for (const url of ['/node/node-2/api/sign-in/plant', '/node/node-2/api/sign-in/plant/callback?code=x&state=y']) {
    const answer = await near.app.inject({ url, headers: bearer(SECRET) });
    assert.equal(answer.statusCode, 404);
    assert.equal(answer.json<{ detail: string }>().detail, 'sign in at the node that your browser asks');
  }
});
