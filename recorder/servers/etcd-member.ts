// Runs the recorder's own member of etcd, from the system's package. It is started again when it ends, and it ends with the recorder.
// Its data must not come from a backup, because a member that forgot its votes may break the consensus. So a counter in its directory
// is also kept with the archive, which no backup restores, as for the copy of the assignments. It grows at each start and stop, and each
// minute.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { ANSWERS_ONLY, startChild, type ChildLimits } from '../../base/child.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { CodedError, errorCode } from '../../base/error.ts';
import { EtcdError, type EtcdClient } from '../../base/etcd/client.ts';
import { hostOfUrl } from '../../base/host.ts';
import { endChild, keepRunning } from '../../base/keep-running.ts';
import type { Log } from '../../base/log.ts';
import { writePrivate } from '../../base/private-file.ts';
import { exists } from '../../base/file-calls.ts';

interface EtcdMemberOptions {
  /** The directory of the data; created if it is missing. */
  readonly directory: string;
  /** The directory of the counter's second copy; on the disk of the archive. */
  readonly witnessFile: string;
  readonly name: string;
  /** The URL for other members: `https://10.0.0.7:2380`. With a name, it listens on all addresses. */
  readonly peerUrl: string;
  /** The URL for clients: `https://10.0.0.7:2379`. */
  readonly clientUrl: string;
  /** Paths of PEM files. Undefined: without TLS. */
  readonly tls?: { readonly certificate: string; readonly key: string; readonly authorities: string } | undefined;
  readonly own: EtcdClient;
  readonly others?: EtcdClient | undefined;
  /** Without data it makes a cluster; others join one. Default: it does if it has no others. */
  readonly isFirst?: boolean | undefined;
  /**
   * Its data becomes a cluster of this member alone, whatever the others say and wherever it comes from: for a server that is the last
   * one.
   */
  readonly isLast?: boolean | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly program?: string;
}

type EtcdMemberErrorCode = 'NOT_INSTALLED' | 'WRONG_VERSION' | 'STALE_DATA' | 'NO_DATA' | 'NOT_STARTED' | 'NOT_REMOVED';
/** `NOT_STARTED`: it ended, or did not answer in time. */
export class EtcdMemberError extends CodedError<EtcdMemberErrorCode> {}

const PROGRAM = 'etcd';
/** Learners came with 3.4; later minor versions keep the interface that is used here. */
const SUPPORTED = { major: 3, least: 4, most: 6 };
const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 5_000;
const POLL_MS = 50;
const COUNT_MS = 60_000;
const CHANGE_TIMEOUT_MS = 20_000;
const LEAVE_TIMEOUT_MS = 5_000;
const PASSING = /unhealthy cluster|too many learner|already exists|member not found/i;
const GONE = /member not found/i;
/** What etcd says when a learner is made the only member. */
const NO_VOTE = 'removed all voters';
/** How often a learner asks to be promoted; etcd agrees once it has caught up. */
const PROMOTE_MS = 500;
/** etcd maps its database into memory, and keeps two gigabytes of it at most by default. */
const LIMITS: ChildLimits = { openFiles: 4096 };

export class EtcdMember {
  readonly #options: EtcdMemberOptions;
  readonly #stopping = new AbortController();
  #child: ChildProcess | undefined;
  /** The process that ends, so that the next one trusts other CAs. */
  #ending: ChildProcess | undefined;
  #trusted: string | undefined;
  #supervised: Promise<void> = Promise.resolve();
  #counting: Timer | undefined;
  /** As it was kept last; undefined before it has started. */
  #count: number | undefined;
  #counted: Promise<void> = Promise.resolve();

  constructor(options: EtcdMemberOptions) {
    this.#options = options;
  }

  /** Resolves when the member answers; it may still be a learner. Rejects with EtcdMemberError or EtcdError. */
  async start(): Promise<void> {
    const { directory, isLast, clock, log } = this.#options;
    await EtcdMember.checkVersion(this.#options.program);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const isNew = !(await exists(join(directory, 'member')));
    const count = isNew ? await this.#witness() : await this.#checkCount();
    if (isLast && isNew) throw new EtcdMemberError('NO_DATA', `${directory} has no data of etcd`);
    const initial = isNew ? await this.#introduce() : isLast ? ['--force-new-cluster'] : [];
    await this.#launch(initial);
    await this.#keepCount(count + 1);
    const supervised = { program: 'etcd', child: () => this.#child, launch: () => this.#launch([]), clock, log };
    this.#supervised = keepRunning(supervised, this.#stopping.signal);
  }

  /** Gives a learner its vote as soon as it has caught up with the leader. Resolves at once if it has one. */
  async promote(signal: AbortSignal): Promise<void> {
    const { own, others = own, clock, clientUrl } = this.#options;
    for (;;) {
      signal.throwIfAborted();
      const { memberId, isLearner } = await own.status(clientUrl);
      if (!isLearner) return;
      try {
        await others.promoteMember(memberId);
      } catch (err) {
        if (!(err instanceof EtcdError)) throw err;
      }
      // Refused also after the promotion: this member may not know of it yet.
      await clock.sleep(PROMOTE_MS, signal);
    }
  }

  /** Whether others have removed this member: what it kept is of no use then. False while nobody knows. */
  async isRemoved(): Promise<boolean> {
    const { own, others, clientUrl, peerUrl } = this.#options;
    // It may be missing in the list of a member that lags behind, but then it runs.
    if (!others || (await answers(own, clientUrl))) return false;
    // Nobody answers: nothing is known of the members.
    const members = await others.members().catch(() => undefined);
    return members !== undefined && !members.some(({ peerUrls }) => peerUrls.includes(peerUrl));
  }

  /**
   * Leaves the cluster, stops, and erases the data. With `force` it does so even without the agreement of the others, who then have
   * to remove the member. Rejects with NOT_REMOVED.
   */
  async leave({ force }: { readonly force: boolean }): Promise<void> {
    const { own, others = own, clientUrl, log } = this.#options;
    try {
      const { memberId } = await own.status(clientUrl);
      await this.#accepted(() => removed(others, memberId), LEAVE_TIMEOUT_MS);
    } catch (cause) {
      if (!force) throw new EtcdMemberError('NOT_REMOVED', 'the cluster does not accept the change', { cause });
      log.warn({ err: cause }, 'the member left without the agreement of the cluster: remove it on the leader');
    }
    await this.erase();
  }

  /** Stops, and erases the data. */
  async erase(): Promise<void> {
    await this.close();
    await rm(this.#options.directory, { recursive: true, force: true });
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    this.#counting?.cancel();
    if (this.#child) await endChild(this.#child, STOP_TIMEOUT_MS, this.#options.clock);
    await this.#supervised;
    await this.#counted;
    // Also a copy that was made just before, while it ran, is older than what it has written now.
    if (this.#count !== undefined) await this.#keepCount(this.#count + 1).catch(this.#uncounted);
  }

  /** The CAs that it trusts since it was started; PEM. Undefined before, and without TLS. */
  get trusted(): string | undefined {
    return this.#trusted;
  }

  /** Ends it, after which it is started as at any end: with the CAs that it must trust now. The others serve its clients meanwhile. */
  startAgain(): void {
    const child = this.#child;
    if (!child || child === this.#ending) return;
    this.#ending = child;
    this.#options.log.info({}, 'etcd is started again, because the CAs of the cluster have changed');
    void endChild(child, STOP_TIMEOUT_MS, this.#options.clock);
  }

  /** It has answered once. */
  get isStarted(): boolean {
    return this.#counting !== undefined;
  }

  /** The process id of the running member. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Rejects with NOT_INSTALLED or WRONG_VERSION. */
  static async checkVersion(program = PROGRAM): Promise<void> {
    const child = startChild(program, ['--version'], { stdio: ['ignore', 'pipe', 'ignore'], limits: ANSWERS_ONLY });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part.slice(0, 1_000)));
    try {
      await once(child, 'close');
    } catch (cause) {
      if (errorCode(cause) !== 'ENOENT') throw cause;
      const how = 'install it (Debian and Ubuntu: apt install etcd-server; Fedora and RHEL: dnf install etcd)';
      throw new EtcdMemberError('NOT_INSTALLED', `the program ${program} is not installed: ${how}`, { cause });
    }
    const [, version = 'of an unknown version', major, minor] = /etcd Version: ((\d+)\.(\d+)\.\S+)/.exec(text) ?? [];
    const isSupported =
      Number(major) === SUPPORTED.major && Number(minor) >= SUPPORTED.least && Number(minor) <= SUPPORTED.most;
    if (isSupported) return;
    const range = `${SUPPORTED.major}.${SUPPORTED.least} to ${SUPPORTED.major}.${SUPPORTED.most}`;
    throw new EtcdMemberError('WRONG_VERSION', `etcd ${version} is not supported: it must be ${range}`);
  }

  /** The arguments for the first start of a member, without data. A further member is added to the others as a learner before. */
  async #introduce(): Promise<readonly string[]> {
    const { name, peerUrl, others, isFirst, log } = this.#options;
    if (!others || isFirst) return [`--initial-cluster=${name}=${peerUrl}`, '--initial-cluster-state=new'];
    const members = await others.members();
    // Its data is gone, and with it its vote: it comes back as a learner.
    for (const { id } of members.filter((one) => one.name === name || one.peerUrls.includes(peerUrl))) {
      log.info({ member: name }, 'the member of this name has lost its data and is removed');
      await this.#accepted(() => removed(others, id));
    }
    await this.#accepted(async () => {
      // An earlier attempt may have succeeded although it seemed to fail. A member that has not started has no name.
      const isAdded = (await others.members()).some((one) => one.name === '' && one.peerUrls.includes(peerUrl));
      if (!isAdded) await others.addMember([peerUrl], true);
    });
    const cluster = (await others.members()).flatMap(({ id, name: other, peerUrls }) =>
      peerUrls.map((url) => `${url === peerUrl ? name : other || id}=${url}`),
    );
    return [`--initial-cluster=${cluster.join(',')}`, '--initial-cluster-state=existing'];
  }

  /** etcd refuses a change for some seconds after the last one, and while another learner catches up. */
  async #accepted<T>(change: () => Promise<T>, timeoutMs = CHANGE_TIMEOUT_MS): Promise<T> {
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + timeoutMs;
    for (;;) {
      try {
        return await change();
      } catch (err) {
        const isPassing = err instanceof EtcdError && PASSING.test(err.message);
        if (!isPassing || clock.monotonicMs() > untilMs || this.#stopping.signal.aborted) throw err;
      }
      await clock.sleep(PROMOTE_MS, this.#stopping.signal);
    }
  }

  async #launch(initial: readonly string[]): Promise<void> {
    const { directory, name, peerUrl, clientUrl, tls, own, clock, program = PROGRAM } = this.#options;
    const files = (prefix: string): readonly string[] =>
      tls
        ? [
            `--${prefix}cert-file=${tls.certificate}`,
            `--${prefix}key-file=${tls.key}`,
            `--${prefix}trusted-ca-file=${tls.authorities}`,
            `--${prefix}client-cert-auth`,
          ]
        : [];
    const args = [
      `--name=${name}`,
      `--data-dir=${directory}`,
      `--listen-peer-urls=${boundTo(peerUrl)}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--listen-client-urls=${boundTo(clientUrl)}`,
      `--advertise-client-urls=${clientUrl}`,
      ...initial,
      ...files(''),
      ...files('peer-'),
      '--logger=zap',
      '--log-level=warn',
      '--auto-compaction-mode=periodic',
      '--auto-compaction-retention=10m',
      // Watches resume after a break from these progress notices (docs/design/store.md).
      '--experimental-watch-progress-notify-interval=10s',
    ];
    const trusted = tls && (await readFile(tls.authorities, 'utf8'));
    const child = startChild(program, args, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'], limits: LIMITS });
    this.#child = child;
    this.#trusted = trusted;
    child.once('error', () => {});
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-1_000)));
    const untilMs = clock.monotonicMs() + START_TIMEOUT_MS;
    while (!(await answers(own, clientUrl))) {
      const hasEnded = child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
      if (hasEnded && said.includes(NO_VOTE)) {
        throw new EtcdMemberError(
          'NO_DATA',
          `${directory} is of a member without a vote: recover a server that has one`,
        );
      }
      if (hasEnded) throw new EtcdMemberError('NOT_STARTED', `etcd ended at its start: ${said.trim()}`);
      if (clock.monotonicMs() > untilMs || this.#stopping.signal.aborted) {
        child.kill('SIGKILL');
        throw new EtcdMemberError('NOT_STARTED', 'etcd does not answer');
      }
      await clock.sleep(POLL_MS, this.#stopping.signal);
    }
  }

  get #countFile(): string {
    return join(this.#options.directory, 'count');
  }

  #witness(): Promise<number> {
    return readCount(this.#options.witnessFile);
  }

  async #checkCount(): Promise<number> {
    const [count, witness] = [await readCount(this.#countFile), await this.#witness()];
    if (count >= witness) return count;
    if (this.#options.isLast) return witness;
    throw new EtcdMemberError(
      'STALE_DATA',
      `the state of this node in ${this.#options.directory} is from a backup and would disrupt the cluster: ` +
        'remove the node on the leader, delete this directory, and add the node again',
    );
  }

  /** The second copy is written last: after a crash in between, the first one is ahead by one. */
  async #keepCount(count: number): Promise<void> {
    await writePrivate(this.#countFile, String(count));
    await writePrivate(this.#options.witnessFile, String(count));
    this.#count = count;
    const next = (): void => void (this.#counted = this.#keepCount(count + 1).catch(this.#uncounted));
    if (!this.#stopping.signal.aborted) this.#counting = this.#options.clock.after(COUNT_MS, next);
  }

  readonly #uncounted = (err: unknown): void => this.#options.log.error({ err }, 'the count of etcd cannot be kept');
}

/** etcd binds to addresses only. */
function boundTo(url: string): string {
  const parsed = new URL(url);
  const { protocol, port } = parsed;
  return isIP(hostOfUrl(parsed)) === 0 ? `${protocol}//0.0.0.0:${port}` : url;
}

/** 0: there is none. */
async function readCount(file: string): Promise<number> {
  const text = await readFile(file, 'utf8').catch((err: unknown) => {
    if (errorCode(err) === 'ENOENT') return '0';
    throw err;
  });
  return Number(text) || 0;
}

/** Another server may have removed it already. */
async function removed(client: EtcdClient, memberId: string): Promise<void> {
  try {
    await client.removeMember(memberId);
  } catch (err) {
    if (!(err instanceof EtcdError && GONE.test(err.message))) throw err;
  }
}

const answers = (client: EtcdClient, url: string): Promise<boolean> =>
  client.status(url).then(
    () => true,
    () => false,
  );
