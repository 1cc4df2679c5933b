import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { audioMedia, videoMedia, type VideoFrame, type VideoMedia } from '../../../test/camera/media.ts';
import { Footage, lengthPrefixed, type FootageCamera } from '../../../test/support/footage.ts';
import { slicesOf } from '../../codec/slices.ts';
import { segmentPaths } from '../test-support.ts';
import type { FileEnd } from './file-ends.ts';

interface Stage {
  readonly footage: Footage;
  readonly camera: FootageCamera;
  readonly path: string;
  readonly video: VideoMedia;
  readonly startMs: number;
}

/** A file that is being written, of 50 pictures: whole groups of pictures. Some of them still wait for their fragment. */
async function growing(t: TestContext, video: VideoMedia, hasSound = false): Promise<Stage> {
  const footage = await Footage.open(t);
  const startMs = footage.clock.wallMs();
  const audio = hasSound ? await audioMedia('aac') : undefined;
  const camera = footage.camera({ video, ...(audio ? { audio } : {}) });
  camera.begin();
  await camera.play(2);
  const [path = ''] = segmentPaths(footage.root);
  return { footage, camera, path, video, startMs };
}

async function complete({ footage, camera }: Stage): Promise<void> {
  camera.end();
  await footage.fs.idle();
}

/** The pictures are those that were sent, from this one on, each with the time at which it was captured. */
function assertPictures(end: FileEnd | undefined, { video, startMs, path }: Stage, from: number, count: number): void {
  assert.ok(end);
  assert.deepEqual([end.path, end.codec, end.pictures.length], [path, video.codec, count]);
  for (const [i, { slices, wallMs, sync }] of end.pictures.entries()) {
    const { nals, key, pts90k } = video.frames[from + i] as VideoFrame;
    assert.ok(slices.equals(slicesOf(end.codec, lengthPrefixed(nals))), `the slices of picture ${from + i}`);
    assert.equal(sync, key);
    assert.ok(Math.abs(wallMs - startMs - pts90k / 90) < 0.5, `${wallMs - startMs} of ${pts90k / 90} ms`);
  }
}

for (const [name, hasSound] of [
  ['h264', true],
  ['h264-bframes', false],
  ['h265', true],
  ['h265-layers', false],
] as const) {
  test(`${name}: the first and the last pictures of a complete file, in decoding order`, async (t) => {
    const stage = await growing(t, await videoMedia(name), hasSound);
    await complete(stage);
    const { archive } = stage.footage;
    assertPictures(await archive.picturesAt('start', stage.path, 8), stage, 0, 8);
    assertPictures(await archive.picturesAt('end', stage.path, 8), stage, 42, 8);
  });

  test(`${name}: the first pictures of a file that is being written`, async (t) => {
    const stage = await growing(t, await videoMedia(name), hasSound);
    assertPictures(await stage.footage.archive.picturesAt('start', stage.path, 8), stage, 0, 8);
    await complete(stage);
  });
}

test('of a file with its index in front, and of one with fewer pictures than asked for', async (t) => {
  const footage = await Footage.open(t);
  const video = await videoMedia('h264');
  const startMs = footage.clock.wallMs();
  const camera = footage.camera({ video, format: 'mp4' });
  camera.begin();
  await camera.play(0.2);
  camera.end();
  await footage.fs.idle();
  const [path = ''] = segmentPaths(footage.root);
  const stage = { footage, camera, path, video, startMs };
  assertPictures(await footage.archive.picturesAt('start', path, 8), stage, 0, 5);
  assertPictures(await footage.archive.picturesAt('end', path, 8), stage, 0, 5);
});

test('a file that was removed meanwhile is an error of the system', async (t) => {
  const stage = await growing(t, await videoMedia('h264'));
  await complete(stage);
  rmSync(join(stage.footage.root, stage.path));
  await assert.rejects(stage.footage.archive.picturesAt('end', stage.path, 8), { code: 'ENOENT' });
});
