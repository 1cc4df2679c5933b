import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complete, fakeAudio, fakeVideo, readFrom, RecordedFile } from '../../test/support/recorded-file.ts';
import { IndexMemory } from './index-memory.ts';
import { readSampleIndex } from './sample-index.ts';

test('the indexes of files that were read into one memory, one after another, are those that each has by itself', async () => {
  const memory = new IndexMemory();
  for (const pictures of [50, 40, 75, 200, 10]) {
    const file = RecordedFile.of(fakeVideo(pictures), fakeAudio(2 * pictures));
    const [read, size] = readFrom(complete(file.bytes, file.finish()));
    memory.clear();
    assert.deepEqual(await readSampleIndex(read, size, memory), await readSampleIndex(read, size));
  }
});

test('a memory that was cleared hands out the same bytes again, as zeros', () => {
  const memory = new IndexMemory();
  memory.float64(100);
  memory.clear();
  const first = memory.float64(50).fill(7);
  const beside = memory.uint8(3).fill(9);
  assert.equal(beside.buffer, first.buffer);
  assert.ok(
    first.every((value) => value === 7),
    'arrays do not overlap',
  );
  memory.clear();
  const again = memory.uint32(100);
  assert.equal(again.buffer, first.buffer);
  assert.ok(again.every((value) => value === 0));
});
