import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { startMember } from '../../test/support/member.ts';
import { workspace } from '../../test/support/workspace.ts';
import { loadConfig } from '../config/load.ts';
import * as cluster from './cluster.ts';
import { CommandError, runCommand, UsageError } from './command.ts';
import { commandContext } from './test-support.ts';

const refused = (words: RegExp) => (err: unknown) => err instanceof UsageError && words.test(err.message);

interface Done {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A server before it belongs to a cluster. */
function server(t: TestContext, nodeName: string) {
  const directory = workspace(t);
  const config = join(directory, 'config.yaml');
  const data = join(directory, 'data');
  writeFileSync(config, `nodeName: ${nodeName}\nworkDir: ${directory}/work\ncluster: { dataDir: ${data} }\n`);
  const node = join(data, `node_${nodeName}`);
  const run = async (...args: readonly string[]): Promise<Done> => {
    const { context, printed } = commandContext({ load: (file) => loadConfig(file) });
    const code = await cluster.run([...args, '--config', config], context);
    return { code, ...printed };
  };
  return {
    directory,
    config,
    data,
    node,
    tls: join(node, 'tls'),
    settings: join(directory, 'conf.d/cluster.yaml'),
    run,
  };
}

test('init makes CA and certificate, and the settings of the cluster', async (t) => {
  const { config, tls, settings, run } = server(t, 'rack-1');
  const { code, out } = await run('init', '--address', '192.0.2.1');
  assert.equal(code, 0);
  assert.match(out, /recorder cluster token NODE\n$/);
  const { cluster } = await loadConfig(config);
  assert.deepEqual(
    [cluster.mode, cluster.listen, cluster.advertise],
    ['etcd', { host: '0.0.0.0', port: 9995 }, '192.0.2.1:9997'],
  );
  assert.equal(statSync(settings).mode & 0o777, 0o640);
  const certificate = new X509Certificate(readFileSync(join(tls, 'certificate.pem')));
  assert.deepEqual([certificate.checkIP('192.0.2.1'), certificate.checkHost('rack-1')], ['192.0.2.1', 'rack-1']);
});

test('files that root makes belong to the user of the recorder, and nobody else can read them', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('needs root');
  const { directory, data, node, tls, run } = server(t, 'rack-1');
  chmodSync(directory, 0o755);
  mkdirSync(data);
  chownSync(data, 12_345, 12_345);
  await run('init');
  const places = [
    node,
    tls,
    ...['key.pem', 'certificate.pem', 'authorities.pem', 'keys.json', 'authority.json'].map((name) => join(tls, name)),
  ];
  for (const place of places) {
    const { uid, gid, mode } = statSync(place);
    assert.deepEqual([uid, gid, mode & 0o027], [12_345, 12_345, 0], place);
  }
});

test('root gives nothing away through a link of the user of the recorder', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('needs root');
  const { directory, data, node, settings, run } = server(t, 'rack-1');
  chmodSync(directory, 0o755);
  const victim = join(workspace(t), 'victim');
  mkdirSync(victim, { mode: 0o700 });
  for (const path of [data, dirname(settings)]) {
    mkdirSync(path);
    chownSync(path, 12_345, 12_345);
  }
  symlinkSync(victim, node);
  await assert.rejects(run('init'), /EACCES/);
  unlinkSync(node);
  symlinkSync(join(victim, 'settings'), settings);
  await assert.rejects(run('init'), /cluster\.yaml/);
  const { uid, mode } = statSync(victim);
  assert.deepEqual([uid, mode & 0o777, readdirSync(victim)], [0, 0o700, []]);
});

test('a server that belongs to a cluster is refused until the state of the node is deleted', async (t) => {
  const { node, settings, run } = server(t, 'rack-1');
  await run('init');
  const token = `nvrjoin.0123456789.${'A'.repeat(43)}.${'A'.repeat(43)}`;
  await assert.rejects(run('init'), refused(/belongs to a cluster already .*cluster\.json/));
  await assert.rejects(run('join', 'rack-2', '--token', token), refused(/belongs to a cluster already/));
  const before = readFileSync(settings, 'utf8');
  rmSync(node, { recursive: true });
  assert.equal((await run('init')).code, 0);
  assert.equal(readFileSync(settings, 'utf8'), before);
});

for (const name of ['NVR-1', 'rack_1', 'räck', 'a'.repeat(240)])
  test(`a server with a name that no member may have is refused with its key: ${name.slice(0, 8)}`, async (t) => {
    const { node, run } = server(t, name);
    const token = `nvrjoin.0123456789.${'A'.repeat(43)}.${'A'.repeat(43)}`;
    const problem = /config\.yaml: nodeName: ".*" cannot be the name of a server of a cluster, .*: set nodeName/;
    await assert.rejects(run('init'), problem);
    await assert.rejects(run('join', 'rack-2', '--token', token), problem);
    assert.equal(existsSync(node), false);
  });

test('join gets a certificate for the node of the configuration', async (t) => {
  const { admission, authorities, port } = await startMember(t);
  const { config, node, tls, run } = server(t, 'rack-2');
  const { token } = await admission.invite('rack-2');
  const done = await run('join', `127.0.0.1:${port}`, '--token', token, '--address', 'rack-2.example');
  assert.deepEqual([done.code, done.err], [0, '']);
  const certificate = new X509Certificate(readFileSync(join(tls, 'certificate.pem')));
  assert.equal(certificate.checkHost('rack-2.example'), 'rack-2.example');
  assert.ok(certificate.verify(new X509Certificate(authorities).publicKey));
  assert.equal(statSync(join(tls, 'key.pem')).mode & 0o777, 0o600);
  assert.ok(existsSync(join(node, 'cluster.json')) && !existsSync(join(tls, 'authority.json')));
  assert.equal((await loadConfig(config)).cluster.mode, 'etcd');
});

test('a token for another server is refused with the name of this one, and nothing is written', async (t) => {
  const { admission, port } = await startMember(t);
  const { data, directory, settings, run } = server(t, 'rack-3');
  const file = join(directory, 'token');
  writeFileSync(file, `${(await admission.invite('rack-2')).token}\n`);
  const { code, err } = await run('join', `127.0.0.1:${port}`, '--token-file', file);
  assert.equal(code, 1);
  assert.match(err, /is for another node\nThe name of this server is rack-3/);
  assert.ok(!existsSync(data) && !existsSync(settings));
});

test('a member that cannot be reached is named', async (t) => {
  const { run } = server(t, 'rack-2');
  const token = `nvrjoin.0123456789.${'A'.repeat(43)}.${'A'.repeat(43)}`;
  const { code, err } = await run('join', '127.0.0.1:1', '--token', token);
  assert.equal(code, 1);
  assert.match(err, /^recorder: 127\.0\.0\.1:1 cannot be asked: ECONNREFUSED\n/);
});

test('only the last server of a cluster can be recovered, and is told what is missing', async (t) => {
  const { node, config, directory, run } = server(t, 'rack-1');
  await assert.rejects(run('recover', '--force'), refused(/belongs to no cluster of servers/));
  await run('init');
  await assert.rejects(run('recover'), refused(/expected --force/));
  await assert.rejects(run('recover', '--force'), /record_path: \S+ is not the archive of this server/);
  const archive = join(directory, 'archive');
  appendFileSync(config, `record_path: ${archive}\n`);
  mkdirSync(join(archive, '.kube-nvr'), { recursive: true });
  await assert.rejects(run('recover', '--force'), /\S+\/etcd has no data of etcd$/);
  assert.ok(!existsSync(join(node, 'etcd/member')));
});

test('arguments that make no sense are refused by name', async (t) => {
  const { run } = server(t, 'rack-2');
  const token = `nvrjoin.0123456789.${'A'.repeat(43)}.${'A'.repeat(43)}`;
  const cases: readonly (readonly [RegExp, readonly string[]])[] = [
    [/expected init, token, join, rotate-key, expel or recover/, ['found']],
    [/expected the address of a member/, ['join', '--token', token]],
    [/expected the address of a member, such as/, ['join', 'a b', '--token', token]],
    [/expected --token or --token-file/, ['join', 'rack-1']],
    [/--token: expected what recorder cluster token has printed/, ['join', 'rack-1', '--token', 'guess']],
    [/--address: expected a name or an address/, ['init', '--address', 'a b']],
    [/expected the node name/, ['token']],
  ];
  for (const [words, args] of cases) await assert.rejects(run(...args), refused(words), args.join(' '));
});

test('what cannot be done is said in a line, without the usage, and ends with 1', async () => {
  const { context, printed } = commandContext();
  const run = () => Promise.reject(new CommandError('rack-1 does not answer'));
  assert.equal(await runCommand({ usage: 'Usage: recorder', run }, [], context), 1);
  assert.equal(printed.err, 'recorder: rack-1 does not answer\n');
});

test('each subcommand has its help', async () => {
  for (const name of ['init', 'token', 'join', 'rotate-key', 'expel', 'recover']) {
    const { context, printed } = commandContext();
    assert.equal(await runCommand(cluster, [name, '--help'], context), 0);
    assert.match(printed.out, new RegExp(`^Usage: recorder cluster ${name}`));
  }
});
