// What a node knows of the others: their addresses, what they record, which one leads. Computed from the RecorderNodes and the
// RecorderPool, as last received from the API server. Pure. Addresses are those that the operator wrote, because browsers send
// their users' tokens there, and the stolen token of a recorder could change what that recorder writes.

import { isDeepStrictEqual } from 'node:util';
import { believedReports, type RecorderNode } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { ClusterSessions } from '../contract/cluster-sessions.ts';
import type { PeerNode } from '../contract/other-node.ts';

export interface Peer {
  readonly nodeId: string;
  /** Base URL of its API, such as `http://10.0.0.7:9997`; undefined until the operator has set it. */
  readonly url: string | undefined;
}

/** The node that records a camera. */
export interface Owner extends Peer {
  readonly epoch: number;
}

/** A node that has footage of a camera. Milliseconds since 1970, coarse. */
export interface Holder extends Peer {
  readonly playbackUrl: string | undefined;
  readonly oldestMs: number | undefined;
  readonly newestMs: number | undefined;
  /** It records the camera, and has more footage since it reported. */
  readonly isRecording: boolean;
}

interface PeerListener {
  readonly nodeId: string;
  readonly address: string;
  readonly peerAddress: string | undefined;
}

interface PeerFacts {
  readonly nodes: ReadonlyMap<string, RecorderNode>;
  readonly pool: RecorderPool | undefined;
}

/** `tls`: an address without a scheme uses HTTPS. */
export function urlOf(address: string | undefined, tls: boolean): string | undefined {
  if (address === undefined || address === '') return undefined;
  const text = /^https?:\/\//.test(address) ? address : `${tls ? 'https' : 'http'}://${address}`;
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

export class Peers {
  readonly #nodeId: string;
  readonly #facts: () => PeerFacts;
  /** Undefined until first needed. */
  #others: ReadonlyMap<string, Owner> | undefined;
  #sessions: ClusterSessions = { keys: new Map(), ended: [] };
  #sessionsChanged = (_sessions: ClusterSessions): void => {};

  constructor(nodeId: string, facts: () => PeerFacts) {
    this.#nodeId = nodeId;
    this.#facts = facts;
  }

  /** Call when the facts have changed. */
  changed(): void {
    this.#others = undefined;
    const nodes = [...this.#facts().nodes.values()];
    const keys = new Map(nodes.flatMap(sessionKeyOf));
    const ended = nodes.flatMap(endedAt);
    const sessions = { keys, ended };
    if (isDeepStrictEqual(sessions, this.#sessions)) return;
    this.#sessions = sessions;
    this.#sessionsChanged(sessions);
  }

  /** Members are the nodes that the store has: the certificate of another one may still be valid. Before the first list all that have one are. */
  isMember(nodeId: string): boolean {
    const { nodes } = this.#facts();
    const node = nodes.get(nodeId);
    return nodes.size === 0 || (node !== undefined && node.spec.role !== 'Removed');
  }

  /** Calls `changed` with the sessions of the other members, now and when a key has come, gone or changed, or sessions were ended. */
  followSessions(changed: (sessions: ClusterSessions) => void): void {
    this.#sessionsChanged = changed;
    changed(this.#sessions);
  }

  /** The other node that records a camera. Just a lookup, so callers may ask often and for cameras that do not exist. */
  ownerOf(cameraId: string): Owner | undefined {
    return this.others().get(cameraId);
  }

  /** The other nodes that have footage of a camera. */
  holdersOf(cameraId: string): Holder[] {
    const holders: Holder[] = [];
    for (const [nodeId, node] of this.#facts().nodes) {
      if (nodeId === this.#nodeId) continue;
      const archive = node.status?.archives?.find(({ camera }) => camera === cameraId);
      if (!archive) continue;
      const recorded = node.status?.cameras?.find(({ name }) => name === cameraId);
      holders.push({
        ...peerOf(node),
        playbackUrl: node.spec.playbackAddress,
        ...archiveTimes(archive, recorded?.lastWrittenTime),
        isRecording: recorded !== undefined,
      });
    }
    return holders;
  }

  /** Another node, with its addresses; its identity belongs to its listener for members. */
  find(nodeId: string): (Omit<PeerNode, 'mutual'> & { readonly peerAddress: string | undefined }) | undefined {
    const node = nodeId === this.#nodeId ? undefined : this.#facts().nodes.get(nodeId);
    if (!node) return undefined;
    const { address, playbackAddress, peerAddress } = node.spec;
    return { nodeId, urls: { api: address, playback: playbackAddress }, peerAddress };
  }

  /** The cameras of the other nodes; if two report one, the higher epoch counts. */
  others(): ReadonlyMap<string, Owner> {
    this.#others ??= this.#readOthers();
    return this.#others;
  }

  /** The base URLs of the listeners of all nodes. */
  places(): readonly { readonly nodeId: string; readonly url: string }[] {
    return Array.from(this.#facts().nodes.values()).flatMap(({ metadata: { name: nodeId }, spec }) =>
      [spec.address, spec.playbackAddress].flatMap((url) => (url === undefined ? [] : [{ nodeId, url }])),
    );
  }

  /** The addresses of all nodes of the cluster. */
  members(): readonly string[] {
    return this.#addresses(({ address }) => address);
  }

  /** The nodes, with their listeners for peers if they have one. */
  listeners(): readonly PeerListener[] {
    return Array.from(this.#facts().nodes.values()).flatMap(({ metadata, spec }) =>
      spec.address === undefined
        ? []
        : [{ address: spec.address, peerAddress: spec.peerAddress, nodeId: metadata.name }],
    );
  }

  playbacks(): readonly string[] {
    return this.#addresses(({ playbackAddress }) => playbackAddress);
  }

  /** The node that accepts changes of the membership; undefined without a majority. */
  leader(): Peer | undefined {
    const { pool, nodes } = this.#facts();
    const leader = pool?.status?.leader;
    if (leader === undefined) return undefined;
    const node = nodes.get(leader);
    return node ? peerOf(node) : { nodeId: leader, url: undefined };
  }

  #readOthers(): ReadonlyMap<string, Owner> {
    const owners = new Map<string, Owner>();
    for (const [nodeId, node] of this.#facts().nodes) {
      if (nodeId === this.#nodeId) continue;
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

const sessionKeyOf = ({ metadata, spec, status }: RecorderNode): [string, string][] =>
  spec.role === 'Removed' || status?.sessionKey === undefined ? [] : [[metadata.name, status.sessionKey]];

const endedAt = ({ spec, status }: RecorderNode): ClusterSessions['ended'] =>
  spec.role === 'Removed'
    ? []
    : (status?.endedSessions ?? []).map(({ of, endedTime }) => ({ of, atMs: Date.parse(endedTime) }));

const peerOf = ({ metadata, spec }: RecorderNode): Peer => ({ nodeId: metadata.name, url: spec.address });

type ReportedArchive = NonNullable<NonNullable<RecorderNode['status']>['archives']>[number];

/** The period of a node's footage, as the node reported it. */
export function archiveTimes(
  { oldestTime, newestTime }: ReportedArchive,
  lastWrittenTime?: string,
): Pick<Holder, 'oldestMs' | 'newestMs'> {
  const ends = [newestTime, lastWrittenTime].flatMap((time) => timeOf(time) ?? []);
  return { oldestMs: timeOf(oldestTime), newestMs: ends.length > 0 ? Math.max(...ends) : undefined };
}

const timeOf = (time: string | undefined): number | undefined => (time === undefined ? undefined : Date.parse(time));
