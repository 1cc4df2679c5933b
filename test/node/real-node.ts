// A node with a real kubelet, containerd, kube-proxy and DNS, in namespaces and control groups of its own: nothing of it is
// on the machine when it is closed, or when its test is killed.

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, closeSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createReadStream } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CertificateAuthority, Subject } from '../cluster/certificates.ts';
import type { Network } from '../cluster/network.ts';
import { needProgram, type ProgramName } from '../cluster/programs.ts';
import { until } from '../support/until.ts';
import { configFiles, CONTAINERD_SOCKET, kubeconfigText } from './config.ts';

interface RealNodeDeps {
  readonly name: string;
  /** Of this node. */
  readonly directory: string;
  readonly network: Network;
  readonly authority: CertificateAuthority;
  readonly server: string;
}

const START_TIMEOUT_MS = 180_000;
const PROGRAMS: readonly ProgramName[] = ['kubelet', 'kube-proxy', 'coredns'];
const LOG_TAIL = 3_000;
const CTR_OPTIONS = ['--address', CONTAINERD_SOCKET, '--namespace', 'k8s.io'];

export class RealNode {
  readonly name: string;
  readonly address: string;
  /** The node's disk: the host path `/a` of a pod is `<root>/a`, for what is below /mnt, /var/lib and /var/log. */
  readonly root: string;
  /** Of all its pods, at the root of each hierarchy of control groups. */
  readonly cgroup: string;
  readonly #directory: string;
  readonly #guard: ChildProcess;

  /** Starts it; it is not ready yet. */
  static async start(deps: RealNodeDeps): Promise<RealNode> {
    const node = new RealNode(deps);
    try {
      await node.#until('process 1 is there', () => node.#initPid() !== undefined);
      deps.network.join(node.address, node.#needInitPid());
      deps.network.route(deps.network.ranges.all, node.address);
      await node.#until('containerd serves', () => existsSync(join(node.#directory, 'containerd.ready')));
      return node;
    } catch (error) {
      const log = node.logTail('guard') + node.logTail('containerd');
      await node.close();
      throw new Error(`${deps.name} did not start:\n${log}`, { cause: error });
    }
  }

  private constructor({ name, directory, network, authority, server }: RealNodeDeps) {
    this.name = name;
    this.address = network.nextAddress();
    this.root = join(directory, 'root');
    this.#directory = directory;
    for (const part of ['bin', 'etc/cni', 'logs', 'root']) mkdirSync(join(directory, part), { recursive: true });
    for (const program of PROGRAMS) symlinkSync(needProgram(program), join(directory, 'bin', program));
    const log = openSync(this.#logFile('guard'), 'a');
    // In a session of its own: Ctrl-C is for its owner, and it clears up after that.
    this.#guard = spawn('sh', [join(import.meta.dirname, 'guard.sh'), directory], {
      stdio: ['pipe', log, log],
      detached: true,
    });
    closeSync(log);
    this.#guard.on('error', () => {}); // could not be started: `start` says so
    this.cgroup = `kube-nvr-node-${this.#guard.pid}`;
    this.#configure(network, authority, server);
  }

  #configure(network: Network, authority: CertificateAuthority, server: string): void {
    const { name, address, cgroup } = this;
    const write = (file: string, content: string | Buffer): void =>
      writeFileSync(join(this.#directory, 'etc', file), content, { mode: 0o600 });
    const issue = (file: string, subject: Subject) => {
      const { cert, key } = authority.issue(`${name}-${file}`, subject);
      return { ca: readFileSync(authority.certFile), cert: readFileSync(cert), key: readFileSync(key) };
    };
    const facts = {
      name,
      address,
      server,
      cgroup,
      serviceRange: network.ranges.services,
      podRange: network.ranges.pods,
    };
    for (const [file, text] of Object.entries(configFiles(facts))) write(file, text);
    const kubelet = issue('kubelet', {
      commonName: `system:node:${name}`,
      organizations: ['system:nodes'],
      hosts: [address, name],
    });
    write('ca.crt', kubelet.ca);
    write('kubelet.crt', kubelet.cert);
    write('kubelet.key', kubelet.key);
    write('kubelet.kubeconfig', kubeconfigText(server, kubelet));
    write('kube-proxy.kubeconfig', kubeconfigText(server, issue('kube-proxy', { commonName: 'system:kube-proxy' })));
    write(
      'coredns.kubeconfig',
      kubeconfigText(server, issue('coredns', { commonName: 'coredns', organizations: ['system:masters'] })),
    );
  }

  /** What a program of the node prints: `kubelet`, `containerd`, `kube-proxy`, `coredns`. */
  logTail(program: string): string {
    try {
      return readFileSync(this.#logFile(program), 'utf8').slice(-LOG_TAIL);
    } catch {
      return '';
    }
  }

  /** Runs it in the node, as its root; what it prints, or an error with its words. */
  run(command: string, ...args: readonly string[]): string {
    const { status, stdout, stderr, error } = spawnSync('nsenter', this.#inside(command, args), { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? (stderr.trim() || stdout)}`);
    return stdout;
  }

  /** containerd's own client, among the images and containers of the kubelet. */
  ctr(...args: readonly string[]): string {
    return this.run('ctr', ...CTR_OPTIONS, ...args);
  }

  /** Makes the images of a docker-archive, or of an OCI layout as tar, known under their names; nothing else can be pulled. */
  async importImages(archive: string): Promise<void> {
    const args = [...CTR_OPTIONS, 'images', 'import', '-'];
    const child = spawn('nsenter', this.#inside('ctr', args), { stdio: ['pipe', 'ignore', 'pipe'] });
    let words = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (words += text));
    const exited = once(child, 'exit');
    await pipeline(createReadStream(archive), child.stdin).catch(() => {}); // it ended first: its words say why
    const [code] = (await exited) as [number | null];
    if (code !== 0) throw new Error(`${archive}: ${words.trim()}`);
  }

  /** Ends all of it at once, as a power cut does, and waits until nothing is left. */
  async close(): Promise<void> {
    if (this.#guard.pid === undefined || this.#guard.exitCode !== null) return;
    const exited = once(this.#guard, 'exit');
    this.#guard.stdin?.end();
    await exited;
  }

  #inside(command: string, args: readonly string[]): readonly string[] {
    const pid = String(this.#needInitPid());
    return ['--target', pid, '--net', '--mount', '--pid', '--uts', '--ipc', '--', command, ...args];
  }

  #logFile(program: string): string {
    return join(this.#directory, 'logs', `${program}.log`);
  }

  #needInitPid(): number {
    const pid = this.#initPid();
    if (pid === undefined) throw new Error(`${this.name} does not run`);
    return pid;
  }

  /** Of process 1 of the node, outside. */
  #initPid(): number | undefined {
    try {
      const unshare = readFileSync(join(this.#directory, 'unshare.pid'), 'utf8').trim();
      const children = readFileSync(`/proc/${unshare}/task/${unshare}/children`, 'utf8').trim();
      return children === '' ? undefined : Number(children);
    } catch {
      return undefined;
    }
  }

  async #until(what: string, ask: () => boolean): Promise<void> {
    await until(what, () => this.#guard.exitCode !== null || ask(), START_TIMEOUT_MS);
    if (this.#guard.exitCode !== null) throw new Error(`the guard of ${this.name} ended`);
  }
}

/** Why a real node cannot run here; false when it can. */
export function realNodeMissing(): string | false {
  const programs = ['containerd', 'ctr', 'runc', 'iptables', 'conntrack', 'gcc'].filter(
    (name) => !(process.env['PATH'] ?? '').split(':').some((directory) => existsSync(join(directory, name))),
  );
  if (!existsSync('/usr/lib/cni/ptp')) programs.push('containernetworking-plugins');
  if (programs.length > 0) return `not here: ${programs.join(', ')}; hack/setup kubelet brings them`;
  const { status, stderr } = spawnSync('sh', [join(dirname(import.meta.filename), 'probe.sh')], { encoding: 'utf8' });
  return status !== 0 && `no real node here: ${stderr.trim()}`;
}
