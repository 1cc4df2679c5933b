import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { until } from '../../test/support/until.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import { openCameraLogins } from './kept-logins.ts';

const place = { kind: 'rtsp', host: '10.0.0.9', port: 554 } as const;
const login = { username: 'user', password: 'secret' };

function stage(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'kept-logins-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const workDir = join(directory, 'work', '/');
  const file = join(directory, 'work', 'camera-logins.json');
  const open = () => openCameraLogins({ fs: nodeFileSystem, workDir, clock: new VirtualClock(), log: silentLog });
  const written = () => {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return '';
    }
  };
  return { file, open, written };
}

test('how a camera took its login outlives the process, without user and password, for the owner of the file only', async (t) => {
  const { file, open, written } = stage(t);
  const logins = await open();
  logins.at(place, login).accepted('Digest');
  logins.at({ ...place, port: 555 }, login).ledToTls();
  await until('both are written', () => written().includes(':555'));
  assert.doesNotMatch(written(), /user|secret/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const next = await open();
  assert.equal(next.at(place, login).better, 'Digest');
  assert.equal(next.at({ ...place, port: 555 }, login).better, 'TLS');
  assert.equal(next.at({ ...place, port: 556 }, login).better, undefined);
});

test('a damaged file is learned again, and so is a line in it that says nothing', async (t) => {
  const { file, open, written } = stage(t);
  (await open()).at(place, login).accepted('Digest');
  await until('it is written', () => written() !== '');
  writeFileSync(file, '{');
  assert.equal((await open()).at(place, login).better, undefined);
  writeFileSync(file, JSON.stringify({ places: { a: null, b: { took: 'x' }, 'rtsp 10.0.0.9:554': { took: 'TLS' } } }));
  assert.equal((await open()).at(place, login).better, 'TLS');
});
