// `recorder --adopt-archive`: the user declares that the record path holds the archive of this node, and the further disks belong to it, whatever was there
// before.

import type { PodPlace } from '../../base/kubernetes/pod-place.ts';
import type { Log } from '../../base/log.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { ignoreMissing } from '../../base/file-calls.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import { ArchiveIdentity } from '../archive/disk/identity.ts';
import { ConfigError } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { ownerOf } from '../engine/owner.ts';

/**
 * Returns the id of the archive. Rejects with ConfigError when the directory does not exist. A running recorder notices the
 * change within a second.
 */
export async function adoptArchive(
  config: Config,
  configFile: string,
  { pod, log }: { readonly pod: PodPlace | undefined; readonly log: Log },
): Promise<string> {
  const { recordPath, workDir, archive } = config;
  const owner = await ownerOf(config, pod);
  const identityOf = async (path: string, key: string, first?: ArchiveIdentity): Promise<ArchiveIdentity> => {
    const root = withoutTrailingSlash(path);
    const facts = await nodeFileSystem.facts(root).catch(ignoreMissing);
    if (!facts?.isDirectory) throw new ConfigError(configFile, key, `${root} does not exist; is its disk mounted?`);
    return new ArchiveIdentity({ root, workDir, ...owner, first, fs: nodeFileSystem, log });
  };
  const first = await identityOf(recordPath, 'record_path');
  const id = await first.adopt();
  for (const { path } of archive.disks) await (await identityOf(path, 'archive.disks', first)).adopt();
  return id;
}
