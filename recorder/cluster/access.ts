// The operations that a recorder's API needs from the cluster, and the control of cameras there.

import { cameraOfFootage } from '../../base/camera-id.ts';
import { SwitchError, type CameraSwitch } from '../camera/switch.ts';
import type { CameraList, ListedCameras } from './camera-list.ts';
import type { Cluster } from './cluster.ts';
import type { Member, Membership } from './membership.ts';
import type { Holder, Owner } from './peers.ts';
import type { FootageHolder } from '../peers/peer.ts';
import type { Answer, Question } from './requests.ts';

/** The members of etcd, of which a cluster of servers without Kubernetes consists. */
export interface ServersMembers {
  /**
   * Called when this node was told to leave, after its cameras were stopped: its member goes, too. `isKnown`: the cluster has recorded
   * that it left.
   */
  leave(isKnown: boolean): Promise<void>;
  /** The node whose member leads; undefined if nobody knows. Takes some seconds at most. Never rejects. */
  leader(): Promise<string | undefined>;
}

export interface ClusterMetrics {
  /** The node whose member of etcd leads, on servers without Kubernetes. */
  readonly etcdLeader?: string | undefined;
  readonly leader: string | undefined;
  readonly hasMajority: boolean;
  readonly voters: readonly string[];
  readonly nodes: readonly Member[];
}

interface ClusterViewOptions {
  readonly nodeId: string;
  readonly cluster: Cluster;
  readonly membership: Membership;
  readonly cameras: CameraList;
  readonly servers?: ServersMembers | undefined;
}

export class ClusterView {
  readonly nodeId: string;
  readonly #cluster: Cluster;
  readonly #membership: Membership;
  readonly #cameras: CameraList;
  readonly #servers: ServersMembers | undefined;

  constructor({ nodeId, cluster, membership, cameras, servers }: ClusterViewOptions) {
    this.nodeId = nodeId;
    this.#cluster = cluster;
    this.#membership = membership;
    this.#cameras = cameras;
    this.#servers = servers;
  }

  async cameras(): Promise<ListedCameras & { readonly isCurrent: boolean }> {
    await this.#cluster.lookAtNodes();
    return { isCurrent: this.#cluster.isReachable, ...(await this.#cameras.list()) };
  }

  /** All cameras that this node knows about, its own and others. */
  cameraIds(): Iterable<string> {
    return new Set([...this.others().keys(), ...this.#cameras.ids()]);
  }

  origins(): readonly string[] {
    return this.#cluster.peers.members();
  }

  /** To be awaited before a question about other nodes is answered. Takes a second at most. Never rejects. */
  lookAtNodes(): Promise<void> {
    return this.#cluster.lookAtNodes();
  }

  /** The base URLs of the listeners of all nodes. */
  places(): readonly { readonly nodeId: string; readonly url: string }[] {
    return this.#cluster.peers.places();
  }

  playbackOrigins(): readonly string[] {
    return this.#cluster.peers.playbacks();
  }

  ownerOf(cameraId: string): Owner | undefined {
    return this.#cluster.peers.ownerOf(cameraId);
  }

  holdersOf(cameraId: string): readonly Holder[] {
    return this.#cluster.peers.holdersOf(cameraOfFootage(cameraId));
  }

  /** The same with whether each is online, within about a second. Never rejects. */
  async footageHolders(cameraId: string): Promise<readonly FootageHolder[]> {
    await Promise.all([this.#cameras.lookAtNodes(), this.lookAtNodes()]);
    return this.holdersOf(cameraId).map(({ nodeId, oldestMs, newestMs, isRecording }) => {
      const isOnline = this.#cluster.isReachable ? this.#membership.isOnline(nodeId) : undefined;
      return { nodeId, oldestMs, newestMs: isRecording && isOnline !== false ? undefined : newestMs, isOnline };
    });
  }

  others(): ReadonlyMap<string, Owner> {
    return this.#cluster.peers.others();
  }

  leader(): { nodeId: string; url: string | undefined } | undefined {
    return this.#cluster.isReachable ? this.#cluster.peers.leader() : undefined;
  }

  /**
   * The nodes as of the last list: a client may ask every recorder, and the lists would grow with the square of the
   * pool.
   */
  async metrics(): Promise<ClusterMetrics> {
    const { status } = this.#cluster.pool ?? {};
    const { live = 0, needed = Infinity } = status?.quorum ?? {};
    const [nodes, etcdLeader] = await Promise.all([this.#membership.list(), this.#servers?.leader()]);
    return {
      etcdLeader,
      leader: this.leader()?.nodeId,
      hasMajority: this.#cluster.isReachable && live >= needed,
      voters: status?.voters ?? [],
      nodes,
    };
  }

  ask(question: Question): Promise<Answer> {
    if (!this.#cluster.isReachable) return Promise.resolve({ code: 503, message: 'the cluster cannot be reached' });
    return this.#cluster.ask(question);
  }

  /** With `force`, leaves even if the operator refuses. */
  async leave(force: boolean): Promise<Answer> {
    const answer = await this.ask({ kind: 'Leave', ...(force && { force }) });
    if (answer.code >= 300 && !force) return answer;
    await this.#cluster.leave();
    await this.#servers?.leave(answer.code < 300);
    return answer.code < 300
      ? answer
      : {
          code: 200,
          message: `left; the cluster was not informed (${answer.message}): remove the node on the leader`,
        };
  }
}

/** Starts and stops cameras through `status.override`, which only the operator may write. */
export class ClusterSwitch implements CameraSwitch {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  start(cameraId: string, by: string): Promise<number> {
    return this.#suspend(cameraId, false, by);
  }

  stop(cameraId: string, by: string): Promise<number> {
    return this.#suspend(cameraId, true, by);
  }

  async #suspend(cameraId: string, suspend: boolean, by: string): Promise<number> {
    const assignment = this.#cluster.assignmentOf(cameraId);
    if (!assignment) throw new SwitchError('unknown-camera', 'this node does not know such a camera');
    if ((assignment.state === 'suspended') === suspend) return 0;
    if (!this.#cluster.isReachable) throw new SwitchError('switch-not-kept', 'the cluster cannot be reached');
    const { code, message } = await this.#cluster.ask({
      kind: 'Suspend',
      camera: cameraId,
      suspend,
      by: by.slice(0, 256),
    });
    if (code === 404) throw new SwitchError('unknown-camera', message);
    if (code >= 300) throw new SwitchError('switch-not-kept', message);
    return 1;
  }
}
