// This server's member of etcd, which follows the role of its node: none for a node that was removed or has left, without a vote for a
// learner, with one for a voter. The addresses of the other members are kept beside the certificate, so that it finds them at the next
// start, and joins them again without its data.

import { join } from 'node:path';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import type { Log } from '../../base/log.ts';
import { Turns } from '../../base/turns.ts';
import { exists } from '../../base/file-calls.ts';
import { writeCluster, type ClusterFile, type NodeFiles } from '../certificates/node-files.ts';
import { EtcdMember, EtcdMemberError } from './etcd-member.ts';
import { ETCD_PORTS } from '../config/exposure.ts';

/** PEM. */
export type EtcdTls = NonNullable<ReturnType<NonNullable<ConstructorParameters<typeof EtcdClient>[0]['tls']>>>;

interface OwnEtcdOptions {
  readonly nodeId: string;
  /** Where others reach this server, as in a URL: a name, or an address, IPv6 in brackets. */
  readonly host: string;
  /** Of the node's state. */
  readonly directory: string;
  readonly recordPath: string;
  readonly files: NodeFiles;
  readonly cluster: ClusterFile;
  readonly tls: () => EtcdTls;
  readonly clock: Clock;
  readonly log: Log;
}

/** A member starts only with a majority of the others. Recording does not wait for it longer than this. */
const PATIENCE_MS = 5_000;
const LOOK_MS = 5_000;
const QUICK_MS = 1_000;
/** A server that was let in but has not started its member for this long is in the way of others. */
const UNSTARTED_MS = 60_000;
/** Only a person can mend these. */
const FINAL: readonly string[] = ['NOT_INSTALLED', 'WRONG_VERSION', 'STALE_DATA'];

/** Of a node: see the spec of a RecorderNode. */
export type Role = 'Learner' | 'Voter' | 'Removed';

/** The change of the member that is under way: tried until it succeeds, or until the server gets another role. */
interface Step {
  readonly role: Role;
  readonly ending: AbortController;
}

export class OwnEtcd {
  readonly #options: OwnEtcdOptions;
  readonly #url: string;
  readonly #own: EtcdClient;
  readonly #others: EtcdClient;
  /** Of any member. */
  readonly #all: EtcdClient;
  /** The same for people who wait. */
  readonly #quick: EtcdClient;
  readonly #stopping = new AbortController();
  readonly #unstarted = new Map<string, number>();
  #cluster: ClusterFile;
  /** Undefined while this server has none: it has not joined yet, was removed, or has left. */
  #member: EtcdMember | undefined;
  #step: Step | undefined;
  readonly #steps = new Turns(1);
  #lookedMs = -Infinity;

  constructor(options: OwnEtcdOptions) {
    const { host, cluster, tls } = options;
    this.#options = options;
    this.#cluster = cluster;
    this.#url = `https://${host}:${ETCD_PORTS.clients}`;
    this.#own = new EtcdClient({ endpoints: () => [this.#url], tls });
    this.#others = new EtcdClient({ endpoints: () => this.#cluster.members, tls });
    this.#all = new EtcdClient({ endpoints: this.urls, tls });
    this.#quick = new EtcdClient({ endpoints: this.urls, tls, callTimeoutMs: QUICK_MS });
  }

  /** Client URLs of all members, this one first. */
  readonly urls = (): readonly string[] => [...(this.#member ? [this.#url] : []), ...this.#cluster.members];

  /** Client URLs that a server is told when it joins. */
  readonly invited = (): readonly string[] => this.urls();

  /** The CAs that the member trusts since it was started, PEM; undefined while this server has none. */
  readonly trusted = (): string | undefined => this.#member?.trusted;
  /** Starts the member again, so that it trusts the CAs of the file now. */
  readonly startAgain = (): void => this.#member?.startAgain();

  /** This server was told to leave, and the cluster does not know it yet. */
  get isLeaving(): boolean {
    return this.#cluster.isLeaving === true;
  }

  /**
   * Starts the member if it has data, or is the first one; others join when their role is known. Rejects with EtcdMemberError for what
   * only a person can mend. Does not wait longer than a few seconds while the others are missing.
   */
  async start(): Promise<void> {
    const { clock } = this.#options;
    await EtcdMember.checkVersion();
    if (this.isLeaving) return this.#newMember().erase();
    const isFirst = this.#cluster.initial === 'new';
    if (!isFirst && !(await this.#hasData())) return;
    const step = this.#begin('Learner');
    const started = this.#join(step);
    this.#inTurn(step, () => started);
    await Promise.race([started, clock.sleep(PATIENCE_MS, this.#stopping.signal)]);
  }

  /** The client URLs of the other members that answer now. */
  async answering(): Promise<readonly string[]> {
    const asked = this.#cluster.members.map((url) => this.#quick.status(url).then(() => url));
    return (await Promise.allSettled(asked)).flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  }

  /**
   * Makes a cluster of this server alone out of its own data, for one whose other servers are lost; `change` is called while etcd runs.
   * Can be repeated after a failure. Rejects with EtcdMemberError, and what `change` rejects with.
   */
  async recover(change: () => Promise<void>): Promise<void> {
    const member = this.#newMember({ isLast: true });
    this.#member = member;
    await member.start();
    await change();
    const { isLeaving: _, ...cluster } = this.#cluster;
    await this.#keep({ ...cluster, initial: 'join', members: [] });
  }

  /** To be called every few seconds with the role of the node. What that takes goes on in the background. */
  follow(role: Role): void {
    // A start is for both roles of members.
    const isSame = this.#step && (this.#step.role === role || (role !== 'Removed' && !this.#member?.isStarted));
    if (isSame || this.#stopping.signal.aborted) return;
    this.#step?.ending.abort();
    const step = this.#begin(role);
    this.#inTurn(step, () => this.#follow(step));
  }

  #inTurn(step: Step, work: () => Promise<void>): void {
    const whole = (): Promise<void> =>
      work()
        .catch((err: unknown) => this.#failed(err))
        .finally(() => this.#ended(step));
    void this.#steps.take(whole);
  }

  /**
   * Leaves the members, stops etcd and erases its data; key and certificate stay. When the others do not agree in time, they have to
   * remove the member. The only member stays, because it has the only copy of everything. `isKnown`: the role of the node is `Removed`.
   */
  async leave(isKnown: boolean): Promise<void> {
    if (this.#cluster.members.length === 0) return;
    if (!isKnown) await this.#keep({ ...this.#cluster, isLeaving: true });
    this.#step?.ending.abort();
    await this.#steps.take(() => this.#out());
  }

  /** To be called when the cluster knows that this node has left. */
  async left(): Promise<void> {
    const { isLeaving, ...cluster } = this.#cluster;
    if (isLeaving) await this.#keep(cluster);
  }

  /**
   * Removes members from etcd whose nodes may not have them: nodes that were removed, and nodes that lost their vote, which come back
   * without. One server does that for all, because a dead one cannot. Throws EtcdError, and what `roles` throws.
   */
  async enforce(roles: () => Promise<ReadonlyMap<string, Role>>): Promise<void> {
    const { log } = this.#options;
    const members = await this.#all.members();
    // Asked after the list: a member in it was let in before.
    const roleOf = await roles();
    const hasVote = (name: string): boolean => roleOf.get(name) === 'Voter';
    for (const { id, name, isLearner } of members) {
      const isOver = name === '' ? this.#isUnstarted(id) : roleOf.get(name) === 'Removed';
      const isDemoted = roleOf.get(name) === 'Learner' && !isLearner;
      // Before the first node has its vote, the first member has one already.
      const mayGo = members.some((other) => other.id !== id && !other.isLearner && hasVote(other.name));
      if (!isOver && !(isDemoted && mayGo)) continue;
      await this.#all.removeMember(id);
      log.info({ member: name }, 'a member was removed from etcd, because its node was removed or has lost its vote');
    }
    for (const id of this.#unstarted.keys()) if (!members.some((one) => one.id === id)) this.#unstarted.delete(id);
  }

  /** Removes the member of a node, if it has one. Throws EtcdError, also while etcd refuses changes for some seconds. */
  async expel(nodeId: string): Promise<void> {
    const members = await this.#all.members();
    for (const { id } of members.filter(({ name }) => name === nodeId)) await this.#all.removeMember(id);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    this.#step?.ending.abort();
    await this.#member?.close();
    await this.#steps.idle();
    await Promise.all([this.#own.close(), this.#others.close(), this.#all.close(), this.#quick.close()]);
  }

  get #directory(): string {
    return join(this.#options.directory, 'etcd');
  }

  #hasData(): Promise<boolean> {
    return exists(join(this.#directory, 'member'));
  }

  #begin(role: Role): Step {
    return (this.#step = { role, ending: new AbortController() });
  }

  #ended(step: Step): void {
    if (this.#step === step) this.#step = undefined;
  }

  #failed(err: unknown): void {
    const { log } = this.#options;
    if (this.#stopping.signal.aborted) return;
    if (err instanceof EtcdMemberError) log.error({ err }, 'etcd cannot be started');
    else log.debug({ problem: messageOf(err) }, 'the member of etcd does not have the role of its node yet');
  }

  async #follow(step: Step): Promise<void> {
    const { role, ending } = step;
    const { log } = this.#options;
    if (ending.signal.aborted) return;
    if (role === 'Removed') return this.#out();
    if (this.isLeaving) return;
    if (await this.#member?.isRemoved()) {
      log.info({}, 'the member of this server was removed from etcd: it joins again without its data');
      await this.#member?.erase();
      this.#member = undefined;
    }
    if (!this.#member) await this.#join(step);
    else if (role === 'Voter') await this.#member.promote(ending.signal);
    await this.#look();
  }

  async #out(): Promise<void> {
    const member = this.#member;
    // Alone, it has the only copy of everything.
    if (this.#cluster.members.length === 0 || (!member && !(await this.#hasData()))) return;
    this.#member = undefined;
    await (member ? member.leave({ force: true }) : this.#newMember().erase());
    this.#options.log.info(
      {},
      'this node is no member of the cluster now: its etcd has stopped, and its data is erased',
    );
  }

  /** Tries until the member runs, because etcd may need others that are missing. */
  async #join({ ending }: Step): Promise<void> {
    const { clock, log } = this.#options;
    const signal = AbortSignal.any([ending.signal, this.#stopping.signal]);
    const backoff = new Backoff({ firstMs: 500, maxMs: 10_000 });
    while (!signal.aborted) {
      const member = this.#newMember();
      const end = (): void => void member.close();
      signal.addEventListener('abort', end, { once: true });
      this.#member = member;
      try {
        return await member.start();
      } catch (err) {
        await member.close();
        this.#member = undefined;
        // Its role says whether it joins again.
        if (await member.isRemoved()) return await member.erase();
        if (err instanceof EtcdMemberError && FINAL.includes(err.code)) throw err;
        if (!signal.aborted) log.info({ problem: messageOf(err) }, 'etcd does not run yet: it is started again');
      } finally {
        signal.removeEventListener('abort', end);
      }
      await clock.sleep(backoff.next(), signal);
    }
  }

  #newMember({ isLast = false } = {}): EtcdMember {
    const { nodeId, host, recordPath, files, clock, log } = this.#options;
    return new EtcdMember({
      directory: this.#directory,
      witnessFile: join(recordPath, '.kube-nvr', 'etcd-witness'),
      name: nodeId,
      peerUrl: `https://${host}:${ETCD_PORTS.peers}`,
      clientUrl: this.#url,
      tls: { certificate: files.certificate, key: files.key, authorities: files.authorities },
      own: this.#own,
      others: this.#others,
      isFirst: this.#cluster.initial === 'new',
      isLast,
      clock,
      log,
    });
  }

  #isUnstarted(id: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    const sinceMs = this.#unstarted.get(id) ?? nowMs;
    this.#unstarted.set(id, sinceMs);
    return nowMs - sinceMs > UNSTARTED_MS;
  }

  /** Keeps the addresses of the members. */
  async #look(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    const all = (await this.#all.members()).flatMap(({ clientUrls }) => clientUrls);
    const members = all.filter((url) => url !== this.#url).sort();
    const { initial, members: known } = this.#cluster;
    if (initial === 'join' && members.join() === known.join()) return;
    // From now on a start without data must not make another cluster.
    await this.#keep({ ...this.#cluster, initial: 'join', members });
  }

  async #keep(cluster: ClusterFile): Promise<void> {
    await writeCluster(this.#options.files, cluster);
    this.#cluster = cluster;
  }
}
