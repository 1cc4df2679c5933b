// Requests to a node through another one: the API and its WebSockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { silentLog } from '../../base/log.ts';
import { MemoryBudget } from '../../base/memory-budget.ts';
import { Members } from '../../test/support/members.ts';
import { archiveStatus, as, build, cameraStatus, token } from '../api/test-support.ts';
import type { ClusterAccess } from '../api/cluster-access.ts';
import type { AuditEntry } from '../audit/entry.ts';
import { LiveHub } from '../live/hub.ts';
import { LiveLimits } from '../live/limits.ts';
import { FRAME_TICKS, run, SampleMaker } from '../live/test-support.ts';

const clusterOf = (nodeId: string): ClusterAccess =>
  ({
    nodeId,
    ownerOf: () => undefined,
    holdersOf: () => [],
    footageHolders: async () => [],
    others: () => new Map(),
    origins: () => [],
    playbackOrigins: () => [],
    places: () => [{ nodeId: 'node-1', url: 'http://node-1:9997' }],
  }) as unknown as ClusterAccess;

const auth = {
  mode: 'token',
  tokens: [token('viewer'), token('operator'), token('admin'), { ...token('viewer', 'porter'), cameras: ['yard'] }],
} as const;

/** node-1, which listens to clients, and node-2, which has the camera gate. */
async function stage(t: TestContext) {
  const members = await Members.open(t);
  const audited: AuditEntry[] = [];
  const far = await build(t, { auth, cluster: clusterOf('node-2') });
  const hub = new LiveHub({
    cameraId: 'gate',
    limits: new LiveLimits({}, new MemoryBudget(64 * 1024 ** 2)),
    clock: far.clock,
    log: silentLog,
  });
  far.cameras.push({ status: cameraStatus(), archive: archiveStatus(), live: hub });
  await members.listen('node-2', { api: far.app, playback: far.app });
  const near = await build(t, {
    auth,
    cluster: clusterOf('node-1'),
    peers: await members.requestsOf('node-1'),
    audit: { sink: { write: (entry) => void audited.push(entry) } },
  });
  await near.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = near.app.server.address() as AddressInfo;
  return { members, near: near.app, far: far.app, hub, port, audited };
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

test('a live stream that the node refuses is closed with its code; without a token none is opened', async (t) => {
  const { port } = await stage(t);
  const refused = new WebSocket(`ws://127.0.0.1:${port}/node/node-2/websocket/gate?access_token=porter`);
  const [code] = (await once(refused, 'close')) as [number];
  assert.equal(code, 4404);
  const unknown = new WebSocket(`ws://127.0.0.1:${port}/node/node-2/websocket/gate`);
  const [err] = (await once(unknown, 'error')) as [Error];
  assert.match(err.message, /401/);
});

test('a node that is gone is named, soon', async (t) => {
  const { near, members } = await stage(t);
  await members.kill('node-2');
  const startedMs = performance.now();
  const answer = await near.inject({ url: '/node/node-2/api/cameras', headers: as('viewer') });
  assert.ok(performance.now() - startedMs < 4_000);
  assert.deepEqual([answer.statusCode, answer.json<{ code: string }>().code], [503, 'node-away']);
  assert.equal(answer.headers['retry-after'], '5');
});
