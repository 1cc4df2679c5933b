// The recorder's command line.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startCamera } from '../camera/camera.ts';
import { Child } from '../support/child.ts';
import { startMember } from '../support/member.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const ROOT = join(import.meta.dirname, '../..');

async function recorder(...args: readonly string[]): Promise<{ code: number | null; output: string }> {
  await using child = new Child(process.execPath, [MAIN, ...args]);
  const { code } = await child.exit();
  return { code, output: child.output };
}

test('--version prints the version of package.json', async () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const { code, output } = await recorder('--version');
  assert.equal(code, 0);
  assert.ok(output.trim().split(/\s/).includes(version), output);
});

test('an older Node is told that it is one', async (t) => {
  const preload = join(workspace(t), 'older.mjs');
  writeFileSync(preload, "Object.defineProperty(process.versions, 'node', { value: '24.8.0' });");
  const start = join(ROOT, 'recorder/start.js');
  await using child = new Child(process.execPath, ['--import', preload, start, '--version']);
  const { code } = await child.exit();
  assert.equal(code, 1);
  assert.match(child.output, /^recorder: needs Node 24\.9 or newer, and this is v\S+ \(\/.*\)\n$/);
  const { bin, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    bin: Record<string, string>;
    engines: Record<string, string>;
  };
  assert.deepEqual([bin, engines], [{ recorder: './recorder/start.js' }, { node: '>=24.9.0' }]);
  await using now = new Child(process.execPath, [start, '--version']);
  assert.equal((await now.exit()).code, 0, now.output);
});

test('--check-config: a good file ends with 0 and starts nothing', async (t) => {
  const directory = workspace(t);
  const file = join(directory, 'config.yaml');
  writeFileSync(file, `record_path: ${join(directory, 'r')}\nworkDir: ${join(directory, 'w')}\n`);
  const { code, output } = await recorder('--check-config', '--config', file);
  assert.equal(code, 0, output);
  assert.ok(!output.includes('listening'), output);
});

const MISTAKES = [
  { name: 'unknown key', text: 'nodename: a\n', key: 'nodename' },
  { name: 'wrong type', text: 'listen: [1]\n', key: 'listen' },
  { name: 'wrong value deep inside', text: 'archive: {segmentDuration: soon}\n', key: 'archive.segmentDuration' },
  {
    name: 'wrong source',
    text: 'cameras:\n  - {id: a, source: "rtsp://h/"}\n  - {id: b, source: "ftp://user:hunter2@h/"}\n',
    key: 'cameras[1].source',
  },
  {
    name: 'two cameras with one id',
    text: 'cameras:\n  - {id: a, source: "rtsp://h/"}\n  - {id: a, source: "rtsp://i/"}\n',
    key: 'cameras[1].id',
  },
];

for (const mistake of MISTAKES) {
  for (const args of [['--check-config'], []]) {
    test(`configuration refused, ${mistake.name}${args.length ? ', --check-config' : ''}: one line names file and key`, async (t) => {
      const directory = workspace(t);
      mkdirSync(join(directory, 'conf.d'));
      writeFileSync(join(directory, 'config.yaml'), `workDir: ${join(directory, 'w')}\nrecord_path: ${directory}\n`);
      const file = join(directory, 'conf.d', 'site.yaml');
      writeFileSync(file, mistake.text);
      const { code, output } = await recorder(...args, '--config', join(directory, 'config.yaml'));
      assert.notEqual(code, 0, output);
      const lines = output.trim().split('\n');
      assert.equal(lines.length, 1, output);
      // Where in the file, from line and column 1 on.
      assert.match(lines[0]!, /:\d+:\d+: /);
      assert.ok(lines[0]!.replace(/:\d+:\d+: /, ': ').includes(`${file}: ${mistake.key}`), output);
      assert.ok(!output.includes('hunter2'), output);
    });
  }
}

test('a configuration file that is not there: refused by name', async (t) => {
  const file = join(workspace(t), 'nowhere.yaml');
  const { code, output } = await recorder('--config', file);
  assert.notEqual(code, 0);
  assert.ok(output.includes(file), output);
});

test('a server that joins waits for the store of the cluster, and is a member only then', async (t) => {
  const member = await startMember(t);
  const { token } = await member.admission.invite('rack-2');
  const directory = workspace(t);
  const file = join(directory, 'config.yaml');
  const work = join(directory, 'w');
  writeFileSync(file, `nodeName: rack-2\nworkDir: ${work}\ncluster: { dataDir: ${join(directory, 'data')} }\n`);
  member.store.isReachable = false;
  const at = ['--address', '127.0.0.2', '--config', file];
  const joining = recorder('cluster', 'join', `127.0.0.1:${member.port}`, '--token', token, ...at);
  await until('the member has refused it once', () => member.audited.length > 0);
  member.store.isReachable = true;
  const { code, output } = await joining;
  assert.equal(code, 0, output);
  assert.match(output, /the certificate of rack-2/);
});

test('an unknown argument: refused, with how it is used', async () => {
  const { code, output } = await recorder('--confg', 'x');
  assert.notEqual(code, 0);
  assert.match(output, /--config/);
});

test('an address in use: the start ends with a line that names it', async (t) => {
  const directory = workspace(t);
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  t.after(() => taken.close());
  const address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
  await using started = await RecorderProcess.start({
    directory,
    config: { listen: address },
    waitUntilReady: false,
  });
  const { code } = await started.child.exit();
  assert.notEqual(code, 0);
  assert.ok(started.child.output.includes(`listen: ${address} is in use`), started.child.output);
});

test('all errors that keep a recorder from starting are reported at once, each with its key and place, also by --check-config', async (t) => {
  const directory = workspace(t);
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  t.after(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  writeFileSync(join(directory, 'file'), '');
  const config = join(directory, 'config.yaml');
  const lines = [
    `listen: 127.0.0.1:${port}`,
    'playback: {listen: 127.0.0.1:1}',
    'metrics: {listen: 127.0.0.1:1}',
    `record_path: /proc/recordings`,
    `workDir: ${join(directory, 'file', 'work')}`,
    `tls: {certificate: ${join(directory, 'no.crt')}, key: ${join(directory, 'no.key')}}`,
    'cluster: {ca: /nowhere/ca.crt}',
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  for (const args of [[], ['--check-config']]) {
    const { code, output } = await recorder(...args, '--config', config);
    assert.equal(code, 1, output);
    assert.deepEqual(output.trim().replace('recorder: ', '').replaceAll(`${directory}/`, '').split('\n'), [
      `config.yaml:1:9: listen: 127.0.0.1:${port} is in use by another program, or by another listener of this file (EADDRINUSE)`,
      'config.yaml:3:19: metrics.listen: 127.0.0.1:1 is in use by another program, or by another listener of this file (EADDRINUSE)',
      'config.yaml:5:10: workDir: file/work is not a directory, or its path contains a file (ENOTDIR)',
      'config.yaml:4:14: record_path: /proc/recordings cannot be created (ENOENT)',
      'config.yaml:6:20: tls.certificate: no.crt cannot be read (ENOENT)',
      'config.yaml:7:15: cluster.ca: /nowhere/ca.crt cannot be read (ENOENT)',
    ]);
  }
});

test('what a server of a cluster over etcd needs is named: its name, the listener for others, its membership, the ports of etcd', async (t) => {
  const directory = workspace(t);
  const taken = createServer();
  // An address of this test alone: these ports are fixed.
  await new Promise<void>((resolve) => taken.listen(2380, '127.0.23.1', resolve));
  t.after(() => taken.close());
  const config = join(directory, 'config.yaml');
  const lines = [
    'nodeName: RACK_1',
    ...['listen', 'playback', 'metrics'].map((key) =>
      key === 'listen' ? `${key}: 127.0.23.1:0` : `${key}: {listen: 127.0.23.1:0}`,
    ),
    `record_path: ${join(directory, 'recordings')}`,
    `workDir: ${join(directory, 'work')}`,
    `cluster: {mode: etcd, dataDir: ${join(directory, 'data')}, advertise: 127.0.23.1:9997}`,
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const { code, output } = await recorder('--check-config', '--config', config);
  assert.equal(code, 1, output);
  assert.deepEqual(output.trim().replace('recorder: ', '').replaceAll(`${directory}/`, '').split('\n'), [
    'config.yaml:7:17: cluster.mode: etcd: 127.0.23.1:2380 is in use by another program, or by another listener of this file (EADDRINUSE): the recorder runs etcd there itself',
    'config.yaml:1:11: nodeName: "RACK_1" cannot be the name of a server of a cluster, which must have only lower-case letters, digits, "-" and ".", with a letter or digit at both ends of each part: set nodeName',
    'config.yaml: cluster.listen: is missing: with mode etcd, the other servers reach this one there',
    'config.yaml:7:17: cluster.mode: etcd: data/node_RACK_1/cluster.json is missing: run recorder cluster init on the first server, recorder cluster join on others',
  ]);
});

test('--check-config accepts the configuration of a recorder that runs, and leaves nothing behind', async (t) => {
  const directory = workspace(t);
  await using running = await RecorderProcess.start({ directory, config: { cameras: [] } });
  const { code, output } = await recorder('--check-config', '--config', running.configFile);
  assert.deepEqual([code, output], [0, `${running.configFile}: ok, 0 cameras\n`]);
  const other = join(workspace(t), 'config.yaml');
  // It listens for a moment, and other tests may have the default ports.
  const listeners = 'listen: 127.0.0.1:0\nplayback: {listen: 127.0.0.1:0}\nmetrics: {listen: 127.0.0.1:0}\n';
  writeFileSync(other, `record_path: ${directory}/new/r\nworkDir: ${directory}/new/w\n${listeners}`);
  const checked = await recorder('--check-config', '--config', other);
  assert.equal(checked.code, 0, checked.output);
  assert.equal(existsSync(join(directory, 'new')), false);
});

test('a second recorder with the same configuration ends before it touches archive and cameras', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  await using first = await RecorderProcess.start({
    directory: workspace(t),
    config: { cameras: [{ id: 'gate', source: camera.url }] },
  });
  const files = await until('it has a file', async () => {
    const now = await first.files();
    return now.length > 0 && now;
  });
  const { code, output } = await recorder('--config', first.configFile);
  assert.notEqual(code, 0);
  assert.match(output, /EADDRINUSE/);
  assert.equal(camera.connections.length, 1);
  assert.deepEqual(await first.files(), files);
  assert.doesNotMatch(output, /recovered|recording/);
});

test('what Node compiled is on the disk while the recorder runs: a crash does not lose it', async (t) => {
  const directory = workspace(t);
  const compiled = join(directory, 'compiled');
  const env = { ...process.env, NODE_COMPILE_CACHE: compiled };
  await using recorder = await RecorderProcess.start({ directory, config: { cameras: [] }, env });
  const sizes = (): number[] =>
    readdirSync(compiled, { recursive: true, encoding: 'utf8' }).map((file) => statSync(join(compiled, file)).size);
  await until('it is there', () => sizes().some((size) => size > 10_000));
  assert.equal(recorder.child.ended, false);
});
