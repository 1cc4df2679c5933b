import assert from 'node:assert/strict';
import { renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { segmentPaths } from '../archive/test-support.ts';
import { ArchiveFiles } from './archive-file.ts';
import { PartsCache } from './parts-cache.ts';
import { stage } from '../playback/test-support.ts';

test('a file that was replaced by one of another size is read again', async (t) => {
  const { archive, camera, clock, fs, root } = await stage(t);
  camera.begin();
  await camera.play(40, fs);
  camera.end();
  await fs.idle();
  const [path = '', shorter = ''] = segmentPaths(root);
  const cache = new PartsCache({ files: new ArchiveFiles(root), archive, clock });
  const look = async () => cache.partsOf({ path, sizeBytes: statSync(join(root, path)).size });
  const before = await look();
  assert.equal(await look(), before);
  renameSync(join(root, shorter), join(root, path));
  const after = await look();
  assert.ok(before && after);
  assert.ok(after.starts.length < before.starts.length, `${before.starts.length}, then ${after.starts.length} parts`);
});

test('what is remembered of a file keeps no more memory than it is long', async (t) => {
  const { archive, camera, clock, fs, root } = await stage(t);
  camera.begin();
  await camera.play(40, fs);
  camera.end();
  await fs.idle();
  const cache = new PartsCache({ files: new ArchiveFiles(root), archive, clock });
  for (const path of segmentPaths(root)) {
    const parts = await cache.partsOf({ path, sizeBytes: statSync(join(root, path)).size });
    assert.ok(parts);
    for (const { sampleEntry } of parts.headers) assert.equal(sampleEntry.buffer.byteLength, sampleEntry.length);
  }
});
