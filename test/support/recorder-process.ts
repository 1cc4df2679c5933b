// The recorder as users run it: a separate process with a configuration file, its ports and its output.

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { createServer, type ListenOptions, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { Agent, fetch as fetchWith } from 'undici';
import { Child, type Ended } from './child.ts';
import { closedFootage } from './closed-footage.ts';
import { assertApart, assertFewShort, assertGaps, assertNotAhead, type GapsAnswer } from './invariants.ts';
import { mainOf } from './own-programs.ts';
import { until } from './until.ts';

const MAX_STARTS = 3;
const MAX_ANSWER_MS = 30_000;
export const MAIN = mainOf('recorder');
/** A Node warning in a recorder fails the test that stops it. */
const PRELOAD = ['--import', import.meta.resolve('./preload.ts')];

/** Where kernels choose no port themselves (ip_local_port_range), not even for a connection. */
const PORTS = [20_000, 30_000] as const;

/**
 * Free ports of the loopback address, which no other process gets from this function before this one ends: it listens at an abstract
 * Unix socket with the number of each.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(...PORTS);
    const claim = await listening({ path: `\0kube-nvr-port-${port}` });
    const taken = claim && (await listening({ port, host: '127.0.0.1' }));
    if (taken) {
      ports.push(port);
      await new Promise((resolve) => taken.close(resolve));
    } else claim?.close();
  }
  return ports;
}

/** Undefined if another program listens there. */
async function listening(where: ListenOptions): Promise<Server | undefined> {
  const server = createServer().unref();
  try {
    await once(server.listen(where), 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
}

interface RecorderOptions {
  /** The directory of everything that it writes. */
  readonly directory: string;
  /** The contents of the configuration file; addresses and paths are added, and `auth.mode` is `none` unless given. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly env?: NodeJS.ProcessEnv;
  /** The recorder's main file; default: `MAIN`. */
  readonly program?: string;
  /** What runs it; default: the Node of the test. */
  readonly node?: string;
  /** A command that runs the rest of its arguments, such as `nice`. */
  readonly through?: readonly string[];
  /** Wait until `/api/health/ready` answers 200; default true. */
  readonly waitUntilReady?: boolean;
  /** With `config.tls`: the CA of the certificate, as PEM. */
  readonly authority?: string;
}

/** The fields of `GET /api/cameras` that tests use. */
export interface CameraAnswer {
  readonly id: string;
  readonly state: string;
}

export class RecorderProcess {
  readonly child: Child;
  /** `http://127.0.0.1:PORT`, without a trailing slash. */
  readonly url: string;
  readonly playbackUrl: string;
  readonly metricsUrl: string;
  readonly configFile: string;
  readonly recordPath: string;
  readonly #config: Readonly<Record<string, unknown>>;
  readonly #authority: string | undefined;

  private constructor(
    child: Child,
    config: Readonly<Record<string, unknown>>,
    configFile: string,
    authority: string | undefined,
  ) {
    this.child = child;
    this.#config = config;
    this.#authority = authority;
    this.configFile = configFile;
    this.url = `${authority === undefined ? 'http' : 'https'}://${config['listen'] as string}`;
    this.playbackUrl = `http://${(config['playback'] as { listen: string }).listen}`;
    this.metricsUrl = `http://${(config['metrics'] as { listen: string }).listen}/metrics`;
    this.recordPath = config['record_path'] as string;
  }

  /** Tries again if another program took one of the free ports meanwhile. */
  static async start(options: RecorderOptions): Promise<RecorderProcess> {
    for (let tries = 1; ; tries++) {
      try {
        return await RecorderProcess.#start(options);
      } catch (error) {
        if (tries === MAX_STARTS || !(error instanceof Error) || !error.message.includes('EADDRINUSE')) throw error;
      }
    }
  }

  static async #start(options: RecorderOptions): Promise<RecorderProcess> {
    const { directory } = options;
    const [api, playback, metrics] = await freePorts(3);
    const config = {
      nodeName: 'test-node',
      listen: `127.0.0.1:${api}`,
      playback: { listen: `127.0.0.1:${playback}` },
      metrics: { listen: `127.0.0.1:${metrics}` },
      record_path: join(directory, 'recordings'),
      workDir: join(directory, 'work'),
      auth: { mode: 'none' },
      ...options.config,
    };
    mkdirSync(config.record_path, { recursive: true });
    mkdirSync(config.workDir, { recursive: true });
    const configFile = join(directory, 'config.yaml');
    writeConfig(configFile, config);
    // A program in an image does not have this file.
    const preload = options.through ? [] : PRELOAD;
    const { through = [], program = MAIN, node = process.execPath } = options;
    const [command, ...args] = [...through, node, ...preload, program, '--config', configFile];
    const child = new Child(command, args, {
      cwd: directory,
      ...(options.env ? { env: options.env } : {}),
    });
    const recorder = new RecorderProcess(child, config, configFile, options.authority);
    if (options.waitUntilReady !== false) {
      try {
        await recorder.ready();
      } catch (error) {
        await child[Symbol.asyncDispose]();
        throw new Error(`the recorder did not get ready:\n${child.output}`, { cause: error });
      }
    }
    return recorder;
  }

  /** Starts another process with the same configuration after this one has ended. */
  async restart({ waitUntilReady = true } = {}): Promise<RecorderProcess> {
    const child = new Child(process.execPath, [...PRELOAD, MAIN, '--config', this.configFile], {
      cwd: dirname(this.configFile),
    });
    const recorder = new RecorderProcess(child, this.#config, this.configFile, this.#authority);
    if (waitUntilReady) await recorder.ready();
    return recorder;
  }

  async ready(): Promise<void> {
    await until('the recorder is ready', async () => this.child.ended || (await this.fetch('/api/health/ready')).ok);
    if (this.child.ended) throw new Error('the recorder ended');
  }

  /** Changes keys of the configuration file; the recorder notices by itself or on SIGHUP. */
  rewriteConfig(changes: Readonly<Record<string, unknown>>): void {
    writeConfig(this.configFile, { ...this.#config, ...changes });
  }

  /** Calls the API, trusting the CA of its certificate. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const ca = this.#authority;
    if (ca === undefined) return fetch(this.url + path, init);
    const dispatcher = new Agent({ connect: { ca } });
    const { method = 'GET', headers = {}, body = null } = init;
    const answer = await fetchWith(this.url + path, {
      method,
      headers: [...new Headers(headers)],
      body: body as string | null,
      dispatcher,
    });
    const read = new Response(await answer.arrayBuffer(), { status: answer.status, headers: [...answer.headers] });
    await dispatcher.close();
    return read;
  }

  /** The JSON at `path`; throws for any status other than 200. */
  async get(path: string): Promise<unknown> {
    const answer = await fetch(this.url + path);
    if (!answer.ok) throw new Error(`GET ${path} answered ${answer.status}: ${await answer.text()}`);
    return answer.json();
  }

  async cameras(): Promise<CameraAnswer[]> {
    const answer = (await this.get('/api/cameras')) as CameraAnswer[] | { cameras: CameraAnswer[] };
    return Array.isArray(answer) ? answer : answer.cameras;
  }

  async untilRecording(...ids: readonly string[]): Promise<void> {
    await until(`${ids.join(', ')} recording`, async () => {
      const cameras = await this.cameras();
      return ids.every((id) => cameras.find((camera) => camera.id === id)?.state === 'recording');
    });
  }

  /** All files of the archive, relative to `record_path`, in order of their names; without the recorder's own files. */
  async files(): Promise<string[]> {
    const entries = await readdir(this.recordPath, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.recordPath.length + 1))
      .filter((file) => !file.startsWith('.kube-nvr/'))
      .sort();
  }

  /** Each of these cameras has so many files on the disk that it does not have now; others may have gone since. */
  async untilMoreFiles(count: number, ...ids: readonly string[]): Promise<void> {
    const before = new Set(await this.files());
    await until(`${count} more files of ${ids.join(', ')}`, async () => {
      const since = (await this.files()).filter((file) => !before.has(file));
      return ids.every((id) => since.filter((file) => file.includes(`_${id}_`)).length >= count);
    });
  }

  /** Ends it as a service manager does. Fails if the archive violates an invariant. */
  async stop(): Promise<Ended> {
    const answers = await this.#gaps();
    const ended = await this.child.stop('SIGTERM');
    // A disk that a test has removed is not checked.
    const files = (await this.files().catch(() => [])).filter((file) => file.endsWith('.mp4'));
    const footage = await closedFootage(files.map((file) => join(this.recordPath, file)));
    assertApart(footage);
    assertFewShort(footage);
    assertNotAhead(footage);
    for (const [cameraId, answer] of answers) {
      assertGaps(
        answer,
        footage.filter((file) => file.cameraId === cameraId),
        `${cameraId}: ${this.child.output}`,
      );
    }
    return ended;
  }

  /** The gap ledger of each camera; empty if the caller has no access or gets no response. */
  async #gaps(): Promise<ReadonlyMap<string, GapsAnswer>> {
    const answers = new Map<string, GapsAnswer>();
    const signal = AbortSignal.timeout(MAX_ANSWER_MS);
    const get = async (path: string): Promise<unknown> => {
      const answer = await this.fetch(path, { signal });
      return answer.ok ? answer.json() : undefined;
    };
    try {
      const { cameras = [] } = ((await get('/api/cameras')) ?? {}) as { cameras?: readonly CameraAnswer[] };
      for (const { id } of cameras) {
        const answer = await get(`/api/archive/${encodeURIComponent(id)}/gaps`);
        if (answer !== undefined) answers.set(id, answer as GapsAnswer);
      }
    } catch {
      // It has ended or hangs; tests of that check it themselves.
    }
    return answers;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child[Symbol.asyncDispose]();
  }
}

/** Every JSON document is also YAML. */
export function writeConfig(file: string, config: Readonly<Record<string, unknown>>): void {
  writeFileSync(file, JSON.stringify(config, undefined, 2), { mode: 0o600 });
}
