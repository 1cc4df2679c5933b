// The footage of a node in its cluster: its own archive, and the other nodes as holders.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { PeerSender } from '../peers/peer-requests.ts';
import { ArchiveFiles, type KeepAwake } from './archive-file.ts';
import { Collector } from './collect.ts';
import type { FootageHolder } from './holders.ts';
import { nodeHolder } from './node-holder.ts';
import { OwnFootage, type OwnArchive } from './own-footage.ts';

interface FootageOptions {
  readonly recordPath: string;
  readonly archive: OwnArchive;
  /** Undefined outside of a cluster. */
  readonly cluster?:
    { readonly nodeId: string; footageHolders(cameraId: string): Promise<readonly FootageHolder[]> } | undefined;
  readonly peers?: PeerSender | undefined;
  readonly log: Log;
  readonly clock: Clock;
  readonly keepAwake?: KeepAwake;
}

export function openFootage({ recordPath, archive, clock, log, keepAwake, cluster, peers }: FootageOptions): Collector {
  const own = new OwnFootage(cluster?.nodeId ?? '', archive, new ArchiveFiles(recordPath, keepAwake), clock);
  const holders = async (cameraId: string) =>
    cluster && peers ? (await cluster.footageHolders(cameraId)).map((about) => nodeHolder(about, { peers, log })) : [];
  return new Collector({ own, holders, clock });
}
