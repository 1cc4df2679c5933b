// A cluster of one real node: a real control plane, a real kubelet with containerd, Services and their names.
//
//     await using cluster = await startRealCluster();
//     await cluster.node.importImages('operator.tar');

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startControlPlane, type ControlPlane } from '../cluster/control-plane.ts';
import type { NodeObject } from '../cluster/cluster.ts';
import { namespacesMissing, Network } from '../cluster/network.ts';
import { controlPlaneMissing, realNodeProgramsMissing } from '../cluster/programs.ts';
import { until } from '../support/until.ts';
import { pauseImage } from './images.ts';
import { RealNode, realNodeMissing } from './real-node.ts';

const READY_TIMEOUT_MS = 180_000;

/** Why tests that need it are left out; false when they are not. */
export const realClusterMissing = (): string | false =>
  controlPlaneMissing() || realNodeProgramsMissing() || namespacesMissing() || realNodeMissing();

export interface RealCluster extends AsyncDisposable {
  readonly network: Network;
  readonly controlPlane: ControlPlane;
  readonly node: RealNode;
  readonly kubectl: ControlPlane['kubectl'];
  close(): Promise<void>;
}

/** Starts it and waits until its node is ready. */
export async function startRealCluster(): Promise<RealCluster> {
  await using started = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-node-'));
  started.defer(() => rmSync(directory, { recursive: true, force: true }));
  const network = await Network.make(directory);
  started.defer(() => network.close());
  const controlPlane = await startControlPlane({
    directory: join(directory, 'control-plane'),
    address: network.addresses.api,
    serviceRange: network.ranges.services,
  });
  started.use(controlPlane);
  const { authority, server } = controlPlane;
  const name = 'node-1';
  const nodeDirectory = join(directory, name);
  mkdirSync(nodeDirectory);
  // Its guard removes it when this process cannot.
  writeFileSync(join(nodeDirectory, 'remove'), '');
  const node = await RealNode.start({ name, directory: nodeDirectory, network, authority, server });
  started.defer(() => node.close());
  await node.importImages(pauseImage());
  await until(
    `${name} is ready`,
    async () => {
      const { status } = await controlPlane.api.get<NodeObject>(`/api/v1/nodes/${name}`);
      return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    },
    READY_TIMEOUT_MS,
  ).catch((error: unknown) => {
    throw new Error(`${name} is not ready:\n${node.logTail('kubelet')}`, { cause: error });
  });
  const resources = started.move();
  const close = (): Promise<void> => resources.disposeAsync();
  const kubectl: ControlPlane['kubectl'] = (args, options) => controlPlane.kubectl(args, options);
  return { network, controlPlane, node, kubectl, close, [Symbol.asyncDispose]: close };
}
