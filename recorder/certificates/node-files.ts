// The files that make a server a member of a cluster without Kubernetes, in `<dataDir>/node_<node id>`. Deleting this directory
// deletes key and certificate, too. Only their owner can read them.

import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { KeptAuthority } from '../../base/authorities.ts';
import { readPrivate, writePrivate } from '../../base/private-file.ts';

/** Paths. `authority` exists only from `recorder cluster init` until the first start has put the CA into the store. */
export interface NodeFiles {
  /** The directory of `certificate`, `key`, `authorities`, `keys` and `authority`. */
  readonly directory: string;
  readonly certificate: string;
  readonly key: string;
  readonly authorities: string;
  readonly keys: string;
  readonly authority: string;
  readonly cluster: string;
}

/** The cluster to which the node belongs, and how its etcd member begins. */
export interface ClusterFile {
  readonly version: 1;
  readonly clusterId: string;
  /** `new`: the first member, and etcd has no data yet. `join`: `members` let it in, now or again without its data. */
  readonly initial: 'new' | 'join';
  /** Client URLs of etcd. */
  readonly members: readonly string[];
  /** The node was told to leave, and the cluster does not know it yet. */
  readonly isLeaving?: boolean | undefined;
}

/** The content of the files; certificates and keys are PEM. */
export interface MemberContent {
  readonly key: string;
  readonly certificate: string;
  readonly authorities: string;
  /** As `KeyRing` writes them. */
  readonly keys: string;
  readonly authority?: KeptAuthority;
  readonly cluster: ClusterFile;
}

/** A file cannot be used. The message names it and contains nothing of its content. */
export class NodeFileError extends Error {
  override readonly name = 'NodeFileError';
}

const ClusterContent = z.strictObject({
  version: z.literal(1),
  clusterId: z.uuid(),
  initial: z.enum(['new', 'join']),
  members: z.array(z.url()),
  isLeaving: z.boolean().optional(),
});
const AuthorityContent = z.strictObject({
  certificate: z.string(),
  key: z.string(),
  fromMs: z.number(),
  toMs: z.number(),
});

export function nodeFiles(dataDir: string, nodeId: string): NodeFiles {
  const node = join(dataDir, `node_${nodeId}`);
  const directory = join(node, 'tls');
  const inside = (name: string): string => join(directory, name);
  return {
    directory,
    // The names of the class that keeps them (recorder/http/own-certificate.ts).
    certificate: inside('certificate.pem'),
    key: inside('key.pem'),
    authorities: inside('authorities.pem'),
    keys: inside('keys.json'),
    authority: inside('authority.json'),
    cluster: join(node, 'cluster.json'),
  };
}

/** Undefined for a server that belongs to no cluster. Throws NodeFileError. */
export const readCluster = (files: NodeFiles): Promise<ClusterFile | undefined> =>
  readJson(files.cluster, ClusterContent);

/** Rejects with errors of the file system. */
export const writeCluster = (files: NodeFiles, cluster: ClusterFile): Promise<void> =>
  writePrivate(files.cluster, `${JSON.stringify(cluster)}\n`);

/** Throws NodeFileError. */
export const readAuthority = (files: NodeFiles): Promise<KeptAuthority | undefined> =>
  readJson(files.authority, AuthorityContent);

/** The text of `keys`. Throws NodeFileError. */
export async function readKeys(files: NodeFiles): Promise<string> {
  const text = await readPrivate(files.keys, refuse(files.keys));
  if (text === undefined) throw new NodeFileError(`${files.keys} is missing: join the cluster again`);
  return text;
}

/** Rejects with errors of the file system. */
export const writeKeys = (files: NodeFiles, text: string): Promise<void> => writePrivate(files.keys, text);

/** Writes all files; `cluster`, which makes the server a member, comes last. */
export async function writeMember(files: NodeFiles, content: MemberContent): Promise<void> {
  await mkdir(dirname(files.directory), { recursive: true, mode: 0o750 });
  await mkdir(files.directory, { recursive: true, mode: 0o700 });
  const { key, certificate, authorities, keys, authority, cluster } = content;
  await writePrivate(files.key, key);
  await writePrivate(files.authorities, authorities);
  await writePrivate(files.certificate, certificate);
  await writePrivate(files.keys, keys);
  if (authority) await writePrivate(files.authority, `${JSON.stringify(authority)}\n`);
  await writeCluster(files, cluster);
}

const refuse =
  (path: string) =>
  (problem: string): NodeFileError =>
    new NodeFileError(`${path} ${problem}`);

async function readJson<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  const text = await readPrivate(path, refuse(path));
  if (text === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new NodeFileError(`${path} is damaged: delete ${dirname(path)} and join the cluster again`, { cause });
  }
}
