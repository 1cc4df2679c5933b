// Where the programs of a test cluster are: Kubernetes from KUBEBUILDER_ASSETS or from the cache that `hack/setup kube`
// fills, etcd from there or from the system.

import { accessSync, constants, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export type ProgramName =
  'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kubectl' | 'kubelet' | 'helm';

const ROOT = join(import.meta.dirname, '../..');

/** As `v1.34.4`: what hack/kube/go.mod requires. */
export function kubernetesVersion(): string {
  const version = /^require k8s\.io\/kubernetes (v\S+)$/m.exec(readFileSync(join(ROOT, 'hack/kube/go.mod'), 'utf8'));
  if (!version) throw new Error('hack/kube/go.mod requires no k8s.io/kubernetes');
  return version[1]!;
}

function helmVersion(): string {
  const version = /^require helm\.sh\/helm\/v\d+ (v\S+)$/m.exec(readFileSync(join(ROOT, 'hack/helm/go.mod'), 'utf8'));
  if (!version) throw new Error('hack/helm/go.mod requires no helm');
  return version[1]!;
}

/** Its path, or undefined when it is nowhere. */
export function findProgram(name: ProgramName): string | undefined {
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'kube-nvr');
  const built = name === 'helm' ? join(cache, 'helm', helmVersion()) : join(cache, 'kubernetes', kubernetesVersion());
  // Other versions on the PATH are another cluster's; only etcd and helm are taken from there.
  const path = name === 'etcd' || name === 'helm' ? [...(process.env['PATH'] ?? '').split(':'), '/usr/bin'] : [];
  return [process.env['KUBEBUILDER_ASSETS'] ?? '', built, ...path]
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

export function needProgram(name: ProgramName): string {
  const file = findProgram(name);
  if (file === undefined) throw new Error(`no ${name} here: hack/setup ${name === 'helm' ? 'helm' : 'kube'} brings it`);
  return file;
}

/** Why tests that need a control plane are left out; false when they are not. */
export const controlPlaneMissing = (): string | false =>
  missingOf(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl']);

/** The same for tests that need no controllers. */
export const apiServerMissing = (): string | false => missingOf(['etcd', 'kube-apiserver', 'kubectl']);

function missingOf(names: readonly ProgramName[]): string | false {
  const missing = names.filter((name) => findProgram(name) === undefined);
  return missing.length > 0 && `not here: ${missing.join(', ')}; hack/setup kube brings them`;
}
