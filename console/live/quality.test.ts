import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Camera } from '../app/camera.ts';
import { qualityOf, type Place } from './quality.ts';

type Codec = NonNullable<Camera['codecs']['video']>['codec'];
const video = (codec: Codec) => ({ codec, codec_string: codec, width: 640, height: 360 });
const AUDIO = { codec: 'aac', codec_string: 'mp4a.40.2', sample_rate: 48_000, channels: 1 } as const;

type Preview = NonNullable<Camera['preview']>;

/** Of a browser that decodes H.264 alone. */
function quality(
  { main = 'h264', small }: { main?: Codec; small?: Codec | null },
  place: Partial<Place> = {},
  { isPreviewBroken = false, isHeard = false, sound = false } = {},
) {
  const codecs = { video: video(main), video_remark: null, audio: AUDIO, audio_dropped: null };
  const preview: Preview | null =
    small === undefined
      ? null
      : {
          state: 'idle',
          reason: null,
          codecs: { video: small === null ? null : video(small), audio: sound ? AUDIO : null },
        };
  return qualityOf(
    { codecs, preview },
    { pictures: 1, width: 1400, isPhone: false, ...place },
    { canPlay: ({ codec_string }) => codec_string === 'h264', isPreviewBroken, isHeard },
  );
}
const H264 = { small: 'h264' } as const;

test('walls of several pictures, small pictures and phones take the preview, a large picture the main stream', () => {
  assert.equal(quality(H264), 'main');
  assert.equal(quality(H264, { pictures: 2 }), 'preview');
  assert.equal(quality(H264, { width: 400 }), 'preview');
  assert.equal(quality(H264, { isPhone: true }), 'preview');
  for (const place of [{}, { pictures: 4 }, { isPhone: true }]) assert.equal(quality({}, place), 'main');
});

test('a camera whose main stream cannot be decoded is shown by its preview, also before its codec is known', () => {
  for (const main of ['h265', 'mjpeg'] as const) {
    assert.equal(quality({ main, small: 'h264' }), 'preview');
    assert.equal(quality({ main, small: null }), 'preview');
    assert.equal(quality({ main, small: 'h265' }), 'stills');
    assert.equal(quality({ main }), 'stills');
  }
});

test('a preview that is not delivered or cannot be decoded leaves the main stream, or stills', () => {
  const broken = { isPreviewBroken: true };
  assert.equal(quality(H264, { pictures: 9 }, broken), 'main');
  assert.equal(quality({ small: 'h265' }, { pictures: 9 }), 'main');
  assert.equal(quality({ main: 'h265', small: 'h264' }, {}, broken), 'stills');
});

test('sound that only the main stream has is heard from it', () => {
  const wall = { pictures: 4 };
  assert.equal(quality(H264, wall, { isHeard: true }), 'main');
  assert.equal(quality(H264, wall, { isHeard: true, sound: true }), 'preview');
  assert.equal(quality({ main: 'h265', small: 'h264' }, wall, { isHeard: true }), 'preview');
});

test('a camera of a recorder that tells nothing of previews has none', () => {
  const codecs = { video: null, video_remark: null, audio: null, audio_dropped: null };
  const abilities = { canPlay: () => true, isPreviewBroken: false, isHeard: false };
  assert.equal(qualityOf({ codecs }, { pictures: 9, width: 200, isPhone: true }, abilities), 'main');
});
