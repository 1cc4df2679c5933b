// Servers without Kubernetes, each in a network namespace of its own, so that every one has the default ports: a recorder that its
// administrator configures, starts, kills, freezes and cuts off, and what this recorder starts.
//
//     await using servers = await PlainServers.make();
//     const first = await servers.add('rack-1');
//     await first.run('cluster', 'init', '--address', first.address);
//     await first.start();

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Child } from '../support/child.ts';
import { MAIN, RecorderProcess, writeConfig } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { namespacesMissing, Network, type Side } from './network.ts';
import { Program, untilStopped } from './program.ts';
import { etcdMissing } from './programs.ts';
import { askEtcd, assertVotesAreTold, toldVotes } from './votes.ts';

type Json = Readonly<Record<string, unknown>>;

export interface ClusterMetrics {
  readonly leader: string | null;
  readonly etcd_leader: string | null;
  readonly has_majority: boolean;
  readonly voters: readonly string[];
  readonly nodes: readonly { readonly node_id: string; readonly role: string; readonly online: boolean }[];
}

/** What runs instead of the sources, such as the program of a package. */
interface ServerProgram {
  readonly node: string;
  readonly main: string;
}

/** Why tests that need servers with etcd are left out; false when they are not. */
export const plainServersMissing = (): string | false => etcdMissing() || namespacesMissing();

const SOURCES: ServerProgram = { node: process.execPath, main: MAIN };
const READY_MS = 120_000;

export class PlainServers {
  readonly network: Network;
  readonly directory: string;
  readonly #all: PlainServer[] = [];

  private constructor(network: Network, directory: string) {
    this.network = network;
    this.directory = directory;
  }

  static async make(): Promise<PlainServers> {
    const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-servers-'));
    try {
      return new PlainServers(await Network.make(directory), directory);
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** In the order in which they were added. */
  get all(): readonly PlainServer[] {
    return this.#all;
  }

  /** A server without a recorder that runs. `config`: keys of the configuration file that replace those of the test. */
  async add(name: string, config: Json = {}, program: ServerProgram = SOURCES): Promise<PlainServer> {
    const server = await PlainServer.make(name, { servers: this, config, program });
    this.#all.push(server);
    return server;
  }

  /** For the end of a test. */
  assertVotesAreTold(): Promise<void> {
    const running = this.#all.filter(({ isRunning }) => isRunning);
    return assertVotesAreTold(running.map((server) => ({ server, ask: () => server.askMetrics() })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map((server) => server.close()));
    await this.network.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

interface ServerOptions {
  readonly servers: PlainServers;
  readonly config: Json;
  readonly program: ServerProgram;
}

export class PlainServer {
  readonly name: string;
  readonly address: string;
  readonly directory: string;
  /** Keys of the configuration file, which `start` writes. */
  config: Json;
  readonly #servers: PlainServers;
  readonly #namespace: Program;
  readonly #program: ServerProgram;
  #recorder: RecorderProcess | undefined;

  private constructor(name: string, address: string, namespace: Program, { servers, config, program }: ServerOptions) {
    this.name = name;
    this.address = address;
    this.directory = join(servers.directory, name);
    this.#servers = servers;
    this.#namespace = namespace;
    this.#program = program;
    this.config = {
      nodeName: name,
      listen: `${address}:9997`,
      playback: { listen: `${address}:9996` },
      metrics: { listen: `${address}:9998` },
      record_path: join(this.directory, 'recordings'),
      workDir: join(this.directory, 'work'),
      auth: { mode: 'token' },
      archive: { segmentDuration: '2s' },
      ...config,
      cluster: { dataDir: this.dataDir, listen: `${address}:9995`, ...(config['cluster'] as Json | undefined) },
    };
  }

  static async make(name: string, options: ServerOptions): Promise<PlainServer> {
    const { network, directory } = options.servers;
    mkdirSync(join(directory, name));
    const namespace = new Program(`the network of ${name}`, {
      command: 'unshare',
      args: ['--net', 'sh', '-c', 'echo ready && exec sleep infinity'],
      logFile: join(directory, name, 'network.log'),
    });
    namespace.start();
    await until(`${name} has a network`, () => namespace.logTail.includes('ready'));
    const address = network.nextAddress();
    network.join(address, namespace.pid);
    return new PlainServer(name, address, namespace, options);
  }

  get url(): string {
    return `http://${this.address}:9997`;
  }

  get dataDir(): string {
    return join(this.directory, 'data');
  }

  /** What it keeps as a node: certificate, etcd, assignments. */
  get stateDirectory(): string {
    return join(this.dataDir, `node_${this.name}`);
  }

  /** That runs, or ran last. */
  get recorder(): RecorderProcess {
    if (!this.#recorder) throw new Error(`no recorder was started on ${this.name}`);
    return this.#recorder;
  }

  get isRunning(): boolean {
    return this.#recorder?.child.ended === false;
  }

  /** Everything that it printed since its last start. */
  get output(): string {
    return this.#recorder?.child.output ?? '';
  }

  get #configFile(): string {
    return join(this.directory, 'config.yaml');
  }

  get #inside(): readonly [string, ...string[]] {
    return ['nsenter', `--net=/proc/${this.#namespace.pid}/ns/net`];
  }

  /** Runs a command of the recorder, such as `cluster init`, and resolves to what it printed. Rejects if it fails. */
  async run(...args: readonly string[]): Promise<string> {
    const { code, output } = await this.attempt(...args);
    if (code !== 0) throw new Error(`recorder ${args.join(' ')} on ${this.name} ended with ${code}: ${output}`);
    return output;
  }

  async attempt(...args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }> {
    writeConfig(this.#configFile, this.config);
    const { node, main } = this.#program;
    const [command, ...words] = [...this.#inside, node, main, ...args, '--config', this.#configFile];
    await using child = new Child(command, words, { cwd: this.directory });
    const { code } = await child.exit();
    return { code, output: child.output };
  }

  /** Starts the recorder, and waits until it is ready unless told otherwise. */
  async start({ waitUntilReady = true } = {}): Promise<void> {
    const { directory, config } = this;
    const { node, main: program } = this.#program;
    const through = this.#inside;
    const started = await RecorderProcess.start({ directory, config, through, node, program, waitUntilReady: false });
    this.#recorder = started;
    if (waitUntilReady) await this.ready();
  }

  async ready(): Promise<void> {
    const { child } = this.recorder;
    try {
      await until(
        `${this.name} is ready`,
        async () => child.ended || (await fetch(`${this.url}/api/health/ready`)).ok,
        READY_MS,
      );
    } catch (cause) {
      throw new Error(`${this.name} is not ready:\n${child.output}`, { cause });
    }
    if (child.ended) throw new Error(`the recorder of ${this.name} ended:\n${child.output}`);
  }

  /** Asks its API as its first admin. A redirect to another server is followed, with the token of that one. */
  async call(method: 'GET' | 'POST', path: string, body?: object): Promise<Response> {
    const answer = await this.#ask(method, path, body);
    if (answer.status !== 307) return answer;
    const { host } = new URL(answer.headers.get('location') ?? '');
    const leader = this.#servers.all.find(({ url }) => url === `http://${host}`);
    if (!leader) throw new Error(`${this.name} names a leader at ${host}, where no server is`);
    return leader.#ask(method, path, body);
  }

  #ask(method: 'GET' | 'POST', path: string, body?: object): Promise<Response> {
    const token = readFileSync(join(String(this.config['workDir']), 'admin.token'), 'utf8').trim();
    return fetch(this.url + path, {
      method,
      redirect: 'manual',
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  }

  /** `GET /cluster/metrics`, with the votes that etcd has. */
  metrics(): Promise<ClusterMetrics> {
    return toldVotes(this, () => this.askMetrics());
  }

  async askMetrics(): Promise<ClusterMetrics> {
    return (await (await this.call('GET', '/cluster/metrics')).json()) as ClusterMetrics;
  }

  /** The members of etcd as this server's own one lists them, in order; those without a vote in parentheses. Rejects for a learner. */
  etcdMembers(): Promise<readonly string[]> {
    return askEtcd(this, async (etcd) =>
      (await etcd.members()).map(({ name, isLearner }) => (isLearner ? `(${name})` : name)).sort(),
    );
  }

  /** Ends the recorder as the service manager does. */
  async stop(): Promise<void> {
    await this.recorder.child.stop('SIGTERM');
  }

  /** Ends everything on the server at once, as a power cut does. */
  async kill(): Promise<void> {
    this.#signal('SIGKILL');
    await this.#recorder?.child.exit();
    await until(`nothing runs on ${this.name}`, () => this.#pids().length === 0);
  }

  /** Stops the time of its etcd; the recorder goes on. */
  async freezeEtcd(): Promise<void> {
    const etcd = this.#etcdPid;
    process.kill(etcd, 'SIGSTOP');
    await untilStopped(etcd);
  }

  thawEtcd(): void {
    process.kill(this.#etcdPid, 'SIGCONT');
  }

  get #etcdPid(): number {
    const isEtcd = (pid: number): boolean => readFileSync(`/proc/${pid}/comm`, 'latin1').trim() === 'etcd';
    return this.#pids().find(isEtcd) ?? assert.fail(`${this.name} runs no etcd`);
  }

  /** Stops the time of everything on the server. */
  async freeze(): Promise<void> {
    this.#signal('SIGSTOP');
    for (const pid of this.#pids()) await untilStopped(pid);
  }

  thaw(): void {
    this.#signal('SIGCONT');
  }

  /** From now on packets between them vanish. */
  cut(side: Side): void {
    this.#servers.network.cut(this.address, side);
  }

  mend(side: Side): void {
    this.#servers.network.mend(this.address, side);
  }

  async close(): Promise<void> {
    if (!this.#namespace.running) return;
    await this.kill();
    await this.#namespace.kill();
  }

  #signal(name: NodeJS.Signals): void {
    for (const pid of this.#pids()) {
      try {
        process.kill(pid, name);
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  /** All processes of the server. */
  #pids(): readonly number[] {
    const own = this.#namespace.pid;
    const namespace = networkOf(own);
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && pid !== own && networkOf(pid) === namespace);
  }
}

/** Undefined for a process that has ended. */
function networkOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined;
  }
}
