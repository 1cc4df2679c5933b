// npm run bench:failover -- scale [--runs N] [--nodes N] [--cameras N] [--idle SECONDS]: 200 nodes and 5 000 cameras, unless given
// otherwise, on a real API server with the real operator and simulated recorders (`scale-members.ts`). Measures the operator's
// time, memory and requests, and its reaction when a node falls silent or it is itself restarted.

import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { concurrently } from '../../../base/concurrently.ts';
import { silentLog } from '../../../base/log.ts';
import type { CameraAssignment } from '../../../crds/camera.ts';
import { API_VERSION, CAMERAS, OPERATOR_LEASE, RECORDER_NODES, RECORDER_POOLS } from '../../../crds/names.ts';
import type { RecorderPool } from '../../../crds/recorder-pool.ts';
import { OPERATOR_NODE_FLAG } from '../../../build/image/layout.ts';
import type { KubeObject } from '../../cluster/api-client.ts';
import { startControlPlane, type ControlPlane } from '../../cluster/control-plane.ts';
import { Program } from '../../cluster/program.ts';
import { apiServerMissing } from '../../cluster/programs.ts';
import { freePorts } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { cpuOf, memoryOf, sleep } from '../processes.ts';
import { figureTable, machine, median, verdictOf, type Figure } from '../report.ts';
import { Audit, AUDIT_FLAGS, type Call } from './scale-audit.ts';
import { Members, type Seen } from './scale-members.ts';

export interface ScaleOptions {
  readonly directory: string;
  readonly nodes?: number;
  readonly cameras?: number;
  /** How many nodes are lost, one after another. */
  readonly runs?: number;
  readonly idleSeconds?: number;
}

const ROOT = join(import.meta.dirname, '../../..');
const NAMESPACE = 'default';
const POOL = 'default';
const BASE = `/apis/${API_VERSION}/namespaces/${NAMESPACE}`;
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${OPERATOR_LEASE}`;
const OPERATOR = 'operator';
const OPERATOR_USER = `system:serviceaccount:${NAMESPACE}:${OPERATOR}`;
const SLOW_MS = 1_800_000;
/** If the operator has written nothing for this long, everything is done. */
const QUIET_MS = 10_000;
const REPLICAS = 2;
/** The bounds are those of so many cameras; with more of them, the first assignment may take longer in proportion. */
const BASE_CAMERAS = 5_000;
/** A lost node takes about a minute until nothing changes any more. */
const MAX_RUNS = 5;
const CREATIONS_AT_ONCE = 24;

interface ScaleArguments {
  readonly runs: string;
  readonly nodes?: string;
  readonly cameras?: string;
  readonly idle?: string;
}

/** Prints progress and the table; returns 1 if a limit is missed. */
export async function runScale({ runs, nodes, cameras, idle }: ScaleArguments): Promise<number> {
  const missing = apiServerMissing();
  if (missing) {
    console.error(missing);
    return 1;
  }
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-scale-'));
  console.log(`kube-nvr scale bench\n${machine()}\n`);
  try {
    const figures = await measureScale({
      directory,
      runs: Math.min(MAX_RUNS, Number(runs)),
      ...(nodes !== undefined && { nodes: Number(nodes) }),
      ...(cameras !== undefined && { cameras: Number(cameras) }),
      ...(idle !== undefined && { idleSeconds: Number(idle) }),
    });
    console.log(`\n${figureTable(figures)}`);
    return figures.some((figure) => verdictOf(figure) === 'MISSED') ? 1 : 0;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Returns the rows of the table. */
export async function measureScale(options: ScaleOptions): Promise<readonly Figure[]> {
  const stage = await ScaleStage.start(options);
  try {
    return await stage.measure();
  } finally {
    await stage.close();
  }
}

class ScaleStage {
  readonly #options: Required<ScaleOptions>;
  readonly #controlPlane: ControlPlane;
  readonly #members: Members;
  readonly #audit: Audit;
  #operators: Program[] = [];
  #seen: (Seen & { readonly atMs: number })[] = [];
  #peakBytes = 0;

  private constructor(options: Required<ScaleOptions>, controlPlane: ControlPlane) {
    this.#options = options;
    this.#controlPlane = controlPlane;
    this.#audit = new Audit(join(options.directory, 'audit.log'), OPERATOR_USER);
    this.#members = new Members({
      controlPlane,
      namespace: NAMESPACE,
      pool: POOL,
      nodes: this.#nodes,
      log: silentLog,
      onAssigned: (seen) => this.#seen.push({ ...seen, atMs: Date.now() }),
    });
  }

  static async start(given: ScaleOptions): Promise<ScaleStage> {
    const options = { nodes: 200, cameras: BASE_CAMERAS, runs: 5, idleSeconds: 180, ...given };
    const controlPlane = await startControlPlane({
      // Without controllers: their work for pods and nodes is done here.
      parts: ['etcd', 'kube-apiserver'],
      flags: {
        'kube-apiserver': [
          ...AUDIT_FLAGS(options.directory, OPERATOR_USER),
          '--disable-admission-plugins=ServiceAccount,TaintNodesByCondition',
        ],
      },
    });
    const stage = new ScaleStage(options, controlPlane);
    await controlPlane.installKinds();
    await stage.#bringUp();
    return stage;
  }

  async measure(): Promise<readonly Figure[]> {
    const { runs, idleSeconds } = this.#options;
    const nothing = await this.#fromNothing();
    const idle = await this.#idle(idleSeconds);
    const losses: Awaited<ReturnType<ScaleStage['loseNode']>>[] = [];
    for (let run = 1; run <= runs; run++) losses.push(await this.loseNode(run));
    const restart = await this.#restart();
    this.#measureMemory();
    const worst = (of: (loss: (typeof losses)[number]) => number): number => Math.max(...losses.map(of));
    const { nodes, cameras } = this.#options;
    const n = `${nodes} nodes, ${cameras} cameras`;
    return [
      {
        figure: `${n}: all assigned from nothing`,
        unit: 's',
        measured: nothing.assignedSeconds,
        must: (60 * Math.max(BASE_CAMERAS, cameras)) / BASE_CAMERAS,
      },
      { figure: '  all taken up', unit: 's', measured: nothing.takenUpSeconds },
      { figure: '  writes of the operator a camera', unit: '', measured: nothing.writes / cameras },
      { figure: '  CPU of the operator', unit: 's', measured: nothing.cpuSeconds },
      {
        figure: 'one node lost: all its cameras assigned elsewhere',
        unit: 's',
        measured: worst((loss) => loss.lastSeconds),
        must: 20,
        note: `first after ${Math.min(...losses.map((loss) => loss.firstSeconds)).toFixed(1)} s, median of the last ${median(losses.map((loss) => loss.lastSeconds)).toFixed(1)} s, ${runs} runs`,
      },
      { figure: '  all taken up there', unit: 's', measured: worst((loss) => loss.takenUpSeconds), must: 20 },
      { figure: '  assignments of other cameras', unit: '', measured: worst((loss) => loss.others), must: 0 },
      { figure: '  writes of the operator a move', unit: '', measured: worst((loss) => loss.writesPerMove) },
      {
        figure: 'peak RSS of the operator',
        unit: 'MB',
        measured: this.#peakBytes / 1e6,
        ...(cameras <= BASE_CAMERAS && { must: 200 }),
      },
      {
        figure: 'idle: requests of both replicas but for Leases',
        unit: '1/s',
        measured: idle.requestsPerSecond,
        must: 1,
        note: `writes ${idle.writesPerSecond.toFixed(3)} 1/s, Leases ${idle.leasesPerSecond.toFixed(2)} 1/s, ${idleSeconds} s`,
      },
      { figure: '  CPU of both replicas', unit: '% of a core', measured: idle.cpuPercent },
      { figure: 'operator restarted: leads', unit: 's', measured: restart.leadsSeconds },
      { figure: '  last write', unit: 's', measured: restart.quietSeconds },
      { figure: '  writes but for Leases', unit: '', measured: restart.writes },
      { figure: '  moves', unit: '', measured: restart.moves, must: 0 },
    ];
  }

  async close(): Promise<void> {
    await Promise.all(this.#operators.map((operator) => operator.kill()));
    await this.#members.close();
    await this.#controlPlane.close();
  }

  get #account(): string {
    return join(this.#options.directory, 'account');
  }

  get #nodes(): readonly string[] {
    return Array.from({ length: this.#options.nodes }, (_, i) => `node-${i + 1}`);
  }

  // ── measurements ──

  /** Recorders are online and cameras exist, but no operator has ever seen them. */
  async #fromNothing() {
    await this.#stopOperators();
    const spec = { source: 'rtsp://10.0.0.9/stream1', transport: 'Tcp', poolRef: { name: POOL } };
    await this.#create(
      Array.from({ length: this.#options.cameras }, (_, i) => ({
        apiVersion: API_VERSION,
        kind: 'Camera',
        metadata: { name: `camera-${i + 1}`, namespace: NAMESPACE },
        spec,
      })),
      `${BASE}/${CAMERAS}`,
    );
    const startMs = Date.now();
    await this.#startOperators();
    const { cameras } = this.#options;
    await until('all cameras are assigned', () => this.#assigned().size === cameras, SLOW_MS);
    const assignedSeconds = ((this.#seen.at(-1)?.atMs ?? 0) - startMs) / 1000;
    await until('all cameras are taken up', () => this.#members.isTakenUp, SLOW_MS);
    const takenUpSeconds = (Date.now() - startMs) / 1000;
    await this.#quiet();
    const cpuSeconds = this.#cpu();
    const calls = this.#audit.since(startMs);
    const writes = writesIn(calls).length;
    say('from nothing', { assignedSeconds, takenUpSeconds, cpuSeconds, ...summaryOf(calls) });
    this.#measureMemory();
    return { assignedSeconds, takenUpSeconds, writes, cpuSeconds };
  }

  async #idle(seconds: number) {
    await this.#quiet();
    const totalBefore = await this.#totals();
    const cpuBefore = this.#cpu();
    const startMs = Date.now();
    await sleep(seconds * 1000);
    const calls = this.#audit.since(startMs);
    const cpuPercent = ((this.#cpu() - cpuBefore) / seconds) * 100;
    const others = calls.filter(({ resource }) => resource !== 'leases');
    const served = (await this.#totals()) - totalBefore;
    say('idle', { seconds, cpuPercent, servedPerSecond: served / seconds, ...summaryOf(calls) });
    this.#measureMemory();
    return {
      requestsPerSecond: others.length / seconds,
      writesPerSecond: writesIn(others).length / seconds,
      leasesPerSecond: (calls.length - others.length) / seconds,
      cpuPercent,
    };
  }

  /** A node stops renewing its Lease. */
  async loseNode(run: number) {
    const node = this.#nodes[(run * 37) % this.#nodes.length] as string;
    const lost = new Set([...this.#assigned()].flatMap(([camera, one]) => (one.node === node ? [camera] : [])));
    this.#seen = [];
    const lastSignMs = await this.#members.silence(node);
    const has = (): boolean => [...this.#assigned()].every(([, one]) => one.node !== node);
    await until(`the cameras of ${node} are assigned elsewhere`, has, SLOW_MS);
    const seconds = this.#seen.map(({ atMs }) => (atMs - lastSignMs) / 1000);
    await until('all cameras are taken up', () => this.#members.isTakenUp, SLOW_MS);
    const takenUpSeconds = (Date.now() - lastSignMs) / 1000;
    await this.#quiet();
    const calls = this.#audit.since(lastSignMs);
    const others = this.#seen.filter(({ camera }) => !lost.has(camera)).length;
    const outcome = {
      cameras: lost.size,
      firstSeconds: Math.min(...seconds),
      lastSeconds: Math.max(...seconds),
      takenUpSeconds,
      others,
      writesPerMove: writesIn(calls).length / lost.size,
    };
    say(`${node} lost, run ${run}`, { ...outcome, ...summaryOf(calls) });
    this.#members.speak(node);
    await this.#nodesAreReady();
    await this.#quiet();
    this.#measureMemory();
    return outcome;
  }

  async #restart() {
    await this.#quiet();
    await this.#stopOperators();
    const before = new Map(this.#assigned());
    const startMs = Date.now();
    await this.#startOperators();
    const leadsSeconds = (Date.now() - startMs) / 1000;
    await this.#quiet();
    await sleep(2 * QUIET_MS);
    const writes = writesIn(this.#audit.since(startMs));
    const moves = [...this.#assigned()].filter(([camera, { epoch }]) => before.get(camera)?.epoch !== epoch).length;
    const last = Math.max(startMs, ...writes.map(({ atMs }) => atMs));
    const outcome = { leadsSeconds, quietSeconds: (last - startMs) / 1000, writes: writes.length, moves };
    say('operator restarted', { ...outcome, ...summaryOf(this.#audit.since(startMs)) });
    return outcome;
  }

  // ── environment ──

  async #bringUp(): Promise<void> {
    const { api } = this.#controlPlane;
    await this.#makeAccount();
    const spec = { archive: { hostPath: '/mnt/archive' }, auth: { mode: 'None' } };
    const pool = {
      apiVersion: API_VERSION,
      kind: 'RecorderPool',
      metadata: { name: POOL, namespace: NAMESPACE },
      spec,
    };
    await api.create(`${BASE}/${RECORDER_POOLS}`, pool);
    await this.#create(
      this.#nodes.map((name) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } })),
      '/api/v1/nodes',
    );
    await this.#startOperators();
    const daemonSet = await until(
      'the pool has its DaemonSet',
      () =>
        api.get<KubeObject & { spec: { template: { metadata: object; spec: object } } }>(
          `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/${POOL}-recorder`,
        ),
      SLOW_MS,
    );
    const { template } = daemonSet.spec;
    const pods = `/api/v1/namespaces/${NAMESPACE}/pods`;
    await this.#create(
      this.#nodes.map((nodeName) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...template.metadata, name: `recorder-${nodeName}`, namespace: NAMESPACE },
        spec: { ...template.spec, nodeName },
      })),
      pods,
    );
    const conditions = [{ type: 'Ready', status: 'True' }];
    await concurrently(this.#nodes, CREATIONS_AT_ONCE, (node) =>
      api.patch(`${pods}/recorder-${node}/status`, 'merge', { status: { phase: 'Running', conditions } }),
    );
    await until(
      'every node has a RecorderNode',
      async () => (await api.list(`${BASE}/${RECORDER_NODES}`)).length === this.#nodes.length,
      SLOW_MS,
    );
    this.#members.start();
    await this.#nodesAreReady();
    await this.#quiet();
  }

  /** Creates the operator's account and a token as a kubelet would. */
  async #makeAccount(): Promise<void> {
    const { api, authority } = this.#controlPlane;
    const accounts = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
    await api.create(accounts, { metadata: { name: OPERATOR } });
    await api.create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: OPERATOR },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', name: OPERATOR, namespace: NAMESPACE }],
    });
    const { status } = await api.create<KubeObject & { status: { token: string } }>(`${accounts}/${OPERATOR}/token`, {
      spec: { expirationSeconds: 86_400 },
    });
    mkdirSync(this.#account);
    writeFileSync(join(this.#account, 'token'), status.token);
    copyFileSync(authority.certFile, join(this.#account, 'ca.crt'));
    writeFileSync(join(this.#account, 'namespace'), NAMESPACE);
  }

  async #nodesAreReady(): Promise<void> {
    await until(
      'every node is heard, and voters are chosen',
      async () => {
        const { status } = (await this.#controlPlane.api.get(
          `${BASE}/${RECORDER_POOLS}/${POOL}`,
        )) as unknown as RecorderPool;
        const { nodes } = this.#options;
        return status?.nodesReady === nodes && (status.voters?.length ?? 0) >= Math.min(7, nodes);
      },
      SLOW_MS,
    );
  }

  #assigned(): ReadonlyMap<string, CameraAssignment> {
    return this.#members.assignments;
  }

  async #create(objects: readonly object[], path: string): Promise<void> {
    await concurrently(objects, CREATIONS_AT_ONCE, (object) => this.#controlPlane.api.create(path, object));
  }

  /** Resolves when one of them leads. */
  async #startOperators(): Promise<void> {
    const { directory } = this.#options;
    const { address, port: apiPort } = this.#controlPlane;
    const ports = await freePorts(REPLICAS);
    this.#operators = ports.map((port) => {
      const program = new Program(`operator-${port}`, {
        command: process.execPath,
        args: [OPERATOR_NODE_FLAG, join(ROOT, 'operator/main.ts'), '--listen', `127.0.0.1:${port}`],
        logFile: join(directory, `operator-${port}.log`),
        // As in a pod.
        env: {
          PATH: process.env['PATH'] ?? '',
          POD_NAME: `operator-${port}`,
          POD_NAMESPACE: NAMESPACE,
          KUBERNETES_SERVICE_HOST: address,
          KUBERNETES_SERVICE_PORT: String(apiPort),
          KUBE_NVR_SERVICE_ACCOUNT_DIR: this.#account,
        },
      });
      program.start();
      return program;
    });
    const isOurs = async (): Promise<boolean> => {
      const { spec } = await this.#controlPlane.api.get<KubeObject & { spec: { holderIdentity?: string } }>(LEASE);
      return ports.some((port) => spec.holderIdentity?.startsWith(`operator-${port}/`));
    };
    await until('an operator leads', isOurs, SLOW_MS);
  }

  async #stopOperators(): Promise<void> {
    this.#measureMemory();
    await Promise.all(this.#operators.map((operator) => operator.stop()));
    this.#operators = [];
  }

  /** Waits until the operator has written nothing for some time. */
  async #quiet(): Promise<void> {
    const isQuiet = (): boolean => writesIn(this.#audit.since(Date.now() - QUIET_MS)).length === 0;
    await sleep(QUIET_MS);
    await until('the operator has nothing to write', isQuiet, SLOW_MS);
  }

  #measureMemory(): void {
    for (const { pid } of this.#operators) this.#peakBytes = Math.max(this.#peakBytes, memoryOf(pid).peak);
    const megabytes = this.#operators.map(({ pid }) => {
      const { resident, peak } = memoryOf(pid);
      return `${Math.round(resident / 1e6)} (peak ${Math.round(peak / 1e6)})`;
    });
    say('memory of the operators, MB', megabytes);
  }

  #cpu(): number {
    return cpuOf(this.#operators.map(({ pid }) => pid));
  }

  /** Number of all requests that the API server has answered. */
  async #totals(): Promise<number> {
    const text = await this.#controlPlane.api.text('/metrics', 30_000);
    let total = 0;
    for (const [, count] of text.matchAll(/^apiserver_request_total\{[^}]*\} (\S+)$/gm)) total += Number(count);
    return total;
  }
}

/** Writes without those of Leases, of which two replicas have one. */
const writesIn = (calls: readonly Call[]): readonly Call[] =>
  calls.filter(({ verb, resource }) => !['get', 'list', 'watch'].includes(verb) && resource !== 'leases');

/** How often each verb was used on each resource. */
function summaryOf(calls: readonly Call[]): { calls: Record<string, number> } {
  const counts: Record<string, number> = {};
  for (const { verb, resource, code } of calls) {
    const key = `${verb} ${resource}${code >= 400 ? ` ${code}` : ''}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return { calls: counts };
}

function say(what: string, figures: unknown): void {
  console.log(`${what}: ${JSON.stringify(figures)}`);
}
