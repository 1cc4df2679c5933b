// What playback tells the audit of who takes which footage.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { AuditEntry } from '../audit/entry.ts';
import { Visits } from '../audit/visits.ts';
import { VirtualClock } from '../../base/clock.ts';
import { stage } from './test-support.ts';

const TOKEN = 'guard-secret';
const headers = { authorization: `Bearer ${TOKEN}` };

async function setup(t: TestContext) {
  const lines: AuditEntry[] = [];
  const clock = new VirtualClock();
  const visits = new Visits({ audit: { write: (entry) => void lines.push(entry) }, views: true, clock });
  const sha256 = createHash('sha256').update(TOKEN).digest('hex');
  const tokens = [{ name: 'guard', role: 'viewer', sha256 } as const];
  const stand = await stage(t, { playback: { visits, auth: { mode: 'token', tokens } } });
  stand.camera.begin();
  await stand.camera.play(20, stand.fs);
  return { ...stand, lines, visits };
}

test('a player of HLS leaves one visit, with all bytes of playlist and parts', async (t) => {
  const { app, lines, visits, start } = await setup(t);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const base = app.listeningOrigin;
  const address = `${base}/hls/gate/index.m3u8?from=${start}&to=${start + 20}`;
  const playlist = await (await fetch(address, { headers })).text();
  const parts = playlist.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  assert.ok(parts.length > 1);
  let bytes = playlist.length;
  for (const part of parts) {
    const answer = await fetch(new URL(part, base), { headers });
    bytes += (await answer.arrayBuffer()).byteLength;
  }
  assert.equal(lines.length, 1);
  await app.close();
  visits.close();
  const [first, last] = lines as [AuditEntry, AuditEntry];
  assert.deepEqual([first.what, first['phase'], first.caller, first['camera']], ['playback', 'start', 'guard', 'gate']);
  assert.deepEqual([last['phase'], last['requests']], ['end', parts.length + 1]);
  const taken = last['bytes'] as number;
  assert.ok(taken >= bytes && taken < bytes + 1_000 * (parts.length + 1), `${taken} of ${bytes}`);
  assert.doesNotMatch(JSON.stringify(lines), new RegExp(TOKEN));
});

test('a window leaves what was asked for; a look at nothing, and one without a right token, leave no visit', async (t) => {
  const { app, lines, start } = await setup(t);
  const window = `/window/gate.mp4?from=${start + 2}&to=${start + 8}`;
  assert.equal((await app.inject({ url: window, headers })).statusCode, 200);
  assert.equal((await app.inject({ url: window })).statusCode, 401);
  assert.equal((await app.inject({ url: '/window/dock.mp4?from=1&to=2', headers })).statusCode, 404);
  const time = (seconds: number): string => new Date(seconds * 1000).toISOString();
  assert.deepEqual(
    lines.map(({ what, camera, from, to }) => [what, camera, from, to]),
    [['window', 'gate', time(start + 2), time(start + 8)]],
  );
});
