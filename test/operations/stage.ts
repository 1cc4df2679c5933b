// What the pages of docs/operations are tried on: a cluster of three nodes with the chart installed, two cameras, and a
// shell in which helm and kubectl speak to it.

import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { KINDS } from '../../crds/kinds.ts';
import { hostIn } from '../../crds/login-hosts.ts';
import { API_VERSION, CAMERA_HOSTS, directoryOfPool, GROUP } from '../../crds/names.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import type { KubeObject } from '../cluster/api-client.ts';
import { startCluster, type Cluster } from '../cluster/cluster.ts';
import type { Images } from '../cluster/kubelet/images.ts';
import { bundledImages } from '../cluster/own-images.ts';
import { untilAllVote } from '../cluster/own-operator.ts';
import { needProgram } from '../cluster/programs.ts';
import { startMsOf } from '../support/file-start.ts';
import { until } from '../support/until.ts';
import { Page } from './page.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMESPACE = 'kube-nvr';
const OURS = `/apis/${API_VERSION}/namespaces/${NAMESPACE}`;
const SLOW_MS = 600_000;
export const NODES = ['node-1', 'node-2', 'node-3'];
/** The version to which pages upgrade. */
const NEXT = '0.2.0';

interface CameraStatus {
  readonly assignment?: { readonly node?: string; readonly handover?: string };
  readonly archives?: readonly { readonly node: string }[];
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
}

export class Stage {
  readonly cluster: Cluster;
  /** By name; that of `hall` wants a login, which may be changed while it runs. */
  readonly cameras: ReadonlyMap<string, Camera>;
  readonly login: { username: string; password: string };
  /** Of each node. */
  archivePath = '/mnt/archive';
  /** When all was as a page begins. */
  #homeMs = Date.now();
  readonly #directory: string;
  readonly #started: AsyncDisposableStack;

  constructor(options: Pick<Stage, 'cluster' | 'cameras' | 'login'>, directory: string, started: AsyncDisposableStack) {
    this.cluster = options.cluster;
    this.cameras = options.cameras;
    this.login = options.login;
    this.#directory = directory;
    this.#started = started;
  }

  /** The archive of a node on this machine. */
  archive(node: string): string {
    return join(this.cluster.node(node).root, this.archivePath);
  }

  page(name: string): Page {
    const bin = (['kubectl', 'helm'] as const).map((program) => dirname(needProgram(program)));
    return new Page(name, {
      directory: this.#directory,
      env: {
        PATH: [...bin, process.env['PATH']].join(':'),
        HOME: this.#directory,
        KUBECONFIG: this.cluster.kubeconfig,
      },
      root: (node) => this.cluster.node(node).root,
    });
  }

  async status(camera: string): Promise<CameraStatus> {
    const path = `${OURS}/cameras/${camera}`;
    return (await this.cluster.api.get<KubeObject & { status?: CameraStatus }>(path)).status ?? {};
  }

  /** The node that records a camera, once it does and no move is under way. */
  untilRecorded(camera: string, on: (node: string) => boolean = () => true): Promise<string> {
    return until(
      `${camera} is recorded`,
      async () => {
        const { assignment, conditions } = await this.status(camera);
        const isReady = conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
        const { node, handover } = assignment ?? {};
        return isReady && handover !== 'Pending' && node !== undefined && on(node) && node;
      },
      SLOW_MS,
    );
  }

  /** Both cameras on their nodes, as every page begins. */
  async home(): Promise<void> {
    await Promise.all([this.move('gate', 'node-1'), this.move('hall', 'node-2')]);
    this.#homeMs = Date.now();
  }

  /** A planned move, as of a camera whose node has lost a label. */
  async move(camera: string, node: string): Promise<void> {
    const path = `${OURS}/cameras/${camera}`;
    const place = (nodeSelector: object): Promise<unknown> =>
      this.cluster.api.patch(path, 'merge', { spec: { placement: { nodeSelector } } });
    await place({ 'kubernetes.io/hostname': node });
    await this.untilRecorded(camera, (on) => on === node);
    await place({ 'kubernetes.io/hostname': null });
  }

  /** The node's archive becomes an empty disk of so many megabytes, and the node starts anew. */
  async smallDisk(name: string, megabytes: number): Promise<void> {
    const node = this.cluster.node(name);
    await node.kill();
    const path = this.archive(name);
    rmSync(join(node.root, 'var'), { recursive: true, force: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path]);
    this.#started.defer(async () => {
      await node.kill();
      execFileSync('umount', ['-l', path]);
    });
    await node.start();
    await until(`${name} is online`, async () => (await this.online()).includes(name), SLOW_MS);
  }

  /** Everything of ours is gone from the API server, as when it was another one. */
  async loseCluster(): Promise<void> {
    const kubectl = (...args: readonly string[]): Promise<string> => this.cluster.kubectl([...args, '--wait=true']);
    await kubectl('delete', 'namespace', NAMESPACE);
    await kubectl('delete', 'crd', ...KINDS.map(({ plural }) => `${plural}.${GROUP}`));
    const ours = ['-l', 'app.kubernetes.io/name=kube-nvr'];
    await kubectl('delete', 'clusterroles,clusterrolebindings', ...ours);
    await kubectl('delete', 'validatingadmissionpolicies,validatingadmissionpolicybindings', ...ours);
  }

  async online(): Promise<readonly string[]> {
    const nodes = await this.#recorderNodes();
    return nodes
      .filter(({ status }) => status?.conditions?.some(({ type, status: is }) => type === 'Online' && is === 'True'))
      .map(({ metadata }) => metadata.name);
  }

  #recorderNodes(): Promise<readonly (KubeObject & { status?: RecorderNodeStatus })[]> {
    return this.cluster.api.list(`${OURS}/recordernodes`);
  }

  /** The pool's own directory in the archive of a node. */
  #footage(node: string): string {
    return join(this.archive(node), directoryOfPool({ namespace: NAMESPACE, pool: 'default' }));
  }

  /** Footage of a camera on a node's disk. */
  files(node: string, camera: string): readonly string[] {
    const directory = this.#footage(node);
    if (!existsSync(directory)) return [];
    const names = readdirSync(directory, { recursive: true }) as string[];
    return names
      .filter((name) => !name.startsWith('.') && name.endsWith('.mp4') && name.includes(`_${camera}_`))
      .sort();
  }

  /** Seconds since `home` of which no node has footage of a camera: what its files say of when they begin and grew last. */
  lostSeconds(camera: string): number {
    const spans = this.cluster.nodes
      .filter(({ root }) => existsSync(join(root, this.archivePath)))
      .flatMap(({ name }) =>
        this.files(name, camera).map((file) => ({
          startMs: startMsOf(file),
          endMs: statSync(join(this.#footage(name), file)).mtimeMs,
        })),
      )
      .sort((a, b) => a.startMs - b.startMs);
    let lostMs = 0;
    let untilMs = this.#homeMs;
    for (const { startMs, endMs } of spans) {
      lostMs += Math.max(0, startMs - untilMs);
      untilMs = Math.max(untilMs, endMs);
    }
    return (lostMs + Math.max(0, Date.now() - untilMs - GROWS_MS)) / 1000;
  }

  /** Whether the recorder of a node gives out a file of its archive. */
  async plays(node: string, file: string): Promise<boolean> {
    const { status } = await fetch(`http://${this.cluster.node(node).address}:9996/${file}`, {
      headers: { authorization: `Bearer ${await this.token()}`, range: 'bytes=0-99' },
    });
    return status === 206;
  }

  async token(): Promise<string> {
    const path = `/api/v1/namespaces/${NAMESPACE}/secrets/default-admin-token`;
    const { data } = await this.cluster.api.get<KubeObject & { data: { token: string } }>(path);
    return Buffer.from(data.token, 'base64').toString();
  }

  close(): Promise<void> {
    return this.#started.disposeAsync();
  }
}

/** A file that is written grows once a second. */
const GROWS_MS = 3_000;

/** Installed as docs/install.md says; `gate` is recorded by node-1, `hall` by node-2. */
export async function startStage(): Promise<Stage> {
  await using started = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-operations-'));
  started.defer(() => rmSync(directory, { recursive: true, force: true }));
  symlinkSync(join(ROOT, 'charts'), join(directory, 'charts'));
  const cluster = started.use(await startCluster({ nodes: NODES.length, images: await imagesIn(directory) }));
  for (const node of NODES) mkdirSync(join(cluster.node(node).root, 'mnt/archive'), { recursive: true });
  const login = { username: 'operator', password: 'before' };
  const host = cluster.addresses.cameras;
  const gate = started.use(await startCamera({ pace: 'realtime', host }));
  const hall = started.use(await startCamera({ pace: 'realtime', host, credentials: login }));
  const cameras = new Map([
    ['gate', gate],
    ['hall', hall],
  ]);
  const stage = new Stage({ cluster, cameras, login }, directory, new AsyncDisposableStack());
  await cluster.kubectl(['config', 'set-context', '--current', '--namespace', NAMESPACE]);
  const page = stage.page('README.md');
  await page.follow('The cluster at the beginning of each page', {
    events: {
      'the cameras gate and hall are described in cameras.yaml': () =>
        writeFileSync(join(directory, 'cameras.yaml'), JSON.stringify(manifests(gate, hall, login))),
    },
  });
  await Promise.all([
    untilAllVote(cluster, NAMESPACE),
    ...['gate', 'hall'].map((camera) => stage.untilRecorded(camera)),
  ]);
  return new Stage({ cluster, cameras, login }, directory, started.move());
}

/** The images under their next version, too: a copy that says so. */
async function imagesIn(directory: string): Promise<Images> {
  const programs = join(directory, 'programs');
  const images = await bundledImages(programs);
  const copy = join(directory, NEXT);
  cpSync(programs, copy, { recursive: true });
  const about = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8')) as object;
  writeFileSync(join(copy, 'package.json'), JSON.stringify({ ...about, version: NEXT }));
  const next = Object.entries(images).map(([name, own]) => {
    const moved = (path: string): string => path.replace(programs, copy);
    const { entrypoint = [], workingDir = '', paths = [] } = own;
    const image = { entrypoint: entrypoint.map(moved), workingDir: moved(workingDir), paths: paths.map(moved) };
    return [`${name}:${NEXT}`, image] as const;
  });
  // A recorder 0.2.1 ends at once.
  const broken = { ...images['kube-nvr-recorder'], entrypoint: ['/bin/false'] };
  return { ...images, ...Object.fromEntries(next), 'kube-nvr-recorder:0.2.1': broken };
}

const manifests = (gate: Camera, hall: Camera, login: object): object => {
  const camera = (name: string, spec: object) => ({
    apiVersion: API_VERSION,
    kind: 'Camera',
    metadata: { name },
    spec: { transport: 'Tcp', ...spec },
  });
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'hall-login', annotations: { [CAMERA_HOSTS]: hostIn(hall.url) } },
        stringData: login,
      },
      camera('gate', { source: gate.url, placement: { preferredNode: 'node-1' } }),
      camera('hall', {
        source: hall.url,
        credentialsSecretRef: { name: 'hall-login' },
        placement: { preferredNode: 'node-2' },
      }),
    ],
  };
};
