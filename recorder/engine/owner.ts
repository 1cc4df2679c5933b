// Ensures that the directories of a recorder belong to this process while it runs, and to its node and pool permanently.

import { resolve } from 'node:path';
import type { FileLock } from '../../base/file-lock.ts';
import { podNamespace, type PodPlace } from '../../base/kubernetes/pod-place.ts';
import type { Log } from '../../base/log.ts';
import type { ArchiveOptions } from '../archive/archive.ts';
import { DirectoryInUse, takeDirectory } from '../archive/disk/directory-lock.ts';
import { nodeFileSystem as fs } from '../archive/disk/file-system.ts';
import { makeDirectories } from '../archive/disk/state-file.ts';
import { ConfigError } from '../config/error.ts';
import type { Config } from '../config/schema.ts';

interface Owner {
  /** Undefined for a recorder outside of a cluster. */
  readonly node: string | undefined;
  /** `namespace/name`. */
  readonly pool: string | undefined;
}

export type ArchiveOwner = Required<Pick<ArchiveOptions, 'node' | 'pool' | 'take'>>;

/** `pod`: set if the process runs in a pod. Rejects with the error of the system when its namespace cannot be read. */
export async function ownerOf(
  { cluster, nodeName }: Pick<Config, 'cluster' | 'nodeName'>,
  pod: PodPlace | undefined,
): Promise<Owner> {
  return {
    node: cluster.mode === 'none' ? undefined : nodeName,
    pool: cluster.mode === 'kubernetes' && pod ? `${await podNamespace(pod)}/${cluster.pool}` : undefined,
  };
}

/**
 * Locks `workDir`, which is created when it is missing, until `lock` is released. Rejects with ConfigError when another
 * recorder uses it.
 */
export async function takeState(
  config: Config,
  { pod, log }: { readonly pod?: PodPlace | undefined; readonly log: Log },
): Promise<{ readonly lock: FileLock; readonly owner: ArchiveOwner }> {
  const { node, pool } = await ownerOf(config, pod);
  const take = (directory: string): Promise<FileLock> =>
    takeDirectory(directory, { fs, holder: { node: config.nodeName, pool }, log });
  const workDir = resolve(config.workDir);
  try {
    await makeDirectories(fs, workDir);
    return { lock: await take(workDir), owner: { node, pool, take } };
  } catch (err) {
    if (!(err instanceof DirectoryInUse)) throw err;
    throw new ConfigError('', 'workDir', `${err.message}; each recorder needs a workDir and a record_path of its own`);
  }
}
