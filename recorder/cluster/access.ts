// The operations that a recorder's API needs from the cluster, and the control of cameras there.

import { cameraOfFootage } from '../../base/camera-id.ts';
import type { Clock } from '../../base/clock.ts';
import { SwitchError, type CameraSwitch } from '../contract/camera-switch.ts';
import type { CameraList, ListedCameras } from './camera-list.ts';
import type { Cluster } from './cluster.ts';
import type { Member, Membership } from './membership.ts';
import type { Holder, Owner } from './peers.ts';
import type { FootageHolder } from '../contract/other-node.ts';
import type { RequestOutcome, Question } from './requests.ts';
import type { Vote, Votes } from './votes.ts';

/** The members of etcd, of which a cluster of servers without Kubernetes consists. */
export interface ServersMembers {
  /**
   * Called when this node was told to leave, after its cameras were stopped: its member goes, too. `isKnown`: the cluster has recorded
   * that it left.
   */
  leave(isKnown: boolean): Promise<void>;
  /** Undefined where recorders run no etcd themselves. */
  readonly votes: Votes | undefined;
}

/** `evenLastVote`: also if no other vote answers. */
export interface Leaving {
  readonly force: boolean;
  readonly evenLastVote: boolean;
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
  readonly clock: Clock;
}

/** How long a change of the votes is waited for: a member gets one when it has the data of the leader. */
const VOTES_MS = 10_000;
const LOOK_MS = 500;

export class ClusterView {
  readonly nodeId: string;
  readonly #cluster: Cluster;
  readonly #membership: Membership;
  readonly #cameras: CameraList;
  readonly #servers: ServersMembers | undefined;
  readonly #clock: Clock;

  constructor({ nodeId, cluster, membership, cameras, servers, clock }: ClusterViewOptions) {
    this.nodeId = nodeId;
    this.#cluster = cluster;
    this.#membership = membership;
    this.#cameras = cameras;
    this.#servers = servers;
    this.#clock = clock;
  }

  async cameras(): Promise<ListedCameras & { readonly isCurrent: boolean }> {
    await this.#cluster.lookAtNodes();
    return { isCurrent: this.#cluster.isReachable, ...(await this.#cameras.list()) };
  }

  /** All cameras that this node knows about, its own and others. */
  cameraIds(): ReadonlySet<string> {
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
   * pool. Where recorders run etcd, votes are what its members say now.
   */
  async metrics(): Promise<ClusterMetrics> {
    const { status } = this.#cluster.pool ?? {};
    const { live = 0, needed = Infinity } = status?.quorum ?? {};
    const [nodes, votes] = await Promise.all([this.#membership.list(), this.#servers?.votes?.look()]);
    const leader = this.leader()?.nodeId;
    if (!votes) {
      const hasMajority = this.#cluster.isReachable && live >= needed;
      return { leader, hasMajority, voters: status?.voters ?? [], nodes };
    }
    const voters = answering(votes);
    return {
      etcdLeader: votes.find(({ leads }) => leads)?.nodeId,
      leader,
      hasMajority: voters.length * 2 > votes.filter(({ hasVote }) => hasVote).length,
      voters,
      nodes: nodes.map((node) => ({ ...node, role: roleSeen(node, votes) })),
    };
  }

  async ask(question: Question): Promise<RequestOutcome> {
    if (!this.#cluster.isReachable) return { code: 503, message: 'the cluster cannot be reached' };
    const answer = await this.#cluster.ask(question);
    const { kind, voters } = question;
    return kind === 'ChangeMembership' && voters && answer.code < 300 ? await this.#voted(voters, answer) : answer;
  }

  /** With `force`, leaves even if the operator refuses. */
  async leave({ force, evenLastVote }: Leaving): Promise<RequestOutcome> {
    const refusal = force ? await this.#refusalToLeave(evenLastVote) : undefined;
    if (refusal !== undefined) return { code: 409, message: refusal };
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

  /** The operator has accepted the change: it is done when the members of etcd say so. */
  async #voted(voters: readonly string[], answer: RequestOutcome): Promise<RequestOutcome> {
    const { votes } = this.#servers ?? {};
    if (!votes) return answer;
    const untilMs = this.#clock.monotonicMs() + VOTES_MS;
    for (;;) {
      const now = answering(await votes.look());
      const missing = voters.filter((voter) => !now.includes(voter));
      if (missing.length === 0 && now.length === voters.length) return answer;
      if (this.#clock.monotonicMs() >= untilMs) {
        const what =
          missing.length > 0 ? `${missing.join(', ')} will have a vote with the data of the leader` : 'a vote will go';
        return { code: 202, message: `accepted, not done yet: ${what} (GET /cluster/metrics)` };
      }
      await this.#clock.sleep(LOOK_MS);
    }
  }

  /** Without the data of the last vote, the cluster would never have a leader again. */
  async #refusalToLeave(evenLastVote: boolean): Promise<string | undefined> {
    const votes = (await this.#servers?.votes?.look())?.filter(({ hasVote }) => hasVote) ?? [];
    if (!votes.some(({ nodeId, answers }) => nodeId === this.nodeId && answers)) return undefined;
    if (votes.length === 1) return 'this server has the only vote: without it, there is no cluster';
    if (evenLastVote || answering(votes).length > 1) return undefined;
    return (
      `of ${votes.length} votes only that of this server answers it: if the others are down, the cluster never has a leader ` +
      'again without the data here; if this server is cut off, repeat the request with "even_last_vote": true'
    );
  }
}

const answering = (votes: readonly Vote[]): readonly string[] =>
  votes
    .filter(({ hasVote, answers }) => hasVote && answers)
    .map(({ nodeId }) => nodeId)
    .sort();

/** What etcd says of the member of a node; without a member, what is wanted of the node. */
function roleSeen({ nodeId, role }: Member, votes: readonly Vote[]): Member['role'] {
  const vote = votes.find((one) => one.nodeId === nodeId);
  if (!vote) return role === 'removed' ? 'removed' : 'learner';
  if (!vote.hasVote) return 'learner';
  return vote.answers ? 'voter' : 'silent';
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
