import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Authenticator } from '../../http/auth.ts';
import { silentLog } from '../../../base/log.ts';
import { openFootage } from '../../footage/open.ts';
import { openPlayback } from '../../playback/app.ts';
import { resolved, stage } from '../../playback/test-support.ts';
import { build, token } from '../test-support.ts';

test('a player with a cookie plays everything from the address of the API, and no address holds a secret', async (t) => {
  const { archive, camera, clock, fs, root, start } = await stage(t);
  camera.begin();
  await camera.play(20, fs);
  camera.end();
  await fs.idle();
  const auth = { mode: 'token' as const, tokens: [token('viewer')] };
  const deps = {
    version: '1.2.3',
    footage: openFootage({ recordPath: root, archive, clock, log: silentLog }),
    auth: new Authenticator(auth),
    clock,
    log: silentLog,
  };
  const { app } = await build(t, { auth, playback: { port: () => 1, routes: openPlayback(deps).routes } });
  const signedIn = await app.inject({ method: 'POST', url: '/api/session', payload: { token: 'viewer' } });
  const headers = { cookie: String(signedIn.headers['set-cookie']).split(';', 1)[0] ?? '' };
  const url = `/playback/hls/gate/index.m3u8?from=${start}&to=${start + 20}`;
  assert.equal((await app.inject(url)).statusCode, 401);
  const { body, statusCode } = await app.inject({ url, headers });
  assert.equal(statusCode, 200, body);
  const addresses = [...body.matchAll(/^[^#].*$|URI="(.*)"/gm)].map(([line, uri]) => uri ?? line);
  assert.ok(addresses.length > 3);
  for (const address of addresses) {
    assert.doesNotMatch(address, /[?]/);
    const path = resolved(address, url);
    assert.ok(path.startsWith('/playback/'), path);
    assert.equal((await app.inject({ url: path, headers })).statusCode, 200, path);
  }
  const window = `/playback/window/gate.mp4?from=${start}&to=${start + 10}`;
  assert.equal((await app.inject({ url: window, headers })).headers['content-type'], 'video/mp4');
});
