import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { DAY_MS } from '../../../base/units.ts';
import { temporaryDirectory } from '../test-support.ts';
import { Disk, DiskSet } from './disk-set.ts';
import { nodeFileSystem as fs } from './file-system.ts';
import { newestState, StateCopies } from './state-copies.ts';

const NOW_MS = Date.UTC(2026, 0, 10, 12);
const FILES = {
  'gaps/gate.jsonl': 'gaps of gate\n',
  'gaps/alive': 'alive',
  'protections.json': '{}',
  'events/gate/2026-01-10.jsonl': 'today\n',
  'alarms/gate/2026-01-01.jsonl': 'earlier\n',
};

function stage(t: TestContext) {
  const outer = temporaryDirectory(t);
  const [a, b] = [join(outer, 'a'), join(outer, 'b')];
  const write = (root: string, name: string, text: string, atMs = NOW_MS): void => {
    const path = join(root, '.kube-nvr', name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    utimesSync(path, atMs / 1000, atMs / 1000);
  };
  const read = (root: string, name: string): string | undefined => {
    const path = join(root, '.kube-nvr', name);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  };
  for (const [name, text] of Object.entries(FILES)) write(a, name, text);
  mkdirSync(b);
  const guard = { check: async () => {}, device: undefined };
  const [first, second] = [new Disk(a, guard), new Disk(b, guard)];
  const clock = new VirtualClock(NOW_MS);
  const disks = new DiskSet(first, { fs, clock, log: silentLog });
  disks.add(second);
  const copies = new StateCopies({ fs, disks, clock, log: silentLog, isBehind: () => false });
  return { a, b, write, read, second, clock, copies };
}

test('each further disk gets the whole state, and again what has changed', async (t) => {
  const { a, b, write, read, copies } = stage(t);
  await copies.copy();
  for (const [name, text] of Object.entries(FILES)) assert.equal(read(b, name), text, name);
  write(a, 'gaps/gate.jsonl', 'gaps of gate\nmore\n');
  write(a, 'protections.json', '[]', Date.now() + 60_000);
  await copies.copy();
  assert.equal(read(b, 'gaps/gate.jsonl'), 'gaps of gate\nmore\n');
  assert.equal(read(b, 'protections.json'), '[]', 'as long as before, and newer');
});

test('what was removed with its footage is removed from the other disks within a day', async (t) => {
  const { a, b, read, clock, copies } = stage(t);
  await copies.copy();
  rmSync(join(a, '.kube-nvr/alarms/gate/2026-01-01.jsonl'));
  clock.advance(DAY_MS);
  await copies.copy();
  assert.equal(read(b, 'alarms/gate/2026-01-01.jsonl'), undefined);
  assert.equal(read(b, 'events/gate/2026-01-10.jsonl'), FILES['events/gate/2026-01-10.jsonl']);
});

test('a disk that must not be written to gets nothing', async (t) => {
  const { b, second, copies } = stage(t);
  second.refused = new Error('it is missing');
  await copies.copy();
  assert.equal(existsSync(join(b, '.kube-nvr')), false);
});

const ours = (root: string, hadState = false) => ({ root, inspect: async () => {}, hadState: async () => hadState });
const foreign = (root: string) => ({ ...ours(root), inspect: () => Promise.reject(new Error('another archive')) });
const signs = async (path: string): Promise<number> => Number(readFileSync(path, 'utf8'));
const choice = (clock = new VirtualClock(NOW_MS)) => ({ fs, clock, signs });

test('the newest state counts, but not that of a disk which is not of this archive', async (t) => {
  const { a, b, write } = stage(t);
  write(a, 'gaps/alive', '7');
  assert.equal(await newestState(choice(), [ours(a), ours(b)]), a);
  write(b, 'gaps/alive', '8', NOW_MS - 5_000);
  assert.equal(await newestState(choice(), [ours(a), ours(b)]), b);
  assert.equal(await newestState(choice(), [ours(a), foreign(b)]), a);
  assert.equal(await newestState(choice(), [foreign(a), foreign(b)]), undefined);
});

test('a copy is not newer than the state that was copied, which may have lines since', async (t) => {
  const { a, b, write, copies } = stage(t);
  write(a, 'gaps/alive', '7');
  await copies.copy();
  for (const disks of [
    [ours(a), ours(b)],
    [ours(b), ours(a)],
  ]) {
    assert.equal(await newestState(choice(), disks), a);
  }
});

test('a disk that was away and has seen more signs of life is not newer than the disk that had the state since', async (t) => {
  const { a, b, write } = stage(t);
  write(a, 'gaps/alive', '1000');
  write(b, 'gaps/alive', '200');
  assert.equal(await newestState(choice(), [ours(a), ours(b, true)]), b);
  assert.equal(await newestState(choice(), [ours(a), foreign(b)]), a, 'without it, the most signs count');
});

test('a disk that does not answer for ten seconds holds up no start', async () => {
  const clock = new VirtualClock(NOW_MS);
  const answering = { fs: { facts: async () => ({ mtimeMs: 1 }) } as unknown as typeof fs, signs: async () => 7 };
  const asked = newestState({ ...answering, clock }, [
    ours('/a'),
    { ...ours('/b'), inspect: () => new Promise<never>(() => {}) },
  ]);
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(10_000);
  assert.equal(await asked, '/a');
});
