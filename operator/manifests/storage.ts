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

const claimName = (pool: string, node: string, disk?: string): string =>
  `${pool}-${disk === undefined ? 'archive' : diskVolume(disk)}-${shortNameOf(node)}`;

export const usesClaims = ({ archive }: RecorderPool['spec']): boolean => archive.volumeClaimTemplate !== undefined;

/** Name of the DaemonSet that makes the pod of a node: its own with claims, else the one of all nodes. */
export const daemonSetNameOf = ({ metadata: { name }, spec }: Pool, node: string): string =>
  usesClaims(spec) ? nodeRecorderName(name, node) : recorderName(name);

const DISKS = '/var/lib/recorder-disks';
const disksOf = ({ archive }: RecorderPool['spec']) => archive.disks ?? [];
const diskVolume = (disk: string): string => `disk-${disk}`;

/** The disks in the recorder's configuration. Not in the volume of the state: a pod that lacks a disk must not find a directory there. */
export const diskSettings = ({ spec }: Pool): readonly { readonly path: string; readonly weight: number }[] =>
  disksOf(spec).map(({ name, weight }) => ({ path: `${DISKS}/${name}`, weight }));

/** Where the disks are while the directories of pools are made in them. */
export const wholeDisks = ({ spec }: Pool): readonly string[] => disksOf(spec).map(({ name }) => `/disks/${name}`);

/** The claims of a node: for archive and state, and for each further disk. They have no owner: footage outlives the pool and its nodes. */
export function claimsOf({ metadata, spec }: Pool, node: string): readonly KubeObject[] {
  return [undefined, ...disksOf(spec)].map((disk) => {
    const { metadata: given, spec: claim } = (disk ?? spec.archive).volumeClaimTemplate ?? {};
    return {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: claimName(metadata.name, node, disk?.name),
        namespace: metadata.namespace,
        labels: { ...given?.labels, ...poolLabels(metadata.name) },
        annotations: { ...given?.annotations, 'kube-nvr.dev/node': node },
      },
      spec: claim,
    };
  });
}

/** `node`: of the claim, for pools with claims. */
export function storageVolumes({ metadata, spec }: Pool, node: string): readonly object[] {
  const claim = (name: string, disk?: string) => ({
    name,
    persistentVolumeClaim: { claimName: claimName(metadata.name, node, disk) },
  });
  if (usesClaims(spec)) return [claim(CLAIM), ...disksOf(spec).map(({ name }) => claim(diskVolume(name), name))];
  // Not created if missing: the mount point of a disk that is not mounted must not be taken for the disk.
  const directory = (name: string, path: string | undefined) => ({ name, hostPath: { path, type: 'Directory' } });
  return [
    directory('archive', spec.archive.hostPath),
    { name: 'state', hostPath: { path: spec.stateHostPath, type: 'DirectoryOrCreate' } },
    ...disksOf(spec).map(({ name, hostPath }) => directory(diskVolume(name), hostPath)),
  ];
}

/** The whole of all places, in which the directories of pools are made. */
export const wholeMounts = ({ spec }: Pool): readonly Mount[] => [
  ...PLACES.map((place) =>
    usesClaims(spec)
      ? { name: CLAIM, mountPath: `/${place}`, subPath: place }
      : { name: place, mountPath: `/${place}` },
  ),
  ...disksOf(spec).map(({ name }) => ({ name: diskVolume(name), mountPath: `/disks/${name}` })),
];

/** The directories of the pool alone. */
export function ownMounts({ metadata, spec }: Pool, paths: Readonly<Record<Place, string>>): readonly Mount[] {
  const own = directoryOfPool({ namespace: metadata.namespace, pool: metadata.name });
  return [
    // The archive is mounted into the directory of the state.
    ...PLACES.toReversed().map((place) =>
      usesClaims(spec)
        ? { name: CLAIM, mountPath: paths[place], subPath: `${place}/${own}` }
        : { name: place, mountPath: paths[place], subPath: own },
    ),
    ...disksOf(spec).map(({ name }) => ({ name: diskVolume(name), mountPath: `${DISKS}/${name}`, subPath: own })),
  ];
}
