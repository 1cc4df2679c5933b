// Starts the recorder as a user does, and finds the files that it wrote.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { sleep, start, type Child } from './processes.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'recorder', 'main.ts');

export const cameraId = (i: number): string => `bench-${String(i).padStart(3, '0')}`;

export interface RunningRecorder {
  readonly name: string;
  readonly pid: number;
  readonly pids: readonly number[];
  readonly child: Child;
  /** Host and port of REST and WebSocket. */
  readonly address: string;
  /** Host and port of playback. */
  readonly playback: string;
  readonly archive: string;
  /** The exit code; null if it had to be killed. */
  stop(): Promise<number | null>;
  /** A camera's files, oldest first. */
  files(camera: number): string[];
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

export interface RecorderOptions {
  readonly urls: readonly string[];
  /** For the archive, the work directory, the configuration and the logs. */
  readonly directory: string;
  /** For Node, such as `--trace-gc`. */
  readonly nodeOptions?: readonly string[];
  readonly segmentDuration?: string;
  /** A main.ts other than that of this tree. */
  readonly program?: string;
  /** Node's compile cache: with it a start is as fast as that of an image with a single file. */
  readonly compiled?: string | undefined;
  /** Address of every camera's still image. */
  readonly snapshot?: string;
  /** Further cameras, as the configuration file has them. */
  readonly more?: readonly Readonly<Record<string, unknown>>[];
  /** Further keys of the configuration. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

export async function startRecorder(options: RecorderOptions): Promise<RunningRecorder> {
  const { urls, directory } = options;
  const archive = join(directory, 'recordings');
  const workDir = join(directory, 'work');
  mkdirSync(archive, { recursive: true });
  mkdirSync(workDir, { recursive: true });
  const address = `127.0.0.1:${await freePort()}`;
  const playback = `127.0.0.1:${await freePort()}`;
  const still = options.snapshot === undefined ? {} : { snapshot: options.snapshot };
  const config = {
    listen: address,
    record_path: archive,
    workDir,
    playback: { listen: playback },
    metrics: { listen: `127.0.0.1:${await freePort()}` },
    auth: { mode: 'none' },
    archive: { segmentDuration: options.segmentDuration ?? '5m' },
    cameras: [
      ...urls.map((source, i) => ({ id: cameraId(i), name: `Bench ${i}`, source, transport: 'tcp', ...still })),
      ...(options.more ?? []),
    ],
    ...options.settings,
  };
  // Every JSON document is also YAML.
  const configPath = join(directory, 'config.yaml');
  writeFileSync(configPath, JSON.stringify(config, undefined, 2));
  const compiled = options.compiled === undefined ? [] : [`NODE_COMPILE_CACHE=${options.compiled}`];
  const child = start(
    '/usr/bin/env',
    [...compiled, process.execPath, ...(options.nodeOptions ?? []), options.program ?? MAIN, '--config', configPath],
    join(directory, 'recorder.log'),
    directory,
  );
  await Promise.race([
    untilReady(address),
    child.exited.then((code) => {
      const log = readFileSync(join(directory, 'recorder.log'), 'utf8');
      throw new Error(`the recorder ended (${code}): ${log.slice(0, 2000)}`);
    }),
  ]);
  return {
    name: 'recorder',
    pid: child.pid,
    pids: [child.pid],
    child,
    address,
    playback,
    archive,
    stop: () => child.stop(),
    files: (camera) => filesOf(archive, cameraId(camera)),
  };
}

/** Enough for a machine that is busy with other work. */
const MAX_START_MS = 60_000;

async function untilReady(address: string): Promise<void> {
  const deadline = performance.now() + MAX_START_MS;
  while (performance.now() < deadline) {
    try {
      const answer = await fetch(`http://${address}/api/health/ready`);
      await answer.body?.cancel();
      if (answer.status === 200) return;
    } catch {
      // It is not listening yet.
    }
    await sleep(50);
  }
  throw new Error(`the recorder was not ready within ${MAX_START_MS / 1000} s`);
}

/** `YYYY/MM/DD/<name>_<camera>_<date>_<time>.mp4`: the end of the path sorts by time. */
function filesOf(archive: string, camera: string): string[] {
  return readdirSync(archive, { recursive: true, encoding: 'utf8' })
    .filter((path) => /^\d{4}\//.test(path) && path.endsWith('.mp4') && path.includes(`_${camera}_`))
    .sort()
    .map((path) => join(archive, path));
}
