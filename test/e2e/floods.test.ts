// Floods of requests that go on, from strangers and from a caller with a token: recording goes on, a guard signs in, an operator watches.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { startCamera } from '../camera/camera.ts';
import { hashOf } from '../../recorder/api/test-support.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { standstillsByWork } from '../support/standstills.ts';
import { until } from '../support/until.ts';
import { floodOfViewer } from '../support/viewer-flood.ts';
import { workspace } from '../support/workspace.ts';

const token = (name: string, role: string, cameras?: readonly string[]) => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
  ...(cameras && { cameras }),
});

interface Ask {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** The address of the caller. */
  readonly from?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** Over a connection of its own; rejects when that is closed. */
async function ask(url: string, { method = 'GET', headers = {}, body, from = '127.0.0.1' }: Ask = {}): Promise<Answer> {
  const sent = request(url, {
    method,
    localAddress: from,
    agent: false,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
  });
  sent.end(body && JSON.stringify(body));
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  await once(answer, 'end');
  return { status: answer.statusCode ?? 0, headers: answer.headers };
}

const bearer = (name: string): Record<string, string> => ({ authorization: `Bearer ${name}` });

/** A camera that is recorded, and what was lost of it since. */
async function recorded(t: TestContext) {
  const camera = await startCamera({ pace: 'realtime' });
  t.after(() => camera.close());
  const config = {
    auth: {
      mode: 'token',
      tokens: [token('viewer', 'viewer', ['gate']), token('operator', 'operator'), token('admin', 'admin')],
      users: [{ name: 'guard', role: 'viewer', password: hashOf('correct horse') }],
    },
    cameras: [{ id: 'gate', source: camera.url }],
    archive: { segmentDuration: '2s' },
  };
  const recorder = await RecorderProcess.start({ directory: workspace(t), config });
  const get = async (path: string): Promise<unknown> =>
    (await fetch(recorder.url + path, { headers: bearer('operator') })).json();
  const status = async () =>
    (await get('/api/cameras/gate')) as {
      readonly state: string;
      readonly frames: { readonly lost_packets: number; readonly discarded: number };
    };
  await until('the camera is recorded', async () => (await status()).state === 'recording');
  const sinceSeconds = Date.now() / 1000;
  return {
    recorder,
    /** Fails if the camera was left, or if a picture is missing since it was recorded first. */
    assertWhole: async (): Promise<void> => {
      const { state, frames } = await status();
      assert.equal(state, 'recording');
      assert.equal(camera.connections.length, 1, 'the camera was never left');
      assert.deepEqual([frames.lost_packets, frames.discarded], [0, 0]);
      // A machine that runs other tests may leave the recorder without a processor for seconds; its own work may not take them.
      assert.deepEqual(standstillsByWork(recorder.child.output), []);
      const { gaps } = (await get(`/api/archive/gate/gaps?from=${sinceSeconds - 60}&to=${Date.now() / 1000}`)) as {
        readonly gaps: readonly { readonly cause: string }[];
      };
      assert.deepEqual(
        gaps.filter(({ cause }) => !['connecting', 'starting', 'machine-frozen'].includes(cause)),
        [],
      );
    },
  };
}

test('requests of a viewer that are as expensive as can be cost no camera a picture, and what is refused is told', async (t) => {
  const { recorder, assertWhole } = await recorded(t);
  await using _ = recorder;
  const answers = await floodOfViewer({ url: recorder.url, token: 'viewer', cameraId: 'gate', times: 100 });
  t.diagnostic(JSON.stringify(answers));
  assert.deepEqual(
    Object.keys(answers).filter((answer) => answer.startsWith('5') && !answer.startsWith('503 ')),
    [],
    JSON.stringify(answers),
  );
  const refused = answers['429 too-much-work'] ?? 0;
  const metrics = await (await fetch(recorder.metricsUrl)).text();
  const counted = [...metrics.matchAll(/^kube_nvr_requests_over_budget_total\{.*\} (\d+)$/gm)].map(([, n]) =>
    Number(n),
  );
  assert.equal(
    counted.reduce((sum, n) => sum + n, 0),
    refused,
  );
  const audit = await (await fetch(`${recorder.url}/api/audit?what=over-budget`, { headers: bearer('admin') })).json();
  const { lines } = audit as { readonly lines: readonly { readonly caller: string }[] };
  assert.deepEqual([...new Set(lines.map(({ caller }) => caller))], refused > 0 ? ['viewer'] : []);
  await assertWhole();
});

const MIB = 2 ** 20;
/** Bytes of the recorder's memory outside of V8's heap: of sockets, parsers and passwords. */
async function besidesHeap({ metricsUrl }: RecorderProcess): Promise<number> {
  const metrics = await (await fetch(metricsUrl)).text();
  const valueOf = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
  return valueOf('process_resident_memory_bytes') - valueOf('nodejs_heap_size_total_bytes');
}

const key = Buffer.alloc(16, 7).toString('base64');
/** Requests that do not end: a body, headers, and the close of a WebSocket that was refused. */
const UNENDING = [
  'POST /api/session HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{',
  'GET /api/cameras HTTP/1.1\r\nHost: a\r\nX-Slow: ',
  `GET /websocket/gate HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
];
/** More than the API has places for; from more addresses than it takes to fill them. */
const STRANGERS = 4_500;
const ADDRESSES = 100;

test('strangers whose requests do not end keep no guard from signing in, and no operator from watching', async (t) => {
  const { recorder, assertWhole } = await recorded(t);
  await using _ = recorder;
  const before = await besidesHeap(recorder);
  const port = Number(new URL(recorder.url).port);
  const open = new Set<Socket>();
  let opened = 0;
  const over = new AbortController();
  t.after(() => {
    over.abort();
    for (const socket of open) socket.destroy();
  });
  const stranger = (): Promise<void> =>
    new Promise((resolve) => {
      const i = opened++;
      const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.9.${1 + (i % ADDRESSES)}` });
      open.add(socket);
      socket.on('error', () => {}).resume();
      socket.once('connect', () => {
        socket.write(UNENDING[i % UNENDING.length] as string);
        resolve();
      });
      socket.once('close', () => {
        open.delete(socket);
        resolve();
      });
    });
  for (let i = 0; i < STRANGERS; i += 50) await Promise.all(Array.from({ length: 50 }, stranger));
  // They go on: each that is closed is replaced, and forty of other addresses guess passwords.
  const flood = (async () => {
    while (!over.signal.aborted) {
      const missing = Math.min(50, STRANGERS - open.size);
      await Promise.all(Array.from({ length: missing }, stranger));
      // Lasts: the flood, a hundred new ones a second.
      await sleep(500);
    }
  })();
  let [guesses, guessed] = [0, 0];
  const guess = async (i: number): Promise<void> => {
    while (!over.signal.aborted) {
      const from = `127.1.${i}.${1 + (guesses++ % 250)}`;
      const body = { name: 'guard', password: 'guess' };
      const answer = await ask(`${recorder.url}/api/session`, { method: 'POST', body, from }).catch(() => undefined);
      if (answer?.status === 401) guessed++;
      // Lasts: one may have been refused at once.
      await sleep(100);
    }
  };
  const guessing = Array.from({ length: 40 }, (_each, i) => guess(i));
  await until('they guess', () => guesses > 40);

  const session = await until('the guard signs in', async () => {
    const body = { name: 'guard', password: 'correct horse' };
    // The flood may close the connection before the request has arrived: a browser connects again.
    const answer = await ask(`${recorder.url}/api/session`, { method: 'POST', body }).catch(() => undefined);
    return answer?.status === 200 && answer;
  });
  const cookie = (session.headers['set-cookie'] ?? []).map((one) => one.split(';', 1)[0]).join('; ');
  const cameras = await ask(`${recorder.url}/api/cameras`, { headers: { cookie } });
  assert.equal(cameras.status, 200, 'from where a right password came, connections last');
  const live = new WebSocket(`${recorder.url.replace('http', 'ws')}/websocket/gate`, { headers: bearer('operator') });
  t.after(() => live.terminate());
  for (let i = 0; i < 25; i++) await once(live, 'message');

  // What was kept of each guess grew with them.
  await until('forty guesses were checked', () => guessed >= 40);
  over.abort();
  await Promise.all([flood, ...guessing]);
  const grown = (await besidesHeap(recorder)) - before;
  t.diagnostic(
    `${opened} connections of strangers, ${guesses} guesses, ${guessed} checked; memory grew by ${grown} bytes`,
  );
  // Heads and bodies of all places of the API, and the memory of one check of a password, with as much again for what the C library does.
  assert.ok(grown < 256 * MIB, `${grown}`);
  await assertWhole();
});
