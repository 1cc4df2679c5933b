import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { segmentPaths } from '../archive/test-support.ts';
import { ArchiveFiles } from '../footage/archive-file.ts';
import type { ListedFile } from './numbering.ts';
import { PartsCache } from '../footage/parts-cache.ts';
import { Playlists } from './playlist.ts';
import { stage } from './test-support.ts';

test('the lines that are kept of a file keep no more memory than they are long', async (t) => {
  const { archive, camera, clock, fs, root } = await stage(t);
  camera.begin();
  await camera.play(100, fs);
  camera.end();
  await fs.idle();
  const cache = new PartsCache({ files: new ArchiveFiles(root), archive, clock });
  const listed: ListedFile[] = [];
  for (const path of segmentPaths(root)) {
    const parts = await cache.partsOf({ path, sizeBytes: statSync(join(root, path)).size });
    if (parts?.complete)
      listed.push({ path, nodeId: '', parts, isOpen: false, sizeBytes: 0, number: 0, discontinuity: 0, gone: false });
  }
  const playlists = new Playlists();
  const options = { cameraId: 'gate', fromMs: -Infinity, toMs: Infinity, startMs: -Infinity, live: false };
  const build = () =>
    playlists.build(listed, { ...options, followed: false, targetSeconds: 60, suffix: '', placeOf: () => '' }) ?? [];
  const before = new Set(build());
  const kept = build().filter((piece) => before.has(piece) && piece.includes('#EXTINF'));
  assert.ok(kept.length > 1 && kept.length === listed.length, `${kept.length} of ${listed.length} files`);
  for (const piece of kept) assert.equal(piece.buffer.byteLength, piece.length);
});
