// The demo of an installation: a Kubernetes with a real kubelet on this machine, the chart as users install it, and demo cameras
// in a pod and as resources. Run it as `hack/demo --kubernetes`, which first installs and builds what is missing.

import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { API_VERSION, CAMERA_HOSTS } from '../crds/names.ts';
import { CHART, Helm } from '../test/chart/helm.ts';
import { metricsToken } from '../test/cluster/own-operator.ts';
import { needProgram } from '../test/cluster/programs.ts';
import { cameraPod, cameraUrl } from '../test/node/camera-pod.ts';
import { machineImage } from '../test/node/images.ts';
import { ownImages } from '../test/node/own-images.ts';
import { realClusterMissing, startRealCluster, type RealCluster } from '../test/node/real-cluster.ts';
import type { GstreamerCamera } from '../test/support/gstreamer-cameras.ts';
import { startDemoPrometheus } from './prometheus.ts';
import { DemoError, runDemo } from './process.ts';

const NAMESPACE = 'kube-nvr';
const SIGHTS = 'demo-cameras';
const ARCHIVE = '/mnt/archive';
const MAX_CAMERAS = 20;
const LOGIN = { username: 'demo', password: 'demo' };
const KINDS: readonly GstreamerCamera[] = [
  { name: 'gate', video: 'h264', audio: 'aac' },
  { name: 'yard', video: 'h265', audio: 'none' },
  { name: 'hall', video: 'h264-b', audio: 'pcmu' },
];

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** `count` cameras; the first one requires a login. */
function demoCameras(count: number): readonly GstreamerCamera[] {
  return Array.from({ length: count }, (_, i) => {
    const kind = KINDS[i % KINDS.length]!;
    const name = i < KINDS.length ? kind.name : `${kind.name}-${Math.floor(i / KINDS.length) + 1}`;
    const login = i === 0 && ({ auth: 'digest', user: LOGIN.username, password: LOGIN.password } as const);
    return { ...kind, name, ...login };
  });
}

function cameraCount(): number {
  const { values } = parseArgs({
    options: { kubernetes: { type: 'boolean' }, cameras: { type: 'string', default: '3' } },
  });
  const text = values.cameras;
  if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > MAX_CAMERAS) {
    throw new DemoError(`--cameras takes a number from 1 to ${MAX_CAMERAS}, not ${text}`);
  }
  return Number(text);
}

const apply = (cluster: RealCluster, items: readonly object[]): Promise<string> =>
  cluster.kubectl(['apply', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });

const namespace = (name: string, labels: Readonly<Record<string, string>> = {}) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});

async function install(cluster: RealCluster, helm: Helm): Promise<void> {
  mkdirSync(join(cluster.node.root, ARCHIVE), { recursive: true });
  await apply(cluster, [namespace(NAMESPACE, { 'pod-security.kubernetes.io/enforce': 'privileged' })]);
  const values = {
    // There is only one node.
    operator: { antiAffinity: 'Preferred' },
    // The cameras are pods behind a Service.
    pool: { enabled: true, spec: { archive: { hostPath: ARCHIVE }, cameraNetworks: camerasAt(cluster) } },
  };
  await helm.kinds(NAMESPACE);
  await cluster.kubectl(['label', 'nodes', '--all', 'kube-nvr.dev/recorder=true']);
  await helm.run(['install', 'kube-nvr', CHART, '--namespace', NAMESPACE, '--wait', '--timeout', '5m'], values);
}

const camerasAt = ({ network }: RealCluster): readonly string[] => [network.ranges.services, network.ranges.pods];

async function addCameras(cluster: RealCluster, cameras: readonly GstreamerCamera[]): Promise<void> {
  await apply(cluster, [
    ...cameraPod(SIGHTS, cameras),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'demo-login', namespace: NAMESPACE, annotations: { [CAMERA_HOSTS]: '*' } },
      stringData: LOGIN,
    },
    ...cameras.map(({ name, auth }) => ({
      apiVersion: API_VERSION,
      kind: 'Camera',
      metadata: { name, namespace: NAMESPACE },
      spec: {
        source: cameraUrl(SIGHTS, cameras, name),
        transport: 'Tcp',
        ...(auth !== undefined && { credentialsSecretRef: { name: 'demo-login' } }),
      },
    })),
  ]);
  await cluster.kubectl(['-n', NAMESPACE, 'wait', '--for=condition=Ready', 'cameras', '--all', '--timeout=3m']);
}

const field = (cluster: RealCluster, kind: string, name: string, path: string): Promise<string> =>
  cluster.kubectl(['-n', NAMESPACE, 'get', kind, name, '-o', `jsonpath={${path}}`]);

/** What to look at, with the names and addresses of this run. */
async function guide(cluster: RealCluster, prometheus: string | undefined): Promise<readonly string[]> {
  const address = await field(cluster, 'service', 'default-recorder', '.spec.clusterIP');
  const token = Buffer.from(await field(cluster, 'secret', 'default-admin-token', '.data.token'), 'base64').toString();
  return [
    `page        http://${address}:9997/`,
    `token       ${token}`,
    ...(prometheus === undefined ? [] : [`prometheus  ${prometheus}`]),
    `recordings  ${join(cluster.node.root, ARCHIVE)}`,
    '',
    'In another terminal:',
    `  export KUBECONFIG=${cluster.controlPlane.kubeconfig}`,
    `  alias kubectl=${needProgram('kubectl')} helm=${needProgram('helm')}`,
    `  kubectl -n ${NAMESPACE} get cameras -o wide            # who records what`,
    `  kubectl -n ${NAMESPACE} get pods,recorderpools,recordernodes`,
    `  kubectl -n ${NAMESPACE} describe camera gate           # what happened to it`,
    `  kubectl -n ${NAMESPACE} logs daemonset/default-recorder`,
    `  kubectl -n ${NAMESPACE} delete pod -l kube-nvr.dev/pool=default   # recording continues in seconds`,
    `  kubectl -n ${SIGHTS} delete pod cameras                # see how silent cameras are reported`,
    `  helm -n ${NAMESPACE} test kube-nvr`,
    `  helm -n ${NAMESPACE} uninstall kube-nvr                # recorders continue, footage stays`,
    '',
    'Ctrl-C stops everything.',
  ];
}

/** Adds everything that it starts to `stack`. */
async function start(stack: AsyncDisposableStack, cameras: readonly GstreamerCamera[]): Promise<void> {
  say('building the images (minutes the first time)');
  const images = ownImages();
  say('starting a Kubernetes with one real node');
  const cluster = stack.use(await startRealCluster());
  for (const archive of [machineImage(), ...images]) await cluster.node.importImages(archive);
  say('installing the chart');
  const helm = new Helm(cluster.controlPlane.kubeconfig);
  stack.defer(() => helm.close());
  await install(cluster, helm);
  say('adding cameras');
  await addCameras(cluster, cameras);
  const targets = {
    'kube-nvr-recorder': `${await field(cluster, 'service', 'default-recorder', '.spec.clusterIP')}:9998`,
    'kube-nvr-operator': `${await field(cluster, 'service', 'kube-nvr-operator', '.spec.clusterIP')}:8080`,
  };
  const token = await metricsToken(cluster.controlPlane, NAMESPACE, 'default');
  const prometheus = await startDemoPrometheus(targets, { node: cluster.node.name, token });
  if (prometheus) stack.use(prometheus);
  say(['', ...(await guide(cluster, prometheus?.url))].join('\n'));
}

async function run(signal: AbortSignal): Promise<void> {
  const cameras = demoCameras(cameraCount());
  const missing = realClusterMissing();
  if (missing) throw new DemoError(missing);
  await using stack = new AsyncDisposableStack();
  const aborted = once(signal, 'abort');
  // A user who interrupts the installation need not wait for its end.
  await Promise.race([start(stack, cameras).then(() => aborted), aborted]);
  say('\nstopping');
  await stack.disposeAsync();
  say('stopped');
}

await runDemo(run);
// An interrupted installation may still wait for a cluster that is gone.
process.exit();
