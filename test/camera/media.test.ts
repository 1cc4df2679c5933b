import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeFrameNumbers } from './frame-numbers.ts';
import { AUDIO_NAMES, VIDEO_NAMES, audioMedia, videoMedia } from './media.ts';
import type { VideoMedia } from './media.ts';

const START_CODE = Buffer.from([0, 0, 0, 1]);
const DELIMITER = Buffer.from([0x12, 0]);

/** As a file that ffmpeg knows by its name. */
function streamOf({ codec, frames }: VideoMedia): { readonly name: string; readonly bytes: Buffer } {
  const parts =
    codec === 'av1'
      ? frames.flatMap(({ nals }) => [DELIMITER, ...nals])
      : frames.flatMap(({ nals }) => nals.flatMap((nal) => (codec === 'mjpeg' ? [nal] : [START_CODE, nal])));
  return { name: `stream.${codec === 'av1' ? 'obu' : codec}`, bytes: Buffer.concat(parts) };
}

for (const name of VIDEO_NAMES) {
  test(`test video ${name}: each picture shows its number`, async (t) => {
    const media = await videoMedia(name);
    const directory = await mkdtemp(join(tmpdir(), 'media-test-'));
    t.after(() => rm(directory, { recursive: true }));
    const { name: fileName, bytes } = streamOf(media);
    const file = join(directory, fileName);
    await writeFile(file, bytes);
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
