// The demo: starts demo cameras and a recorder with a plain configuration, prints all addresses, and stops everything on Ctrl-C.
// Run it as `hack/demo`, which first installs what is missing.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DemoError, runDemo } from './process.ts';

const ROOT = join(import.meta.dirname, '..');
const ADDRESS = '127.0.0.1';
const LOGIN = 'demo:demo';
const USAGE = `hack/demo [--port N] [--cameras N] [--keep]
hack/demo --nodes N [--cameras N]   the same on a Kubernetes of N nodes of its own
hack/demo --kubernetes [--cameras N]  images and chart on a Kubernetes with one real node
  --port N      of the page and the API (default 9997; the next free one when it is in use)
  --cameras N   how many demo cameras (default 3)
  --keep        leave configuration, recordings and logs behind at the end
`;
/** Generous: a loaded machine takes long to start twenty encoders. */
const START_TIMEOUT_MS = 60_000;
/** The recorder promises to stop in five seconds. */
const STOP_TIMEOUT_MS = 10_000;

interface Camera {
  readonly name: string;
  readonly url: string;
}

function parseOptions(): { port: number; cameras: number; keep: boolean } {
  const number = (name: string, text: string, max: number): number => {
    if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > max) {
      throw new DemoError(`--${name} takes a number from 1 to ${max}, not ${text}`);
    }
    return Number(text);
  };
  try {
    const { values } = parseArgs({
      options: {
        port: { type: 'string', default: '9997' },
        cameras: { type: 'string', default: '3' },
        keep: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) {
      process.stdout.write(USAGE);
      process.exit(0);
    }
    return {
      port: number('port', values.port, 65_000),
      cameras: number('cameras', values.cameras, 50),
      keep: values.keep,
    };
  } catch (error) {
    throw error instanceof DemoError ? error : new DemoError(`${(error as Error).message}\n${USAGE}`);
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, ADDRESS);
  const free = await Promise.race([
    once(server, 'listening').then(() => true),
    once(server, 'error').then(() => false),
  ]).catch(() => false);
  if (free) await new Promise((resolve) => server.close(resolve));
  return free;
}

async function freePort(wanted: number, taken: readonly number[]): Promise<number> {
  for (let port = wanted; port <= 65_535; port++) {
    if (!taken.includes(port) && (await isFree(port))) return port;
  }
  throw new DemoError(`no free port from ${wanted} on`);
}

/** In its own process group: a Ctrl-C in the terminal reaches only this program, which then stops the others in order. */
function start(command: string, args: readonly string[], stdio: 'pipe' | number, logFile: number): ChildProcess {
  const child = spawn(command, args, { cwd: ROOT, detached: true, stdio: ['pipe', stdio, logFile] });
  child.on('error', () => {}); // reported as an early exit to the code that waits for it
  return child;
}

const hasEnded = (child: ChildProcess): boolean =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

async function stop(child: ChildProcess | undefined): Promise<void> {
  if (!child || hasEnded(child)) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const inTime = await Promise.race([ended.then(() => true), sleep(STOP_TIMEOUT_MS, false, { ref: false })]);
  if (!inTime) {
    child.kill('SIGKILL');
    await ended;
  }
}

async function startCameras(count: number, logFile: number): Promise<{ child: ChildProcess; cameras: Camera[] }> {
  const script = join(ROOT, 'demo/cameras.py');
  const args = [script, '--cameras', String(count), '--port', '0', '--login', LOGIN, '--with-parent'];
  const child = start('/usr/bin/python3', args, 'pipe', logFile);
  const cameras: Camera[] = [];
  for await (const line of createInterface({ input: child.stdout! })) {
    const [word, name, url] = line.split(' ');
    if (word === 'ready' && name && url) cameras.push({ name, url });
    if (cameras.length === count) return { child, cameras };
  }
  throw new DemoError('the demo cameras did not start');
}

function configuration(cameras: readonly Camera[], directory: string, ports: Ports): string {
  const lines = [
    'nodeName: demo',
    `listen: ${ADDRESS}:${ports.api}`,
    `record_path: ${JSON.stringify(join(directory, 'recordings'))}`,
    `workDir: ${JSON.stringify(join(directory, 'work'))}`,
    `playback: {listen: "${ADDRESS}:${ports.playback}"}`,
    `metrics: {listen: "${ADDRESS}:${ports.metrics}"}`,
    'auth: {mode: none} # only this machine can connect',
    'archive: {segmentDuration: 30s}',
    'cameras:',
  ];
  cameras.forEach(({ name, url }, index) => {
    const source = index === 0 ? url.replace('://', `://${LOGIN}@`) : url;
    const title = name[0]!.toUpperCase() + name.slice(1).replace('-', ' ');
    lines.push(`  - {id: ${name}, name: ${title}, source: "${source}"}`);
  });
  return lines.join('\n') + '\n';
}

interface Ports {
  readonly api: number;
  readonly playback: number;
  readonly metrics: number;
}

async function waitUntilReady(recorder: ChildProcess, url: string, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (!signal.aborted) {
    if (hasEnded(recorder)) throw new DemoError('the recorder ended while starting');
    if (performance.now() > deadlineMs)
      throw new DemoError(`the recorder was not ready in ${START_TIMEOUT_MS / 1000} s`);
    const answer = await fetch(`${url}api/health/ready`, { signal }).catch(() => undefined);
    if (answer?.ok) return;
    await sleep(100);
  }
}

async function run(signal: AbortSignal): Promise<void> {
  const options = parseOptions();
  const api = await freePort(options.port, []);
  if (api !== options.port) process.stdout.write(`port ${options.port} is in use: taking ${api} instead\n`);
  const playback = await freePort(api - 1, [api]);
  const ports: Ports = { api, playback, metrics: await freePort(api + 1, [api, playback]) };

  // A directory per port, so that two demos at once do not conflict.
  const directory = join(ROOT, '.demo', String(api));
  // Files that an earlier --keep left must not be deleted by this run.
  if (existsSync(directory)) options.keep = true;
  mkdirSync(join(directory, 'recordings'), { recursive: true });
  mkdirSync(join(directory, 'work'), { recursive: true });
  const logFile = join(directory, 'recorder.log');
  const shown = (path: string): string => relative(process.cwd(), path) || '.';

  let cameraProcess: ChildProcess | undefined;
  let recorder: ChildProcess | undefined;
  try {
    const started = await startCameras(options.cameras, openSync(join(directory, 'cameras.log'), 'w'));
    cameraProcess = started.child;
    const configFile = join(directory, 'config.yaml');
    writeFileSync(configFile, configuration(started.cameras, directory, ports), { mode: 0o600 });
    const log = openSync(logFile, 'w');
    recorder = start(process.execPath, [join(ROOT, 'recorder/main.ts'), '--config', configFile], log, log);
    const url = `http://${ADDRESS}:${api}/`;
    await waitUntilReady(recorder, url, signal);
    if (!signal.aborted) {
      process.stdout.write(
        [
          `page        ${url}`,
          `recordings  ${shown(join(directory, 'recordings'))}`,
          `config      ${shown(configFile)}`,
          `log         ${shown(logFile)}`,
          `metrics     http://${ADDRESS}:${ports.metrics}/metrics`,
          ...started.cameras.map((camera) => `camera      ${camera.name.padEnd(8)} ${camera.url}`),
          'Ctrl-C stops everything.\n',
        ].join('\n'),
      );
      const failed = (what: string, child: ChildProcess): Promise<never> =>
        once(child, 'exit').then(() => Promise.reject(new DemoError(`${what} ended unexpectedly`)));
      await Promise.race([
        once(signal, 'abort'),
        failed('the recorder', recorder),
        failed('the camera process', cameraProcess),
      ]);
    }
    process.stdout.write('\nstopping\n');
  } catch (error) {
    if (!signal.aborted) {
      const tail = recorder ? readFileSync(logFile, 'utf8').split('\n').slice(-20).join('\n') : '';
      if (tail) process.stderr.write(`${tail}\n(the end of ${shown(logFile)})\n`);
      options.keep = true;
      throw error;
    }
  } finally {
    // The recorder first, so that it can end its sessions with the cameras.
    await stop(recorder);
    await stop(cameraProcess);
    if (!options.keep) rmSync(directory, { recursive: true, force: true });
  }
  process.stdout.write(options.keep ? `stopped; files are in ${shown(directory)}\n` : 'stopped\n');
}

await runDemo(run);
