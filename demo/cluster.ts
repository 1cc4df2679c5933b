// The demo of a cluster: a real Kubernetes on this machine, whose nodes are namespaces and whose pods are processes, with demo
// cameras as resources. Run it as `hack/demo --nodes 3`, which first installs what is missing.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { CAMERA_HOSTS } from '../crds/names.ts';
import { assert } from '../base/assert.ts';
import { messageOf } from '../base/error.ts';
import { clusterMissing, startCluster, type Cluster } from '../test/cluster/cluster.ts';
import { OWN_IMAGES } from '../test/cluster/own-images.ts';
import {
  apply,
  makeArchives,
  NAMESPACE,
  poolOfAllNodes,
  resource,
  startOperator,
  type OwnOperator,
} from '../test/cluster/own-operator.ts';
import { needProgram } from '../test/cluster/programs.ts';
import { DemoError, runDemo } from './process.ts';

const ROOT = join(import.meta.dirname, '..');
const MAX_NODES = 10;
const MAX_CAMERAS = 50;

function parseOptions(): { nodes: number; cameras: number } {
  const { values } = parseArgs({
    options: { nodes: { type: 'string', default: '3' }, cameras: { type: 'string', default: '3' } },
  });
  const number = (name: 'nodes' | 'cameras', max: number): number => {
    const text = values[name];
    if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > max) {
      throw new DemoError(`--${name} takes a number from 1 to ${max}, not ${text}`);
    }
    return Number(text);
  };
  return { nodes: number('nodes', MAX_NODES), cameras: number('cameras', MAX_CAMERAS) };
}

const LOGIN = { username: 'demo', password: 'demo' };

/** Starts the cameras; returns their addresses by name. */
async function startCameras(cluster: Cluster, count: number, log: number) {
  const args = ['demo/cameras.py', '--cameras', String(count), '--port', '0', '--with-parent'];
  const login = ['--login', `${LOGIN.username}:${LOGIN.password}`, '--address', cluster.addresses.cameras];
  const child: ChildProcess = spawn('/usr/bin/python3', [...args, ...login], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', log],
  });
  const urls = new Map<string, string>();
  assert(child.stdout, 'its output is a pipe');
  for await (const line of createInterface({ input: child.stdout })) {
    const [word, name, url] = line.split(' ');
    if (word === 'ready' && name && url) urls.set(name, url);
    if (urls.size === count) return { child, urls };
  }
  throw new DemoError('the demo cameras did not start');
}

async function applyResources({ controlPlane }: Cluster, cameras: ReadonlyMap<string, string>): Promise<void> {
  await apply(controlPlane, [
    poolOfAllNodes(),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'demo-login', namespace: NAMESPACE, annotations: { [CAMERA_HOSTS]: '*' } },
      stringData: LOGIN,
    },
    ...Array.from(cameras, ([name, source], i) =>
      resource('Camera', name, { source, ...(i === 0 && { credentialsSecretRef: { name: 'demo-login' } }) }),
    ),
  ]);
}

const COMMANDS = `  kill NODE    like a power failure      start NODE   like a boot with its old disk
  cut NODE     its packets vanish        mend NODE
  freeze NODE  its time stands still     thaw NODE
`;

/** Carries out one line that the user typed. */
async function obey(cluster: Cluster, line: string): Promise<void> {
  const [verb = '', name = ''] = line.trim().split(/\s+/);
  if (verb === '') return;
  const node = cluster.node(name);
  switch (verb) {
    case 'kill':
      return node.kill();
    case 'start':
      return node.start();
    case 'cut':
      return node.cutOff();
    case 'mend':
      return node.reconnect();
    case 'freeze':
      return node.freeze();
    case 'thaw':
      return node.thaw();
    default:
      throw new DemoError(`no such command\n${COMMANDS}`);
  }
}

async function run(signal: AbortSignal): Promise<void> {
  const options = parseOptions();
  const missing = clusterMissing();
  if (missing) throw new DemoError(missing);
  const logs = mkdtempSync(join(tmpdir(), 'kube-nvr-demo-'));
  const operators: OwnOperator[] = [];
  let cameras: ChildProcess | undefined;
  process.stdout.write(`starting a Kubernetes of ${options.nodes} nodes\n`);
  const cluster = await startCluster({ nodes: options.nodes, images: OWN_IMAGES });
  try {
    makeArchives(cluster);
    const { child, urls } = await startCameras(cluster, options.cameras, openSync(join(logs, 'cameras.log'), 'w'));
    cameras = child;
    await cluster.controlPlane.installKinds();
    operators.push(...(await Promise.all([0, 1].map(() => startOperator(cluster.controlPlane, logs)))));
    await applyResources(cluster, urls);
    process.stdout.write(
      [
        `logs        ${logs}`,
        '',
        'In another terminal:',
        `  export KUBECONFIG=${cluster.controlPlane.kubeconfig}`,
        `  alias kubectl=${needProgram('kubectl')}`,
        '  kubectl get cameras -o wide -w     # which node records what, and why',
        '  kubectl get kubenvr                # cameras, pool, nodes',
        '  kubectl describe camera gate       # what happened to it',
        '  kubectl patch rnode node-1 --type merge -p \'{"spec":{"drain":true}}\'',
        `  # pages: http://${cluster.node('node-1').address}:9997/ and those of the other nodes`,
        '',
        'Here:',
        `${COMMANDS}Ctrl-C stops everything.`,
        '',
      ].join('\n'),
    );
    const input = createInterface({ input: process.stdin });
    input.on('line', (line) => {
      obey(cluster, line).catch((error: unknown) => process.stderr.write(`${messageOf(error)}\n`));
    });
    await once(signal, 'abort');
    input.close();
    process.stdout.write('\nstopping\n');
  } finally {
    await Promise.all(operators.map(({ program }) => program.stop()));
    if (cameras && cameras.exitCode === null && cameras.signalCode === null) {
      const ended = once(cameras, 'exit');
      cameras.kill('SIGTERM');
      await ended;
    }
    await cluster.close();
    rmSync(logs, { recursive: true, force: true });
  }
  process.stdout.write('stopped\n');
}

await runDemo(run);
