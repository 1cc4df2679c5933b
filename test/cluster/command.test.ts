// hack/cluster as a person meets it: up, kubectl, a node that dies and comes back, down.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { clusterMissing } from './cluster.ts';

const ROOT = join(import.meta.dirname, '../..');

test('hack/cluster: up, kubectl, kill, start, cut, mend, down', { skip: clusterMissing() }, (t) => {
  const directory = join(mkdtempSync(join(tmpdir(), 'kube-nvr-test-')), 'cluster');
  const env = { ...process.env, KUBE_NVR_CLUSTER: directory };
  const shell = (command: string): string =>
    execFileSync('bash', ['-c', command], { cwd: ROOT, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const refused = (command: string): string => {
    try {
      return shell(command);
    } catch (error) {
      return (error as { stderr: string }).stderr;
    }
  };
  t.after(() => {
    shell('hack/cluster down');
    rmSync(join(directory, '..'), { recursive: true, force: true });
  });

  assert.match(refused('hack/cluster status'), /there is no cluster: hack\/cluster up/);
  assert.match(shell('hack/cluster up --nodes 2'), /eval "\$\(hack\/cluster env\)"/);
  const nodes = shell('eval "$(hack/cluster env)" && kubectl get nodes --no-headers -o custom-columns=:metadata.name');
  assert.deepEqual(nodes.trim().split('\n'), ['node-1', 'node-2']);
  assert.match(shell('hack/cluster up'), /it runs already/);

  shell('hack/cluster kill node-2');
  assert.match(shell('hack/cluster status'), /^node-1 +runs.*\nnode-2 +killed/m);
  shell('hack/cluster start node-2 && hack/cluster cut node-1 api cameras');
  assert.match(shell('hack/cluster status'), /^node-1 +runs.*cut off from api, cameras\nnode-2 +runs/m);
  shell('hack/cluster mend node-1 && hack/cluster freeze node-1 && hack/cluster thaw node-1');
  assert.doesNotMatch(shell('hack/cluster status'), /cut off/);
  assert.match(refused('hack/cluster kill node-9'), /no node node-9; there are node-1, node-2/);
  assert.match(refused('hack/cluster cut node-1 moon'), /no side moon; there are api, cameras, peers, viewers/);

  assert.match(shell('hack/cluster down'), /all of it is gone/);
  assert.equal(existsSync(directory), false);
  assert.match(shell('hack/cluster down'), /there is none/);
});
