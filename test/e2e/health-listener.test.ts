// The listener for probes: it answers what they ask, and nothing else, whatever happens to the API.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { freePorts, RecorderProcess } from '../support/recorder-process.ts';
import { workspace } from '../support/workspace.ts';
import { until } from '../support/until.ts';

/** More than one address may have of the API's places. */
const STRANGERS = 1_100;

test('probes are answered in plain HTTP while the API speaks TLS and strangers hold all their places', async (t) => {
  const [port] = await freePorts(1);
  const config = { tls: 'auto', health: { listen: `127.0.0.1:${port}` }, auth: { mode: 'token' } };
  const recorder = await RecorderProcess.start({ directory: workspace(t), config, waitUntilReady: false });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  const ask = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
  await until('it is ready', async () => (await ask('/api/health/ready')).ok);

  const [host = '', api = ''] = recorder.url.replace(/^https?:\/\//, '').split(':');
  const sockets = Array.from({ length: STRANGERS }, () => connect(Number(api), host).on('error', () => {}));
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  await until('all have asked', () => sockets.every(({ connecting }) => !connecting));
  assert.deepEqual(await (await ask('/api/health/live')).json(), { status: 'live' });

  const headers = { authorization: 'Bearer whatever' };
  const ready = (await (await fetch(`http://127.0.0.1:${port}/api/health/ready`, { headers })).json()) as object;
  assert.deepEqual(Object.keys(ready).sort(), ['status', 'timestamp', 'version']);
  for (const path of ['/', '/api/cameras', '/metrics', '/openapi.json']) assert.equal((await ask(path)).status, 404);
});
