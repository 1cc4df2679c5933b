import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CrashDisk, type DiskImage } from './crash-disk.ts';
import { crashState, DISK_MODELS, eachCrashState, kept, lost, PAGE_BYTES, SECTOR_BYTES } from './crash-states.ts';
import { random } from './random.ts';

const filled = (value: number, bytes = 3 * SECTOR_BYTES): Buffer => Buffer.alloc(bytes, value);

/** Contents of files by path. */
function filesOf(image: DiskImage): Record<string, string> {
  const disk = new CrashDisk({ image });
  const texts = disk.paths().map((path) => [path, runsOf(disk.bytesOf(path))]);
  return Object.fromEntries(texts) as Record<string, string>;
}

/** Values with the number of their repetitions, such as `1x512 0x512`. */
function runsOf(bytes: Buffer): string {
  const runs: [number, number][] = [];
  for (const byte of bytes) {
    const last = runs.at(-1);
    if (last?.[0] === byte) last[1]++;
    else runs.push([byte, 1]);
  }
  return runs.map(([value, count]) => `${value}x${count}`).join(' ');
}

async function statesOf(disk: CrashDisk, model: (typeof DISK_MODELS)[number]): Promise<Set<string>> {
  const states = new Set<string>();
  await eachCrashState(disk, model, { samples: 200, seed: 1, from: disk.log.length }, async (state) => {
    states.add(JSON.stringify(filesOf(state)));
  });
  return states;
}

test('a disk that lost nothing is what was written to it', async () => {
  const disk = new CrashDisk();
  await disk.makeDirectory('/a');
  const file = await disk.create('/a/one');
  await file.write([filled(1), filled(2)], 0);
  await file.truncate(2_000);
  await file.write([filled(3, 10)], 5);
  await disk.rename('/a/one', '/two');
  await (await disk.create('/gone')).close();
  await disk.remove('/gone');
  for (const model of DISK_MODELS) {
    const state = crashState(disk.image, disk.log, disk.log.length, model, kept);
    assert.deepEqual(filesOf(state), { '/two': '1x5 3x10 1x1521 2x464' });
    assert.deepEqual(filesOf(state), filesOf(disk.contents()));
    assert.deepEqual(filesOf(crashState(disk.image, disk.log, 0, model, kept)), {});
  }
});

test('what was synced, names as well, is on every disk', async () => {
  const disk = new CrashDisk();
  const file = await disk.create('/one');
  await file.write([filled(1)], 0);
  await file.syncData();
  await disk.syncDirectory('/');
  const safe = disk.log.length;
  await file.write([filled(2)], 3 * SECTOR_BYTES);
  await (await disk.create('/two')).write([filled(3)], 0);
  for (const model of DISK_MODELS) {
    const least = crashState(disk.image, disk.log, disk.log.length, model, lost);
    assert.deepEqual(filesOf(least), { '/one': '1x1536' });
    await eachCrashState(disk, model, { samples: 50, seed: 3, from: safe }, async (state) => {
      assert.match(filesOf(state)['/one'] ?? '', /^1x1536/);
    });
  }
});

test('a sync covers what was done before it began, and no more', async () => {
  const disk = new CrashDisk({ delay: () => 2 });
  const file = await disk.create('/one');
  await disk.syncDirectory('/');
  await file.write([filled(1)], 0);
  // The second write is in progress while the first is synced.
  await Promise.all([file.syncData(), file.write([filled(2)], 3 * SECTOR_BYTES)]);
  for (const model of DISK_MODELS) {
    const least = crashState(disk.image, disk.log, disk.log.length, model, lost);
    assert.deepEqual(filesOf(least), { '/one': '1x1536' });
  }
});

test('ordered: a file grows from its start and shows nothing that was not written; names come in order', async () => {
  const disk = new CrashDisk();
  const one = await disk.create('/one');
  await one.write([filled(1)], 0);
  await (await disk.create('/two')).write([filled(2)], 0);
  const states = await statesOf(disk, 'ordered');
  for (const state of states) {
    const { '/one': first, '/two': second, ...others } = JSON.parse(state) as Record<string, string>;
    assert.deepEqual(others, {});
    assert.ok(first !== undefined || second === undefined, 'the second name without the first');
    for (const text of [first, second]) assert.match(text ?? '', /^$|^[12]x(512|1024|1536)$/);
  }
  assert.ok(states.size > 8, `${states.size} states`);
});

test('harsh: holes of zeros, sizes without contents, names in any order', async () => {
  const disk = new CrashDisk();
  await (await disk.create('/one')).write([filled(1)], 0);
  await (await disk.create('/two')).write([filled(2)], 0);
  const states = await statesOf(disk, 'harsh');
  const some = {
    'a hole': /"\/one":"1x512 0x512 1x512"/,
    'a size without contents': /"\/one":"0x\d+"/,
    'a name without a size': /"\/one":""/,
    'the second name alone': /^{"\/two":"[^"]*"}$/,
    everything: /^{"\/one":"1x1536","\/two":"2x1536"}$/,
    nothing: /^{}$/,
  };
  for (const [what, pattern] of Object.entries(some)) {
    assert.ok(
      [...states].some((state) => pattern.test(state)),
      what,
    );
  }
});

test('a sector is old or new, whatever was written over it', async () => {
  const before = new CrashDisk();
  const file = await before.create('/one');
  await file.write([filled(1)], 0);
  const disk = new CrashDisk({ image: before.contents() });
  const again = await disk.open('/one', 'read-write');
  await again.write([filled(2, 1_024)], 256);
  for (const model of DISK_MODELS) {
    const states = await statesOf(disk, model);
    assert.deepEqual(
      new Set([...states].map((state) => (JSON.parse(state) as Record<string, string>)['/one'])),
      new Set([
        '1x1024 2x256 1x256',
        '1x1536',
        '1x256 2x1024 1x256',
        '1x256 2x256 1x1024',
        '1x256 2x256 1x512 2x256 1x256',
        '1x256 2x768 1x512',
        '1x512 2x512 1x512',
        '1x512 2x768 1x256',
      ]),
    );
  }
});

test('a rename has the new name before it takes the old one away', async () => {
  const before = new CrashDisk();
  await before.makeDirectory('/a');
  await before.makeDirectory('/b');
  await (await before.create('/a/one')).write([filled(1)], 0);
  const disk = new CrashDisk({ image: before.contents() });
  await disk.rename('/a/one', '/b/two');
  await disk.syncDirectory('/a');
  for (const model of DISK_MODELS) {
    for (const state of await statesOf(disk, model)) {
      assert.deepEqual(JSON.parse(state), { '/b/two': '1x1536' }, 'the directory it left was synced');
    }
  }
});

test('chance is the same for the same seed', () => {
  const [one, same, other] = [random(5), random(5), random(6)];
  const draw = (chance: () => number): number[] => Array.from({ length: 5 }, chance);
  const drawn = draw(one);
  assert.deepEqual(draw(same), drawn);
  assert.notDeepEqual(draw(other), drawn);
  assert.ok(drawn.every((value) => value >= 0 && value < 1));
});

test('what a failed sync did not save is lost or kept, whatever is synced later, until its page is written again', async () => {
  const failing = { next: false };
  const disk = new CrashDisk({ fails: (what) => what === 'sync' && failing.next });
  const file = await disk.create('/one');
  await disk.syncDirectory('/');
  await file.write([filled(1, PAGE_BYTES)], 0);
  failing.next = true;
  await assert.rejects(file.sync(), { code: 'EIO' });
  failing.next = false;
  await file.write([filled(2, PAGE_BYTES)], PAGE_BYTES);
  await file.sync();
  for (const model of DISK_MODELS) {
    const states = await statesOf(disk, model);
    assert.deepEqual(states, new Set(['0x4096 2x4096', '1x4096 2x4096'].map((one) => JSON.stringify({ '/one': one }))));
  }
  await file.write([filled(1, 10)], 100);
  await file.sync();
  for (const model of DISK_MODELS) {
    assert.deepEqual(await statesOf(disk, model), new Set([JSON.stringify({ '/one': '1x4096 2x4096' })]));
  }
});
