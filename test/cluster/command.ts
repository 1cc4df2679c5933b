// The test cluster as a command: starts it in the background, shows its state, breaks and repairs its nodes. Run it as
// `hack/cluster`, which first installs what is missing. One process runs the cluster and listens on a socket for the other
// commands; when it ends, for whatever reason, everything ends.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { text } from 'node:stream/consumers';
import { clusterMissing, startCluster, type Cluster } from './cluster.ts';
import type { Part } from './control-plane.ts';
import { SIDES, type Side } from './network.ts';
import { OWN_IMAGES } from './own-images.ts';
import { needProgram } from './programs.ts';
import { until } from '../support/until.ts';
import { messageOf } from '../../base/error.ts';

const USAGE = `hack/cluster up [--nodes N]     start it (default: 3 nodes), and say how it is used
hack/cluster down               end it, with all that it stored
hack/cluster status             what runs, and what is broken
hack/cluster env                for eval "$(hack/cluster env)": kubectl and KUBECONFIG

hack/cluster kill NODE          as a power cut: every process of the node is gone at once
hack/cluster start NODE         as a boot with the disk it had
hack/cluster freeze NODE        stop the time of all its processes
hack/cluster thaw NODE
hack/cluster cut NODE [SIDE...]   its packets to and from there vanish; SIDE is ${SIDES.join(', ')} (default: all)
hack/cluster mend NODE [SIDE...]
hack/cluster pause PART         stop the time of etcd, kube-apiserver, kube-controller-manager or kube-scheduler
hack/cluster resume PART
hack/cluster restart PART

KUBE_NVR_CLUSTER is where it keeps everything (default: a directory of yours among the temporary ones).
`;
const MAX_NODES = 50;
/** Enough for a cold start on a busy machine. */
const START_TIMEOUT_MS = 180_000;
const PARTS: readonly Part[] = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

class UsageError extends Error {}

interface Reply {
  readonly text: string;
  readonly failed?: boolean;
}

const directory = join(
  process.env['KUBE_NVR_CLUSTER'] ?? join(tmpdir(), `kube-nvr-cluster-${process.getuid?.() ?? 0}`),
);
const socketFile = join(directory, 'control.sock');
const logFile = join(directory, 'cluster.log');

function parse(): { command: string; rest: readonly string[]; nodes: number } {
  const { values, positionals } = parseArgs({
    options: { nodes: { type: 'string', default: '3' }, help: { type: 'boolean', short: 'h', default: false } },
    allowPositionals: true,
  });
  const nodes = Number(values.nodes);
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MAX_NODES) {
    throw new UsageError(`--nodes takes a number from 1 to ${MAX_NODES}, not ${values.nodes}`);
  }
  const [command = 'help', ...rest] = positionals;
  return { command: values.help ? 'help' : command, rest, nodes };
}

/** Sends a command to the process that runs the cluster; undefined if there is none. */
async function ask(words: readonly string[]): Promise<Reply | undefined> {
  const socket = connect(socketFile);
  try {
    await once(socket, 'connect');
  } catch {
    return undefined;
  }
  socket.end(JSON.stringify(words));
  return JSON.parse(await text(socket)) as Reply;
}

async function up(nodes: number): Promise<string> {
  if (await ask(['status'])) return `it runs already\n${usage()}`;
  const missing = clusterMissing();
  if (missing !== false) throw new UsageError(missing);
  rmSync(directory, { recursive: true, force: true }); // left by a process that was killed
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  const log = openSync(logFile, 'a');
  const child = spawn(process.execPath, [import.meta.filename, 'serve', '--nodes', String(nodes)], {
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
  await until('the cluster is up', async () => ended() || (await ask(['status'])) !== undefined, START_TIMEOUT_MS);
  if (ended()) throw new UsageError(`it did not start:\n${readFileSync(logFile, 'utf8')}`);
  child.unref();
  return `${(await ask(['status']))?.text ?? ''}\n${usage()}`;
}

function usage(): string {
  return [
    'eval "$(hack/cluster env)"        # kubectl and KUBECONFIG in this shell',
    'kubectl get nodes',
    'hack/cluster kill node-2          # and: start, freeze, thaw, cut, mend; hack/cluster --help',
    `${join(directory, 'nodes/node-1/root')}  is the disk of node-1: its host paths begin here`,
    'hack/cluster down\n',
  ].join('\n');
}

function environment(): string {
  const kubeconfig = join(directory, 'control-plane/admin.kubeconfig');
  if (!existsSync(kubeconfig)) throw new UsageError('there is no cluster: hack/cluster up');
  return `export KUBECONFIG='${kubeconfig}'\nexport PATH='${dirname(needProgram('kubectl'))}':"$PATH"\n`;
}

async function down(): Promise<string> {
  const reply = await ask(['down']);
  if (!reply) {
    rmSync(directory, { recursive: true, force: true });
    return 'there is none\n';
  }
  if (reply.failed) throw new UsageError(reply.text);
  await until('its process ended', () => !existsSync(directory));
  return reply.text;
}

/** Runs the cluster until it is told to stop. */
async function serve(nodes: number): Promise<void> {
  const ending = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => ending.abort());
  const cluster = await startCluster({ nodes, directory, images: OWN_IMAGES });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    void reply(cluster, socket, ending).catch(() => socket.destroy());
  });
  server.listen(socketFile);
  if (!ending.signal.aborted) await once(ending.signal, 'abort');
  server.close();
  await cluster.close();
  rmSync(directory, { recursive: true, force: true });
  process.exit(0);
}

async function reply(cluster: Cluster, socket: Socket, ending: AbortController): Promise<void> {
  const [command = '', ...rest] = JSON.parse(await text(socket)) as string[];
  const answer = await carryOut(cluster, command, rest).then(
    (text): Reply => ({ text }),
    (error: unknown): Reply => ({ text: messageOf(error), failed: true }),
  );
  socket.end(JSON.stringify(answer), () => {
    if (command === 'down') ending.abort();
  });
}

async function carryOut(cluster: Cluster, command: string, rest: readonly string[]): Promise<string> {
  const [name = '', ...more] = rest;
  switch (command) {
    case 'status':
      return status(cluster);
    case 'down':
      return 'all of it is gone\n';
    case 'pause':
    case 'resume':
      await cluster.controlPlane[command](part(name));
      break;
    case 'restart':
      await cluster.controlPlane.restart(part(name));
      break;
    case 'kill':
    case 'start':
    case 'freeze':
    case 'thaw':
      await cluster.node(name)[command]();
      break;
    case 'cut':
      cluster.node(name).cutOff(...sides(more));
      break;
    case 'mend':
      cluster.node(name).reconnect(...sides(more));
      break;
    default:
      throw new UsageError(`no command ${command}\n\n${USAGE}`);
  }
  return `${command} ${rest.join(' ')}: done\n`;
}

function status(cluster: Cluster): string {
  const parts = PARTS.map(
    (part) => `${part.padEnd(24)} ${cluster.controlPlane.program(part).running ? 'runs' : 'stopped'}`,
  );
  const nodes = cluster.nodes.map((node) => {
    const cuts = node.cuts.length > 0 ? `, cut off from ${node.cuts.join(', ')}` : '';
    return `${node.name.padEnd(24)} ${node.running ? 'runs' : 'killed'} at ${node.address}${cuts}`;
  });
  const { api, cameras } = cluster.addresses;
  return [
    ...parts,
    ...nodes,
    `${'API server'.padEnd(24)} ${cluster.controlPlane.server}`,
    `${'this machine'.padEnd(24)} ${api} for nodes, ${cameras} as cameras`,
    `${'KUBECONFIG'.padEnd(24)} ${cluster.kubeconfig}`,
    `${'held by process'.padEnd(24)} ${process.pid}\n`,
  ].join('\n');
}

function part(name: string): Part {
  const part = PARTS.find((part) => part === name);
  if (!part) throw new UsageError(`no part ${name}; there are ${PARTS.join(', ')}`);
  return part;
}

function sides(names: readonly string[]): readonly Side[] {
  return names.map((name) => {
    const side = SIDES.find((side) => side === name);
    if (!side) throw new UsageError(`no side ${name}; there are ${SIDES.join(', ')}`);
    return side;
  });
}

async function main(): Promise<void> {
  const { command, rest, nodes } = parse();
  switch (command) {
    case 'help':
      return void process.stdout.write(USAGE);
    case 'up':
      return void process.stdout.write(await up(nodes));
    case 'serve':
      return serve(nodes);
    case 'env':
      return void process.stdout.write(environment());
    case 'down':
      return void process.stdout.write(await down());
    default: {
      const reply = await ask([command, ...rest]);
      if (!reply) throw new UsageError('there is no cluster: hack/cluster up');
      if (reply.failed) throw new UsageError(reply.text);
      process.stdout.write(reply.text);
    }
  }
}

main().catch((error: unknown) => {
  const isExpected = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
  process.stderr.write(`hack/cluster: ${isExpected ? (error as Error).message : (error as Error).stack}\n`);
  process.exit(1);
});
