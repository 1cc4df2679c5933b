import assert from 'node:assert/strict';
import { once, EventEmitter } from 'node:events';
import { watch } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { ConfigWatcher } from './watch.ts';

interface Watched {
  readonly directory: string;
  /** Resolves at the next report. */
  readonly changed: () => Promise<unknown>;
  readonly reports: () => number;
  readonly watcher: ConfigWatcher;
}

async function watched(t: TestContext, prepare: (directory: string) => Promise<void>): Promise<Watched> {
  const directory = await mkdtemp(join(tmpdir(), 'watch-test-'));
  await prepare(directory);
  const events = new EventEmitter();
  let reports = 0;
  const onChange = (): void => {
    reports++;
    events.emit('change');
  };
  const watcher = new ConfigWatcher(join(directory, 'config.yaml'), onChange, { settleMs: 20 });
  t.after(async () => {
    watcher.close();
    await rm(directory, { recursive: true });
  });
  await watcher.ready;
  return { directory, watcher, reports: () => reports, changed: () => once(events, 'change', { signal: t.signal }) };
}

const plain = (directory: string): Promise<void> => writeFile(join(directory, 'config.yaml'), 'nodeName: a');

test('a file written in place is noticed', async (t) => {
  const { directory, changed } = await watched(t, plain);
  const seen = changed();
  await writeFile(join(directory, 'config.yaml'), 'nodeName: b');
  await seen;
});

test('a file that an editor replaces is noticed, again and again', async (t) => {
  const { directory, changed } = await watched(t, plain);
  for (const name of ['b', 'c', 'd']) {
    const seen = changed();
    await writeFile(join(directory, '.config.yaml.tmp'), `nodeName: ${name}`);
    await rename(join(directory, '.config.yaml.tmp'), join(directory, 'config.yaml'));
    await seen;
  }
});

test('a conf.d that appears later is noticed, and so are its files', async (t) => {
  const { directory, changed } = await watched(t, plain);
  const first = changed();
  await mkdir(join(directory, 'conf.d'));
  await writeFile(join(directory, 'conf.d/10.yaml'), 'nodeName: b');
  await first;
  const second = changed();
  await writeFile(join(directory, 'conf.d/10.yaml'), 'nodeName: c');
  await second;
  const third = changed();
  await rm(join(directory, 'conf.d/10.yaml'));
  await third;
});

test('a ConfigMap, switched by the symbolic link beside its files, is noticed', async (t) => {
  const { directory, changed } = await watched(t, async (directory) => {
    await mkdir(join(directory, '..v1'));
    await writeFile(join(directory, '..v1/config.yaml'), 'nodeName: a');
    await symlink('..v1', join(directory, '..data'));
    await symlink('..data/config.yaml', join(directory, 'config.yaml'));
  });
  const seen = changed();
  await mkdir(join(directory, '..v2'));
  await writeFile(join(directory, '..v2/config.yaml'), 'nodeName: b');
  await symlink('..v2', join(directory, '..data_tmp'));
  await rename(join(directory, '..data_tmp'), join(directory, '..data'));
  await seen;
});

test('a file that is linked from elsewhere is watched there', async (t) => {
  const elsewhere = await mkdtemp(join(tmpdir(), 'watch-target-'));
  t.after(() => rm(elsewhere, { recursive: true }));
  await writeFile(join(elsewhere, 'real.yaml'), 'nodeName: a');
  const { changed } = await watched(t, (directory) =>
    symlink(join(elsewhere, 'real.yaml'), join(directory, 'config.yaml')),
  );
  const seen = changed();
  await writeFile(join(elsewhere, 'real.yaml'), 'nodeName: b');
  await seen;
});

test('files that are touched but say the same are no change, SIGHUP always is one', async (t) => {
  const { directory, changed, reports, watcher } = await watched(t, plain);
  await plain(directory);
  await writeFile(join(directory, 'other.txt'), 'x');
  const forced = changed();
  watcher.trigger();
  await forced;
  assert.equal(reports(), 1);
});

test('a file system that reports nothing is looked at now and then', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'watch-test-'));
  t.after(() => rm(directory, { recursive: true }));
  await plain(directory);
  const clock = new VirtualClock();
  const events = new EventEmitter();
  // With a clock that stands still what the kernel reports never settles: only the poll is left.
  const watcher = new ConfigWatcher(join(directory, 'config.yaml'), () => void events.emit('change'), { clock });
  t.after(() => watcher.close());
  await watcher.ready;
  const seen = once(events, 'change', { signal: t.signal });
  await writeFile(join(directory, 'config.yaml'), 'nodeName: b');
  clock.advance(30_000);
  // It may be in the middle of a write.
  await watcher.ready;
  clock.advance(300);
  await seen;
});

test('the regular look does not take up a file that is still being written', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'watch-test-'));
  t.after(() => rm(directory, { recursive: true }));
  await plain(directory);
  const clock = new VirtualClock();
  const told: string[] = [];
  const watcher = new ConfigWatcher(join(directory, 'config.yaml'), () => void told.push('changed'), { clock });
  t.after(() => watcher.close());
  await watcher.ready;
  clock.advance(29_900);
  const notices = watch(directory);
  t.after(() => notices.close());
  const write = async (text: string): Promise<void> => {
    const noticed = once(notices, 'change');
    await writeFile(join(directory, 'config.yaml'), text);
    await noticed;
    await setImmediate();
  };
  await write('');
  clock.advance(100);
  await watcher.ready;
  assert.deepEqual(told, []);
  await write('nodeName: b');
  clock.advance(300);
  await watcher.ready;
  assert.deepEqual(told, ['changed']);
});

test('nothing is reported after close', async (t) => {
  const { directory, reports, watcher } = await watched(t, plain);
  watcher.trigger();
  watcher.close();
  await writeFile(join(directory, 'config.yaml'), 'nodeName: b');
  await watcher.ready;
  assert.equal(reports(), 0);
});
