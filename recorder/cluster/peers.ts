// What a node knows of the others: their addresses, what they record, who leads. RecorderNodes and the RecorderPool in,
// answers to the API's questions out; pure. It is as old as the last word of the API server.

import type { Camera } from '../../crds/camera.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';

export interface Peer {
  readonly nodeID: string;
  /** Base of its API, as `http://10.0.0.7:9997`; undefined until it has said so. */
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
  readonly #tls: boolean;
  readonly #facts: () => PeerFacts;

  constructor(nodeID: string, tls: boolean, facts: () => PeerFacts) {
    this.#nodeID = nodeID;
    this.#tls = tls;
    this.#facts = facts;
  }

  /** The other node that records a camera, as reports tell; of two, the one with the higher epoch. */
  ownerOf(cameraID: string): Owner | undefined {
    let owner: Owner | undefined;
    for (const [nodeID, node] of this.#facts().nodes) {
      if (nodeID === this.#nodeID) continue;
      const report = node.status?.cameras?.find(({ name }) => name === cameraID);
      if (report && report.epoch > (owner?.epoch ?? 0)) owner = { ...this.#peer(node), epoch: report.epoch };
    }
    return owner;
  }

  /** The owner in a Camera that was just read, when it is another node. */
  ownerIn(camera: Camera): Owner | undefined {
    const assignment = camera.status?.assignment;
    if (assignment?.node === undefined || assignment.node === this.#nodeID) return undefined;
    const node = this.#facts().nodes.get(assignment.node);
    return { nodeID: assignment.node, url: node && this.#peer(node).url, epoch: assignment.epoch };
  }

  /** The other nodes that hold footage of a camera. */
  holdersOf(cameraID: string): Holder[] {
    const holders: Holder[] = [];
    for (const [nodeID, node] of this.#facts().nodes) {
      if (nodeID === this.#nodeID) continue;
      const archive = node.status?.archives?.find(({ camera }) => camera === cameraID);
      if (!archive) continue;
      holders.push({ ...this.#peer(node), playbackUrl: this.#playbackOf(node), ...archiveTimes(archive) });
    }
    return holders;
  }

  /** Cameras of the other nodes, by the higher epoch where two report one. */
  others(): ReadonlyMap<string, Owner> {
    const owners = new Map<string, Owner>();
    for (const [nodeID, node] of this.#facts().nodes) {
      if (nodeID === this.#nodeID) continue;
      for (const { name, epoch } of node.status?.cameras ?? []) {
        if (epoch > (owners.get(name)?.epoch ?? 0)) owners.set(name, { ...this.#peer(node), epoch });
      }
    }
    return owners;
  }

  /** Addresses that belong to the cluster. */
  members(): readonly string[] {
    return [...this.#facts().nodes.values()].flatMap((node) => this.#peer(node).url ?? []);
  }

  /** The node that serves changes of the membership; undefined without majority. */
  leader(): Peer | undefined {
    const { pool, nodes } = this.#facts();
    const leader = pool?.status?.leader;
    if (leader === undefined) return undefined;
    const node = nodes.get(leader);
    return node ? this.#peer(node) : { nodeID: leader, url: undefined };
  }

  #peer(node: RecorderNode): Peer {
    return { nodeID: node.metadata.name, url: urlOf(node.status?.address, this.#tls) };
  }

  #playbackOf(node: RecorderNode): string | undefined {
    return urlOf(node.status?.playbackAddress, this.#tls);
  }
}

type ReportedArchive = NonNullable<NonNullable<RecorderNode['status']>['archives']>[number];

/** From when to when a node told that it has footage. */
export const archiveTimes = ({ oldestTime, newestTime }: ReportedArchive): Pick<Holder, 'oldestMs' | 'newestMs'> => ({
  oldestMs: timeOf(oldestTime),
  newestMs: timeOf(newestTime),
});

const timeOf = (time: string | undefined): number | undefined => (time === undefined ? undefined : Date.parse(time));
