// Where the programs of a test cluster are: Kubernetes from KUBEBUILDER_ASSETS or from the cache that `hack/setup kube`
// fills, etcd from there or from the system.

import { createHash } from 'node:crypto';
import { accessSync, constants, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export type ProgramName =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubectl'
  | 'kubelet'
  | 'kube-proxy'
  | 'coredns'
  | 'helm'
  | 'helm-unittest'
  | 'kubeconform'
  | 'gitops'
  | 'collector'
  | 'versitygw';

const ROOT = join(import.meta.dirname, '../..');

/** As `v1.34.4`: what test/rig/kube/go.mod requires. */
export const kubernetesVersion = (): string => requiredVersion('kube', 'k8s.io/kubernetes');

/** Of a module that the one in `test/rig/<directory>` requires in a line of its own. */
export function requiredVersion(directory: string, module: string): string {
  const text = readFileSync(join(ROOT, 'test/rig', directory, 'go.mod'), 'utf8');
  const version = text.split('\n').find((line) => line.startsWith(`require ${module} `));
  if (version === undefined) throw new Error(`test/rig/${directory}/go.mod requires no ${module}`);
  return version.split(' ')[2]!;
}

function builtDirectory(name: ProgramName): string {
  switch (name) {
    case 'helm':
      return join('helm', requiredVersion('helm', 'helm.sh/helm/v3'));
    case 'helm-unittest':
      return join('helm-unittest', requiredVersion('helm', 'github.com/helm-unittest/helm-unittest'));
    case 'kubeconform':
      return join('kubeconform', requiredVersion('helm', 'github.com/yannh/kubeconform'));
    case 'coredns':
      return join('coredns', requiredVersion('dns', 'github.com/coredns/coredns'));
    case 'versitygw':
      return join('versitygw', requiredVersion('s3', 'github.com/versity/versitygw'));
    case 'gitops':
    case 'collector':
      return join(name, ownVersion(name));
    default:
      return join('kubernetes', kubernetesVersion());
  }
}

/** Of a program in test/rig, which is this repository's own. */
function ownVersion(program: string): string {
  const hash = createHash('sha256');
  for (const name of ['go.mod', 'main.go']) hash.update(readFileSync(join(ROOT, 'test/rig', program, name)));
  return hash.digest('hex').slice(0, 16);
}

/** Where what is built and fetched lies, outside of the checkout. */
export const cacheDirectory = (): string =>
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'kube-nvr');

/** Its path, or undefined when it is nowhere. */
export function findProgram(name: ProgramName): string | undefined {
  const built = join(cacheDirectory(), builtDirectory(name));
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
  if (file === undefined) throw new Error(`no ${name} here: hack/setup ${groupOf(name)} brings it`);
  return file;
}

function groupOf(name: ProgramName): string {
  if (name === 'helm' || name === 'helm-unittest' || name === 'kubeconform') return 'helm';
  if (name === 'gitops') return name;
  if (name === 'collector') return 'collectors';
  if (name === 'versitygw') return 's3';
  return NODE_PROGRAMS.includes(name) ? 'kubelet' : 'kube';
}

const NODE_PROGRAMS: readonly ProgramName[] = ['kubelet', 'kube-proxy', 'coredns'];

/** Why tests that need a control plane are left out; false when they are not. */
export const controlPlaneMissing = (): string | false =>
  missingOf(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl']);

/** The same for tests that need no controllers. */
export const apiServerMissing = (): string | false => missingOf(['etcd', 'kube-apiserver', 'kubectl']);

/** Why tests that need a real etcd are left out; false when they are not. */
export const etcdMissing = (): string | false => missingOf(['etcd']);

/** The same for comparisons with the cluster as GitOps controllers make them. */
export const gitopsMissing = (): string | false => missingOf(['gitops'], 'gitops');

/** Why tests that need a real kubelet are left out, as far as programs go; false when they are not. */
export const realNodeProgramsMissing = (): string | false => missingOf(NODE_PROGRAMS, 'kubelet');

function missingOf(names: readonly ProgramName[], group = 'kube'): string | false {
  const missing = names.filter((name) => findProgram(name) === undefined);
  return missing.length > 0 && `not here: ${missing.join(', ')}; hack/setup ${group} brings them`;
}
