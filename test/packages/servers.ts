// Three Debian servers with the package, each with a network of its own and its own member of etcd, made into a cluster by the
// commands of the recorder. Cameras are in a network namespace of their own. Servers can lose their power, be frozen, cut off and
// brought back.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EtcdClient } from '../../base/etcd/client.ts';
import { KeyRing } from '../../recorder/certificates/key-ring.ts';
import { nodeFiles } from '../../recorder/certificates/node-files.ts';
import type { Media } from '../bench/media.ts';
import { familyOf } from '../bench/processes.ts';
import { startSender, type Sender } from '../bench/sender.ts';
import { etcdMissing, needProgram } from '../cluster/programs.ts';
import { namespacesMissing, Network } from '../cluster/network.ts';
import { Program, untilStopped } from '../cluster/program.ts';
import { StoreApi } from '../cluster/store-api.ts';
import { assertVotesAreTold } from '../cluster/votes.ts';
import { until } from '../support/until.ts';
import { installedLayer, Server, serverMissing } from './server.ts';

const SELDOM_MS = 200;
const COUNT = 3;
const JOURNAL_LINES = 30;
const ARCHIVE = '/mnt/archive';
const DATA = '/var/lib/recorder/data';
const SITE = '/etc/recorder/conf.d/site.yaml';

interface ServersOptions {
  /** For logs and the files that servers share. */
  readonly directory: string;
  /** The package. */
  readonly deb: string;
  readonly media: Media;
  readonly cameras: number;
  /** The time over which the cameras' key frames are spread. */
  readonly keyFrameMs: number;
}

interface ClusterMetrics {
  readonly leader: string | null;
  readonly has_majority: boolean;
  readonly voters: readonly string[];
  readonly nodes: readonly {
    readonly node_id: string;
    readonly role: string;
    readonly online: boolean;
    readonly version: string | null;
  }[];
}

/** Why there can be no such servers here, or false. */
export const serversMissing = (): string | false => serverMissing() || namespacesMissing() || etcdMissing();

export class Servers {
  /** `rack-1` and so on. */
  readonly names: readonly string[];
  readonly api: StoreApi;
  readonly sender: Sender;
  readonly #servers: ReadonlyMap<string, Server>;
  readonly #addresses: ReadonlyMap<string, string>;
  readonly #network: Network;
  readonly #cut = new Set<string>();
  #ends: AsyncDisposableStack | undefined;

  private constructor(
    servers: ReadonlyMap<string, Server>,
    addresses: ReadonlyMap<string, string>,
    network: Network,
    sender: Sender,
  ) {
    this.names = [...servers.keys()];
    this.#servers = servers;
    this.#addresses = addresses;
    this.#network = network;
    this.sender = sender;
    const [first] = this.names as [string];
    const { authorities, certificate, key, keys } = nodeFiles(join(this.server(first).root, DATA), first);
    const [ca, own, secret] = [authorities, certificate, key].map((path) => readFileSync(path, 'utf8'));
    const tls = { ca: ca!, certificate: own!, key: secret! };
    const endpoints = (): readonly string[] => this.#reached().map((name) => `https://${this.address(name)}:2379`);
    const etcd = new EtcdClient({ endpoints, tls: () => tls });
    this.api = new StoreApi(etcd, KeyRing.parse(readFileSync(keys, 'utf8')));
  }

  static async start({ directory, deb, media, cameras, keyFrameMs }: ServersOptions): Promise<Servers> {
    await using ends = new AsyncDisposableStack();
    const layer = await installedLayer(join(directory, 'installed'), deb, needProgram('etcd'));
    const network = await Network.make(directory);
    ends.defer(() => network.close());
    const sender = await startCameras(network, { directory, media, cameras, keyFrameMs }, ends);
    const servers = new Map<string, Server>();
    const addresses = new Map<string, string>();
    for (let number = 1; number <= COUNT; number++) addresses.set(`rack-${number}`, network.nextAddress());
    await Promise.all(
      [...addresses.keys()].map(async (hostname) => {
        const connect = (pid: number): void => network.join(addresses.get(hostname)!, pid);
        const server = await Server.boot({ hostname, layer, connect });
        ends.defer(() => server.close());
        servers.set(hostname, server);
      }),
    );
    const sorted = new Map([...addresses.keys()].map((name) => [name, servers.get(name)!]));
    for (const server of sorted.values()) {
      await server.run(`install -d -o recorder -g recorder -m 0750 ${ARCHIVE}`);
      await server.run(`echo 'record_path: ${ARCHIVE}' >${SITE}`);
    }
    const [first, ...others] = [...sorted.values()] as [Server, ...Server[]];
    const address = addresses.get(first.hostname)!;
    await first.run(`recorder cluster init --address ${address}`);
    await first.run('systemctl enable --now recorder');
    await untilReady(first);
    const made = new Servers(sorted, addresses, network, sender);
    ends.defer(() => made.api.close());
    try {
      for (const { hostname } of others) await made.#join(hostname, first.hostname);
      for (const { hostname } of others) await made.untilVoter(hostname);
    } catch (cause) {
      console.log(await made.journals());
      throw cause;
    }
    made.#ends = ends.move();
    return made;
  }

  server(name: string): Server {
    const server = this.#servers.get(name);
    if (!server) throw new Error(`no server ${name}`);
    return server;
  }

  address(name: string): string {
    return this.#addresses.get(name)!;
  }

  /** The server's archive, as this machine sees it. */
  archive(name: string): string {
    return join(this.server(name).root, ARCHIVE);
  }

  /** With a token that a member makes. */
  async #join(name: string, member: string): Promise<void> {
    const server = this.server(name);
    const token = (await this.server(member).run(`recorder cluster token ${name} 2>/dev/null`)).trim();
    const own = `--token ${token} --address ${this.address(name)}`;
    await server.run(`recorder cluster join ${this.address(member)} ${own}`);
    await server.run('systemctl enable --now recorder');
  }

  async untilVoter(name: string): Promise<void> {
    await untilReady(this.server(name));
    const asked = this.#reached().find((one) => one !== name)!;
    const isVoter = async (): Promise<boolean> => (await this.metrics(asked)).voters.includes(name);
    await until(`${name} has a vote`, isVoter, undefined, SELDOM_MS);
    await until(`${name} has a vote in etcd`, async () => (await this.etcdVoters()).includes(name));
  }

  /** The names of etcd's voters. */
  async etcdVoters(): Promise<readonly string[]> {
    const members = await this.api.etcd.members();
    return members.flatMap(({ name, isLearner }) => (isLearner ? [] : [name])).sort();
  }

  /** The process of the recorder and that of its etcd, on this machine. */
  pids(name: string): { readonly recorder: number; readonly etcd: number } {
    const family = familyOf(this.server(name).pid);
    const named = (wanted: string): number => {
      const found = family.find((pid) => readFileSync(`/proc/${pid}/comm`, 'latin1').trim() === wanted);
      if (found === undefined) throw new Error(`${name} runs no ${wanted}`);
      return found;
    };
    const etcd = named('etcd');
    return { recorder: Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${etcd}/status`, 'latin1'))![1]), etcd };
  }

  /** With `recorder apply`, on a member. */
  async apply(manifests: readonly object[]): Promise<void> {
    const server = this.server(this.#reached()[0]!);
    const file = join(server.root, 'root/manifests.json');
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }));
    await server.run('recorder apply -f /root/manifests.json');
  }

  /** `GET /cluster/metrics` of a server. */
  metrics(name: string): Promise<ClusterMetrics> {
    return this.get(name, '/cluster/metrics');
  }

  /** What the API of a server answers to its admin. */
  async get<T>(name: string, path: string): Promise<T> {
    const server = this.server(name);
    const token = readFileSync(join(server.root, 'var/lib/recorder/admin.token'), 'utf8').trim();
    return server.get<T>(path, token);
  }

  /** For the end of a test: each server that can be reached tells the votes as etcd has them. */
  assertVotesAreTold(): Promise<void> {
    return assertVotesAreTold(
      this.#reached().map((name) => ({
        server: { name, address: this.address(name), dataDir: join(this.server(name).root, DATA) },
        ask: () => this.metrics(name),
      })),
    );
  }

  /** The server whose operator leads, as the others say. */
  leader(): Promise<string> {
    return until(
      'a server leads',
      async () => {
        for (const name of this.#reached()) {
          const { leader } = await this.metrics(name).catch(() => ({ leader: null }));
          if (leader !== null && this.#reached().includes(leader)) return leader;
        }
        return undefined;
      },
      undefined,
      SELDOM_MS,
    );
  }

  /** As when the power goes. */
  kill(name: string): Promise<void> {
    return this.server(name).kill();
  }

  /** Boots a server that was killed. */
  start(name: string): Promise<void> {
    return this.server(name).start();
  }

  /** The end of what the recorders that run have logged. */
  async journals(): Promise<string> {
    const running = this.names.filter((name) => this.server(name).isRunning);
    const ends = running.map(async (name) => {
      const line = `journalctl --no-pager --output cat --unit recorder --lines ${JOURNAL_LINES}`;
      return `${name}:\n${(await this.server(name).attempt(line)).output}`;
    });
    return (await Promise.all(ends)).join('\n');
  }

  /** From now on it reaches neither the other servers nor viewers, but its cameras. */
  cutOff(name: string): void {
    if (this.#cut.has(name)) return;
    this.#cut.add(name);
    this.#network.cut(this.address(name), 'viewers');
    for (const other of this.names) {
      if (other !== name) this.#network.cutBetween(this.address(name), this.address(other));
    }
  }

  reconnect(name: string): void {
    if (!this.#cut.delete(name)) return;
    this.#network.mend(this.address(name), 'viewers');
    for (const other of this.names) {
      if (other !== name) this.#network.mendBetween(this.address(name), this.address(other));
    }
  }

  /** Stops the time of the recorder; its etcd goes on. */
  async freeze(name: string): Promise<void> {
    await this.#signal(name, 'recorder', 'SIGSTOP');
  }

  async thaw(name: string): Promise<void> {
    await this.#signal(name, 'recorder', 'SIGCONT');
  }

  /** Stops the time of etcd; the recorder goes on. */
  async freezeEtcd(name: string): Promise<void> {
    await this.#signal(name, 'etcd', 'SIGSTOP');
  }

  async thawEtcd(name: string): Promise<void> {
    await this.#signal(name, 'etcd', 'SIGCONT');
  }

  async close(): Promise<void> {
    // Nobody reads their files any more.
    await Promise.all(this.names.map((name) => this.kill(name)));
    await this.#ends?.disposeAsync();
  }

  /** Servers that run and are not cut off. */
  #reached(): readonly string[] {
    return this.names.filter((name) => this.server(name).isRunning && !this.#cut.has(name));
  }

  async #signal(name: string, program: 'recorder' | 'etcd', signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const pid = this.pids(name)[program];
    process.kill(pid, signal);
    if (signal === 'SIGSTOP') await untilStopped(pid);
  }
}

export const untilReady = async (server: Server): Promise<void> => {
  await until(
    `${server.hostname} is ready`,
    () => server.get('/api/health/ready').then(() => true),
    undefined,
    SELDOM_MS,
  );
};

/** In a namespace of the network, as if each was a device of its own. */
async function startCameras(
  network: Network,
  { directory, media, cameras, keyFrameMs }: Omit<ServersOptions, 'deb'>,
  ends: AsyncDisposableStack,
): Promise<Sender> {
  const place = new Program('network of cameras', {
    command: 'unshare',
    args: ['--net', 'sh', '-c', 'echo ready && exec sleep infinity'],
    logFile: join(directory, 'cameras.log'),
  });
  place.start();
  ends.defer(() => place.kill());
  await until('the network of the cameras is there', () => place.logTail.includes('ready'));
  const address = network.nextAddress();
  network.join(address, place.pid);
  // In real time, as the servers, whatever priority this process has.
  const script = 'renice -n 0 -p $$ >/dev/null; exec nsenter "--net=/proc/$0/ns/net" "$@"';
  const through = ['sh', '-ec', script, String(place.pid)];
  const sender = await startSender({
    media,
    cameras,
    mode: 'frame',
    directory,
    address,
    spreadMs: keyFrameMs,
    through,
  });
  ends.defer(() => sender.stop());
  return sender;
}
