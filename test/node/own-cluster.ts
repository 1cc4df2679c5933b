// A process that starts a real cluster, prints where it is, and waits to be killed.

import { startRealCluster } from './real-cluster.ts';

const { node, controlPlane } = await startRealCluster();
process.stdout.write(
  `${JSON.stringify({ cgroup: node.cgroup, directory: controlPlane.directory, root: node.root })}\n`,
);
await new Promise(() => setInterval(() => {}, 60_000));
