// Where a pod finds its API server, from the environment that the kubelet sets.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hostInUrl } from '../host.ts';

export interface PodPlace {
  /** `https://10.96.0.1:443` */
  readonly url: string;
  /** The directory with the files `token`, `ca.crt` and `namespace`. */
  readonly serviceAccountDirectory: string;
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Undefined if the process does not run in a pod. `KUBE_NVR_SERVICE_ACCOUNT_DIR` is for tests. */
export function podPlace(env: Readonly<Record<string, string | undefined>>): PodPlace | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = env;
  if (!host) return undefined;
  return {
    url: `https://${hostInUrl(host)}:${port}`,
    serviceAccountDirectory: env['KUBE_NVR_SERVICE_ACCOUNT_DIR'] ?? SERVICE_ACCOUNT,
  };
}

export async function podNamespace({ serviceAccountDirectory }: PodPlace): Promise<string> {
  return (await readFile(join(serviceAccountDirectory, 'namespace'), 'utf8')).trim();
}
