// The Kubernetes API server, accessed with the token of the pod over a connection pool. A minimal client: the full one would cost
// 90 MB of memory.

import { type Connection, KubernetesClient } from '../../base/kubernetes/client.ts';

export { ApiError as ApiServerError } from '../../base/kubernetes/api-error.ts';
export type { KubernetesObject } from '../../base/kubernetes/client.ts';

/** For watches, a report, and requests of people. */
export const CONNECTIONS = 9;
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
