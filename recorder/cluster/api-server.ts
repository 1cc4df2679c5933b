// The API server of Kubernetes as a recorder asks it: with the token of its pod, over a pool of connections. A thin
// client: the full one costs 60 MB of memory, which a recorder does not have.

import { type Connection, KubernetesClient } from '../../base/kubernetes/client.ts';

export { ApiError as ApiServerError } from '../../base/kubernetes/api-error.ts';
export type { KubernetesObject } from '../../base/kubernetes/client.ts';

/** Watches, a report, and what people ask for. */
export const CONNECTIONS = 8;
const CALL_TIMEOUT_MS = 5_000;

export class ApiServer extends KubernetesClient {
  constructor(connection: Connection, random: () => number = Math.random) {
    super(connection, {
      userAgent: 'kube-nvr-recorder',
      callTimeoutMs: CALL_TIMEOUT_MS,
      random,
    });
  }
}
