// What a node knows of the others: their addresses, what they record, who leads. RecorderNodes and the RecorderPool in,
// answers to the API's questions out; pure. It is as old as the last word of the API server. Addresses are what the operator
// says: a browser sends the token of its user there, and what a recorder writes of itself, its token is enough to write.

import { believedReports, type RecorderNode } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';

export interface Peer {
  readonly nodeID: string;
  /** Base of its API, as `http://10.0.0.7:9997`; undefined until the operator has said so. */
  readonly url: string | undefined;
}

/** Where a camera is recorded. */
export interface Owner extends Peer {
  readonly epoch: number;
}

/** A node that holds footage of a camera. Milliseconds since 1970, coarse. */
export interface Holder extends Peer {
  /** Where it plays its recordings. */
  readonly playbackUrl: string | undefined;
  readonly oldestMs: number | undefined;
  readonly newestMs: number | undefined;
}

export interface PeerListener {
  readonly nodeID: string;
  readonly address: string;
  readonly peerAddress: string | undefined;
}

export interface PeerFacts {
  readonly nodes: ReadonlyMap<string, RecorderNode>;
  readonly pool: RecorderPool | undefined;
}

/** `tls`: an address without a scheme is reached by HTTPS. */
export function urlOf(address: string | undefined, tls: boolean): string | undefined {
  if (address === undefined || address === '') return undefined;
  const text = /^https?:\/\//.test(address) ? address : `${tls ? 'https' : 'http'}://${address}`;
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

export class Peers {
  readonly #nodeID: string;
  readonly #facts: () => PeerFacts;
  /** Undefined until somebody asks. */
  #others: ReadonlyMap<string, Owner> | undefined;

  constructor(nodeID: string, facts: () => PeerFacts) {
    this.#nodeID = nodeID;
    this.#facts = facts;
  }

  /** The facts are others now. */
  changed(): void {
    this.#others = undefined;
  }

  /**
   * The other node that records a camera. Anybody may ask, as often as he likes and for cameras that do not exist: it
   * costs one look into what is known.
   */
  ownerOf(cameraID: string): Owner | undefined {
    return this.others().get(cameraID);
  }

  /** The other nodes that hold footage of a camera. */
  holdersOf(cameraID: string): Holder[] {
    const holders: Holder[] = [];
    for (const [nodeID, node] of this.#facts().nodes) {
      if (nodeID === this.#nodeID) continue;
      const archive = node.status?.archives?.find(({ camera }) => camera === cameraID);
      if (!archive) continue;
      holders.push({ ...peerOf(node), playbackUrl: node.spec.playbackAddress, ...archiveTimes(archive) });
    }
    return holders;
  }

  /** Cameras of the other nodes, by the higher epoch where two report one. */
  others(): ReadonlyMap<string, Owner> {
    this.#others ??= this.#readOthers();
    return this.#others;
  }

  /** Addresses that belong to the cluster. */
  members(): readonly string[] {
    return this.#addresses(({ address }) => address);
  }

  /** The nodes, with their listeners for each other where they have one. */
  listeners(): readonly PeerListener[] {
    return Array.from(this.#facts().nodes.values()).flatMap(({ metadata, spec }) =>
      spec.address === undefined
        ? []
        : [{ address: spec.address, peerAddress: spec.peerAddress, nodeID: metadata.name }],
    );
  }

  /** Of the playback listeners. */
  playbacks(): readonly string[] {
    return this.#addresses(({ playbackAddress }) => playbackAddress);
  }

  /** The node that serves changes of the membership; undefined without majority. */
  leader(): Peer | undefined {
    const { pool, nodes } = this.#facts();
    const leader = pool?.status?.leader;
    if (leader === undefined) return undefined;
    const node = nodes.get(leader);
    return node ? peerOf(node) : { nodeID: leader, url: undefined };
  }

  #readOthers(): ReadonlyMap<string, Owner> {
    const owners = new Map<string, Owner>();
    for (const [nodeID, node] of this.#facts().nodes) {
      if (nodeID === this.#nodeID) continue;
      for (const { name, epoch } of believedReports(node)) {
        if (epoch > (owners.get(name)?.epoch ?? 0)) owners.set(name, { ...peerOf(node), epoch });
      }
    }
    return owners;
  }

  #addresses(of: (spec: RecorderNode['spec']) => string | undefined): readonly string[] {
    return Array.from(this.#facts().nodes.values(), ({ spec }) => of(spec)).filter((address) => address !== undefined);
  }
}

const peerOf = ({ metadata, spec }: RecorderNode): Peer => ({ nodeID: metadata.name, url: spec.address });

type ReportedArchive = NonNullable<NonNullable<RecorderNode['status']>['archives']>[number];

/** From when to when a node told that it has footage. */
export const archiveTimes = ({ oldestTime, newestTime }: ReportedArchive): Pick<Holder, 'oldestMs' | 'newestMs'> => ({
  oldestMs: timeOf(oldestTime),
  newestMs: timeOf(newestTime),
});

const timeOf = (time: string | undefined): number | undefined => (time === undefined ? undefined : Date.parse(time));
