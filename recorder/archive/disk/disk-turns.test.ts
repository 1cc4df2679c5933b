import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { gate, TestFileSystem, temporaryDirectory } from '../test-support.ts';
import { takingTurns } from './disk-turns.ts';

/** As many threads as the process has for disks and names. */
const THREADS = 112;

async function stage(t: TestContext, files: number) {
  const root = temporaryDirectory(t);
  const under = new TestFileSystem(root);
  const fs = takingTurns(under);
  const opened = await Promise.all(Array.from({ length: files }, (_, i) => fs.create(`${root}/${i}`)));
  t.after(async () => {
    for (const file of opened) await file.close();
  });
  const running = new Map<string, number>();
  const stall = gate();
  const held: string[] = [];
  under.before = ({ name }) => {
    running.set(name, (running.get(name) ?? 0) + 1);
    return held.includes(name) ? stall.passed : undefined;
  };
  return { under, fs, root, opened, running, stall, held };
}

test('syncs that hang keep no file from being written', async (t) => {
  const { opened, running, stall, held } = await stage(t, 100);
  held.push('syncData');
  const syncs = opened.map((file) => file.syncData());
  const written = await Promise.all(opened.map((file) => file.write([Buffer.from('picture')], 0)));
  assert.equal(written.length, 100);
  assert.ok((running.get('syncData') ?? 0) <= THREADS / 2, `${running.get('syncData')} threads wait for the disk`);
  stall.open();
  await Promise.all(syncs);
  assert.equal(running.get('syncData'), 100, 'each had its turn');
});

test('a disk that hangs altogether leaves threads to those who read or look up names', async (t) => {
  const { under, fs, root, opened, running, stall, held } = await stage(t, 100);
  held.push('write', 'syncData', 'create', 'remove', 'rename');
  const hanging = opened.flatMap((file) => [file.write([Buffer.from('picture')], 0), file.syncData()]);
  const creating = Array.from({ length: 50 }, (_, i) => fs.create(`${root}/new-${i}`));
  await under.idle();
  const threads = [...running.values()].reduce((a, b) => a + b, 0);
  assert.ok(threads <= (THREADS * 7) / 8, `${threads} of ${THREADS} threads wait for the disk`);
  assert.equal((await opened[0]?.read(0, 1))?.length, 0);
  stall.open();
  await Promise.all(hanging);
  for (const file of await Promise.all(creating)) await file.close();
});

test('hundreds who make files in one directory share its syncs, and each waits for one that began behind its file', async (t) => {
  const { under, fs, root, running } = await stage(t, 0);
  let begun = 0;
  const stall = gate();
  under.before = ({ name }) => {
    running.set(name, (running.get(name) ?? 0) + 1);
    if (name !== 'syncDirectory') return undefined;
    return ++begun === 1 ? stall.passed : undefined;
  };
  const first = fs.syncDirectory(root);
  await under.idle();
  let late = 0;
  const others = Array.from({ length: 400 }, () => fs.syncDirectory(root).then(() => late++));
  await under.idle();
  assert.equal(begun, 1, 'one at a time');
  assert.equal(late, 0, 'what is under way does not bring what was made since');
  stall.open();
  await Promise.all([first, ...others]);
  assert.equal(begun, 2);
  await fs.syncDirectory(root);
  assert.equal(begun, 3, 'later ones have their own');
});

test('a sync of a directory that fails is told to all who share it, and the next is tried', async (t) => {
  const { under, fs, root } = await stage(t, 0);
  under.before = ({ name }) => {
    if (name === 'syncDirectory') throw Object.assign(new Error('EIO'), { code: 'EIO' });
  };
  const outcomes = await Promise.allSettled([1, 2, 3].map(() => fs.syncDirectory(root)));
  assert.ok(outcomes.every(({ status }) => status === 'rejected'));
  under.before = () => {};
  await fs.syncDirectory(root);
});

test('what fails gives its turn to the next', async (t) => {
  const { under, opened } = await stage(t, 50);
  under.before = () => {
    throw Object.assign(new Error('EIO'), { code: 'EIO' });
  };
  const outcomes = await Promise.allSettled(opened.map((file) => file.syncData()));
  assert.ok(outcomes.every(({ status }) => status === 'rejected'));
  under.before = () => {};
  await Promise.all(opened.map((file) => file.syncData()));
});
