// The node of the tests itself: what pods on it find, and what is left of it.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Child } from '../support/child.ts';
import { until } from '../support/until.ts';
import { MACHINE_IMAGE, MACHINE_PATHS, machineImage } from './images.ts';
import { realClusterMissing, startRealCluster, type RealCluster } from './real-cluster.ts';

const SLOW_MS = 180_000;
const SERVE = 'from http.server import *; HTTPServer(("", 8000), SimpleHTTPRequestHandler).serve_forever()';
const FETCH = 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).status)';
const KERNEL_SETTINGS = ['vm/overcommit_memory', 'vm/panic_on_oom', 'kernel/panic', 'kernel/panic_on_oops'];

const kernelSettings = (): readonly string[] =>
  KERNEL_SETTINGS.map((name) => readFileSync(join('/proc/sys', name), 'utf8'));

const WEB = [
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', labels: { app: 'web' } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'web',
          image: MACHINE_IMAGE,
          command: ['python3', '-uc', SERVE],
          readinessProbe: { httpGet: { port: 8000 }, periodSeconds: 1 },
          volumeMounts: MACHINE_PATHS.map((mountPath, i) => ({ name: `v${i}`, mountPath, readOnly: true })),
        },
      ],
      volumes: MACHINE_PATHS.map((path, i) => ({ name: `v${i}`, hostPath: { path } })),
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'site' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8000 }] },
  },
];

suite('a node with a real kubelet', { skip: realClusterMissing() }, () => {
  const settingsBefore = kernelSettings();
  let cluster: RealCluster;

  before(async () => {
    cluster = await startRealCluster();
  });

  after(async () => {
    await cluster?.close();
  });

  test('a pod is ready by its probe, is reached by its Service, and finds Services by their names', async () => {
    const { kubectl } = cluster;
    await cluster.node.importImages(machineImage());
    await kubectl(['apply', '-f', '-'], { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: WEB }) });
    await kubectl(['wait', '--for=condition=Ready', 'pod/web', '--timeout=300s']);
    const address = await kubectl(['get', 'service', 'site', '-o', 'jsonpath={.spec.clusterIP}']);
    await until('the Service answers', async () => (await fetch(`http://${address}/`)).ok, SLOW_MS);
    for (const url of ['http://site', 'http://site.default.svc.cluster.local']) {
      assert.equal(await kubectl(['exec', 'web', '--', 'python3', '-c', FETCH, url]), '200\n', 'and from itself, too');
    }
    assert.match(await kubectl(['logs', 'web']), /GET \/ HTTP/);
  });

  test('the machine’s kernel keeps its settings', () => {
    assert.deepEqual(kernelSettings(), settingsBefore);
  });

  test('when its test is killed nothing of it is left but a directory', async (t) => {
    const child = new Child(process.execPath, [join(import.meta.dirname, 'own-cluster.ts')]);
    t.after(() => child[Symbol.asyncDispose]());
    await until('it is up', () => child.output.includes('\n') || child.ended, SLOW_MS);
    const { cgroup, directory, root } = JSON.parse(child.output) as Record<'cgroup' | 'directory' | 'root', string>;
    const own = dirname(directory);
    t.after(() => rmSync(own, { recursive: true, force: true }));
    assert.ok(groups(cgroup).length > 0 && processes(own).length > 0 && existsSync(root));
    child.signal('SIGKILL');
    await until('all of it is gone', () => [...groups(cgroup), ...processes(own)].length === 0, SLOW_MS);
    await until('and the node’s disk', () => !existsSync(root), SLOW_MS);
  });
});

function groups(name: string): readonly string[] {
  const hierarchies = readdirSync('/sys/fs/cgroup').map((hierarchy) => join('/sys/fs/cgroup', hierarchy, name));
  return [join('/sys/fs/cgroup', name), ...hierarchies].filter((path) => existsSync(path));
}

/** With its directory among their arguments or open as their root of mounts. */
function processes(directory: string): readonly string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(directory) ||
          readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(directory)
        );
      } catch {
        return false; // ended meanwhile
      }
    });
}
