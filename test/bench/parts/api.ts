// The API: requests per second of two hundred clients while twenty cameras record, compared with a bare node:http server that
// sends as many bytes; and the cost of authentication.

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { FastifyRequest } from 'fastify';
import { Authenticator } from '../../../recorder/http/auth.ts';
import type { Caller } from '../../../recorder/http/caller.ts';
import { writeDay } from '../archive.ts';
import type { AskResult } from '../asker.ts';
import { CAMERAS, recording, type Bench } from '../bench.ts';
import { start, type Child } from '../processes.ts';
import { cameraId } from '../recorder.ts';

const ASKER = join(import.meta.dirname, '..', 'asker.ts');
const BARE_SERVER = join(import.meta.dirname, '..', 'bare-server.ts');
const CLIENTS = 200;
const TOKEN = 'token-of-the-bench';
const TOKENS = 20;
const SNAPSHOT_BYTES = 60 * 1024;
const DAY_SECONDS = 86_400;
const SEGMENTS_A_DAY = 288;

const tokenOf = (name: string) => ({
  name,
  role: 'viewer' as const,
  sha256: createHash('sha256').update(name).digest('hex'),
});
export const tokens = [...Array.from({ length: TOKENS - 1 }, (_, i) => tokenOf(`other-${i}`)), tokenOf(TOKEN)];

export async function measureApi(bench: Bench): Promise<void> {
  measureAuthentication(bench);
  await measureRequests(bench);
}

/** With the token that is compared last of twenty. */
function measureAuthentication(bench: Bench): void {
  const auth = new Authenticator({ mode: 'token', tokens });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const request = { ip: '10.0.0.9', protocol: 'http', headers, query: {} } as unknown as FastifyRequest;
  const rounds = bench.quick ? 20_000 : 200_000;
  const run = (): number => {
    const startMs = performance.now();
    for (let i = 0; i < rounds; i++) (auth.identify(request, 'header') as Caller).sees('gate');
    return ((performance.now() - startMs) * 1000) / rounds;
  };
  run();
  bench.figure({
    figure: `knowing who asks, one of ${TOKENS} tokens`,
    unit: 'µs',
    measured: run(),
    must: 50,
    aim: 25,
    note: `mean of ${rounds}`,
  });
}

async function measureRequests(bench: Bench): Promise<void> {
  const camera = await startStillCamera();
  const dayStart = Math.floor(Date.now() / 1000 / DAY_SECONDS - 1) * DAY_SECONDS;
  const archived = CAMERAS + 1;
  try {
    const { verdict } = await recording(
      bench,
      {
        cameras: CAMERAS,
        settings: { auth: { mode: 'token', tokens } },
        snapshot: camera.url,
      },
      async ({ recorder }) => {
        writeDay(recorder.archive, archived, dayStart * 1000, SEGMENTS_A_DAY);
        const hour = `from=${dayStart}&to=${dayStart + 3_600}`;
        await measureRoute(
          bench,
          recorder.address,
          'segments of an hour',
          `/api/archive/${cameraId(archived)}/segments?${hour}`,
        );
        await measureRoute(bench, recorder.address, `all ${CAMERAS} cameras`, '/api/cameras');
        await measureRoute(bench, recorder.address, 'snapshot, cached', `/api/cameras/${cameraId(0)}/snapshot`);
      },
    );
    bench.figure({
      figure: `pictures lost, torn or out of order while ${CLIENTS} clients ask`,
      unit: `of ${verdict.sent}`,
      measured: verdict.lost + verdict.torn + verdict.disordered + verdict.audioLost,
      must: 0,
      aim: 0,
      note: `${CAMERAS} cameras record; the camera was asked for ${camera.asked()} stills`,
    });
  } finally {
    camera.close();
  }
}

/** Measures the recorder and the bare server alternately while the cameras continue. */
async function measureRoute(bench: Bench, address: string, name: string, path: string): Promise<void> {
  const own: AskResult[] = [];
  const bare: AskResult[] = [];
  // The first response is the slow one, and gives the number of bytes for the bare server.
  const first = await asked(bench, address, path, 1, 1);
  const reference = start(
    process.execPath,
    [BARE_SERVER, String(first.answerBytes)],
    join(bench.directory, 'bare.log'),
  );
  try {
    const [, port = ''] = await reference.line(/^listening (\d+)/);
    for (let round = 0; round < (bench.quick ? 1 : 3); round++) {
      const seconds = bench.quick ? 2 : 5;
      own.push(await asked(bench, address, path, CLIENTS, seconds));
      bare.push(await asked(bench, `127.0.0.1:${port}`, path, CLIENTS, seconds));
    }
  } finally {
    await reference.stop();
  }
  const failed = own.reduce((sum, result) => sum + result.failed, 0);
  if (failed > 0) throw new Error(`${failed} requests for ${path} failed`);
  const [mine, theirs] = [own, bare].map((results) => best(results)) as [AskResult, AskResult];
  bench.figure({
    figure: `${name}, ${CLIENTS} clients: p99 / p99 of bare node:http in the same run`,
    unit: 'times',
    measured: mine.times.p99 / theirs.times.p99,
    must: 20,
    aim: 8,
    note: `${mine.requestsPerSecond.toFixed(0)}/s, p99 ${mine.times.p99.toFixed(0)} ms; bare ${theirs.requestsPerSecond.toFixed(0)}/s, p99 ${theirs.times.p99.toFixed(0)} ms; ${mine.answerBytes} bytes`,
  });
}

/** The round that was least disturbed by other work on the machine. */
const best = (results: readonly AskResult[]): AskResult =>
  results.reduce((a, b) => (b.requestsPerSecond > a.requestsPerSecond ? b : a));

export async function asked(
  bench: Bench,
  address: string,
  path: string,
  clients: number,
  seconds: number,
): Promise<AskResult> {
  // One caller may take a fifth of the event loop at most.
  const args = [ASKER, address, String(clients), String(seconds), path, ...tokens.map(({ name }) => name)];
  const child: Child = start(process.execPath, args, join(bench.directory, 'asker.log'));
  const [line] = await child.line(/^\{.*/);
  return JSON.parse(line) as AskResult;
}

/** A camera's web server with one still image. */
async function startStillCamera(): Promise<{ url: string; asked(): number; close(): void }> {
  let asked = 0;
  // The start of a JPEG: start-of-image marker and an application segment.
  const image = Buffer.concat([Buffer.from('ffd8ffe0', 'hex'), Buffer.alloc(SNAPSHOT_BYTES)]);
  const server = createServer((_request, response) => {
    asked++;
    response.writeHead(200, { 'content-type': 'image/jpeg', 'content-length': image.length }).end(image);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, asked: () => asked, close: () => void server.close() };
}
