// A recorder among strangers: tokens and certificates change while it runs, and floods of connections do not reach what
// it is there for. Real processes, a real camera, real sockets.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import { startCamera, type Camera } from '../camera/camera.ts';
import { selfSignedCertificate } from '../camera/certificate.ts';
import { freePorts, RecorderProcess } from '../support/recorder-process.ts';
import { standstillsByWork } from '../support/standstills.ts';
import { stopwatch } from '../support/stopwatch.ts';
import { PATIENCE_MS, until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';
import { LONG } from '../support/variant.ts';

const token = (text: string, role = 'admin') => ({
  name: text,
  role,
  sha256: createHash('sha256').update(text).digest('hex'),
});

async function cameraOf(t: TestContext): Promise<Camera> {
  const camera = await startCamera({ pace: 'realtime' });
  t.after(() => camera.close());
  return camera;
}

const bearer = (text: string) => ({ headers: { authorization: `Bearer ${text}` } });

test('tokens come and go without a restart, and viewers with them', async (t) => {
  const camera = await cameraOf(t);
  const auth = (...tokens: string[]) => ({ auth: { mode: 'token', tokens: tokens.map((text) => token(text)) } });
  const cameras = [{ id: 'gate', source: camera.url }];
  const config = { ...auth('old', 'kept'), cameras };
  await using recorder = await RecorderProcess.start({ directory: workspace(t), config });
  const statusOf = async (text: string): Promise<number> =>
    (await fetch(`${recorder.url}/api/cameras`, bearer(text))).status;
  const watch = async (text: string): Promise<WebSocket> => {
    const socket = new WebSocket(`${recorder.url.replace('http', 'ws')}/websocket/gate?access_token=${text}`);
    t.after(() => socket.terminate());
    await once(socket, 'message');
    return socket;
  };
  const [leaving, staying] = [await watch('old'), await watch('kept')];
  const left = once(leaving, 'close', { signal: AbortSignal.timeout(PATIENCE_MS) });
  recorder.rewriteConfig({ ...auth('new', 'kept'), cameras });
  const elapsedMs = stopwatch(recorder.child.pid);
  const [code, reason] = (await left) as [number, Buffer];
  assert.equal(`${code} ${reason.toString()}`, '4401 the token is no longer valid');
  assert.ok(elapsedMs() < 5_000);
  assert.deepEqual([await statusOf('old'), await statusOf('new'), await statusOf('kept')], [401, 200, 200]);
  await once(staying, 'message');
  assert.equal(camera.connections.length, 1, 'the camera noticed nothing');
  assert.doesNotMatch(recorder.child.output, /changed settings need a restart/);
});

test('an address that guesses has to wait and is logged without the guess; tokens that were right before pass', async (t) => {
  const config = { auth: { mode: 'token', tokens: [token('right'), token('other')] } };
  await using recorder = await RecorderProcess.start({ directory: workspace(t), config });
  const guess = (i: number): Promise<Response> => fetch(`${recorder.url}/api/cameras`, bearer(`guess-${i}`));
  const statusOf = async (text: string) => (await fetch(`${recorder.url}/api/cameras`, bearer(text))).status;
  assert.equal(await statusOf('right'), 200);
  // At once: another one is allowed six seconds later.
  const answers = await Promise.all(Array.from({ length: 15 }, (_, i) => guess(i)));
  assert.deepEqual(
    answers.map(({ status }) => status).sort((a, b) => a - b),
    [...Array<number>(10).fill(401), ...Array<number>(5).fill(429)],
  );
  const limited = answers.find(({ status }) => status === 429) as Response;
  assert.match(limited.headers.get('retry-after') ?? '', /^[1-6]$/);
  assert.equal(((await limited.json()) as { code: string }).code, 'too-many-attempts');
  assert.deepEqual([await statusOf('right'), await statusOf('other')], [200, 429]);
  // Readiness tells a guesser no more.
  const ready = await fetch(`${recorder.url}/api/health/ready`, bearer('other'));
  assert.equal(((await ready.json()) as { checks?: object }).checks, undefined);
  const lines = recorder.child.output.split('\n').filter((line) => line.includes('a token was refused'));
  assert.equal(lines.length, 1, 'what follows within a minute is one line more');
  assert.match(lines[0] ?? '', /"address":"127\.0\.0\.1"/);
  assert.doesNotMatch(recorder.child.output, /guess-|"other"/);
});

test('where anyone may do everything, the start is refused on a network address, with file and key', async (t) => {
  const directory = workspace(t);
  const config = { listen: '0.0.0.0:0', auth: { mode: 'none' } };
  await using recorder = await RecorderProcess.start({ directory, config, waitUntilReady: false });
  await until('the recorder ends', () => recorder.child.ended);
  const expected = `recorder: ${recorder.configFile}:13:13: auth.mode: with none, anyone may do everything, but listen is 0.0.0.0:0: use a loopback address, or set auth.allowAnonymousNetwork: true\n`;
  assert.equal(recorder.child.output, expected);
});

interface Secure {
  readonly status: number;
  readonly name: string;
}

/** One request over TLS: its status, and the name in the certificate. */
function secure(url: string, text: string): Promise<Secure> {
  return new Promise((resolve, reject) => {
    const options = { ...bearer(text), rejectUnauthorized: false, agent: false } as const;
    const asked = request(url, options, (response) => {
      const { CN } = (response.socket as TLSSocket).getPeerCertificate().subject;
      response.resume().once('end', () => resolve({ status: response.statusCode ?? 0, name: String(CN) }));
    });
    asked.once('error', reject).end();
  });
}

test('with TLS every listener speaks nothing else, and follows its certificate while viewers look on', async (t) => {
  const directory = workspace(t);
  const camera = await cameraOf(t);
  const tls = { certificate: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
  const renew = (name: string): void => {
    const { cert, key } = selfSignedCertificate(name);
    writeFileSync(tls.key, key);
    writeFileSync(tls.certificate, cert);
  };
  renew('first');
  const [metricsPort] = await freePorts(1);
  const config = {
    tls,
    auth: { mode: 'token', tokens: [token('ops')] },
    metrics: { listen: `127.0.0.1:${metricsPort}`, requireToken: true },
    cameras: [{ id: 'gate', source: camera.url }],
  };
  await using recorder = await RecorderProcess.start({ directory, config, waitUntilReady: false });
  const api = recorder.url.replace('http', 'https');
  const urls = [
    `${api}/api/cameras`,
    `${recorder.playbackUrl.replace('http', 'https')}/hls/gate/index.m3u8?from=0&to=1`,
    recorder.metricsUrl.replace('http', 'https'),
  ];
  await until('the API answers', async () => (await secure(`${api}/api/health/ready`, 'ops')).status === 200);
  const live = new WebSocket(`${api.replace('https', 'wss')}/websocket/gate`, {
    ...bearer('ops'),
    rejectUnauthorized: false,
  });
  t.after(() => live.terminate());
  await once(live, 'message');
  const answers = (): Promise<Secure[]> => Promise.all(urls.map((url) => secure(url, 'ops')));
  const expected = (name: string): Secure[] => [200, 404, 200].map((status) => ({ status, name }));
  assert.deepEqual(await answers(), expected('first'));
  assert.equal((await secure(urls[2] as string, 'guess')).status, 401);
  renew('second');
  await until('the second certificate', async () => (await answers()).every(({ name }) => name === 'second'));
  assert.deepEqual(await answers(), expected('second'));
  await once(live, 'message');
  await assert.rejects(fetch(`${recorder.url}/api/cameras`), 'nothing answers plain HTTP');
});

test('a certificate that cannot be used stops the start, with file and key', async (t) => {
  const directory = workspace(t);
  const certificate = join(directory, 'tls.crt');
  writeFileSync(certificate, 'nonsense');
  const config = { tls: { certificate, key: certificate } };
  await using recorder = await RecorderProcess.start({ directory, config, waitUntilReady: false });
  await until('the recorder ends', () => recorder.child.ended);
  const expected = `recorder: ${recorder.configFile}:16:20: tls.certificate: ${certificate} is not a certificate in PEM\n`;
  assert.equal(recorder.child.output, expected);
});

interface CameraAnswer {
  readonly state: string;
  readonly frames: { readonly video: number; readonly lost_packets: number; readonly discarded: number };
}

/** Connections a flood is made of; the recorder has room for 4096 on the API and 512 on playback. */
const FLOOD = LONG ? 10_000 : 1_500;
const FLOOD_SECONDS = LONG ? 60 : 15;

test(`${FLOOD} connections that send nothing, or a byte a second, do not cost a picture`, async (t) => {
  const camera = await cameraOf(t);
  const config = { cameras: [{ id: 'gate', source: camera.url }], archive: { segmentDuration: '2s' } };
  await using recorder = await RecorderProcess.start({ directory: workspace(t), config });
  await recorder.untilRecording('gate');
  const status = async (): Promise<CameraAnswer> => (await recorder.get('/api/cameras/gate')) as CameraAnswer;
  const before = await status();
  const ports = [recorder.url, recorder.playbackUrl].map((url) => Number(new URL(url).port));

  const sockets: Socket[] = [];
  const counts = { refused: 0, failed: 0 };
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  const flood = (i: number): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(ports[i % 4 === 0 ? 1 : 0] as number, '127.0.0.1');
      sockets.push(socket);
      // Unread, the end of a connection is not noticed.
      socket.resume();
      socket.once('connect', resolve);
      socket.once('error', (error: NodeJS.ErrnoException) => {
        // This process may have too few file descriptors of its own.
        if (error.code === 'EMFILE') counts.failed++;
        resolve();
      });
      socket.once('close', () => counts.refused++);
      // Every second one is a slow loris: it goes on sending, and never ends.
      if (i % 2 === 0) socket.write('GET /api/cameras HTTP/1.1\r\nHost: a\r\nX-Slow: ');
    });
  const endMs = performance.now() + FLOOD_SECONDS * 1000;
  for (let i = 0; i < FLOOD; i += 100) {
    await Promise.all(Array.from({ length: Math.min(100, FLOOD - i) }, (_, j) => flood(i + j)));
  }
  while (performance.now() < endMs) {
    for (let i = 0; i < sockets.length; i += 2) if (sockets[i]?.writable) sockets[i]?.write('x');
    // Lasts: each of them sends a byte a second.
    await sleep(1_000);
  }
  t.diagnostic(
    `${sockets.length - counts.failed} connected, ${counts.refused} closed by the recorder, ${counts.failed} without a file descriptor`,
  );
  // Those of before have had their ten seconds; what is left of them is closed soon.
  await until('half of them are let go', () => counts.refused >= FLOOD / 2);
  const during = await status();
  for (const socket of sockets) socket.destroy();

  assert.equal(during.state, 'recording');
  assert.equal(camera.connections.length, 1, 'the camera was never left');
  assert.deepEqual([during.frames.lost_packets, during.frames.discarded], [0, 0]);
  assert.ok(during.frames.video > before.frames.video);
  // A machine that runs other tests may leave the recorder without a processor for seconds; its own work may not take them.
  assert.deepEqual(standstillsByWork(recorder.child.output), []);
  const now = Date.now() / 1000;
  const gaps = (await recorder.get(`/api/archive/gate/gaps?from=${now - 600}&to=${now}`)) as {
    gaps: { cause: string }[];
  };
  assert.deepEqual(
    gaps.gaps.filter(({ cause }) => !['connecting', 'starting', 'machine-frozen'].includes(cause)),
    [],
  );
});

test('strangers with 400 connections to a recorder that may open 256 files cost no picture', async (t) => {
  const camera = await cameraOf(t);
  const config = { cameras: [{ id: 'gate', source: camera.url }], archive: { segmentDuration: '2s' } };
  const through = ['/bin/sh', '-c', 'ulimit -n 256 && exec "$@"', 'sh'];
  await using recorder = await RecorderProcess.start({ directory: workspace(t), config, through });
  await recorder.untilRecording('gate');
  const ports = [recorder.url, recorder.playbackUrl].map((url) => Number(new URL(url).port));
  const sockets = new Set<Socket>();
  let tried = 0;
  let isOver = false;
  t.after(() => {
    isOver = true;
    for (const socket of sockets) socket.destroy();
  });
  // One that is closed comes again, a little later.
  const come = (i: number): void => {
    if (isOver) return;
    tried++;
    const socket = connect(ports[i % 2] as number, '127.0.0.1').resume();
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => {
      sockets.delete(socket);
      setTimeout(() => come(i), 100).unref();
    });
  };
  for (let i = 0; i < 400; i++) come(i);
  await until('many are let go', () => tried > 800);
  await recorder.untilMoreFiles(3, 'gate');
  const now = Date.now() / 1000;
  isOver = true;
  for (const socket of sockets) socket.destroy();
  const answer = await until('it answers again', () =>
    recorder.get(`/api/archive/gate/gaps?from=${now - 600}&to=${now}`),
  );
  const { gaps } = answer as { gaps: { cause: string }[] };
  assert.deepEqual(
    gaps.filter(({ cause }) => !['starting', 'machine-frozen'].includes(cause)),
    [],
  );
  assert.doesNotMatch(recorder.child.output, /EMFILE/);
});

/** More than the playback listener has places for, from a hundred addresses. */
const STRANGERS = 800;

for (const { name, tls } of [
  { name: 'that are used and kept, over plain HTTP', tls: false },
  { name: 'whose TLS handshake never ends', tls: true },
]) {
  test(`strangers with connections ${name} keep no one out: all are answered, and places become free again`, async (t) => {
    const directory = workspace(t);
    const files = { certificate: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
    const { cert, key } = selfSignedCertificate('recorder');
    writeFileSync(files.key, key);
    writeFileSync(files.certificate, cert);
    const config = { ...(tls ? { tls: files } : {}), auth: { mode: 'token', tokens: [token('ops')] } };
    await using recorder = await RecorderProcess.start({ directory, config, waitUntilReady: !tls });
    const live = `${tls ? recorder.url.replace('http', 'https') : recorder.url}/api/health/live`;
    const isLive = async (): Promise<boolean> => (await (tls ? secure(live, '') : fetch(live))).status === 200;
    await until('the recorder answers', isLive);
    const { port } = new URL(recorder.playbackUrl);
    const sockets: Socket[] = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    for (let i = 0; i < STRANGERS; i++) {
      const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: `127.0.1.${1 + (i % 100)}` });
      socket.on('error', () => {}).resume();
      sockets.push(socket);
      if (!tls) socket.write('GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n');
      if (i % 50 === 49) await once(socket, 'connect');
    }
    const path = '/hls/gate/index.m3u8?from=0&to=1';
    const ask = async (text: string): Promise<number> =>
      tls
        ? (await secure(`https://127.0.0.1:${port}${path}`, text)).status
        : (await fetch(`${recorder.playbackUrl}${path}`, bearer(text))).status;
    for (let i = 0; i < 10; i++) assert.equal(await ask('ops'), 404, 'there is no camera gate, and that is said');
    assert.equal(await ask('guess'), 401);
    assert.ok(await isLive());
    if (!tls) return;
    await until('the handshakes were given up', () => sockets.every(({ closed }) => closed));
  });
}
