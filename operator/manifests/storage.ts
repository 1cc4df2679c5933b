// Where the recorders of a pool keep archive and state: directories of the node, or a claim for each node. Pure.

import { sha256 } from '../../base/new-token.ts';
import { directoryOfPool, poolLabels, recorderName } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject } from '../kube/api.ts';

type Pool = Pick<RecorderPool, 'metadata' | 'spec'>;
type Place = 'archive' | 'state';
type Mount = Readonly<Record<'name' | 'mountPath', string>> & { readonly subPath?: string };

/** The volume of a claim has both, each in a directory of its own. */
const CLAIM = 'storage';
const PLACES: readonly Place[] = ['archive', 'state'];

/** Names of nodes may be longer than those of DaemonSets and claims. */
const shortNameOf = (node: string): string => sha256(node).toString('hex').slice(0, 10);

/** Name of the DaemonSet of one node, for pools with claims: all pods of a DaemonSet name the same claim. */
export const nodeRecorderName = (pool: string, node: string): string => `${recorderName(pool)}-${shortNameOf(node)}`;

const claimName = (pool: string, node: string): string => `${pool}-archive-${shortNameOf(node)}`;

export const usesClaims = ({ archive }: RecorderPool['spec']): boolean => archive.volumeClaimTemplate !== undefined;

/** Name of the DaemonSet that makes the pod of a node: its own with claims, else the one of all nodes. */
export const daemonSetNameOf = ({ metadata: { name }, spec }: Pool, node: string): string =>
  usesClaims(spec) ? nodeRecorderName(name, node) : recorderName(name);

/** The claim of a node. It has no owner: footage outlives the pool and its nodes. */
export function claimOf({ metadata, spec }: Pool, node: string): KubeObject {
  const { metadata: given, spec: claim } = spec.archive.volumeClaimTemplate ?? {};
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: claimName(metadata.name, node),
      namespace: metadata.namespace,
      labels: { ...given?.labels, ...poolLabels(metadata.name) },
      annotations: { ...given?.annotations, 'kube-nvr.dev/node': node },
    },
    spec: claim,
  };
}

/** `node`: of the claim, for pools with claims. */
export function storageVolumes({ metadata, spec }: Pool, node: string): readonly object[] {
  if (usesClaims(spec)) {
    return [{ name: CLAIM, persistentVolumeClaim: { claimName: claimName(metadata.name, node) } }];
  }
  return [
    // Not created if missing: the mount point of a disk that is not mounted must not be taken for the disk.
    { name: 'archive', hostPath: { path: spec.archive.hostPath, type: 'Directory' } },
    { name: 'state', hostPath: { path: spec.stateHostPath, type: 'DirectoryOrCreate' } },
  ];
}

/** The whole of both places, in which the directories of pools are made. */
export const wholeMounts = ({ spec }: Pool): readonly Mount[] =>
  PLACES.map((place) =>
    usesClaims(spec)
      ? { name: CLAIM, mountPath: `/${place}`, subPath: place }
      : { name: place, mountPath: `/${place}` },
  );

/** The directories of the pool alone. */
export function ownMounts({ metadata, spec }: Pool, paths: Readonly<Record<Place, string>>): readonly Mount[] {
  const own = directoryOfPool({ namespace: metadata.namespace, pool: metadata.name });
  // The archive is mounted into the directory of the state.
  return PLACES.toReversed().map((place) =>
    usesClaims(spec)
      ? { name: CLAIM, mountPath: paths[place], subPath: `${place}/${own}` }
      : { name: place, mountPath: paths[place], subPath: own },
  );
}
