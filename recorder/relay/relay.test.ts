// Requests to a node through another one: the API and its WebSockets.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { WebSocket } from 'ws';
import { silentLog } from '../../base/log.ts';
import { MemoryBudget } from '../../base/memory-budget.ts';
import { stopwatch } from '../../test/support/stopwatch.ts';
import { until } from '../../test/support/until.ts';
import { Members } from '../../test/support/members.ts';
import { archiveStatus, as, build, cameraStatus, fakeCluster, hashOf, token } from '../api/test-support.ts';
import type { ClusterAccess } from '../api/cluster-access.ts';
import type { AuditEntry } from '../audit/entry.ts';
import { Seal, SEAL_KEY_BYTES } from '../http/seal.ts';
import { LiveLimits } from '../live/limits.ts';
import { FRAME_TICKS, LiveStream, run, SampleMaker } from '../live/test-support.ts';
import { CLOSE } from '../live/close.ts';
import { StillError } from '../snapshots/error.ts';
import type { PeerRequest, PeerSender } from '../peers/peer-requests.ts';
import { RelayMetrics } from './metrics.ts';

const clusterOf = (nodeId: string): ClusterAccess =>
  fakeCluster(nodeId, {
    ownerOf: (cameraId) =>
      cameraId === 'yard' && nodeId === 'node-1'
        ? { nodeId: 'node-2', url: 'http://node-2:9997', epoch: 1 }
        : undefined,
    places: () => ['node-1', 'node-2'].map((name) => ({ nodeId: name, url: `http://${name}:9997` })),
  });

const seal = new Seal({ nodeId: '', secret: randomBytes(SEAL_KEY_BYTES) });
const ANNA = { name: 'anna', role: 'admin', password: hashOf('correct horse') } as const;
const auth = {
  mode: 'token',
  seal,
  users: [ANNA],
  tokens: [token('viewer'), token('operator'), token('admin'), { ...token('viewer', 'porter'), cameras: ['yard'] }],
} as const;

const noImage = async (cameraId: string): Promise<never> => {
  throw new StillError(cameraId === 'gate' ? 'nothing-recorded' : 'unknown-camera', 'none');
};
const stills = { snapshot: noImage, thumbnail: noImage, archived: noImage };

/** node-1, which listens to clients, and node-2, which has the camera gate. */
async function stage(t: TestContext) {
  const members = await Members.open(t);
  const audited: AuditEntry[] = [];
  const registry = new Registry();
  const far = await build(t, { auth, stills, cluster: clusterOf('node-2') });
  const hub = new LiveStream({
    cameraId: 'gate',
    limits: new LiveLimits({}, new MemoryBudget(64 * 1024 ** 2)),
    clock: far.clock,
    log: silentLog,
  });
  far.cameras.push({ status: cameraStatus(), archive: archiveStatus(), live: hub });
  await members.listen('node-2', { api: far.app, playback: far.app });
  const near = await build(t, {
    auth,
    stills,
    cluster: clusterOf('node-1'),
    peers: await members.requestsOf('node-1'),
    audit: { sink: { write: (entry) => void audited.push(entry) } },
    relayMetrics: new RelayMetrics(registry),
  });
  await near.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = near.app.server.address() as AddressInfo;
  return { members, near: near.app, far: far.app, hub, port, audited, registry };
}

test('a request through another node has the rights of its caller, and a change is in the audit of both', async (t) => {
  const { near, audited } = await stage(t);
  const ask = (role: string, url: string, method: 'GET' | 'POST' = 'GET', payload?: object) =>
    near.inject({ url, method, headers: { authorization: `Bearer ${role}` }, ...(payload && { payload }) });
  const camera = await ask('viewer', '/node/node-2/api/cameras/gate');
  assert.equal(camera.statusCode, 200);
  assert.equal(camera.json<{ id: string }>().id, 'gate');
  assert.equal(camera.headers['content-security-policy'], "default-src 'none'; sandbox");
  assert.equal((await ask('porter', '/node/node-2/api/cameras/gate')).statusCode, 404);
  assert.equal((await ask('nobody', '/node/node-2/api/cameras/gate')).statusCode, 401);
  const leave = await ask('viewer', '/node/node-2/cluster/leave', 'POST', {});
  assert.deepEqual([leave.statusCode, leave.json<{ code: string }>().code], [403, 'forbidden']);
  const lines = audited.filter(({ what }) => what === 'relay');
  assert.deepEqual(
    lines.map(({ caller, status, path }) => [caller, status, path]),
    [['viewer', 403, '/node/node-2/cluster/leave']],
  );
});

test('what a caller sends to another node arrives there, and errors of that node come back', async (t) => {
  const { near } = await stage(t);
  const url = '/node/node-2/cluster/remove-node';
  const headers = { ...as('admin'), 'content-type': 'application/json' };
  const answer = await near.inject({ url, method: 'POST', headers, payload: '{"node_id": 7}' });
  assert.equal(answer.statusCode, 400);
  assert.match(answer.json<{ detail: string }>().detail, /node_id/);
});

test('a live stream is watched through another node, and ends with either side', async (t) => {
  const { hub, port, far } = await stage(t);
  const maker = new SampleMaker();
  hub.begin(run());
  const send = (frame: number): void => {
    const sample = maker.make({ dts: frame * FRAME_TICKS, sync: true }, 10);
    hub.sample(sample);
    sample.data.slab.release();
  };
  send(0);
  const socket = new WebSocket(`ws://127.0.0.1:${port}/node/node-2/websocket/gate?access_token=viewer`);
  t.after(() => socket.terminate());
  const messages: Buffer[] = [];
  socket.on('message', (data: Buffer) => void messages.push(data));
  await once(socket, 'open');
  for (let frame = 1; messages.length < 3; frame++) {
    send(frame);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(frame < 500, 'fragments arrive');
  }
  assert.equal(messages[0]?.toString('latin1', 4, 8), 'ftyp');
  assert.equal(messages[1]?.toString('latin1', 4, 8), 'moof');
  await Promise.all([once(socket, 'close'), far.close()]);
});

test('however many live streams are passed on, requests to the node are answered', async (t) => {
  const { port, hub } = await stage(t);
  hub.begin(run());
  let open = 0;
  // More than may wait for an answer at once, and than a member could have connections before.
  for (let i = 0; i < 100; i++) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/node/node-2/websocket/gate?access_token=viewer`);
    t.after(() => socket.terminate());
    socket.on('open', () => open++).on('error', () => {});
  }
  await until('all are open', () => open === 100);
  const url = `http://127.0.0.1:${port}/node/node-2/api/cameras`;
  const answer = await fetch(url, { headers: as('operator') });
  assert.equal(answer.status, 200, await answer.text());
});

test('a live stream that the node refuses is closed with its code; without a token none is opened', async (t) => {
  const { port } = await stage(t);
  const refused = new WebSocket(`ws://127.0.0.1:${port}/node/node-2/websocket/gate?access_token=porter`);
  const [code] = (await once(refused, 'close')) as [number];
  assert.equal(code, 4404);
  // The node of the camera decides which of its streams there are.
  const preview = new WebSocket(
    `ws://127.0.0.1:${port}/node/node-2/websocket/gate?quality=preview&access_token=viewer`,
  );
  assert.equal((await once(preview, 'close'))[0], CLOSE.noPreview);
  const unknown = new WebSocket(`ws://127.0.0.1:${port}/node/node-2/websocket/gate`);
  const [err] = (await once(unknown, 'error')) as [Error];
  assert.match(err.message, /401/);
});

test('what is passed on is counted by node: requests by what became of them, and bytes', async (t) => {
  const { port, members, registry } = await stage(t);
  const ask = (nodeId: string) =>
    fetch(`http://127.0.0.1:${port}/node/${nodeId}/api/cameras`, { headers: as('viewer') }).then(async (answer) => {
      await answer.arrayBuffer();
      return answer.status;
    });
  const valuesOf = async (name: string) =>
    ((await registry.getSingleMetric(name)?.get())?.values ?? []).map(({ labels, value }) => ({ ...labels, value }));
  assert.equal(await ask('node-2'), 200);
  assert.equal(await ask('node-9'), 404);
  const requests = 'kube_nvr_relay_requests_total';
  await until('it is counted', async () => (await valuesOf(requests)).length > 0);
  assert.deepEqual(await valuesOf(requests), [{ peer: 'node-2', result: 'answered', value: 1 }]);
  const [bytes] = await valuesOf('kube_nvr_relay_bytes_total');
  assert.equal((bytes as { peer?: unknown } | undefined)?.peer, 'node-2');
  assert.ok((bytes?.value ?? 0) > 100, String(bytes?.value));
  await members.kill('node-2');
  assert.equal(await ask('node-2'), 503);
  assert.deepEqual((await valuesOf(requests)).at(-1), { peer: 'node-2', result: 'away', value: 1 });
});

test('a node that is gone is named, soon', async (t) => {
  const { near, members } = await stage(t);
  await members.kill('node-2');
  const elapsedMs = stopwatch();
  const answer = await near.inject({ url: '/node/node-2/api/cameras', headers: as('viewer') });
  assert.ok(elapsedMs() < 4_000);
  assert.deepEqual([answer.statusCode, answer.json<{ code: string }>().code], [503, 'node-away']);
  assert.equal(answer.headers['retry-after'], '5');
});

/** The headers of the page of node-1, where a user has signed in, as browsers send them over plain HTTP. */
async function signedIn(near: FastifyInstance) {
  const payload = { name: 'anna', password: 'correct horse' };
  const answer = await near.inject({ method: 'POST', url: '/api/session', payload });
  const cookie = String(answer.headers['set-cookie']).split(';', 1)[0] ?? '';
  return { cookie, host: 'nvr.example', origin: 'http://nvr.example' };
}

test('a user who is signed in at one node may do the same through it at another', async (t) => {
  const staged = await stage(t);
  const headers = await signedIn(staged.near);
  const ask = (url: string, method: 'GET' | 'POST', changed: object = {}) =>
    staged.near.inject({ url, method, headers: { ...headers, ...changed }, ...(method === 'POST' && { payload: {} }) });
  assert.equal((await ask('/node/node-2/api/cameras/gate', 'GET')).statusCode, 200);
  const change = await ask('/node/node-2/cluster/remove-node', 'POST');
  assert.match(change.json<{ detail: string }>().detail, /node_id/, 'it gets as far as the body');
  const foreign = await ask('/node/node-2/cluster/remove-node', 'POST', { origin: 'http://evil.example' });
  assert.deepEqual([foreign.statusCode, foreign.json<{ code: string }>().code], [403, 'foreign-origin']);
});

test('a live stream of a session is watched through another node, and not by other pages', async (t) => {
  const staged = await stage(t);
  const { hub, port } = staged;
  hub.begin(run());
  const { cookie } = await signedIn(staged.near);
  const open = (origin: string): WebSocket => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/node/node-2/websocket/gate`, { headers: { cookie }, origin });
    t.after(() => socket.terminate());
    return socket;
  };
  const own = open(`http://127.0.0.1:${port}`);
  await once(own, 'open');
  const closed = once(own, 'close').then(([code]) => code as number);
  // Lasts: the stream, which nobody ends.
  assert.equal(await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 200, 'open'))]), 'open');
  const [err] = (await once(open('http://evil.example'), 'error')) as [Error];
  assert.match(err.message, /403/);
});

test('a user who signs out at one node is signed out at the others', async (t) => {
  const staged = await stage(t);
  const headers = await signedIn(staged.near);
  const session = () => staged.far.inject({ url: '/api/session', headers });
  assert.equal((await session()).statusCode, 200);
  assert.equal((await staged.near.inject({ url: '/api/session', method: 'DELETE', headers })).statusCode, 204);
  assert.equal((await session()).statusCode, 401);
});

test('a node answers itself what is asked of it by its own name', async (t) => {
  const { near, port } = await stage(t);
  const ask = (url: string) => near.inject({ url, headers: as('viewer') });
  assert.equal((await ask('/node/node-1/api/cameras')).json<{ elsewhere: number }>().elsewhere, 0);
  assert.equal((await ask('/node/node%2D1/api/cameras?x=')).statusCode, (await ask('/api/cameras?x=')).statusCode);
  const moved = await ask('/node/node-1/api/cameras/yard');
  assert.equal(moved.statusCode, 307);
  assert.match(String(moved.headers.location), /^\/node\/node-2\/api\/cameras\/yard\?/);
  assert.equal((await ask('/node/node-1/node/node-2/api/cameras')).statusCode, 404, 'is not passed on again');
  const socket = new WebSocket(`ws://127.0.0.1:${port}/node/node-1/websocket/nowhere?access_token=viewer`);
  const [code] = (await once(socket, 'close')) as [number];
  assert.equal(code, 4404);
});

test('a link opens its address through any node, and follows redirects', async (t) => {
  const { near, far } = await stage(t);
  const link = async (headers: Record<string, string>, path: string): Promise<string> =>
    (await near.inject({ method: 'POST', url: '/api/links', headers, payload: { path } })).json<{ url: string }>().url;
  const code = async (app: FastifyInstance, url: string): Promise<string> =>
    (await app.inject({ url })).json<{ code: string }>().code;
  for (const headers of [as('viewer'), await signedIn(near)]) {
    // The camera is known there and has made no picture: only a caller with the right to see it gets this answer.
    const url = await link(headers, '/node/node-2/api/cameras/gate/thumbnail');
    assert.equal(await code(near, url), 'nothing-recorded');
    assert.equal(await code(far, url.replace('/node/node-2', '')), 'nothing-recorded', 'a link is not for one node');
    assert.equal(await code(near, url.replace('gate', 'dock')), 'unauthorized');
    const moved = await near.inject({ url: await link(headers, '/api/cameras/yard/thumbnail') });
    const [, path = ''] = /^http:\/\/node-2:9997(.*)$/.exec(String(moved.headers.location)) ?? [];
    assert.deepEqual([moved.statusCode, await code(far, path)], [307, 'unknown-camera']);
    assert.equal(await code(far, path.replace('assigned=1', 'assigned=2')), 'unauthorized');
  }
});

test('an answer that breaks off is counted as broken, and not one that its caller does not want any more', async (t) => {
  const registry = new Registry();
  const bodies: PassThrough[] = [];
  const peers = {
    request: async (_nodeId: string, { signal }: PeerRequest) => {
      const body = new PassThrough();
      bodies.push(body);
      body.write('the beginning');
      signal?.addEventListener('abort', () => body.destroy(signal.reason as Error));
      return { status: 200, headers: {}, body };
    },
  } as unknown as PeerSender;
  const relayMetrics = new RelayMetrics(registry);
  const { app } = await build(t, { auth, cluster: clusterOf('node-1'), peers, relayMetrics });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const leaving = new AbortController();
  const begin = async (signal?: AbortSignal) => {
    const url = `http://127.0.0.1:${port}/node/node-2/api/cameras`;
    const { body } = await fetch(url, { headers: as('viewer'), ...(signal && { signal }) });
    const reader = body!.getReader();
    await reader.read();
    return reader;
  };
  const counted = async () =>
    ((await registry.getSingleMetric('kube_nvr_relay_requests_total')?.get())?.values ?? []).map(
      ({ labels, value }) => `${labels['result']} ${value}`,
    );
  const wanted = await begin();
  bodies[0]?.destroy(new Error('the connection broke'));
  await assert.rejects(wanted.read());
  await until('it is counted', async () => (await counted()).join() === 'broken 1');
  const left = await begin(leaving.signal);
  leaving.abort();
  await assert.rejects(left.read());
  await until('it is counted, too', async () => (await counted()).join() === 'broken 1,answered 1');
});
