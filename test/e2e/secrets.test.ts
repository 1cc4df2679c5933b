// Passwords and tokens go to cameras and are compared; they come out nowhere: a whole run, and all that it put out.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { WebSocket } from 'ws';
import { startCamera, type Camera } from '../camera/camera.ts';
import type { Challenge } from '../camera/credentials.ts';
import { startStillCamera } from '../camera/still-camera.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const run = promisify(execFile);

const TOKEN = 'token-Zq7-very-secret';
const PASSWORDS = {
  digest: 'Dg%41:p@ss/#1',
  basic: 'Bs "quoted" p@ss',
  sha256: 'Sh2-p&ss=ü',
  wrong: 'Wr0ng-p@ss',
  gone: 'G0ne-p@ss',
};
type Name = keyof typeof PASSWORDS;

const CHALLENGES: Readonly<Record<Name, Challenge>> = {
  digest: { scheme: 'digest' },
  sha256: { scheme: 'digest', algorithm: 'SHA-256', qop: 'auth' },
  basic: { scheme: 'basic' },
  wrong: { scheme: 'basic' },
  gone: { scheme: 'digest' },
};

/** All the ways in which a secret could be written. */
function spellings(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  return [secret, encodeURIComponent(secret), encodeURI(secret), json, JSON.stringify(json).slice(1, -1)];
}

const SECRETS = new Map<string, string>();
for (const [name, password] of Object.entries(PASSWORDS)) {
  for (const spelling of spellings(password)) SECRETS.set(spelling, name);
  // As in the Authorization header of Basic.
  SECRETS.set(Buffer.from(`user-${name}:${password}`).toString('base64').replace(/=+$/, ''), `${name} (Basic)`);
}
for (const spelling of spellings(TOKEN)) SECRETS.set(spelling, 'token');

function assertClean(where: string, text: string): void {
  for (const [spelling, name] of SECRETS) {
    const at = text.indexOf(spelling);
    assert.ok(at < 0, `${where} holds the secret of ${name}: …${text.slice(Math.max(0, at - 200), at)}…`);
  }
}

/** Close code and reason of a WebSocket, or of the refusal before it. */
function closing(url: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url);
    socket.on('unexpected-response', (_, response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('end', () => resolve(`${response.statusCode} ${body}`));
    });
    socket.on('message', () => socket.close());
    socket.on('close', (code, reason) => resolve(`${code} ${reason.toString()}`));
    socket.on('error', () => {});
  });
}

test('secrets: no password or token in logs, metrics, answers, files or process arguments', async (t) => {
  const directory = workspace(t);
  const cameras = new Map<Name, Camera>();
  t.after(() => Promise.all([...cameras.values()].map((camera) => camera.close())));
  for (const name of ['digest', 'basic', 'sha256', 'wrong', 'gone'] as const) {
    const credentials = {
      username: `user-${name}`,
      password: name === 'wrong' ? 'another' : PASSWORDS[name],
      challenges: [CHALLENGES[name]],
    };
    cameras.set(name, await startCamera({ credentials, pace: 'realtime' }));
  }
  const sourceOf = (name: Name): string => {
    const login = `user-${name}:${encodeURIComponent(PASSWORDS[name])}`;
    return cameras.get(name)!.url.replace('://', `://${login}@`);
  };
  // Still images at addresses with the login in them: one camera answers, one refuses, nobody listens at the others.
  await using images = await startStillCamera({
    credentials: { username: 'user-digest', password: PASSWORDS.digest, challenges: [CHALLENGES.digest] },
  });
  const snapshotOf = (name: Name): string => {
    const url = name === 'digest' || name === 'wrong' ? images.url : 'http://127.0.0.1:1/snap.jpg';
    return url.replace('://', `://user-${name}:${encodeURIComponent(PASSWORDS[name])}@`);
  };
  const config = {
    log: { level: 'debug', directory: join(directory, 'logs') },
    auth: {
      mode: 'token',
      tokens: [{ name: 'ops', role: 'admin', sha256: createHash('sha256').update(TOKEN).digest('hex') }],
    },
    archive: { segmentDuration: '2s' },
    cameras: [...cameras.keys()].map((id) => ({
      id,
      source: sourceOf(id),
      preview: { source: sourceOf(id) },
      snapshot: snapshotOf(id),
    })),
  };
  await cameras.get('gone')!.close();
  await using recorder = await RecorderProcess.start({ directory, config });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const get = async (path: string, init: RequestInit = { headers }): Promise<string> => {
    const answer = await fetch(new URL(path, recorder.url), { redirect: 'manual', ...init });
    return `${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}`;
  };

  await until('three cameras record, two fail', async () => {
    const answer = await fetch(`${recorder.url}/api/cameras`, { headers });
    const text = await answer.text();
    return (text.match(/"recording"/g) ?? []).length >= 3 && (text.match(/"retrying"/g) ?? []).length >= 2;
  });
  const paths = [
    '/',
    '/api/health/live',
    '/api/health/ready',
    '/api/metrics',
    '/api/cameras',
    '/openapi.json',
    '/no/such/page',
    '/api/cameras/nobody',
    ...[...cameras.keys()].flatMap((id) => [
      `/api/cameras/${id}`,
      `/api/archive/${id}/segments`,
      `/api/archive/${id}/segments?from=x`,
      `/api/archive/${id}/current`,
      `/api/cameras/${id}/snapshot`,
      `/api/cameras/${id}/thumbnail`,
    ]),
  ];
  for (const path of paths) {
    assertClean(`GET ${path}`, await get(path));
    assertClean(`GET ${path} without a token`, await get(path, {}));
    const separator = path.includes('?') ? '&' : '?';
    assertClean(`GET ${path} with access_token`, await get(`${path}${separator}access_token=${TOKEN}`, {}));
    const basic = `Basic ${Buffer.from(`x:${TOKEN}`).toString('base64')}`;
    assertClean(`GET ${path} with Basic`, await get(path, { headers: { authorization: basic } }));
    assertClean(`GET ${path} with a wrong token`, await get(path, { headers: { authorization: `Bearer ${TOKEN}x` } }));
  }
  assert.ok(images.served > 0);
  // Calls that leave a line in the audit.
  for (const what of ['stop', 'start']) {
    const init = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{"id":"gone"}' };
    assertClean(`POST /cameras/${what}`, await get(`/cameras/${what}?access_token=${TOKEN}`, init));
    assertClean(`POST /cameras/${what} with a wrong token`, await get(`/cameras/${what}`, { ...init, headers: {} }));
  }
  await Promise.all(
    [...cameras.keys(), 'nobody'].map(async (id) => {
      const address = `${recorder.url.replace('http', 'ws')}/websocket/${id}`;
      // A camera that records sends its first message and is left; the others say, after a while, why not.
      assertClean(`WebSocket ${id}`, await closing(`${address}?access_token=${TOKEN}`));
      assertClean(`WebSocket ${id} without a token`, await closing(address));
      assertClean(`preview of ${id}`, await closing(`${address}?quality=preview&access_token=${TOKEN}`));
      assertClean(`GET /api/cameras/${id} after its preview`, await get(`/api/cameras/${id}`));
    }),
  );
  const metrics = await (await fetch(recorder.metricsUrl, { headers })).text();
  assert.match(metrics, /digest/, 'metrics name the camera');
  assertClean('metrics', metrics);
  const { stdout: processes } = await run('ps', ['-eww', '-o', 'args']);
  assert.ok(processes.includes(MAIN));
  assertClean('ps', processes);
  // A mistake in a reload must not quote the value.
  recorder.rewriteConfig({
    ...config,
    cameras: [{ id: 'digest', source: sourceOf('digest').replace('rtsp:', 'ftp:') }],
  });
  recorder.child.signal('SIGHUP');
  await until('the mistake is logged', () => recorder.child.output.includes('cameras[0].source'));

  assert.equal((await recorder.stop()).code, 0);
  assert.ok(recorder.child.output.length > 500, 'there is a log to search');
  assertClean('the log', recorder.child.output);
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  assert.ok(files.some((file) => file.endsWith('.mp4')));
  assert.ok(files.some((file) => file.startsWith(join(directory, 'logs'))));
  assert.match(readFileSync(join(directory, 'logs', 'audit.log'), 'utf8'), /"camera":"gone"/);
  for (const file of files) {
    if (file !== recorder.configFile) assertClean(file, readFileSync(file, 'latin1'));
  }
});
