// Which of its two streams the console shows of a camera, live and in playback: by the sizes and the numbers of the pictures on
// screen.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startCamera, type Camera } from '../../camera/camera.ts';
import { videoMedia, type VideoName } from '../../camera/media.ts';
import { videoTrack } from '../../camera/tracks.ts';
import { probe } from '../../support/probe.ts';
import { browserMissing, launchBrowser, videoState, type VideoState } from '../../support/browser.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { untilNoBadge } from './console.ts';
import { footageStage } from './footage-stage.ts';

const redisMissing = (): string | false =>
  spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;

/** A machine that runs other tests is slow. */
const SLOW_MS = 120_000;
/** The pictures of the small stream have numbers from here on, those of the others smaller ones. */
const SMALL = { width: 160, firstNumber: 1000 };

async function cameraWith(name: VideoName, options: { maxSessions?: number } = {}): Promise<Camera> {
  return startCamera({ pace: 'realtime', tracks: [videoTrack(await videoMedia(name))], ...options });
}

async function stage(t: TestContext) {
  const [large, h265, single, small] = await Promise.all([
    cameraWith('h264-large'),
    cameraWith('h265'),
    cameraWith('h264', { maxSessions: 1 }),
    cameraWith('h264-small'),
  ]);
  t.after(() => Promise.all([large, h265, single, small].map((camera) => camera.close())));
  const preview = { source: small.url };
  const recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      cameras: [
        { id: 'gate', source: large.url, preview },
        { id: 'yard', source: large.url, preview },
        { id: 'hall', source: h265.url, preview },
        { id: 'door', source: single.url, preview: { source: single.url } },
      ],
    },
  });
  t.after(() => recorder.stop());
  const browser = await launchBrowser();
  t.after(() => browser.close());
  return { recorder, browser, small };
}

async function open(browser: Browser, url: string, viewport = { width: 1440, height: 900 }): Promise<Page> {
  const page = await browser.newPage({ viewport });
  await page.goto(url);
  return page;
}

const shows = (page: Page, id: string, what: (state: VideoState) => boolean): Promise<VideoState> =>
  until(
    `${id} shows what it should`,
    async () => {
      const state = await videoState(page, `[data-camera=${id}] video`);
      return state.framesShown > 10 && state.frameNumber >= 0 && what(state) && state;
    },
    SLOW_MS,
  );
const isSmall = ({ width, frameNumber }: VideoState): boolean =>
  width === SMALL.width && frameNumber >= SMALL.firstNumber;
const isMain =
  (mainWidth: number) =>
  ({ width, frameNumber }: VideoState): boolean =>
    width === mainWidth && frameNumber < SMALL.firstNumber;

test(
  'a wall of four shows previews, the large view the main stream; H.265 is live by its preview; a refused one is no loss',
  { skip: browserMissing() },
  async (t) => {
    const { recorder, browser, small } = await stage(t);
    assert.equal(small.playing.length, 0, 'nobody watches');
    const page = await open(browser, `${recorder.url}/`);
    for (const id of ['gate', 'yard', 'hall']) await shows(page, id, isSmall);
    await shows(page, 'door', isMain(320));
    await untilNoBadge(page, 'gate', 'yard', 'hall', 'door');
    const second = await open(browser, `${recorder.url}/`);
    await shows(second, 'hall', isSmall);
    assert.equal(small.playing.length, 3, 'one connection for each camera');
    await second.close();

    await page.goto(`${recorder.url}/#/live?c=gate`);
    await shows(page, 'gate', isMain(640));
    await page.goto(`${recorder.url}/#/live?c=hall`);
    await shows(page, 'hall', isSmall);
    await page.goto(`${recorder.url}/#/live?c=door`);
    await shows(page, 'door', isMain(320));
    await until('only who is watched is connected', () => small.playing.length === 0, SLOW_MS);
    await page.close();

    const phone = await open(browser, `${recorder.url}/#/live?c=yard`, { width: 390, height: 844 });
    await shows(phone, 'yard', isSmall);
    // What the browser does when another tab is shown.
    await phone.evaluate(`
      Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    `);
    await until('a hidden page has no stream', () => small.playing.length === 0, SLOW_MS);
    await phone.evaluate(`
      delete document.hidden;
      document.dispatchEvent(new Event('visibilitychange'));
    `);
    await shows(phone, 'yard', isSmall);
  },
);

test(
  'playback shows the recorded preview where the main stream has no footage, cannot be decoded, or is larger than the picture, and exports it',
  { skip: browserMissing() || redisMissing() },
  async (t) => {
    const [h265, preview] = await Promise.all([videoMedia('h265'), videoMedia('h264-small')]);
    const startMs = Date.now() - 3_600_000;
    const { recorder } = await footageStage(t, {
      startMs,
      seconds: 120,
      cameras: [
        { id: 'gate', name: 'Gate', preview, gaps: [{ from: 10, to: 60, cause: 'camera-unreachable' }] },
        { id: 'hall', name: 'Hall', preview, media: h265 },
      ],
    });
    const browser = await launchBrowser();
    t.after(() => browser.close());
    const at = (id: string, seconds: number): string =>
      `${recorder.url}/#/playback?c=${id}&t=${new Date(startMs + seconds * 1000).toISOString()}&z=4m`;
    const page = await open(browser, at('gate', 30));
    const untilShown = (id: string, what: (state: VideoState) => boolean): Promise<unknown> =>
      until(`${id} is played`, async () => what(await videoState(page, `[data-camera=${id}] video`)), SLOW_MS);
    const note = page.locator('.ptile-note');

    await untilShown('gate', isSmall);
    assert.equal(await note.textContent(), 'Preview');
    const shapes = await page.evaluate<{ kind: string; detail?: string; x: number; width: number }[]>(
      "document.querySelector('.timeline-canvas').model.rows[0].shapes",
    );
    const previews = shapes.filter(({ kind }) => kind === 'preview');
    assert.deepEqual(
      previews.map(({ detail }) => detail),
      ['camera-unreachable'],
    );
    const [only] = previews;
    assert.ok(only);
    await page.locator('.timeline-canvas').hover({ position: { x: only.x + only.width / 3, y: 35 } });
    await page.locator('.hover-card', { hasText: 'Preview only: camera does not answer' }).waitFor();

    const begun = page.waitForEvent('download', { timeout: SLOW_MS });
    await page.getByLabel('Quality').selectOption('Preview');
    await page.getByRole('button', { name: 'Export MP4' }).click();
    const file = join(workspace(t), 'preview.mp4');
    await (await begun).saveAs(file);
    assert.equal((await probe(file)).streams[0]?.width, SMALL.width);
    await page.locator('.jobs b', { hasText: 'Gate (preview)' }).waitFor();

    await page.goto(at('gate', 90));
    await untilShown('gate', isMain(320));
    assert.equal(await note.count(), 0);
    await page.setViewportSize({ width: 390, height: 844 });
    await untilShown('gate', isSmall);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(at('hall', 90));
    await untilShown('hall', isSmall);
  },
);
