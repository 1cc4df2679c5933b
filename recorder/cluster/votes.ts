// What the members of etcd say of themselves: which have a vote, which of those answer, and which one leads. The role of a node is only
// what is wanted of its member. The server whose operator leads writes what it saw into the condition `EtcdMember` of each RecorderNode.

import type { Clock } from '../../base/clock.ts';
import type { EtcdClient } from '../../base/etcd/client.ts';
import type { KubernetesObject } from '../../base/kubernetes/client.ts';
import { API_VERSION, ETCD_MANAGER, RECORDER_NODES } from '../../crds/names.ts';
import { ETCD_MEMBER, type MemberState, type RecorderNode } from '../../crds/recorder-node.ts';
import type { ApiServer } from './api-server.ts';

/** A node's member of etcd. */
export interface Vote {
  readonly nodeId: string;
  readonly hasVote: boolean;
  readonly answers: boolean;
  readonly leads: boolean;
  /** For how long it has not answered; 0 while it does. Infinity: this server's own one has not answered since the start. */
  readonly silentMs: number;
}

interface VotesOptions {
  readonly nodeId: string;
  /** With a short time limit: a member that hangs must not delay those who ask. */
  readonly etcd: Pick<EtcdClient, 'members' | 'status' | 'close'>;
  readonly api: Pick<ApiServer, 'list' | 'apply'>;
  readonly namespace: string;
  readonly clock: Clock;
}

/** As long as until a node counts as unavailable. */
const SILENT_MS = 15_000;

export const isDown = ({ silentMs }: Vote): boolean => silentMs >= SILENT_MS;

export class Votes {
  readonly #options: VotesOptions;
  readonly #answeredMs = new Map<string, number>();
  #last: readonly Vote[] = [];

  constructor(options: VotesOptions) {
    this.#options = options;
  }

  /** As of the last look. */
  get last(): readonly Vote[] {
    return this.#last;
  }

  /** This server's own member; undefined while it has none. */
  get own(): Vote | undefined {
    return this.#last.find(({ nodeId }) => nodeId === this.#options.nodeId);
  }

  /** Asks every member. Without an answer of any, those that are known are silent. Takes some seconds at most. Never rejects. */
  async look(): Promise<readonly Vote[]> {
    const { etcd, nodeId, clock } = this.#options;
    // Once more: the first one that is asked may be the one that hangs.
    const listed = await etcd
      .members()
      // Nobody answers: nothing is known of the votes.
      .catch(() => etcd.members())
      .catch(() => undefined);
    // A member that has not started yet has no name.
    const members = listed?.filter(({ name }) => name !== '') ?? [];
    const states = await Promise.all(
      members.map(async ({ clientUrls: [url] }) => {
        // This member does not answer.
        return url === undefined ? undefined : etcd.status(url).catch(() => undefined);
      }),
    );
    const nowMs = clock.monotonicMs();
    if (!listed) return (this.#last = this.#last.map((vote) => this.#silent(vote, nowMs)));
    for (const id of this.#answeredMs.keys()) if (!members.some(({ name }) => name === id)) this.#answeredMs.delete(id);
    const leader = states.find((state) => state?.leaderId !== undefined)?.leaderId;
    this.#last = members.map(({ id, name, isLearner }, index): Vote => {
      const state = states[index];
      if (state) this.#answeredMs.set(name, nowMs);
      else if (!this.#answeredMs.has(name)) this.#answeredMs.set(name, name === nodeId ? -Infinity : nowMs);
      // A member that answers knows its own vote first.
      const vote = { nodeId: name, hasVote: !(state ?? { isLearner }).isLearner, leads: id === leader };
      return state ? { ...vote, answers: true, silentMs: 0 } : this.#silent(vote, nowMs);
    });
    return this.#last;
  }

  /** Writes what was seen at the last look into the conditions of the RecorderNodes. Throws ApiServerError. */
  async show(): Promise<void> {
    const { api, namespace, clock } = this.#options;
    const path = `/apis/${API_VERSION}/namespaces/${namespace}/${RECORDER_NODES}`;
    const { items } = await api.list(path);
    for (const node of items) {
      const { name } = node.metadata;
      const shown = conditionIn(node);
      const wanted = (node['spec'] as RecorderNode['spec']).role === 'Removed' ? undefined : this.#stateOf(name);
      if (shown?.reason === wanted) continue;
      const status = wanted && STATUSES[wanted];
      const time = new Date(clock.wallMs()).toISOString().replace(/\.\d{3}Z$/, 'Z');
      const lastTransitionTime = shown?.status === status ? shown?.lastTransitionTime : time;
      const condition = { type: ETCD_MEMBER, status, reason: wanted, message: wanted && MESSAGES[wanted] };
      await api.apply(`${path}/${name}/status`, ETCD_MANAGER, {
        apiVersion: API_VERSION,
        kind: 'RecorderNode',
        metadata: { name, namespace },
        status: { conditions: wanted ? [{ ...condition, lastTransitionTime }] : [] },
      });
    }
  }

  close(): Promise<void> {
    return this.#options.etcd.close();
  }

  #stateOf(node: string): MemberState {
    const vote = this.#last.find(({ nodeId }) => nodeId === node);
    if (!vote) return 'NoMember';
    if (isDown(vote)) return 'NotAnswering';
    return vote.hasVote ? 'Voting' : 'NotVoting';
  }

  #silent(vote: Omit<Vote, 'answers' | 'silentMs'>, nowMs: number): Vote {
    const silentMs = nowMs - (this.#answeredMs.get(vote.nodeId) ?? nowMs);
    return { ...vote, answers: false, leads: false, silentMs };
  }
}

const STATUSES = { Voting: 'True', NotVoting: 'True', NotAnswering: 'False', NoMember: 'Unknown' } as const;

const MESSAGES: Readonly<Record<MemberState, string>> = {
  Voting: 'its member of etcd has a vote, and answers',
  NotVoting: 'its member of etcd has no vote yet',
  NotAnswering: 'its member of etcd has not answered for 15 s',
  NoMember: 'it has no member of etcd yet: etcd takes one without a vote at a time',
};

const conditionIn = (node: KubernetesObject) =>
  (node as unknown as RecorderNode).status?.conditions?.find(({ type }) => type === ETCD_MEMBER);
