import assert from 'node:assert/strict';
import { readFileSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { errorCode } from '../../../base/error.ts';
import { temporaryDirectory } from '../test-support.ts';
import { nodeFileSystem } from './file-system.ts';

test('a file is created, written in pieces at a place, read, cut and synced', async (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, 'file');
  const file = await nodeFileSystem.create(path);
  assert.equal(await file.write([Buffer.from('hello '), Buffer.from('wide '), Buffer.from('world')], 0), 16);
  await file.write([Buffer.from('W')], 6);
  await file.syncData();
  await file.sync();
  await nodeFileSystem.syncDirectory(directory);
  assert.equal((await file.read(6, 4)).toString(), 'Wide');
  assert.equal((await file.read(11, 100)).toString(), 'world', 'fewer at the end of the file');
  await file.truncate(5);
  const facts = await file.facts();
  assert.deepEqual([facts.sizeBytes, facts.links, facts.isFile, facts.mtimeMs], [5, 1, true, statSync(path).mtimeMs]);
  await nodeFileSystem.remove(path);
  assert.equal((await file.facts()).links, 0, 'removed while open');
  await file.close();
});

test('more pieces than the system takes in one call are all written', async (t) => {
  const path = join(temporaryDirectory(t), 'file');
  const file = await nodeFileSystem.create(path);
  const pieces = Array.from({ length: 3_000 }, (_, i) => Buffer.from(String(i % 10)));
  assert.equal(await file.write(pieces, 0), 3_000);
  await file.close();
  assert.equal(readFileSync(path, 'latin1'), Buffer.concat(pieces).toString('latin1'));
});

test('an existing file is never created again', async (t) => {
  const path = join(temporaryDirectory(t), 'file');
  await (await nodeFileSystem.create(path)).close();
  await assert.rejects(nodeFileSystem.create(path), (err) => errorCode(err) === 'EEXIST');
});

test('a full device is an error, not an endless loop', async () => {
  const file = await nodeFileSystem.open('/dev/full', 'read-write');
  await assert.rejects(file.write([Buffer.from('x')], 0), (err) => errorCode(err) === 'ENOSPC');
  await file.close();
});

test('only an empty directory is removed, and the space of a file system is what df says', async (t) => {
  const directory = temporaryDirectory(t);
  await nodeFileSystem.makeDirectory(join(directory, 'day'));
  await (await nodeFileSystem.create(join(directory, 'day/file'))).close();
  await assert.rejects(nodeFileSystem.removeDirectory(join(directory, 'day')), (err) => errorCode(err) === 'ENOTEMPTY');
  await nodeFileSystem.remove(join(directory, 'day/file'));
  await nodeFileSystem.removeDirectory(join(directory, 'day'));
  const { freeBytes, totalBytes } = await nodeFileSystem.space(directory);
  const { bavail, blocks, bsize } = statfsSync(directory);
  assert.equal(totalBytes, blocks * bsize);
  assert.ok(Math.abs(freeBytes - bavail * bsize) < totalBytes / 10, 'others write meanwhile');
  const { device, inode } = await nodeFileSystem.facts(directory);
  assert.deepEqual([device, inode], [statSync(directory).dev, statSync(directory).ino]);
});
