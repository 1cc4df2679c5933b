// The configured Redis, or the recorder's own, as a queue of jobs.

import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { RedisOptions } from 'bullmq';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { JobQueue, Work } from './job.ts';
import { RedisServer } from './redis-server.ts';
import type { TlsConnector } from './tls-connector.ts';

export interface QueueOptions {
  /** Of the recorder's own Redis. */
  readonly directory: string;
  /** Of another Redis; `redis:`, `rediss:` or `unix:`. */
  readonly url: string | undefined;
  /** Certificates that a Redis with TLS is trusted by, PEM; without it, the system's. */
  readonly ca?: string;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly program?: string;
}

/** Whether the recorder's own Redis has been used before, or another one is configured. */
export async function mayHaveJobs({ directory, url }: QueueOptions): Promise<boolean> {
  if (url !== undefined) return true;
  return access(join(directory, 'appendonlydir')).then(
    () => true,
    () => false,
  );
}

/** Throws JobsUnavailable. */
export async function openQueue(options: QueueOptions, work: Work): Promise<JobQueue> {
  const { directory, url, ca, nodeName, clock, log, program } = options;
  // Only now: a node without jobs does without its memory.
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
    clock,
    log,
  });
  const close = async (): Promise<void> => {
    await queue.close();
    await server?.close();
  };
  try {
    await queue.start();
  } catch (err) {
    await close();
    throw err;
  }
  return {
    add: (id, request) => queue.add(id, request),
    get: (id) => queue.get(id),
    list: () => queue.list(),
    counts: () => queue.counts(),
    remove: (id) => queue.remove(id),
    close,
  };
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
