// The player in headless Chromium: what a camera drew is what is on screen, with sound, and again after a restart.

import { after, before, describe, test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { startCamera, type Camera } from '../camera/camera.ts';
import { audioMedia, videoMedia, type AudioName, type VideoName } from '../camera/media.ts';
import type { CameraOptions } from '../camera/options.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { browserMissing, launchBrowser, videoState, type VideoState } from '../support/browser.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

/** Test media of ten seconds, 25 pictures a second, start over at 0. */
const NUMBERS = 250;
const FRAME_MS = 40;

interface Scene {
  readonly camera: Camera;
  readonly cameraOptions: CameraOptions;
  readonly id: string;
  readonly page: Page;
  /** Number of the picture that left the camera last. */
  readonly lastSent: () => number;
}

/** Runs in the page: a video element with a player on it, whose states are kept. */
const startPlayer = (cameraId: string): string => `(async () => {
  const { LivePlayer } = await import('/page/player.js');
  const video = document.createElement('video');
  video.id = 'under-test';
  document.body.append(video);
  const player = new LivePlayer(video, { cameraId: '${cameraId}' });
  window.states = [];
  player.addEventListener('state', (event) => window.states.push(event.detail));
  player.start();
})()`;

describe('live in Chromium', { skip: browserMissing() }, () => {
  const ends = new AsyncDisposableStack();
  let browser: Browser;
  /** Of all tests: each adds its camera, and removes it. */
  let recorder: RecorderProcess;
  let scenes = 0;
  before(async () => {
    const directory = workspace({ after: (end) => ends.defer(end as () => void) });
    recorder = await RecorderProcess.start({ directory, config: { cameras: [] } });
    ends.defer(async () => void (await recorder.stop()));
    browser = ends.use(await launchBrowser());
  });
  after(() => ends.disposeAsync());

  async function scene(t: TestContext, video: VideoName | undefined, audio?: AudioName): Promise<Scene> {
    let lastNumber = 0;
    const tracks = video ? [videoTrack(await videoMedia(video))] : [];
    if (audio) tracks.push(audioTrack(await audioMedia(audio)));
    const cameraOptions: CameraOptions = {
      tracks,
      pace: 'realtime',
      onFrame: (frame) => {
        if (frame.number >= 0) lastNumber = frame.number;
        return frame;
      },
    };
    const camera = await startCamera(cameraOptions);
    t.after(() => camera.close());
    const id = `camera-${++scenes}`;
    const added = await recorder.fetch('/api/cameras', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id, source: camera.url }),
    });
    assert.equal(added.status, 201, await added.text());
    t.after(() => recorder.fetch(`/api/cameras/${id}`, { method: 'DELETE' }));
    await recorder.untilRecording(id);
    const page = await browser.newPage();
    t.after(() => page.close());
    // A page of the recorder without the console, which would play the camera as well.
    await page.goto(`${recorder.url}/page/player.js`);
    await page.evaluate(startPlayer(id));
    return { camera, cameraOptions, id, page, lastSent: () => lastNumber };
  }

  const shown = (page: Page): Promise<VideoState> => videoState(page, '#under-test');
  const states = (page: Page): Promise<{ state: string; message: string }[]> => page.evaluate('window.states');

  /** Waits for `frames` more pictures on screen, and for sound when there should be some. */
  async function untilPlaying(page: Page, frames: number, sound: boolean): Promise<VideoState> {
    const first = await shown(page);
    return until('the video plays', async () => {
      const now = await shown(page);
      if (now.error !== undefined) throw new Error(now.error);
      const moved = now.currentTime > 0 && now.framesShown >= first.framesShown + frames && now.frameNumber >= 0;
      return moved && (!sound || now.audioBytes > first.audioBytes) && now;
    }).catch(async (error: unknown) => {
      throw new Error(`states: ${JSON.stringify(await states(page))}, now: ${JSON.stringify(await shown(page))}`, {
        cause: error,
      });
    });
  }

  for (const [video, audio, sound] of [
    ['h264', 'aac', 'H.264 with AAC'],
    ['h264', 'pcmu', 'H.264 with G.711 as FLAC'],
    ['h264-bframes', 'opus', 'B-frames with Opus'],
    ['av1', 'aac', 'AV1 with AAC'],
  ] as const) {
    test(`${sound}: plays with sound, and the picture on screen is the one the camera drew a moment ago`, async (t) => {
      const { page, lastSent } = await scene(t, video, audio);
      await untilPlaying(page, 25, true);
      const lags: number[] = [];
      const numbers: number[] = [];
      // Live, and not some seconds behind; how late exactly is what `npm run bench live` measures. A busy machine catches up.
      await until('of sixty readable pictures half are less than three seconds old, and they move', async () => {
        const { frameNumber } = await shown(page);
        if (frameNumber >= 0) {
          lags.push(((lastSent() - frameNumber + NUMBERS) % NUMBERS) * FRAME_MS);
          numbers.push(frameNumber);
        }
        const last = lags.slice(-60).sort((a, b) => a - b);
        return last.length === 60 && last[30]! <= 3_000 && new Set(numbers.slice(-60)).size > 20;
      }).catch((error: unknown) =>
        assert.fail(`${String(error)}: ${numbers.slice(-60).join(' ')}, late by ${lags.slice(-60).join(' ')}`),
      );
    });
  }

  for (const sound of ['aac', 'pcma'] as const) {
    test(`a camera that offers only sound, as ${sound}, is heard`, async (t) => {
      const { page } = await scene(t, undefined, sound);
      await until('the player plays', async () => (await states(page)).at(-1)?.state === 'playing');
      const first = await shown(page);
      await until('two seconds of sound are heard', async () => {
        const { error, currentTime, audioBytes } = await shown(page);
        if (error !== undefined) throw new Error(error);
        return currentTime > first.currentTime + 2 && audioBytes > first.audioBytes;
      });
    });
  }

  test('a camera that restarts is on screen again without a reload of the page', async (t) => {
    const { camera, cameraOptions, page, id } = await scene(t, 'h264', 'aac');
    await untilPlaying(page, 10, true);
    const { port } = camera;
    await camera.close();
    await until('the recorder noticed', async () =>
      (await recorder.cameras()).some((one) => one.id === id && one.state === 'retrying'),
    );
    const again = await startCamera({ ...cameraOptions, port });
    t.after(() => again.close());
    await again.untilPlaying();
    await untilPlaying(page, 25, true);
    assert.equal((await states(page)).at(-1)?.state, 'playing');
  });

  test('a recorder that restarts is on screen again without a reload of the page', async (t) => {
    const { page, id } = await scene(t, 'h264', 'aac');
    await untilPlaying(page, 10, true);
    assert.equal((await recorder.stop()).code, 0);
    recorder = await recorder.restart();
    await recorder.untilRecording(id);
    await untilPlaying(page, 25, true);
  });

  test('parameters that change mid-stream: the new picture is on screen', async (t) => {
    const { camera, cameraOptions, page } = await scene(t, 'h264');
    await untilPlaying(page, 10, false);
    const small = videoTrack(await videoMedia('h264-small'));
    // The same connection goes on with another encode, as after a change of the camera's settings.
    camera.options.onFrame = (frame) => {
      const other = small.frames[frame.index % small.frames.length]!;
      const changed = { ...frame, units: other.units, number: other.number, key: other.key };
      return cameraOptions.onFrame!(changed);
    };
    await until('the smaller picture', async () => (await shown(page)).width === 160);
    const { frameNumber } = await untilPlaying(page, 25, false);
    assert.ok(frameNumber >= 1_000, `${frameNumber} is a number of the second encode`);
  });

  test('H.265 plays, or the player says that this browser cannot', async (t) => {
    const { page } = await scene(t, 'h265');
    const type = 'video/mp4; codecs="hvc1.1.6.L60.90"';
    if (await page.evaluate(`MediaSource.isTypeSupported('${type}')`)) {
      await untilPlaying(page, 25, false);
      return;
    }
    const last = await until('a verdict', async () => (await states(page)).find((s) => s.state === 'unsupported'));
    assert.match(last.message, /H\.265/);
  });
});
