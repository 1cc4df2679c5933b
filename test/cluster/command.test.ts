// hack/cluster as a person meets it: up, kubectl, a node that dies and comes back, down; and what is left when the process
// that holds it is killed.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { until } from '../support/until.ts';
import { clusterMissing } from './cluster.ts';
import { leftovers } from './leftovers.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A shell whose cluster is its own; `refused` gives what a command that fails says. */
function ownShell(t: TestContext) {
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
  return { directory, shell, refused };
}

describe('hack/cluster', { skip: clusterMissing() }, () => {
  test('up, kubectl, kill, start, cut, mend, down', (t) => {
    const { directory, shell, refused } = ownShell(t);
    assert.match(refused('hack/cluster status'), /there is no cluster: hack\/cluster up/);
    assert.match(shell('hack/cluster up --nodes 2'), /eval "\$\(hack\/cluster env\)"/);
    const nodes = shell(
      'eval "$(hack/cluster env)" && kubectl get nodes --no-headers -o custom-columns=:metadata.name',
    );
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

  test('when the process that holds it is killed, all of it ends', async (t) => {
    const { directory, shell, refused } = ownShell(t);
    const said = shell('hack/cluster up --nodes 1');
    const address = /^this machine +(\S+) for nodes/m.exec(said)?.[1] ?? '';
    const holder = /^held by process +(\d+)/m.exec(said)?.[1];
    assert.ok(leftovers(directory, address).length >= 6);
    process.kill(Number(holder), 'SIGKILL');
    await until('nothing is left', () => leftovers(directory, address).length === 0);
    assert.match(refused('hack/cluster status'), /there is no cluster/);
    shell('hack/cluster down');
    assert.equal(existsSync(directory), false);
  });
});
