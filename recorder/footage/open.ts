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
  readonly log: Log;
}

interface FootageOptions extends HoldersDeps {
  readonly recordPath: string;
  readonly archive: OwnArchive;
  readonly clock: Clock;
  readonly keepAwake?: KeepAwake;
}

/** All others that may hold footage of a camera. Never rejects. */
export async function holdersOf({ cluster, peers, log }: HoldersDeps, cameraId: string): Promise<readonly Holder[]> {
  if (!cluster || !peers) return [];
  return (await cluster.footageHolders(cameraId)).map((about) => nodeHolder(about, { peers, log }));
}

export function openFootage({ recordPath, archive, clock, keepAwake, ...around }: FootageOptions): Collector {
  const own = new OwnFootage(around.cluster?.nodeId ?? '', archive, new ArchiveFiles(recordPath, keepAwake), clock);
  return new Collector({ own, holders: (cameraId) => holdersOf(around, cameraId), clock });
}
