import { test } from 'node:test';
import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { workspace } from '../../test/support/workspace.ts';
import { ConfigError, loadConfig } from '../config/load.ts';
import { UsageError } from './command.ts';
import { run as runSetup, WRITABLE } from './setup.ts';
import { commandContext } from './test-support.ts';

interface Server {
  readonly config: string;
  readonly file: string;
  readonly archive: string;
  /** Resolves to what is printed. `typed`: lines of somebody at a terminal, each an answer to a question. */
  readonly run: (args: readonly string[], typed?: readonly string[]) => Promise<string>;
}

function server(t: Parameters<typeof workspace>[0]): Server {
  const directory = workspace(t);
  const config = join(directory, 'config.yaml');
  writeFileSync(config, 'record_path: /elsewhere\n');
  return {
    config,
    file: join(directory, 'conf.d/setup.yaml'),
    archive: join(directory, 'archive'),
    run: async (args, typed) => {
      const stdin = Object.assign(new PassThrough(), { isTTY: typed !== undefined });
      const lines = [...(typed ?? [])];
      let printed = '';
      const print = (text: string): void => {
        printed += text;
        if (text.endsWith(': ')) setImmediate(() => stdin.write(`${lines.shift() ?? ''}\n`));
      };
      await runSetup([...args, '--config', config], commandContext({ stdin, print, printError: print }).context);
      return printed;
    },
  };
}

const refused = (words: RegExp) => (err: unknown) => err instanceof UsageError && words.test(err.message);

test('archive and cameras of the options are the configuration, and the directory of the archive is made', async (t) => {
  const { config, file, archive, run } = server(t);
  const cameras = ['--camera', 'gate=rtsp://10.0.0.9/stream1', '--camera', 'yard=rtsp://10.0.0.8/a?b=c'];
  const printed = await run(['--archive', archive, ...cameras]);
  const { recordPath, cameras: read, tls } = await loadConfig(config);
  assert.equal(recordPath, archive);
  assert.deepEqual(
    read.map(({ id, source }) => [id, source]),
    [
      ['gate', 'rtsp://10.0.0.9/stream1'],
      ['yard', 'rtsp://10.0.0.8/a?b=c'],
    ],
  );
  assert.equal(statSync(file).mode & 0o777, 0o640);
  assert.equal(statSync(archive).mode & 0o777, 0o750);
  assert.match(printed, /setup\.yaml: 2 cameras, footage in .*archive\n/);
  assert.equal(tls, 'auto');
  assert.match(printed, /hot-disks\.conf\n.*systemctl enable --now recorder\n.* https:\/\/\S+:9997, .*admin-link\n$/);
});

test('a certificate, and a file that a package has written, stay as they are', async (t) => {
  const { config, file, archive, run } = server(t);
  mkdirSync(dirname(file));
  writeFileSync(join(dirname(file), '00-https.yaml'), 'tls: auto\n');
  await run(['--archive', archive]);
  assert.doesNotMatch(readFileSync(file, 'utf8'), /tls/);
  unlinkSync(file);
  const own = { certificate: '/etc/recorder/tls.crt', key: '/etc/recorder/tls.key' };
  writeFileSync(join(dirname(file), 'site.yaml'), `tls: ${JSON.stringify(own)}\n`);
  await run(['--archive', archive]);
  assert.deepEqual((await loadConfig(config)).tls, own);
});

test('at a terminal the user is asked for the archive and whether to search for cameras', async (t) => {
  const { config, archive, run } = server(t);
  const printed = await run([], [archive, 'n']);
  assert.match(printed, /Directory for footage \[.+\]: [^]*Search the networks/);
  const { recordPath, cameras } = await loadConfig(config);
  assert.deepEqual([recordPath, cameras], [archive, []]);
});

test('without a terminal and without options it says what it expects', async (t) => {
  await assert.rejects(server(t).run([]), refused(/expected --archive, --camera or --discover/));
});

test('what it wrote once is not overwritten', async (t) => {
  const { file, archive, run } = server(t);
  await run(['--archive', archive]);
  const text = readFileSync(file, 'utf8');
  await assert.rejects(run(['--archive', `${archive}2`]), refused(/setup\.yaml already exists/));
  assert.equal(readFileSync(file, 'utf8'), text);
});

test('a camera that cannot be recorded is refused by its key, and nothing is written', async (t) => {
  const { file, archive, run } = server(t);
  await assert.rejects(
    run(['--archive', archive, '--camera', 'gate=http://10.0.0.9/']),
    (err: unknown) => err instanceof ConfigError && /cameras\[0\]\.source/.test(err.message),
  );
  assert.ok(!existsSync(file) && !existsSync(archive));
  await assert.rejects(run(['--camera', 'rtsp://10.0.0.9/?a=b']), refused(/--camera: expected ID=URL/));
});

test('it knows where the unit lets the recorder write, and so do the files of the package', () => {
  const files = join(import.meta.dirname, '../../build/package/files');
  const unit = readFileSync(join(files, 'recorder.service'), 'utf8');
  const valuesOf = (key: string): string[] => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1]?.split(' ') ?? [];
  const state = valuesOf('StateDirectory').map((name) => `/var/lib/${name}`);
  const paths = valuesOf('ReadWritePaths').map((path) => path.replace(/^-/, ''));
  assert.deepEqual([...state, ...paths.filter((path) => path !== '/etc/recorder/conf.d')], WRITABLE);
  const said = WRITABLE.join(', ').replace(/, (?=[^,]*$)/, ' and ');
  for (const name of ['config.yaml', 'hot-disks.conf'])
    assert.ok(readFileSync(join(files, name), 'utf8').includes(said));
});

test('an archive without a full path is refused', async (t) => {
  await assert.rejects(server(t).run(['--archive', 'footage']), refused(/--archive: expected a path that begins/));
});

const isRoot = process.getuid?.() === 0;
test(
  'a directory with files of another user is refused',
  { skip: !isRoot && 'only root has files of others' },
  async (t) => {
    const { config, archive, file, run } = server(t);
    chmodSync(dirname(config), 0o755);
    mkdirSync(join(file, '..'));
    chownSync(join(file, '..'), 12_345, 12_345);
    mkdirSync(archive);
    writeFileSync(join(archive, 'photo.jpg'), '');
    await assert.rejects(run(['--archive', archive]), refused(/--archive: .* belongs to another user/));
    assert.ok(!existsSync(file));
    assert.equal(statSync(archive).uid, 0);
    unlinkSync(join(archive, 'photo.jpg'));
    await run(['--archive', archive]);
    assert.deepEqual(
      [statSync(archive).uid, statSync(file).uid],
      [12_345, 12_345],
      'an empty disk of root is given away',
    );
  },
);
