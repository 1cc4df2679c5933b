import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { formatPath } from '../archive/disk/names.ts';
import type { ArchiveFile, ArchiveFiles } from './archive-file.ts';
import type { Footage } from './footage.ts';
import { OwnFootage, type OwnArchive } from './own-footage.ts';

const MEBIBYTE = 1024 * 1024;

/** A completed file of 4 MiB, of which the index takes `indexBytes`. */
const file = (startMs: number, indexBytes: number): Footage => ({
  path: formatPath({ name: 'Gate', cameraId: 'gate', startMs }),
  isOpen: false,
  sizeBytes: 4 * MEBIBYTE,
  parts: { unit: 'fragments', starts: [0, 4 * MEBIBYTE - indexBytes] } as never,
  nodeId: '',
});

/** The lengths of the indexes that a list of these files has; `sizeBytes`: of the files on the disk. */
async function indexesOf(files: readonly Footage[], sizeBytes = 4 * MEBIBYTE): Promise<(number | undefined)[]> {
  const opened: Pick<ArchiveFile, 'sizeBytes' | 'read'> = {
    sizeBytes,
    read: async (_, length) => Buffer.alloc(length),
  };
  const disk: Pick<ArchiveFiles, 'use'> = {
    async use(_, work) {
      await work(opened as ArchiveFile);
      return true;
    },
  };
  const own = new OwnFootage('', {} as OwnArchive, disk as ArchiveFiles, new VirtualClock());
  return (await own.withIndexes(files)).map(({ index }) => index?.length);
}

test('a list has the indexes of its first files, at most 2 MiB', async () => {
  const files = [1.5, 0.25, 0.5, 0.1].map((share, i) => file(i * 300_000, share * MEBIBYTE));
  assert.deepEqual(await indexesOf(files), [1.5 * MEBIBYTE, 0.25 * MEBIBYTE, undefined, undefined]);
});

test('a list has no index of a file that was replaced after it was listed', async () => {
  assert.deepEqual(await indexesOf([file(0, 1000)], 3 * MEBIBYTE), [undefined]);
});
