// `kubectl nvr` as people call it: the real kubectl finds the plugin on its PATH, against a real API server and two recorders.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import type { CameraAssignment } from '../../crds/camera.ts';
import type { Camera } from '../camera/camera.ts';
import { MAIN } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, poolOfAllNodes, resource, RESOURCES } from './own-operator.ts';
import { needProgram } from './programs.ts';
import { onStage } from './stage.ts';

const run = promisify(execFile);

/** Cameras go at once to the node that is preferred. */
const POOL = { auth: { mode: 'Token' }, tls: { mode: 'Auto' }, failover: { failbackAfterSeconds: 0 } };

let cluster: Cluster;
let camera: Camera;
let env: NodeJS.ProcessEnv;

const nvr = (...args: readonly string[]): Promise<{ stdout: string; stderr: string }> =>
  run('kubectl', ['nvr', ...args], { env, maxBuffer: 64 * 1024 * 1024 });

const assignmentOf = async (name: string): Promise<CameraAssignment | undefined> =>
  (await cluster.api.get<KubeObject & { status?: { assignment?: CameraAssignment } }>(`${RESOURCES}/cameras/${name}`))
    .status?.assignment;

suite('kubectl nvr', { skip: clusterMissing() }, () => {
  onStage({
    nodes: 2,
    begin: async (...stage) => {
      [cluster, camera] = stage;
      const bin = join(cluster.directory, 'bin');
      mkdirSync(bin);
      const plugin = join(bin, 'kubectl-nvr');
      writeFileSync(plugin, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' kubectl "$@"\n`);
      chmodSync(plugin, 0o755);
      const path = [bin, dirname(needProgram('kubectl')), process.env['PATH']].join(delimiter);
      env = { ...process.env, KUBECONFIG: cluster.kubeconfig, PATH: path };
      const gate = { source: camera.url, transport: 'Tcp', placement: { preferredNode: 'node-1' } };
      await apply(cluster.controlPlane, [poolOfAllNodes(POOL), resource('Camera', 'gate', gate)]);
      await until('the camera is recorded on node-1', async () => {
        const { stdout } = await nvr('status').catch((err: { stdout: string }) => err);
        return /\ngate +node-1 +True/.test(stdout);
      });
    },
  });

  test('status prints pool, nodes and cameras', async () => {
    const found = await until('the pool is ready', () => nvr('status').catch(() => undefined));
    assert.match(found.stdout, /^NAME .*\ndefault .*\n\nNAME .*\nnode-1 .*\nnode-2 .*\n\nNAME .*\ngate +node-1 /);
  });

  test('gaps asks a recorder at its published address, with token and authority of the pool', async () => {
    const { stdout } = await nvr('gaps', 'gate');
    assert.match(stdout, /\d+ gaps, \d+\.\d{3} s are missing\n/);
  });

  test('move, drain and its undo change where a camera is recorded', async () => {
    assert.match((await nvr('move', 'gate', 'node-2')).stdout, /^gate moves to node-2: .*If the Camera is kept in Git/);
    const isOn = (node: string): Promise<unknown> =>
      until(`gate is on ${node}`, async () => {
        const { node: at, handover } = (await assignmentOf('gate')) ?? {};
        return at === node && handover !== 'Pending';
      });
    await isOn('node-2');
    await nvr('drain', 'node-2');
    await isOn('node-1');
    await nvr('drain', 'node-2', '--undo');
    await isOn('node-2');
  });

  test('live writes fragmented MP4, from the node that records', async () => {
    const file = join(cluster.directory, 'live.mp4');
    const script = 'kubectl nvr live gate | head -c 4096 > "$0"';
    await run('sh', ['-c', script, file], { env });
    assert.equal(readFileSync(file).toString('latin1', 4, 8), 'ftyp');
  });

  test('export writes the footage of all nodes into a movie, and not over a file', async () => {
    const file = join(cluster.directory, 'export.mp4');
    const toMs = Date.now() - 5_000;
    const times = ['--from', new Date(toMs - 10_000).toISOString(), '--to', new Date(toMs).toISOString()];
    assert.equal((await nvr('export', 'gate', ...times, '-o', file)).stdout, `${file}\n`);
    const movie = readFileSync(file);
    assert.equal(movie.toString('latin1', 4, 8), 'ftyp');
    await assert.rejects(nvr('export', 'gate', ...times, '-o', file), ({ stderr }) => String(stderr).includes(file));
    assert.ok(readFileSync(file).equals(movie));
  });

  test('report has objects, nodes, events and logs, and none of the tokens', async () => {
    const file = join(cluster.directory, 'report.tar.gz');
    await nvr('report', '-o', file);
    const { stdout: names } = await run('tar', ['-tzf', file]);
    for (const name of ['objects/cameras.json', 'nodes/node-1/api/metrics.json', 'nodes/node-2/api/cameras.json']) {
      assert.ok(names.split('\n').includes(name), names);
    }
    const { stdout: all } = await run('tar', ['-xzOf', file], { maxBuffer: 64 * 1024 * 1024 });
    for (const node of ['node-1', 'node-2']) assert.ok(all.includes(node));
    assert.ok(all.includes('cpu_load'), 'metrics are in it');
    assert.equal(/.*notRead.*/.exec(all)?.[0], undefined);
    const secrets = await cluster.api.list<KubeObject & { data?: Record<string, string> }>(
      '/api/v1/namespaces/default/secrets',
    );
    const values = secrets.flatMap(({ data = {} }) => Object.values(data));
    assert.ok(values.length > 0);
    for (const value of values) {
      const text = Buffer.from(value, 'base64').toString('utf8').trim();
      assert.ok(!text.includes('PRIVATE KEY') || !all.includes(text), 'a key is in it');
      if (text.length < 200) assert.ok(!all.includes(text), 'a token is in it');
    }
  });

  test('a command that there is not, and an answer of kubectl that is no', async () => {
    await assert.rejects(
      nvr('fly'),
      ({ code, stderr }) => code === 2 && /there is no command fly\n\nUsage: kubectl nvr/.test(String(stderr)),
    );
    await assert.rejects(nvr('status', '-n', 'default', '--context', 'nowhere'), ({ stderr }) =>
      /nowhere/.test(String(stderr)),
    );
  });
});
