#!/usr/bin/env node
// The entry point of the operator: handles arguments, environment and signals.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { pino } from 'pino';
import { systemClock } from '../base/clock.ts';
import type { Connection } from '../base/kubernetes/client.ts';
import { PodConnection } from '../base/kubernetes/pod-connection.ts';
import { podPlace } from '../base/kubernetes/pod-place.ts';
import { messageOf } from '../base/error.ts';
import { LevelSwitch, LOG_LEVELS } from '../base/log-level.ts';
import { portsOf } from './ports.ts';
import { RestKubeApi } from './kube/client.ts';
import { isNetwork } from './observe/cluster-networks.ts';
import { startOperator, type Operator } from './operator.ts';

const USAGE = `Usage: operator [--namespace NAMESPACE | --all-namespaces] [--image IMAGE] [--priority-class NAME]
                [--kubeconfig FILE] [--listen HOST:PORT]

  --namespace NAMESPACE  manage the cameras and pools there (default: the operator's own namespace)
  --all-namespaces       manage those of all namespaces in which the operator has rights
  --grant-command COMMAND
                         shown in pools of other namespaces: the command that grants the rights; {namespace} is replaced
  --image IMAGE          image of recorders whose pool names none
  --priority-class NAME  PriorityClass of recorders whose pool names none
  --cluster-network NETWORK
                         network of pods or Services that the cluster does not report; may be repeated
  --api-server-port PORT, --database-port PORT
                         ports of the API server, and of database and Redis, for recorders; may be repeated. With the
                         first, pools with cameraNetworks get a NetworkPolicy
  --kubeconfig FILE      kubeconfig (default: that of kubectl, or the service account of the pod)
  --listen HOST:PORT     address for GET /metrics, /healthz and /readyz (default :8080, all addresses)
  --log-level LEVEL      debug, info, warn or error (default info)
  --version              print the version, and exit
`;

/** A stop that takes longer is aborted. */
const MAX_STOP_MS = 9_000;
/** If the event loop was blocked for this long, the process is reported as not alive. */
const STUCK_MS = 30_000;
const TURN_MS = 1_000;
/** For watches, the Lease, and simultaneous writes of the queues. */
const CONNECTIONS = 64;
const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/**
 * Old objects are collected when there are 30 % more of them than after the last time; V8 lets a small heap become four times as
 * large. This halves what thousands of cameras need in addition to the program, for no measurable CPU time.
 */
setFlagsFromString('--heap-growing-percent=30');

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

function parseArguments() {
  try {
    return parseArgs({
      options: {
        namespace: { type: 'string' },
        'all-namespaces': { type: 'boolean', default: false },
        'grant-command': { type: 'string' },
        image: { type: 'string', default: `kube-nvr-recorder:${version}` },
        'priority-class': { type: 'string', default: '' },
        'cluster-network': { type: 'string', multiple: true, default: [] },
        'api-server-port': { type: 'string', multiple: true },
        'database-port': { type: 'string', multiple: true, default: [] },
        kubeconfig: { type: 'string' },
        listen: { type: 'string', default: ':8080' },
        'log-level': { type: 'string', default: 'info' },
        version: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false, short: 'h' },
      },
    }).values;
  } catch (err) {
    process.stderr.write(`${messageOf(err)}\n\n${USAGE}`);
    return process.exit(2);
  }
}

/** The namespace of this process, if it is known. */
function ownNamespace(): string {
  const told = process.env['POD_NAMESPACE'];
  if (told) return told;
  try {
    return readFileSync(NAMESPACE_FILE, 'utf8').trim();
  } catch {
    // This process does not run in a pod.
    return 'default';
  }
}

/** In a pod, connects with its service account; elsewhere with a kubeconfig, whose library costs 90 MB of memory. */
async function connect(kubeconfig: string | undefined, connections: number | undefined): Promise<Connection> {
  const place = podPlace(process.env);
  const isTold = kubeconfig !== undefined || process.env['KUBECONFIG'] !== undefined;
  if (place && !isTold) return PodConnection.open({ place, connections, clock: systemClock });
  const { KubeConfigConnection, loadKubeConfig } = await import('./kube/kube-config.ts');
  return new KubeConfigConnection(loadKubeConfig(kubeconfig), systemClock);
}

async function main(): Promise<void> {
  const options = parseArguments();
  if (options.help) return void process.stdout.write(USAGE);
  if (options.version) return void process.stdout.write(`${version}\n`);
  const level = LOG_LEVELS.find((one) => one === options['log-level']);
  if (!level) throw new Error(`--log-level ${options['log-level']}: expected ${LOG_LEVELS.join(', ')}`);
  const logLevels = new LevelSwitch(level);
  const log = logLevels.apply(pino({ level: 'debug', base: null, timestamp: pino.stdTimeFunctions.isoTime }));
  for (const network of options['cluster-network']) {
    if (!isNetwork(network)) throw new Error(`--cluster-network ${network}: expected a network such as 10.42.0.0/16`);
  }
  const egress = options['api-server-port'] && {
    apiServer: portsOf('--api-server-port', options['api-server-port']),
    databases: portsOf('--database-port', options['database-port']),
  };
  // Nothing has begun yet that would have to be ended.
  let stop = (code: number): void => process.exit(code);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(0));
  // Unlimited for all namespaces: there are two watches in each, and their number is unknown.
  const connection = await connect(options.kubeconfig, options['all-namespaces'] ? undefined : CONNECTIONS);
  const home = ownNamespace();
  const namespace = options['all-namespaces'] ? undefined : (options.namespace ?? home);
  const operator = await startOperator({
    api: new RestKubeApi(connection),
    namespace,
    ...(options['grant-command'] !== undefined && { grantCommand: options['grant-command'] }),
    ownNamespace: home,
    // Identifies this process, not its pod: a restarted container has seen nothing yet, and must not continue to lead.
    identity: `${process.env['POD_NAME'] ?? hostname()}/${randomUUID()}`,
    image: options.image,
    clusterNetworks: options['cluster-network'],
    egress,
    priorityClass: options['priority-class'],
    clock: systemClock,
    log,
  });
  operator.metrics.followLog({ bugs: () => logLevels.bugs });
  let server: Server | undefined;
  const end = async (code: number): Promise<void> => {
    setTimeout(() => process.exit(1), MAX_STOP_MS).unref();
    try {
      await operator.close();
      server?.close();
      await connection.close();
      log.info({}, 'operator stopped');
      process.exit(code);
    } catch (err) {
      log.error({ err }, 'the operator could not be stopped cleanly');
      process.exit(1);
    }
  };
  let ending: Promise<void> | undefined;
  stop = (code) => void (ending ??= end(code));
  server = await listen(options.listen, operator);
  log.info({ version, namespace: namespace ?? '(all)', listen: options.listen }, 'operator started');
  process.on('unhandledRejection', (err) => log.bug({ err }, 'unhandled rejection'));
  process.on('uncaughtException', (err) => {
    log.bug({ err }, 'uncaught exception');
    stop(1);
  });
}

/** Health and readiness do not depend on the API server. */
function listen(address: string, operator: Operator) {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address) ?? [];
  if (port === '') throw new Error(`--listen ${address}: expected HOST:PORT`);
  let turnedMs = performance.now();
  setInterval(() => (turnedMs = performance.now()), TURN_MS).unref();
  const say = (response: ServerResponse, status: number, text: string): void => {
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`);
  };
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0];
    if (path === '/healthz') {
      const isAlive = performance.now() - turnedMs < STUCK_MS;
      say(response, isAlive ? 200 : 503, isAlive ? 'ok' : 'the event loop is blocked');
    } else if (path === '/readyz') {
      say(response, operator.isReady ? 200 : 503, operator.isReady ? 'ok' : 'the caches are not filled yet');
    } else if (path === '/metrics') {
      operator.metrics.registry.metrics().then(
        (text) => response.writeHead(200, { 'content-type': operator.metrics.registry.contentType }).end(text),
        () => say(response, 500, 'no metrics'),
      );
    } else say(response, 404, 'not found');
  });
  return new Promise<typeof server>((resolve, reject) => {
    server.once('error', reject);
    // Without a host, the operator listens on IPv6 and IPv4, or on the only one of the two that the machine has.
    server.listen(Number(port), host === '' ? undefined : host.replace(/^\[(.*)\]$/, '$1'), () => resolve(server));
  });
}

main().catch((err: unknown) => {
  process.stderr.write(`operator: ${messageOf(err)}\n`);
  process.exit(1);
});
