// A node of a test cluster, seen from outside: started, killed, frozen, cut off and brought back.

import type { ChildProcess } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keepLogsIn } from '../support/kept-output.ts';
import { until } from '../support/until.ts';
import type { CertificateAuthority } from './certificates.ts';
import type { ContainerOfPod, KubeletConfig, KubeletMessage, KubeletRequest } from './kubelet/messages.ts';
import { SIDES, type Network, type Side } from './network.ts';
import { Program, untilStopped } from './program.ts';
import { kubernetesVersion } from './programs.ts';

export interface NodeOptions {
  readonly labels?: Readonly<Record<string, string>>;
  /** Default 8 CPUs, 16 GiB and 110 pods, whatever the machine has. */
  readonly capacity?: Readonly<Record<string, string>>;
}

interface NodeDeps {
  readonly name: string;
  /** Of this node. */
  readonly directory: string;
  readonly network: Network;
  readonly authority: CertificateAuthority;
  readonly server: string;
  readonly imagesFile: string;
}

/** A process in a node, by its id outside. */
interface NodeProcess {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly pid: number;
}

const START_TIMEOUT_MS = 180_000;
const ANSWER_TIMEOUT_MS = 60_000;
const CAPACITY = { cpu: '8', memory: '16Gi', 'ephemeral-storage': '100Gi', pods: '110' };

export class ProcessKubelet {
  readonly name: string;
  /** Of the node and its pods. */
  readonly address: string;
  /** The node's disk: the host path `/a` of a pod is `<root>/a`. */
  readonly root: string;
  readonly logFile: string;
  readonly #deps: NodeDeps;
  readonly #configFile: string;
  readonly #cuts = new Set<Side>();
  readonly #answers = new Map<number, (message: KubeletMessage & { kind: 'answer' }) => void>();
  #program: Program;
  #child: ChildProcess | undefined;
  #registered = false;
  #lastId = 0;

  constructor(deps: NodeDeps, { labels = {}, capacity = CAPACITY }: NodeOptions = {}) {
    const { name, directory, network, authority, server, imagesFile } = deps;
    this.#deps = deps;
    this.name = name;
    this.address = network.nextAddress();
    this.root = join(directory, 'root');
    this.logFile = join(directory, 'kubelet.log');
    this.#configFile = join(directory, 'kubelet.json');
    const podsDirectory = join(directory, 'pods');
    mkdirSync(this.root, { recursive: true });
    mkdirSync(podsDirectory, { recursive: true });
    keepLogsIn(name, podsDirectory, '*/containers/*/*.log');
    const files = authority.issue(`node-${name}`, {
      commonName: `system:node:${name}`,
      organizations: ['system:nodes'],
      hosts: [this.address, name],
    });
    const config: KubeletConfig = {
      nodeName: name,
      address: this.address,
      server,
      labels,
      capacity,
      version: kubernetesVersion(),
      files: { ca: authority.certFile, ...files },
      root: this.root,
      podsDirectory,
      imagesFile,
    };
    writeFileSync(this.#configFile, JSON.stringify(config, undefined, 2));
    this.#program = this.#newProgram();
  }

  get running(): boolean {
    return this.#program.running;
  }

  /** The end of what its kubelet printed. */
  get logTail(): string {
    return this.#program.logTail;
  }

  /** What it is cut off from. */
  get cuts(): readonly Side[] {
    return [...this.#cuts];
  }

  /** Starts it, or starts it again after `kill`: as a machine that boots with the disk it had. */
  async start(): Promise<void> {
    this.#program = this.#newProgram();
    this.#registered = false;
    let waiting = false;
    const child = this.#program.start();
    this.#child = child;
    child.on('message', (message: KubeletMessage) => {
      if (message.kind === 'waiting') waiting = true;
      else if (message.kind === 'registered') this.#registered = true;
      else this.#answers.get(message.id)?.(message);
    });
    await this.#until('waits', () => waiting);
    this.#deps.network.join(this.address, this.#initPid());
    child.send('go');
    await this.#until('is registered', () => this.#registered);
  }

  /** As when the power goes: every process of the node ends at once, and nothing is said to anybody. */
  async kill(): Promise<void> {
    if (!this.running) return;
    const { pid } = this.#program;
    // The first process of the namespace takes all others with it; the one outside ends when they are gone.
    process.kill(this.#initPid(), 'SIGKILL');
    await until(`${this.name} is gone`, () => !this.running || !exists(pid));
  }

  /** Stops the time of the whole node: kubelet and pods. The network stays: peers see a host that accepts and is silent. */
  async freeze(): Promise<void> {
    const pids = this.#pids();
    for (const pid of pids) signal(pid, 'SIGSTOP');
    await Promise.all(pids.map(untilStopped));
  }

  thaw(): void {
    for (const pid of this.#pids()) signal(pid, 'SIGCONT');
  }

  /** The main processes of its containers. */
  async processes(): Promise<readonly NodeProcess[]> {
    const { processes } = await this.#ask({ kind: 'processes' });
    return processes.map((entry) => ({ ...entry, pid: this.#outerPid(entry) }));
  }

  /** Stops the time of a pod's containers, or of one: its kubelet and the node go on. */
  async freezePod(pod: string, { namespace = 'default', container }: PodOptions = {}): Promise<void> {
    const { processes } = await this.#ask({ kind: 'signal', namespace, pod, container, signal: 'SIGSTOP' });
    const frozen = processes.filter(
      (entry) =>
        entry.namespace === namespace && entry.pod === pod && (container ?? entry.container) === entry.container,
    );
    await Promise.all(frozen.map((entry) => untilStopped(this.#outerPid(entry))));
  }

  async thawPod(pod: string, { namespace = 'default', container }: PodOptions = {}): Promise<void> {
    await this.#ask({ kind: 'signal', namespace, pod, container, signal: 'SIGCONT' });
  }

  /** As a crash: the kubelet sees it and starts the container again. */
  async killPod(pod: string, { namespace = 'default', container }: PodOptions = {}): Promise<void> {
    await this.#ask({ kind: 'signal', namespace, pod, container, signal: 'SIGKILL' });
  }

  /** Asks the pod's containers to end, as a kubelet does whose liveness probe fails; it starts them again. */
  async restartPod(pod: string, { namespace = 'default', container }: PodOptions = {}): Promise<void> {
    await this.#ask({ kind: 'signal', namespace, pod, container, signal: 'SIGTERM' });
  }

  /** From now on packets to and from these vanish without a word; default: all of them. */
  cutOff(...sides: readonly Side[]): void {
    for (const side of sides.length > 0 ? sides : SIDES) {
      if (this.#cuts.has(side)) continue;
      this.#deps.network.cut(this.address, side);
      this.#cuts.add(side);
    }
  }

  /** Undoes `cutOff`; default: all of it. */
  reconnect(...sides: readonly Side[]): void {
    for (const side of sides.length > 0 ? sides : SIDES) {
      if (this.#cuts.delete(side)) this.#deps.network.mend(this.address, side);
    }
  }

  async #until(what: string, ask: () => boolean): Promise<void> {
    await until(`the kubelet of ${this.name} ${what}`, () => !this.running || ask(), START_TIMEOUT_MS);
    if (!this.running) throw new Error(`the kubelet of ${this.name} ended:\n${this.#program.logTail}`);
  }

  #newProgram(): Program {
    // setpriv and unshare are outside; what they become is process 1 of the node.
    const namespaces = ['--net', '--mount', '--pid', '--uts', '--fork', '--kill-child', '--mount-proc'];
    const main = join(import.meta.dirname, 'kubelet/main.ts');
    return new Program(`kubelet of ${this.#deps.name}`, {
      command: 'unshare',
      args: [...namespaces, '--', process.execPath, main, this.#configFile],
      logFile: this.logFile,
      ipc: true,
    });
  }

  /** Of the node's first process. */
  #initPid(): number {
    const { pid } = this.#program;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    if (children.length !== 1 || children[0] === '') throw new Error(`${this.name} has no first process`);
    return Number(children[0]);
  }

  /** Of all processes of the node. */
  #pids(): readonly number[] {
    const namespace = pidNamespace(this.#initPid());
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => namespace !== undefined && pidNamespace(pid) === namespace);
  }

  #outerPid({ pid }: ContainerOfPod): number {
    const outer = this.#pids().find((candidate) => innerPid(candidate) === pid);
    if (outer === undefined) throw new Error(`process ${pid} of ${this.name} has just ended`);
    return outer;
  }

  #ask(question: Question): Promise<KubeletMessage & { kind: 'answer' }> {
    const id = ++this.#lastId;
    const child = this.#child;
    if (!child || !this.running) throw new Error(`${this.name} does not run`);
    const { promise, resolve, reject } = Promise.withResolvers<KubeletMessage & { kind: 'answer' }>();
    const late = setTimeout(() => reject(new Error(`the kubelet of ${this.name} does not answer`)), ANSWER_TIMEOUT_MS);
    this.#answers.set(id, (message) => {
      if (message.error === undefined) resolve(message);
      else reject(new Error(message.error));
    });
    child.send({ id, ...question } satisfies KubeletRequest);
    return promise.finally(() => {
      clearTimeout(late);
      this.#answers.delete(id);
    });
  }
}

interface PodOptions {
  readonly namespace?: string;
  /** Default: all containers of the pod. */
  readonly container?: string;
}

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;
type Question = WithoutId<KubeletRequest>;

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has just ended.
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function pidNamespace(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

function innerPid(pid: number): number | undefined {
  try {
    return Number(/^NSpid:.*\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}
