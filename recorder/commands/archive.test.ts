import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { loadConfig } from '../config/load.ts';
import { FakeS3, KEY } from '../copies/test-support.ts';
import { workspace } from '../../test/support/workspace.ts';
import { run } from './archive.ts';
import type { CommandContext } from './command.ts';

test('recorder archive check says of each target what keeps it from working, and leaves nothing there', async (t) => {
  const s3 = await FakeS3.start(t);
  const directory = workspace(t);
  const file = join(directory, 'config.yaml');
  const check = async (changes: Record<string, unknown> = {}, ...args: string[]): Promise<[number, string]> => {
    const { accessKeyId, secretAccessKey } = KEY;
    const target = {
      name: 'offsite',
      endpoint: s3.endpoint,
      bucket: 'footage',
      accessKeyId,
      secretAccessKey,
      ...changes,
    };
    const own = { workDir: join(directory, 'work'), record_path: join(directory, 'recordings') };
    writeFileSync(file, JSON.stringify({ ...own, archive: { targets: [target] } }));
    let printed = '';
    const print = (text: string): void => void (printed += text);
    const context = { clock: systemClock, load: loadConfig, print, printError: print } as unknown as CommandContext;
    return [await run([...(args.length > 0 ? args : ['check']), '--config', file], context), printed];
  };
  assert.deepEqual(await check(), [0, 'offsite: ok\n']);
  assert.deepEqual([...s3.objects.keys()], []);
  for (const [changes, problem] of [
    [{ secretAccessKey: 'wrong' }, /SignatureDoesNotMatch.*; correct accessKeyId, and secretAccessKey/],
    [{ secretAccessKey: undefined, secretAccessKeyFile: join(directory, 'none') }, /ENOENT.*; correct accessKeyId/],
    [{ bucket: 'elsewhere' }, /NoSuchBucket.*; make the bucket/],
    [{ endpoint: 'http://127.0.0.1:1' }, /cannot be reached: .*ECONNREFUSED.*; correct endpoint/],
  ] as const) {
    const [code, printed] = await check(changes);
    assert.equal(code, 1);
    assert.match(printed, problem);
  }
  s3.fault = (method) => (method === 'PUT' ? 'no-digest' : undefined);
  assert.equal((await check())[0], 0, 'HEAD tells the digest');
  s3.fault = () => 'no-digest';
  assert.match((await check())[1], /the service must compute the SHA-256/);
  s3.fault = () => undefined;
  assert.match((await check({}, 'adopt', 'offsite'))[1], /start the recorder once/);
  assert.match((await check({}, 'adopt', 'onsite'))[1], /has no target "onsite"/);
});

test('recorder archive drain names what cannot be drained, and ends when the disk has no footage', async (t) => {
  const directory = workspace(t);
  const [file, root, second] = ['config.yaml', 'a', 'b'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  const disks = [{ path: second }];
  writeFileSync(file, JSON.stringify({ workDir: join(directory, 'work'), record_path: root, archive: { disks } }));
  let printed = '';
  const print = (text: string): void => void (printed += text);
  const stop = new AbortController();
  const context = { clock: systemClock, load: loadConfig, print, printError: print, interrupted: () => stop.signal };
  const drain = async (...args: string[]): Promise<[number, string]> => {
    printed = '';
    return [await run(['drain', ...args, '--config', file], context as unknown as CommandContext), printed];
  };
  assert.deepEqual(await drain(root), [
    1,
    `${root} is record_path, which has the state of the archive and cannot be drained\n`,
  ]);
  assert.deepEqual(await drain(directory), [1, `${directory} is not in archive.disks\n`]);
  assert.deepEqual(await drain(second), [1, `${second} is not there, or was never used\n`]);
  mkdirSync(join(second, '.kube-nvr'), { recursive: true });
  writeFileSync(join(second, '.kube-nvr/archive.json'), '{}');
  assert.deepEqual(await drain(`${second}/`), [0, `${second} has no footage any more: remove it from archive.disks\n`]);
  assert.ok(existsSync(join(second, '.kube-nvr/drain')));
  assert.deepEqual(await drain(second, '--cancel'), [0, `${second} gets new files again\n`]);
  assert.equal(existsSync(join(second, '.kube-nvr/drain')), false);
  mkdirSync(join(second, '2026/01/01'), { recursive: true });
  writeFileSync(join(second, '2026/01/01/Gate_gate_20260101_120000000.mp4'), '');
  stop.abort();
  const [code, text] = await drain(second);
  assert.deepEqual([code, text], [0, 'the recorder goes on moving files; --cancel ends that\n']);
});
