import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { until } from '../../test/support/until.ts';
import { BLOCK_BYTES, SlabPool, SlabWriter, SMALL_BLOCK_BYTES } from './slab.ts';

const bytes = (size: number, value: number): Buffer => Buffer.alloc(size, value);

function write(writer: SlabWriter, unit: Buffer) {
  writer.append(unit, 0, unit.length);
  return writer.finish();
}

for (const blockBytes of [BLOCK_BYTES, SMALL_BLOCK_BYTES]) {
  test(`a block of ${blockBytes} bytes comes back when its last access unit is released, and is used again`, () => {
    const pool = new SlabPool();
    const writer = new SlabWriter(pool, blockBytes);
    const first = write(writer, bytes(100, 1));
    const second = write(writer, bytes(100, 2));
    assert.equal(first.slab, second.slab);
    assert.equal(first.slab.buffer.length, blockBytes);
    writer.close();
    first.slab.release();
    assert.equal(pool.freeBlocks, 0);
    second.slab.release();
    assert.equal(pool.freeBlocks, 1);
    assert.equal(write(new SlabWriter(pool, blockBytes), bytes(1, 3)).slab.buffer, first.slab.buffer);
  });
}

test('audio and video never get blocks of the other size', () => {
  const pool = new SlabPool();
  const small = pool.take(0, SMALL_BLOCK_BYTES);
  small.release();
  const large = pool.take();
  assert.equal(large.buffer.length, BLOCK_BYTES);
  large.release();
  assert.equal(pool.take(0, SMALL_BLOCK_BYTES).buffer, small.buffer);
});

test('an access unit that does not fit the rest of a block moves to the next one whole', () => {
  const writer = new SlabWriter(new SlabPool(), SMALL_BLOCK_BYTES);
  const first = write(writer, bytes(SMALL_BLOCK_BYTES - 10, 1));
  writer.append(bytes(8, 2), 0, 8);
  const second = write(writer, bytes(8, 3));
  assert.notEqual(first.slab, second.slab);
  const { slab, offset, size } = second;
  assert.deepEqual(slab.buffer.subarray(offset, offset + size), Buffer.concat([bytes(8, 2), bytes(8, 3)]));
});

test('an access unit larger than a block has one of its own, which is not kept', () => {
  const pool = new SlabPool();
  const writer = new SlabWriter(pool, SMALL_BLOCK_BYTES);
  const unit = write(writer, bytes(SMALL_BLOCK_BYTES + 1, 1));
  assert.ok(unit.slab.buffer.length > SMALL_BLOCK_BYTES);
  writer.close();
  unit.slab.release();
  assert.equal(pool.freeBlocks, 0);
});

test('a pool counts the blocks that somebody holds, of any size, and those that somebody forgot only until they are collected', async () => {
  const pool = new SlabPool(BLOCK_BYTES);
  const [one, huge] = [pool.take(), pool.take(10 * BLOCK_BYTES)];
  assert.equal(pool.usedBytes, 11 * BLOCK_BYTES);
  assert.ok(one.isScarce);
  huge.release();
  assert.equal(pool.usedBytes, BLOCK_BYTES);
  assert.ok(!one.isScarce);
  for (let i = 0; i < 50; i++) pool.take();
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await until('forgotten blocks are collected', () => {
    collect();
    return pool.usedBytes === BLOCK_BYTES;
  });
  one.release();
  assert.equal(pool.usedBytes, 0);
});

test('blocks that only a rush needed do not stay for good', () => {
  const pool = new SlabPool();
  const rush = Array.from({ length: 60 }, () => pool.take());
  for (const slab of rush) slab.release();
  assert.equal(pool.freeBlocks, 60);
  for (let turn = 0; turn < 10_000; turn++) {
    const [one, other] = [pool.take(), pool.take()];
    one.release();
    other.release();
  }
  assert.equal(pool.freeBlocks, 2);
});
