// What every cluster that records has beside its nodes: disks for the archive, replicas of the operator on this machine, and
// a pool and cameras as resources.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { API_VERSION, directoryOfPool, metricsTokenName } from '../../crds/names.ts';
import type { RecorderPoolStatus } from '../../crds/recorder-pool.ts';
import { OPERATOR_NODE_FLAG } from '../../build/image/layout.ts';
import { mainOf } from '../support/own-programs.ts';
import { freePorts } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import type { Cluster } from './cluster.ts';
import type { ControlPlane } from './control-plane.ts';
import { Program } from './program.ts';

/** Of pool, cameras and operator. */
export const NAMESPACE = 'default';
/** Of the kinds of this repository, in the namespace. */
export const RESOURCES = `/apis/${API_VERSION}/namespaces/${NAMESPACE}`;
/** Where the pool's archive is on every node. */
export const ARCHIVE = '/mnt/archive';
const READY_TIMEOUT_MS = 120_000;

type Json = Readonly<Record<string, unknown>>;

/** The directory of a node that the recorder of the pool `default` writes footage to, as this machine sees it. */
export const archiveOf = (cluster: Cluster, node: string): string =>
  join(cluster.node(node).root, ARCHIVE, directoryOfPool({ namespace: NAMESPACE, pool: 'default' }));

/** As a disk that is mounted on every node. */
export function makeArchives(cluster: Cluster): void {
  for (const { name } of cluster.nodes) mkdirSync(archiveOf(cluster, name), { recursive: true });
}

/** One of the kinds of this repository. */
export const resource = (kind: string, name: string, spec: Json): Json => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name, namespace: NAMESPACE },
  spec,
});

/** A pool of all nodes that anybody may look at. Its cameras are on this machine. */
export const poolOfAllNodes = (spec: Json = {}): Json =>
  resource('RecorderPool', 'default', {
    archive: { hostPath: ARCHIVE },
    auth: { mode: 'None' },
    cameraNetworks: ['0.0.0.0/0', '127.0.0.0/8'],
    ...spec,
  });

export async function apply(controlPlane: ControlPlane, items: readonly Json[]): Promise<void> {
  await controlPlane.kubectl(['apply', '-f', '-'], {
    input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
  });
}

/**
 * To be awaited before a node of the pool `default` is lost. A new pool has one voter, and the other nodes get their votes after they
 * have lived for `unavailableAfterSeconds`: if the only voter is lost before that, no majority is left to move its cameras.
 */
export const untilAllVote = ({ api, nodes }: Cluster, namespace = NAMESPACE): Promise<unknown> =>
  until('each node has a vote, and is live', async () => {
    const path = `/apis/${API_VERSION}/namespaces/${namespace}/recorderpools/default`;
    const { voters, quorum } = (await api.get<KubeObject & { status?: RecorderPoolStatus }>(path)).status ?? {};
    assert.deepEqual([voters?.length, quorum?.live], [nodes.length, nodes.length]);
    return true;
  });

/** By which metrics of a pool's recorders are read, as the operator has made it. */
export async function metricsToken({ api }: ControlPlane, namespace: string, pool: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/secrets/${metricsTokenName(pool)}`;
  const { data } = await api.get<{ readonly data: { readonly token: string } }>(path);
  return Buffer.from(data.token, 'base64').toString('utf8');
}

/** A replica of the operator; ends with the process that started it. */
export interface OwnOperator {
  /** `<name>/` begins its identity in the Lease of the operator. */
  readonly name: string;
  /** `host:port` of its metrics and probes. */
  readonly address: string;
  readonly program: Program;
}

/** Starts a replica, by default as administrator, and waits until its caches are filled. `directory`: for its log. */
export async function startOperator(
  controlPlane: ControlPlane,
  directory: string,
  { kubeconfig = controlPlane.kubeconfig, args = [] as readonly string[] } = {},
): Promise<OwnOperator> {
  const [port = 0] = await freePorts(1);
  const name = `operator-${port}`;
  const address = `127.0.0.1:${port}`;
  const options = ['--kubeconfig', kubeconfig, '--namespace', NAMESPACE, '--listen', address];
  const program = new Program(name, {
    command: process.execPath,
    args: [OPERATOR_NODE_FLAG, mainOf('operator'), ...options, '--image', 'kube-nvr-recorder:checkout', ...args],
    logFile: join(directory, `${name}.log`),
    env: { ...process.env, POD_NAME: name, POD_NAMESPACE: NAMESPACE },
  });
  program.start();
  try {
    const isReady = async (): Promise<boolean> => !program.running || (await fetch(`http://${address}/readyz`)).ok;
    await until(`${name} is ready`, isReady, READY_TIMEOUT_MS);
    if (!program.running) throw new Error(`it ended:\n${program.logTail}`);
  } catch (err) {
    await program.kill();
    throw err;
  }
  return { name, address, program };
}
