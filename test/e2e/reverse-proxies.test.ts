// The configurations of docs/reverse-proxies.md before a recorder: what a page, a player and a script need passes through.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { WebSocket } from 'ws';
import { sha256 } from '../../base/new-token.ts';
import { startCamera } from '../camera/camera.ts';
import { blocks } from '../support/blocks.ts';
import { Child } from '../support/child.ts';
import { freePorts, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const PAGE = blocks('docs/reverse-proxies.md');
const NAME = 'nvr.example';
const WRONG_TOKENS = 40;

interface Proxy {
  /** How the program starts with the text of the page. */
  command(text: string, directory: string, port: number): readonly [string, ...string[]];
}

const PROXIES: Readonly<Record<string, Proxy>> = {
  nginx: {
    command: (text, directory, port) => {
      const file = join(directory, 'nginx.conf');
      const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (kind) => `${kind}_temp_path ${join(directory, kind)};`,
      );
      writeFileSync(
        file,
        // Where it is started as root, its workers keep that right: the directory of the test is of nobody else.
        `${process.getuid?.() === 0 ? 'user root;' : ''} pid ${join(directory, 'nginx.pid')}; daemon off; master_process off; events {}
http { access_log off; ${own.join(' ')} ${text.replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)} }\n`,
      );
      return ['nginx', '-e', 'stderr', '-p', directory, '-c', file];
    },
  },
  caddy: {
    command: (text, directory, port) => {
      const file = join(directory, 'Caddyfile');
      const site = text.replace(`${NAME} {`, `${NAME}:${port} {\n  bind 127.0.0.1`);
      writeFileSync(file, `{\n  admin off\n  auto_https disable_redirects\n}\n${site}`);
      return ['caddy', 'run', '--adapter', 'caddyfile', '--config', file];
    },
  },
};

interface Asked {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The client's own address. */
  readonly from?: string;
}

/** A site whose proxy has the configuration of the page in this language. */
async function site(t: TestContext, language: string) {
  const directory = workspace(t);
  const camera = await startCamera({ pace: 'realtime' });
  t.after(() => camera.close());
  const ofPage = parse(PAGE.find((block) => block.language === 'yaml')?.text ?? '') as { trustedProxies: string[] };
  const token = { name: 'guard', role: 'viewer', sha256: sha256('guard').toString('hex') };
  const config = {
    trustedProxies: ofPage.trustedProxies,
    archive: { segmentDuration: '1s' },
    auth: { mode: 'token', tokens: [token] },
    cameras: [{ id: 'gate', source: camera.url }],
  };
  const recorder = await RecorderProcess.start({ directory, config });
  t.after(() => recorder.stop());
  const proxies = join(directory, 'proxy');
  mkdirSync(proxies);
  const [certificate, key] = [join(proxies, 'certificate.pem'), join(proxies, 'key.pem')];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'].concat([
      '-subj',
      `/CN=${NAME}`,
      '-addext',
      `subjectAltName=DNS:${NAME}`,
      '-keyout',
      key,
      '-out',
      certificate,
    ]),
    { stdio: 'pipe' },
  );
  const [port = 0] = await freePorts(1);
  const text = (PAGE.find((block) => block.language === language)?.text ?? '')
    .replaceAll('/etc/ssl/nvr.example.pem', certificate)
    .replaceAll('/etc/ssl/nvr.example.key', key)
    .replaceAll('127.0.0.1:9997', recorder.url.replace('http://', ''));
  const [program, ...args] = (PROXIES[language] as Proxy).command(text, proxies, port);
  const child = new Child(program, args, { cwd: proxies, env: { ...process.env, HOME: proxies } });
  t.after(() => child[Symbol.asyncDispose]());
  const client = (from = '127.0.0.1') =>
    ({
      host: '127.0.0.1',
      port,
      servername: NAME,
      localAddress: from,
      rejectUnauthorized: false,
      agent: false,
    }) as const;
  /** Resolves when an answer begins. */
  const open = async ({ path, method = 'GET', headers = {}, body, from }: Asked): Promise<IncomingMessage> => {
    const asked = request({ ...client(from), path, method, headers: { host: `${NAME}:${port}`, ...headers } });
    asked.end(body);
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    return answer;
  };
  const ask = async (
    asked: Asked,
  ): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: Buffer }> => {
    const answer = await open(asked);
    const parts: Buffer[] = [];
    for await (const part of answer) parts.push(part as Buffer);
    return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) };
  };
  const live = (headers: Readonly<Record<string, string>>): WebSocket =>
    new WebSocket(`wss://127.0.0.1:${port}/websocket/gate`, {
      ...client(),
      headers: { host: `${NAME}:${port}`, ...headers },
    });
  await until(`${program} answers: ${child.output}`, async () => {
    assert.equal(child.ended, false, child.output);
    return (await ask({ path: '/api/health/ready' }).catch(() => undefined))?.status === 200;
  });
  return { open, ask, live };
}

const AUTHORIZED = { authorization: 'Bearer guard' };

for (const language of Object.keys(PROXIES)) {
  const skip = spawnSync(language, [language === 'nginx' ? '-v' : 'version']).error && `${language} is not installed`;

  test(`${language}: sign-in, live pictures, events as they happen, and parts of files pass`, { skip }, async (t) => {
    const { open, ask, live } = await site(t, language);
    const signedIn = await ask({
      path: '/api/session',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: 'guard' }),
    });
    assert.ok((signedIn.status ?? 500) < 300, String(signedIn.body));
    const cookies = signedIn.headers['set-cookie'] ?? [];
    assert.ok(cookies.length > 0 && cookies.every((cookie) => /; Secure/.test(cookie)), String(cookies));

    const socket = live(AUTHORIZED);
    t.after(() => socket.terminate());
    const [message] = (await once(socket, 'message')) as [Buffer];
    assert.equal(message.subarray(4, 8).toString(), 'ftyp');

    // The answer goes on: what comes was not held back until its end.
    const events = await open({ path: '/api/events?last_event_id=0', headers: AUTHORIZED });
    t.after(() => events.destroy());
    let told = '';
    events.setEncoding('utf8').on('data', (text: string) => (told += text));
    await until('an event has come', () => told.includes('camera.state'));

    interface Listed {
      readonly archive: readonly { readonly filename: string; readonly is_open: boolean }[];
    }
    const closed = await until('a closed segment', async () => {
      const { body } = await ask({ path: '/api/archive/gate/segments', headers: AUTHORIZED });
      return (JSON.parse(String(body)) as Listed).archive.find((segment) => !segment.is_open);
    });
    const part = await ask({
      path: `/playback/${closed.filename}`,
      headers: { ...AUTHORIZED, range: 'bytes=4-7' },
    });
    assert.deepEqual([part.status, String(part.body)], [206, 'ftyp']);
  });

  test(
    `${language}: who guesses tokens is held off, and nobody else, whatever they say of their address`,
    { skip },
    async (t) => {
      const { ask } = await site(t, language);
      const guess = (from: string, n: number) =>
        ask({
          path: '/api/cameras',
          from,
          headers: {
            authorization: `Bearer wrong-${n}`,
            'x-forwarded-for': `10.1.1.${n}`,
            forwarded: `for=10.1.1.${n}`,
          },
        });
      let refused = 0;
      for (let n = 0; n < WRONG_TOKENS; n++) if ((await guess('127.0.0.2', n)).status === 429) refused++;
      assert.ok(refused > 0, 'a guess is held off although each came with another X-Forwarded-For');
      assert.equal((await guess('127.0.0.3', 1)).status, 401, 'another client may be wrong once');
      assert.equal((await ask({ path: '/api/cameras', headers: AUTHORIZED })).status, 200);
    },
  );
}
