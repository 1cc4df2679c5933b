import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HolderLost, RemoteFile } from './remote-file.ts';

const BLOCK = 256 * 1024;
const BYTES = Buffer.from(Array.from({ length: 6 * BLOCK + 100 }, (_, i) => (i * 7 + (i >> 9)) % 251));

function remote(fails: (from: number) => boolean = () => false) {
  const asked: number[] = [];
  const file = new RemoteFile(BYTES.length, async (from, to) => {
    asked.push(from / BLOCK);
    if (fails(from)) throw new Error('status 500');
    return BYTES.subarray(from, to);
  });
  return { file, asked };
}

test('blocks that are read one after the other are requested two ahead, each once', async () => {
  const { file, asked } = remote();
  await file.read(0, 10);
  assert.deepEqual(asked, [0, 1, 2]);
  for (let at = 10; at < BYTES.length; at += 100_000) {
    assert.ok((await file.read(at, 100_000)).equals(BYTES.subarray(at, at + 100_000)), `${at}`);
  }
  assert.deepEqual(asked, [0, 1, 2, 3, 4, 5, 6]);
});

test('a place far from the last one is read alone', async () => {
  const { file, asked } = remote();
  assert.ok((await file.read(5 * BLOCK, BLOCK)).equals(BYTES.subarray(5 * BLOCK, 6 * BLOCK)));
  assert.deepEqual(asked, [5]);
});

test('a block whose request ahead fails is requested again when it is read, and lost only if that fails, too', async () => {
  let broken = true;
  const { file } = remote((from) => broken && from === BLOCK);
  assert.equal((await file.read(0, 10)).length, 10);
  await assert.rejects(file.read(BLOCK, 10), HolderLost);
  broken = false;
  assert.equal((await file.read(BLOCK, 10)).length, 10);
});
