// Why a test on a cluster failed: what its control plane, nodes and pods say of themselves, printed when one did.

import type { TestContext, SuiteContext } from 'node:test';
import type { KubeObject } from './api-client.ts';
import type { Cluster } from './cluster.ts';

interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string; readonly containers: readonly { readonly name: string }[] };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

const LOG_LINES = 30;
const OWN_KINDS = 'recorderpools,recordernodes,cameras';

/** For `afterEach`: prints what the cluster has to say when the test before it failed. */
export function reportFailure(cluster: () => Cluster | undefined) {
  return async (context: TestContext | SuiteContext): Promise<void> => {
    const about = cluster();
    if (about === undefined || ('passed' in context && context.passed)) return;
    process.stdout.write(`when "${context.name}" failed:\n${await clusterReport(about)}\n`);
  };
}

/**
 * Parts of the control plane and nodes that end or ended, with their last words; all pods, pools, nodes of pools and cameras; the log of
 * each pod that is not ready.
 */
async function clusterReport(cluster: Cluster): Promise<string> {
  const { programs } = cluster.controlPlane;
  const ended = [...programs, ...cluster.nodes]
    .filter(({ running }) => !running)
    .map(({ name, logTail }) => `${name} does not run:\n${logTail}`);
  const restarted = programs
    .filter(({ restarts }) => restarts > 0)
    .map(({ name, restarts, logTail }) => `${name} ended ${restarts} times by itself:\n${logTail}`);
  const say = (args: readonly string[]): Promise<string> =>
    cluster.kubectl(['--request-timeout=5s', ...args]).catch((error: unknown) => `${String(error)}\n`);
  const overview = [
    await say(['get', 'pods', '--all-namespaces', '--output=wide']),
    await say(['get', 'events', '--all-namespaces', '--field-selector=type=Warning', '--sort-by=.lastTimestamp']),
    await say(['get', OWN_KINDS, '--all-namespaces', '--output=yaml']),
  ];
  const pods = await cluster.api.list<Pod>('/api/v1/pods').catch(() => []);
  const logs: string[] = [];
  for (const { metadata, spec, status } of pods) {
    if (spec.nodeName === undefined) continue;
    if (status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')) continue;
    for (const { name } of spec.containers) {
      const of = [
        'logs',
        `--namespace=${metadata.namespace}`,
        metadata.name,
        `--container=${name}`,
        `--tail=${LOG_LINES}`,
      ];
      logs.push(
        `${metadata.name}, ${name}:\n${await say(of)}`,
        `before its last start:\n${await say([...of, '--previous'])}`,
      );
    }
  }
  return [...ended, ...restarted, ...overview, ...logs].join('\n');
}
