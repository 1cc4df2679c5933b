import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeFrameNumbers } from './frame-numbers.ts';
import { AUDIO_NAMES, VIDEO_NAMES, audioMedia, videoMedia } from './media.ts';

const START_CODE = Buffer.from([0, 0, 0, 1]);

for (const name of VIDEO_NAMES) {
  test(`test video ${name}: each picture shows its number`, async (t) => {
    const media = await videoMedia(name);
    const directory = await mkdtemp(join(tmpdir(), 'media-test-'));
    t.after(() => rm(directory, { recursive: true }));
    const file = join(directory, `stream.${media.codec}`);
    await writeFile(file, Buffer.concat(media.frames.flatMap((f) => f.nals.flatMap((nal) => [START_CODE, nal]))));
    const shown = await decodeFrameNumbers(file);
    assert.deepEqual(
      shown,
      media.frames.map((f) => f.number).sort((a, b) => a - b),
    );
    assert.ok(media.frames[0]?.key);
  });
}

for (const name of AUDIO_NAMES) {
  test(`test audio ${name}: frames follow each other without a hole`, async () => {
    const media = await audioMedia(name);
    assert.ok(media.frames.length * media.samplesPerFrame >= 9.8 * media.sampleRate);
    for (const [i, frame] of media.frames.entries()) {
      assert.equal(frame.pts - (media.frames[0]?.pts ?? 0), i * media.samplesPerFrame);
    }
  });
}
