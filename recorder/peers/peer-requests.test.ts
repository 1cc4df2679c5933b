// Requests among members, over real TLS on loopback.

import assert from 'node:assert/strict';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { buildServer } from '../http/server.ts';
import { silentLog } from '../../base/log.ts';
import { Members, certificateOf } from '../../test/support/members.ts';
import { stopwatch } from '../../test/support/stopwatch.ts';
import { until } from '../../test/support/until.ts';
import { archiveStatus, as, build, cameraStatus } from '../api/test-support.ts';
import { PeerUnavailable, type PeerCaller, type PeerRequest } from './peer-requests.ts';

const guard: PeerCaller = { kind: 'viewer', name: 'guard', cameras: ['gate'] };
const itself = (credential: string | undefined): PeerCaller => ({ kind: 'itself', credential });

const idsIn = (body: Record<string, unknown> = {}): string[] =>
  (body['cameras'] as { id: string }[]).map(({ id }) => id);

/** node-1 and node-2, which has the cameras gate and yard. */
async function stage(t: TestContext) {
  const members = await Members.open(t);
  const { app, cameras } = await build(t);
  for (const id of ['gate', 'yard']) {
    cameras.push({ status: cameraStatus({ id }), archive: archiveStatus(), live: undefined });
  }
  const callers: (string | undefined)[] = [];
  app.addHook('onResponse', async ({ caller }) => void callers.push(caller?.name));
  const playback = buildServer({ log: silentLog, maxConnections: 10 });
  await members.listen('node-2', { api: app, playback });
  const requests = await members.requestsOf('node-1');
  const ask = async (caller: PeerCaller, path: string, more: Partial<PeerRequest> = {}) => {
    const { status, body } = await requests.request('node-2', { listener: 'api', caller, path, ...more });
    const said = await text(body);
    return { status, body: said === '' ? undefined : (JSON.parse(said) as Record<string, unknown>) };
  };
  return { members, requests, ask, callers, app };
}

test('a caller that a member states sees the stated cameras, reads only, and is named at the peer', async (t) => {
  const { ask, callers } = await stage(t);
  const { status, body } = await ask(guard, '/api/cameras');
  assert.equal(status, 200);
  assert.deepEqual(idsIn(body), ['gate']);
  assert.equal((await ask(guard, '/api/cameras/gate')).status, 200);
  assert.equal((await ask(guard, '/api/cameras/yard')).status, 404);
  assert.deepEqual([...new Set(callers)], ['guard']);
  assert.equal((await ask(guard, '/cluster/leave', { method: 'POST' })).status, 400);
  assert.equal((await ask(guard, '/api/audit')).status, 403, 'for admins');
  assert.equal((await ask(guard, '/api/log')).status, 403, 'for admins');
});

test('a stated caller may read, or else request an export, or remove a job: no other request is answered', async (t) => {
  const { ask } = await stage(t);
  const requests = [
    ['POST', '/api/archive/gate/export?from=1&to=2'],
    ['DELETE', '/api/archive/jobs/e1'],
    ['GET', '/api/cameras'],
    ['DELETE', '/api/archive/gate/export'],
    ['POST', '/api/archive/jobs/e1'],
    ['POST', '/api/archive/gate/timelapse?from=1&to=2'],
    ['POST', '/api/archive/gate/export/more'],
    ['DELETE', '/api/archive/jobs/e1/download'],
    ['DELETE', '/api/archive/jobs/e1?x=/api/archive/jobs/e2'],
    ['PATCH', '/api/archive/jobs/e1'],
    ['POST', '/cluster/leave'],
  ] as const;
  const allowed = async (may: 'export' | 'remove-jobs' | undefined): Promise<string[]> => {
    const passed: string[] = [];
    for (const [method, path] of requests) {
      const { body } = await ask({ ...guard, may }, path, { method });
      if (body?.['detail'] !== 'the statement of the caller cannot be read') passed.push(`${method} ${path}`);
    }
    return passed;
  };
  assert.deepEqual(await allowed('export'), ['POST /api/archive/gate/export?from=1&to=2']);
  assert.deepEqual(await allowed('remove-jobs'), ['DELETE /api/archive/jobs/e1']);
  assert.deepEqual(await allowed(undefined), ['GET /api/cameras']);
});

test('a member gets no credential of a caller, not even of one for whom nothing can be stated', async (t) => {
  const { ask } = await stage(t);
  for (const credential of [undefined, 'Bearer wrong', as('viewer').authorization]) {
    assert.equal((await ask(itself(credential), '/api/cameras')).status, 401);
  }
});

test('clients cannot state a caller', async (t) => {
  const { app } = await stage(t);
  const statement = Buffer.from(JSON.stringify({ name: 'guard', cameras: ['*'] })).toString('base64url');
  const headers = { 'kube-nvr-caller': statement, 'kube-nvr-relayed-by': 'node-1' };
  assert.equal((await app.inject({ url: '/api/cameras', headers })).statusCode, 401);
  assert.equal((await app.inject({ url: '/listener/api/api/cameras', headers })).statusCode, 404);
});

test('a node that is not who it should be is sent nothing', async (t) => {
  const { members, requests } = await stage(t);
  members.place('node-3', members.nodes.get('node-2')?.mutual?.address ?? '');
  const asked = requests.request('node-3', { listener: 'api', caller: guard, path: '/api/cameras' });
  await assert.rejects(asked, (err) => err instanceof PeerUnavailable && err.code === 'away');
  assert.equal(await requests.answers('node-3'), false);
  assert.equal(await requests.answers('node-2'), true);
});

test('only members are asked', async (t) => {
  const { requests } = await stage(t);
  for (const nodeId of ['node-1', 'node-9', '127.0.0.1', '../node-2', '']) {
    const asked = requests.request(nodeId, { listener: 'api', caller: guard, path: '/' });
    await assert.rejects(asked, (err) => err instanceof PeerUnavailable && err.code === 'unknown', nodeId);
  }
});

test('a peer that accepts connections and does not answer delays nothing: further requests fail at once', async (t) => {
  const { members, requests, ask } = await stage(t);
  const sockets: Socket[] = [];
  const mute = createServer((socket) => void sockets.push(socket.on('error', () => {})));
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    mute.close();
  });
  members.place('node-3', `https://127.0.0.1:${(mute.address() as AddressInfo).port}`);
  const request = { listener: 'api', caller: guard, path: '/api/cameras', headMs: 500 } as const;
  const elapsedMs = stopwatch();
  await assert.rejects(requests.request('node-3', request), /node-3 does not answer/);
  assert.ok(elapsedMs() < 2_000);
  const asked = sockets.length;
  await assert.rejects(requests.request('node-3', request), /did not answer just now/);
  assert.equal(sockets.length, asked, 'it was not asked');
  assert.equal((await ask(guard, '/api/cameras')).status, 200);
});

test('an answer is read from the peer only as fast as it is used', async (t) => {
  const members = await Members.open(t);
  const playback = buildServer({ log: silentLog, maxConnections: 10 });
  let sent = 0;
  const chunk = Buffer.alloc(256 * 1024);
  playback.get('/film', (_request, reply) => {
    reply.hijack();
    const more = (): void => {
      while (!reply.raw.destroyed) {
        sent += chunk.length;
        if (!reply.raw.write(chunk)) return void reply.raw.once('drain', more);
      }
    };
    more();
  });
  await members.listen('node-2', { api: playback, playback });
  const requests = await members.requestsOf('node-1');
  const { body } = await requests.request('node-2', { listener: 'playback', caller: guard, path: '/film' });
  let seen = -1;
  await until('no more is sent', async () => {
    const before = seen;
    seen = sent;
    // Lasts: nothing is read.
    await new Promise((resolve) => setTimeout(resolve, 200));
    return sent > 0 && before === sent;
  });
  assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes were sent to a caller that reads nothing`);
  body.destroy();
});

test('requests to one node are bounded, and a request that ends makes space', async (t) => {
  const members = await Members.open(t);
  const api = buildServer({ log: silentLog, maxConnections: 200 });
  const waiting: (() => void)[] = [];
  api.get('/wait', async () => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return 'done';
  });
  await members.listen('node-2', { api, playback: api });
  const requests = await members.requestsOf('node-1');
  const ending = new AbortController();
  const wait = () =>
    requests.request('node-2', { listener: 'api', caller: guard, path: '/wait', signal: ending.signal });
  const all = Array.from({ length: 96 }, () => wait().catch((err: unknown) => err));
  await until('requests wait', () => waiting.length > 0);
  await assert.rejects(wait(), (err) => err instanceof PeerUnavailable && err.code === 'busy');
  ending.abort(new Error('enough'));
  await Promise.all(all);
  const ended = requests.request('node-2', { listener: 'api', caller: guard, path: '/none' });
  assert.equal((await ended).status, 404);
});

test('what is passed on for slow clients leaves space for what the node asks itself', async (t) => {
  const members = await Members.open(t);
  const api = buildServer({ log: silentLog, maxConnections: 200 });
  let waiting = 0;
  api.get('/wait', () => new Promise(() => void waiting++));
  await members.listen('node-2', { api, playback: api });
  const requests = await members.requestsOf('node-1');
  const ending = new AbortController();
  const all = Array.from({ length: 96 }, () =>
    requests
      .request('node-2', { listener: 'api', caller: itself('Bearer x'), path: '/wait', signal: ending.signal })
      .catch((err: unknown) => err),
  );
  await until('all connections are taken', () => waiting >= 48);
  assert.equal((await requests.request('node-2', { listener: 'api', caller: guard, path: '/none' })).status, 404);
  ending.abort(new Error('enough'));
  await Promise.all(all);
});

test('a new certificate of this node is used at once, and without one the peer is asked at its address for clients', async (t) => {
  const { members, app } = await stage(t);
  const own = await certificateOf(members.authority, 'node-1');
  const requests = await members.requestsOf('node-1', { own: undefined });
  const list = { listener: 'api', caller: { ...guard, credential: 'Bearer viewer' }, path: '/api/cameras' } as const;
  await assert.rejects(requests.request('node-2', list), /address of the node node-2 is not known/);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const api = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const mutual = members.nodes.get('node-2')?.mutual;
  members.nodes.set('node-2', { nodeId: 'node-2', urls: { api, playback: undefined }, mutual });
  const { status, body } = await requests.request('node-2', list);
  assert.equal(status, 200);
  assert.match(await text(body), /yard/, 'with the rights of the credential');
  assert.ok(own.certificate);
});
