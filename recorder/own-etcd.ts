// This server's member of etcd, and what it knows of the others: their addresses are kept beside its certificate, so that it finds
// them at the next start, and joins them again after its data was lost.

import { join } from 'node:path';
import { Backoff } from '../base/backoff.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/error.ts';
import { EtcdClient } from '../base/etcd/client.ts';
import type { Log } from '../base/log.ts';
import { writeCluster, type ClusterFile, type NodeFiles } from './certificates/node-files.ts';
import { EtcdMember, EtcdMemberError } from './etcd/etcd-member.ts';

type EtcdTls = NonNullable<ReturnType<NonNullable<ConstructorParameters<typeof EtcdClient>[0]['tls']>>>;

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

const CLIENT_PORT = 2379;
const PEER_PORT = 2380;
/** A member starts only with a majority of the others. Recording does not wait for it longer than this. */
const PATIENCE_MS = 5_000;
const LOOK_MS = 5_000;
/** Only a person can mend these. */
const FINAL: readonly string[] = ['NOT_INSTALLED', 'WRONG_VERSION', 'STALE_DATA'];

export class OwnEtcd {
  readonly #o: OwnEtcdOptions;
  readonly #url: string;
  readonly #own: EtcdClient;
  readonly #others: EtcdClient;
  #member: EtcdMember;
  readonly #stopping = new AbortController();
  #cluster: ClusterFile;
  #work: Promise<unknown> = Promise.resolve();
  #voting: Promise<void> | undefined;
  #hasLeft = false;

  constructor(options: OwnEtcdOptions) {
    const { host, cluster, tls } = options;
    this.#o = options;
    this.#cluster = cluster;
    this.#url = `https://${host}:${CLIENT_PORT}`;
    this.#own = new EtcdClient({ endpoints: () => [this.#url], tls });
    this.#others = new EtcdClient({ endpoints: () => this.#cluster.members, tls });
    this.#member = this.#newMember();
  }

  /** Client URLs of all members, this one first. */
  readonly urls = (): readonly string[] => [this.#url, ...this.#cluster.members];

  /** Rejects with EtcdMemberError for what only a person can mend. Goes on trying while the others are missing. */
  async start(): Promise<void> {
    const { clock, log } = this.#o;
    const { signal } = this.#stopping;
    const started = this.#start();
    this.#work = started.then(
      () => this.#follow(),
      (err: unknown) => log.error({ err }, 'etcd cannot be started'),
    );
    await Promise.race([started, clock.sleep(PATIENCE_MS, signal)]);
  }

  /**
   * Follows the role of the node: a voter gets its vote, in the background; a node that was removed leaves, and its data is erased; one
   * that was added again comes back as a learner.
   */
  async be(role: string): Promise<void> {
    if (role === 'Removed') await this.#leave();
    else if (this.#hasLeft) this.#return();
    else if (role === 'Voter') this.#vote();
  }

  /** Removes the members of these nodes. Throws EtcdError. */
  async remove(isRemoved: (nodeId: string) => Promise<boolean>): Promise<void> {
    const { nodeId, log } = this.#o;
    for (const { id, name } of await this.#own.members()) {
      // A member that has not started yet has no name. The role is asked after the list: a member in it was let in before.
      if (name === '' || name === nodeId || !(await isRemoved(name))) continue;
      await this.#own.removeMember(id);
      log.info({ member: name }, 'the member of a node that was removed is no longer in etcd');
    }
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#member.close();
    await Promise.all([this.#work, this.#voting]);
    await Promise.all([this.#own.close(), this.#others.close()]);
  }

  #vote(): void {
    const member = this.#member;
    this.#voting ??= member
      .promote(this.#stopping.signal)
      .catch((err: unknown) => this.#o.log.debug({ problem: messageOf(err) }, 'etcd has no vote yet'))
      .finally(() => (this.#voting = undefined));
  }

  async #leave(): Promise<void> {
    // Alone, it has the only copy of everything.
    if (this.#hasLeft || this.#cluster.members.length === 0) return;
    this.#hasLeft = true;
    // The leader removes it, too: it may have removed it already.
    await this.#member.leave({ force: true });
    this.#o.log.info({}, 'this node was removed: its etcd has stopped, and its data is erased');
  }

  #return(): void {
    this.#member = this.#newMember();
    this.#hasLeft = false;
    const started = this.#start().catch((err: unknown) => this.#o.log.error({ err }, 'etcd cannot be started'));
    this.#work = Promise.all([this.#work, started]);
  }

  #newMember(): EtcdMember {
    const { nodeId, host, directory, recordPath, files, clock, log } = this.#o;
    return new EtcdMember({
      directory: join(directory, 'etcd'),
      witnessFile: join(recordPath, '.kube-nvr', 'etcd-witness'),
      name: nodeId,
      peerUrl: `https://${host}:${PEER_PORT}`,
      clientUrl: this.#url,
      tls: { certificate: files.certificate, key: files.key, authorities: files.authorities },
      own: this.#own,
      others: this.#cluster.initial === 'join' ? this.#others : undefined,
      clock,
      log,
    });
  }

  async #start(): Promise<void> {
    const { clock, log } = this.#o;
    const { signal } = this.#stopping;
    const member = this.#member;
    const backoff = new Backoff({ firstMs: 500, maxMs: 10_000 });
    while (!signal.aborted && this.#member === member && !this.#hasLeft) {
      try {
        return await member.start();
      } catch (err) {
        if (err instanceof EtcdMemberError && FINAL.includes(err.code)) throw err;
        if (!signal.aborted) log.warn({ problem: messageOf(err) }, 'etcd does not run yet: it is started again');
      }
      await clock.sleep(backoff.next(), signal);
    }
  }

  async #follow(): Promise<void> {
    const { clock, log } = this.#o;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#look().catch((err: unknown) => log.debug({ problem: messageOf(err) }, 'members of etcd are unknown'));
      await clock.sleep(LOOK_MS, signal);
    }
  }

  async #look(): Promise<void> {
    const all = (await this.#own.members()).flatMap(({ clientUrls }) => clientUrls);
    const members = all.filter((url) => url !== this.#url).sort();
    const { initial, members: known } = this.#cluster;
    if (initial === 'join' && members.join() === known.join()) return;
    // From now on a start without data must not make another cluster.
    const cluster: ClusterFile = { ...this.#cluster, initial: 'join', members };
    await writeCluster(this.#o.files, cluster);
    this.#cluster = cluster;
  }
}
