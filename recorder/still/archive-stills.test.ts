import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { decodeFrameNumbers } from '../../test/camera/frame-numbers.ts';
import { numberedVideo, recordedPart, WALL_START_MS, type NumberedVideo } from '../../test/support/joined-file.ts';
import { readJpeg } from '../../test/support/packetize-mjpeg.ts';
import { workspace } from '../../test/support/workspace.ts';
import { formatPath } from '../archive/disk/names.ts';
import { openFootage } from '../footage/open.ts';
import { Authenticator } from '../http/auth.ts';
import { openPlayback } from '../playback/app.ts';
import { ArchiveStills } from './archive-stills.ts';
import { StillError } from '../snapshots/error.ts';
import { JpegMaker } from './jpeg-maker.ts';

/** An archive of one file of a camera, whose numbered pictures begin at `WALL_START_MS`, 25 a second. */
function setup(t: TestContext, video: NumberedVideo, ffmpegPath = 'ffmpeg') {
  const directory = workspace(t);
  const clock = new VirtualClock();
  clock.advance(WALL_START_MS + 3_600_000 - clock.wallMs());
  const bytes = recordedPart(numberedVideo(directory, video));
  const segment = { cameraId: 'gate', name: 'Gate', startMs: WALL_START_MS };
  const path = formatPath(segment);
  mkdirSync(dirname(join(directory, path)), { recursive: true });
  writeFileSync(join(directory, path), bytes);
  const file = { path, startMs: WALL_START_MS, sizeBytes: bytes.length, mtimeMs: 0, sequence: 0, isOpen: false };
  const archive = {
    list: async () => ({ segments: [file], days: [] }),
    openEntries: () => [],
    holdForReading: () => () => {},
    holdWindow: () => () => {},
  };
  const { keyFrameAt } = openPlayback({
    version: '',
    auth: new Authenticator({ mode: 'none', tokens: [] }, { clock }),
    footage: openFootage({ recordPath: directory, archive, clock, log: silentLog }),
    clock,
    log: silentLog,
  });
  const maker = new JpegMaker({ ffmpegPath, clock, log: silentLog });
  t.after(() => maker.close());
  const made: string[] = [];
  const stills = new ArchiveStills({
    maker: {
      make: (cameraId, ...rest) => {
        made.push(cameraId);
        return maker.make(cameraId, ...rest);
      },
    },
    clock,
  });
  const get = async (atMs: number, width: number) => stills.get('gate', await keyFrameAt('gate', atMs), width);
  const look = async (atMs: number) => {
    const { body, timeMs } = await get(WALL_START_MS + atMs, 640);
    const image = join(directory, 'still.jpg');
    writeFileSync(image, body);
    return { number: (await decodeFrameNumbers(image))[0], timeMs: timeMs - WALL_START_MS };
  };
  return { get, look, made };
}

const VIDEOS: readonly { name: string; video: NumberedVideo; every: number }[] = [
  { name: 'H.264', video: { frames: 60 }, every: 25 },
  {
    name: 'H.265 with B-frames',
    video: { codec: 'h265', frames: 20, encoder: 'bframes=3:keyint=8:min-keyint=8:scenecut=0' },
    every: 8,
  },
];

for (const { name, video, every } of VIDEOS) {
  test(`a still shows the key frame whose time it tells: ${name}`, async (t) => {
    const { look } = setup(t, video);
    const lastMs = (video.frames as number) * 40 - 20;
    for (const atMs of [0, every * 40 - 1, every * 40, lastMs]) {
      const number = Math.floor(atMs / 40 / every) * every;
      assert.deepEqual(await look(atMs), { number, timeMs: number * 40 }, `${atMs}`);
    }
  });
}

test('a still has the width that is asked for, and is made once for all moments of a key frame', async (t) => {
  const { get, made } = setup(t, { size: '800x144', frames: 30 });
  const widthOf = async (width: number): Promise<number> => readJpeg((await get(WALL_START_MS, width)).body).width;
  assert.deepEqual([await widthOf(64), await widthOf(1920)], [64, 800], 'never enlarged');
  await Promise.all([0, 300, 600, 999].map((atMs) => get(WALL_START_MS + atMs, 64)));
  assert.equal(made.length, 2);
});

test('without footage and without ffmpeg there is no picture, and the reason is given', async (t) => {
  const codeOf = (error: unknown): unknown => error instanceof StillError && error.code;
  const { get } = setup(t, { frames: 30 });
  await assert.rejects(get(WALL_START_MS + 5_000, 640), (err) => codeOf(err) === 'no-footage');
  const bare = setup(t, { frames: 30 }, '/nowhere/ffmpeg');
  await assert.rejects(bare.get(WALL_START_MS, 640), (err) => codeOf(err) === 'ffmpeg-missing');
});
