// A process kubelet: node kubelet/main.ts CONFIG. It is process 1 of the node's PID namespace, so that the node's
// processes all end with it. It says `waiting`, is given a network, hears `go`, and registers its node.

import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { clientWithCertificate } from '../api-client.ts';
import type { Images } from './images.ts';
import { startLogsServer } from './logs-server.ts';
import type { ContainerOfPod, KubeletConfig, KubeletMessage, KubeletRequest } from './messages.ts';
import { NodeAgent } from './node-agent.ts';

const LOGS_PORT = 10_250;

const log = (message: string): void => {
  process.stdout.write(`${new Date().toISOString()} ${message}\n`);
};
const read = (file: string): string => readFileSync(file, 'utf8');

function tell(message: KubeletMessage): void {
  // Without a channel the test is gone, and so is this process in a moment.
  if (process.connected) process.send?.(message);
}

function answer(agent: NodeAgent, request: KubeletRequest): void {
  const { id } = request;
  let error: string | undefined;
  if (request.kind === 'signal') {
    const worker = agent.worker(request.namespace, request.pod);
    if (worker) worker.signal(request.signal, request.container);
    else error = `no pod ${request.namespace}/${request.pod} on this node`;
  }
  const processes: ContainerOfPod[] = agent.workers.flatMap(({ pod: { metadata }, processes }) =>
    processes.map((entry) => ({ namespace: metadata.namespace, pod: metadata.name, ...entry })),
  );
  tell({ kind: 'answer', id, processes, ...(error === undefined ? {} : { error }) });
}

async function main(): Promise<void> {
  const config = JSON.parse(read(process.argv[2]!)) as KubeletConfig;
  const { nodeName, address, server, files } = config;
  tell({ kind: 'waiting' });
  await once(process, 'message');

  const { hostname, port } = new URL(server);
  const agent = new NodeAgent({
    api: clientWithCertificate(server, files.ca, files),
    place: { nodeName, address, allocatable: config.capacity },
    labels: config.labels,
    version: config.version,
    images: () => JSON.parse(read(config.imagesFile)) as Images,
    root: config.root,
    podsDirectory: config.podsDirectory,
    baseEnvironment: {
      // As in an image of ours, `node` is a command.
      PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin'}`,
      HOME: '/root',
      KUBERNETES_SERVICE_HOST: hostname.replace(/^\[(.*)\]$/, '$1'),
      KUBERNETES_SERVICE_PORT: port,
      KUBERNETES_SERVICE_PORT_HTTPS: port,
    },
    logsPort: LOGS_PORT,
    log,
  });
  process.on('message', (request: KubeletRequest) => answer(agent, request));
  await startLogsServer({
    address,
    port: LOGS_PORT,
    ca: read(files.ca),
    cert: read(files.cert),
    key: read(files.key),
    find: (namespace, pod, container) => agent.worker(namespace, pod)?.supervisor(container),
  });
  await agent.run(() => tell({ kind: 'registered' }));
}

await main();
