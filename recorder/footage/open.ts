// The footage of a node in its cluster: its own archive, and the other nodes as holders.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { PeerSender } from '../peers/peer-requests.ts';
import { ArchiveFiles, type KeepAwake } from './archive-file.ts';
import { Collector } from './collect.ts';
import type { FootageHolder } from '../contract/other-node.ts';
import type { Holder } from './holder.ts';
import { nodeHolder } from './node-holder.ts';
import { OwnFootage, type OwnArchive } from './own-footage.ts';

interface HoldersDeps {
  /** Undefined outside of a cluster. */
  readonly cluster?:
    { readonly nodeId: string; footageHolders(cameraId: string): Promise<readonly FootageHolder[]> } | undefined;
  readonly peers?: PeerSender | undefined;
  /** Places that have copies of all cameras. */
  readonly copies?: { readonly holders: readonly Holder[] } | undefined;
  readonly log: Log;
}

interface FootageOptions extends HoldersDeps {
  readonly recordPath: string;
  readonly archive: OwnArchive;
  readonly clock: Clock;
  readonly keepAwake?: KeepAwake;
}

/** All others that may hold footage of a camera, those with copies last. Never rejects. */
export async function holdersOf(
  { cluster, peers, copies, log }: HoldersDeps,
  cameraId: string,
): Promise<readonly Holder[]> {
  const nodes = cluster && peers ? await cluster.footageHolders(cameraId) : [];
  return [...nodes.map((about) => nodeHolder(about, { peers: peers as PeerSender, log })), ...(copies?.holders ?? [])];
}

export function openFootage({ recordPath, archive, clock, keepAwake, ...around }: FootageOptions): Collector {
  const rootOf = archive.rootOf?.bind(archive);
  const files = new ArchiveFiles(rootOf ?? recordPath, keepAwake);
  const own = new OwnFootage(around.cluster?.nodeId ?? '', archive, files, clock);
  return new Collector({ own, holders: (cameraId) => holdersOf(around, cameraId), clock });
}
