// Opens the queue of jobs in the configured Redis, or in the recorder's own.

import { join } from 'node:path';
import type { RedisOptions } from 'bullmq';
import { ANSWERS_ONLY, startChild } from '../../base/child.ts';
import type { Clock } from '../../base/clock.ts';
import { exists } from '../../base/file-calls.ts';
import type { Log } from '../../base/log.ts';
import type { JobQueue, Work } from './job.ts';
import { REDIS_PROGRAM, RedisServer } from './redis-server.ts';
import type { TlsConnector } from './tls-connector.ts';

export interface QueueOptions {
  /** The directory of the recorder's own Redis. */
  readonly directory: string;
  /** Address of another Redis; `redis:`, `rediss:` or `unix:`. */
  readonly url: string | undefined;
  /** CA certificates for a Redis with TLS, PEM; without it, those of the system. */
  readonly ca?: string;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly program?: string;
}

/** Whether to open the queue when the recorder starts: it may hold jobs, or a missing Redis must be reported. */
export async function mayHaveJobs({ directory, url, program }: QueueOptions): Promise<boolean> {
  if (url !== undefined) return true;
  return (await exists(join(directory, 'appendonlydir'))) || !(await isInstalled(program ?? REDIS_PROGRAM));
}

function isInstalled(program: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = startChild(program, ['--version'], { stdio: ['ignore', 'ignore', 'ignore'], limits: ANSWERS_ONLY });
    child.once('error', () => resolve(false));
    child.once('exit', () => resolve(true));
  });
}

/** `ended` is called when the queue has recorded that a job is done or failed. Rejects with JobsUnavailable. */
export async function openQueue(
  options: QueueOptions,
  work: Work,
  ended: (id: string) => void = () => {},
): Promise<JobQueue> {
  const { directory, url, ca, nodeName, clock, log, program } = options;
  // Loaded on demand: a node without jobs saves the memory.
  const [{ BullQueue }, { TlsConnector }] = await Promise.all([
    import('./bull-queue.ts'),
    import('./tls-connector.ts'),
  ]);
  const server =
    url === undefined ? new RedisServer({ directory, clock, log, ...(program ? { program } : {}) }) : undefined;
  await server?.start();
  const queue = new BullQueue({
    connection: connectionOf(server?.socketPath, url, ca, TlsConnector),
    nodeName,
    work,
    ended,
    server,
    clock,
    log,
  });
  try {
    await queue.start();
  } catch (err) {
    await queue.close();
    throw err;
  }
  return queue;
}

function connectionOf(
  socketPath: string | undefined,
  url: string | undefined,
  ca: string | undefined,
  Connector: typeof TlsConnector,
): RedisOptions {
  if (socketPath !== undefined) return { path: socketPath };
  const unix = /^unix:(?:\/\/)?(\/.*)$/.exec(url ?? '')?.[1];
  if (unix !== undefined) return { path: unix };
  const address = { url: url ?? '' };
  return url?.startsWith('rediss:') ? { ...address, tls: ca === undefined ? {} : { ca }, Connector } : address;
}
