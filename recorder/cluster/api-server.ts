// The API server of Kubernetes as a recorder asks it: with the token of its pod, over one pool of connections. A thin
// client: the full one costs 60 MB of memory, which a recorder does not have.

import { type Connection, KubernetesClient } from '../../base/kubernetes/client.ts';

export { ApiError as ApiServerError } from '../../base/kubernetes/api-error.ts';
export type { KubernetesObject } from '../../base/kubernetes/client.ts';

/** Watches, a Lease, a report, and what people ask for. */
export const CONNECTIONS = 8;
const CALL_TIMEOUT_MS = 5_000;
/**
 * A watch on a dead connection looks like one that has nothing to tell, until it should have ended: each is short for that
 * reason, those of cameras, which say what is recorded, and those that bring answers and addresses of others.
 */
const WATCH_SECONDS = { least: 30, most: 40 };
const WATCH_SILENCE_MS = 45_000;

export class ApiServer extends KubernetesClient {
  constructor(connection: Connection, random: () => number = Math.random) {
    super(connection, {
      userAgent: 'kube-nvr-recorder',
      callTimeoutMs: CALL_TIMEOUT_MS,
      watchSeconds: WATCH_SECONDS,
      watchSilenceMs: WATCH_SILENCE_MS,
      random,
    });
  }
}
