// A real control plane of a test's own: etcd, kube-apiserver, kube-controller-manager and kube-scheduler as processes,
// each of which can be stopped, killed, paused and started again.
//
//     await using controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] }); // or without parts: all
//     await controlPlane.installKinds();

import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { answersOk, type ApiClient, clientWithCertificate } from './api-client.ts';
import { CertificateAuthority, type CertificateFiles, type Subject } from './certificates.ts';
import { Program } from './program.ts';
import { needProgram } from './programs.ts';

export type Part = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';

export interface ControlPlaneOptions {
  /** Where it keeps everything; default: a new temporary directory, which goes away with it. */
  readonly directory?: string;
  /** Where the API server listens; default: a loopback address of its own, where the other parts listen anyway. */
  readonly address?: string;
  /**
   * Addresses of Services, as 10.96.0.0/16. With it, pods reach the API server by its Service, as containers of a real
   * kubelet do; `address` must not be of the loopback then, which may not stand in an Endpoints object.
   */
  readonly serviceRange?: string;
  /** Default: all four. Without controller-manager there are no default service accounts and no garbage collection. */
  readonly parts?: readonly Part[];
  /** Added to the arguments of a part; the last of two equal flags wins. */
  readonly flags?: Readonly<Partial<Record<Part, readonly string[]>>>;
}

const KINDS = join(import.meta.dirname, '../../crds/yaml');
const ALL_PARTS: readonly Part[] = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
/** Generous: two cores may be busy with something else. */
const START_TIMEOUT_MS = 180_000;
const MAX_STARTS = 3;
const MAX_OUTPUT = 64 * 1024 * 1024;

/** Starts it and waits until it serves; throws with the end of the log of what did not start. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const controlPlane = new ControlPlane(options, await freePorts(5));
  try {
    for (const part of options.parts ?? ALL_PARTS) await controlPlane.start(part);
    await controlPlane.settled();
    return controlPlane;
  } catch (error) {
    await controlPlane.close();
    throw error;
  }
}

/**
 * A loopback address that nobody else listens at: a port that was free a moment ago may be another's by the time a part
 * wants it, and on a shared address the health of that other would be taken for its own.
 */
const ownLoopback = (): string => `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;

export class ControlPlane {
  readonly directory: string;
  /** `https://ADDRESS:PORT` */
  readonly server: string;
  /** Where etcd serves clients: `http://ADDRESS:PORT` */
  readonly etcd: string;
  readonly address: string;
  readonly port: number;
  readonly #serviceRange: string | undefined;
  /** A file for `kubectl --kubeconfig` and clients: everything is allowed. */
  readonly kubeconfig: string;
  readonly authority: CertificateAuthority;
  /** Of the same administrator. */
  readonly api: ApiClient;
  readonly #programs: ReadonlyMap<Part, Program>;
  readonly #healthUrls: Readonly<Record<Part, string>>;
  readonly #ownsDirectory: boolean;
  readonly #parts: readonly Part[];

  /** Use `startControlPlane`. */
  constructor(options: ControlPlaneOptions, ports: readonly number[]) {
    const [apiPort = 0, etcdPort = 0, etcdPeerPort = 0, managerPort = 0, schedulerPort = 0] = ports;
    this.#parts = options.parts ?? ALL_PARTS;
    this.#ownsDirectory = options.directory === undefined;
    this.directory = options.directory ?? mkdtempSync(join(tmpdir(), 'kube-nvr-control-plane-'));
    const loopback = ownLoopback();
    this.address = options.address ?? loopback;
    this.#serviceRange = options.serviceRange;
    this.port = apiPort;
    this.server = `https://${isIPv6(this.address) ? `[${this.address}]` : this.address}:${apiPort}`;
    mkdirSync(join(this.directory, 'logs'), { recursive: true });
    this.authority = new CertificateAuthority(join(this.directory, 'pki'));
    const admin = { commonName: 'admin', organizations: ['system:masters'] };
    this.kubeconfig = this.kubeconfigFor('admin', admin);
    this.api = this.clientFor('admin', admin);
    const etcd = `http://${loopback}:${etcdPort}`;
    this.etcd = etcd;
    this.#healthUrls = {
      etcd: `${etcd}/health`,
      'kube-apiserver': `${this.server}/readyz`,
      'kube-controller-manager': `https://${loopback}:${managerPort}/healthz`,
      'kube-scheduler': `https://${loopback}:${schedulerPort}/healthz`,
    };
    const args: Record<Part, readonly string[]> = {
      etcd: etcdArguments(join(this.directory, 'etcd'), etcd, `http://${loopback}:${etcdPeerPort}`),
      'kube-apiserver': this.#apiServerArguments(etcd),
      'kube-controller-manager': this.#controllerManagerArguments(loopback, managerPort),
      'kube-scheduler': this.#schedulerArguments(loopback, schedulerPort),
    };
    this.#programs = new Map(
      this.#parts.map((part) => [
        part,
        new Program(part, {
          command: needProgram(part),
          args: [...args[part], ...(options.flags?.[part] ?? [])],
          logFile: this.logFile(part),
          keep: true,
        }),
      ]),
    );
  }

  logFile(part: Part): string {
    return join(this.directory, 'logs', `${part}.log`);
  }

  get programs(): readonly Program[] {
    return [...this.#programs.values()];
  }

  program(part: Part): Program {
    const program = this.#programs.get(part);
    if (!program) throw new Error(`this control plane has no ${part}`);
    return program;
  }

  /** Starts a part that was stopped, and waits until it serves. */
  async start(part: Part): Promise<void> {
    const program = this.program(part);
    program.start();
    const { restarts } = program;
    const isHopeless = (): boolean => program.restarts - restarts >= MAX_STARTS;
    try {
      await until(`${part} serves`, async () => isHopeless() || (await this.#serves(part)), START_TIMEOUT_MS);
      if (isHopeless()) throw new Error(`${part} ended again and again`);
    } catch (error) {
      throw new Error(`${part} did not start:\n${program.logTail}`, { cause: error });
    }
  }

  stop(part: Part): Promise<void> {
    return this.program(part).stop();
  }

  kill(part: Part): Promise<void> {
    return this.program(part).kill();
  }

  async restart(part: Part): Promise<void> {
    await this.stop(part);
    await this.start(part);
  }

  /** Stops its time (SIGSTOP): connections stay open, nothing answers. */
  pause(part: Part): Promise<void> {
    return this.program(part).pause();
  }

  resume(part: Part): void {
    this.program(part).resume();
  }

  /** A client that acts as this user; its certificate's files are named `name`. */
  clientFor(name: string, subject: Subject): ApiClient {
    return clientWithCertificate(this.server, this.authority.certFile, this.authority.issue(name, subject));
  }

  /** A kubeconfig file for this user, who reaches the API server at `server`; its path. */
  kubeconfigFor(name: string, subject: Subject, server = this.server): string {
    const file = join(this.directory, `${name}.kubeconfig`);
    const files = this.authority.issue(name, subject);
    writeFileSync(file, JSON.stringify(kubeconfig(server, this.authority.certFile, files), undefined, 2), {
      mode: 0o600,
    });
    return file;
  }

  /** What kubectl prints, as administrator unless `kubeconfig` is another's; throws with its words when it fails. */
  kubectl(args: readonly string[], { input = '', kubeconfig = this.kubeconfig } = {}): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = execFile(
        needProgram('kubectl'),
        ['--kubeconfig', kubeconfig, ...args],
        { maxBuffer: MAX_OUTPUT, env: { ...process.env, HOME: this.directory } },
        (error, stdout, stderr) => {
          if (error) reject(new Error(`kubectl ${args.join(' ')}: ${stderr.trim()}`));
          else resolve(stdout);
        },
      );
      child.stdin?.on('error', () => {});
      child.stdin?.end(input);
    });
  }

  /** Makes it know our kinds, as users do: with the annotation that limits a CRD to 262144 bytes. */
  async installKinds(): Promise<void> {
    await this.kubectl(['apply', '-f', KINDS]);
    await this.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=300s']);
  }

  /** Waits until the namespace `default` can take pods. */
  async settled(): Promise<void> {
    if (!this.#parts.includes('kube-controller-manager')) return;
    await until(
      'the default service account is there',
      () => this.api.get('/api/v1/namespaces/default/serviceaccounts/default').then(() => true),
      START_TIMEOUT_MS,
    );
  }

  /** Ends it at once, with all that it stored when the directory is its own. */
  async close(): Promise<void> {
    this.api.close();
    await Promise.all(this.programs.map((program) => program.kill()));
    if (this.#ownsDirectory) rmSync(this.directory, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serves(part: Part): Promise<boolean> {
    const url = this.#healthUrls[part];
    if (part === 'kube-apiserver') return (await this.api.text('/readyz', 5_000)) === 'ok';
    if (part === 'etcd') return (await fetch(url, { signal: AbortSignal.timeout(5_000) })).ok;
    return answersOk(url);
  }

  #apiServerArguments(etcd: string): readonly string[] {
    const services = this.#serviceRange ?? (isIPv6(this.address) ? '2001:2:0:ffff::/108' : '10.96.0.0/16');
    const serving = this.authority.issue('kube-apiserver', {
      commonName: 'kube-apiserver',
      hosts: [this.address, '127.0.0.1', 'localhost', 'kubernetes.default.svc', firstAddress(services)],
    });
    const toKubelets = this.authority.issue('kube-apiserver-kubelet-client', {
      commonName: 'kube-apiserver-kubelet-client',
      organizations: ['system:masters'],
    });
    const tokens = this.authority.keyPair('service-accounts');
    return [
      `--etcd-servers=${etcd}`,
      `--bind-address=${this.address}`,
      `--secure-port=${this.port}`,
      `--advertise-address=${this.address}`,
      `--cert-dir=${join(this.directory, 'pki')}`,
      `--tls-cert-file=${serving.cert}`,
      `--tls-private-key-file=${serving.key}`,
      `--client-ca-file=${this.authority.certFile}`,
      `--kubelet-certificate-authority=${this.authority.certFile}`,
      `--kubelet-client-certificate=${toKubelets.cert}`,
      `--kubelet-client-key=${toKubelets.key}`,
      '--kubelet-preferred-address-types=InternalIP',
      '--authorization-mode=Node,RBAC',
      '--enable-admission-plugins=NodeRestriction',
      '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
      `--service-account-key-file=${tokens.publicKey}`,
      `--service-account-signing-key-file=${tokens.privateKey}`,
      `--service-cluster-ip-range=${services}`,
      '--allow-privileged=true',
      `--endpoint-reconciler-type=${this.#serviceRange === undefined ? 'none' : 'lease'}`,
      // Or it waits a minute for those who watch before it ends.
      '--shutdown-watch-termination-grace-period=2s',
      '--profiling=false',
    ];
  }

  #controllerManagerArguments(address: string, port: number): readonly string[] {
    const tokens = join(this.directory, 'pki', 'service-accounts.key');
    const user = this.kubeconfigFor('kube-controller-manager', { commonName: 'system:kube-controller-manager' });
    return [
      `--kubeconfig=${user}`,
      `--bind-address=${address}`,
      `--secure-port=${port}`,
      `--cert-dir=${join(this.directory, 'pki', 'kube-controller-manager')}`,
      '--leader-elect=false',
      '--use-service-account-credentials=true',
      `--root-ca-file=${this.authority.certFile}`,
      `--service-account-private-key-file=${tokens}`,
      '--kube-api-qps=200',
      '--kube-api-burst=400',
      '--profiling=false',
    ];
  }

  #schedulerArguments(address: string, port: number): readonly string[] {
    const user = this.kubeconfigFor('kube-scheduler', { commonName: 'system:kube-scheduler' });
    return [
      `--kubeconfig=${user}`,
      `--authentication-kubeconfig=${user}`,
      `--bind-address=${address}`,
      `--secure-port=${port}`,
      `--cert-dir=${join(this.directory, 'pki', 'kube-scheduler')}`,
      '--leader-elect=false',
      '--profiling=false',
    ];
  }
}

/** Of the API server's Service: the first of the range. */
function firstAddress(range: string): string {
  const [network = ''] = range.split('/');
  if (isIPv6(network)) return `${network}1`;
  return network.replace(/\d+$/, (last) => String(Number(last) + 1));
}

function etcdArguments(directory: string, url: string, peerUrl: string): readonly string[] {
  return [
    `--data-dir=${directory}`,
    '--name=etcd',
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=etcd=${peerUrl}`,
    '--logger=zap',
    '--log-level=warn',
    // Tests kill it, but not the machine, and while others write, a disk may take seconds for each sync.
    '--unsafe-no-fsync',
  ];
}

function kubeconfig(server: string, caFile: string, files: CertificateFiles): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority': caFile } }],
    users: [{ name: 'user', user: { 'client-certificate': files.cert, 'client-key': files.key } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'user' } }],
    'current-context': 'test',
  };
}
