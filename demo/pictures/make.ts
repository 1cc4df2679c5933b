// Makes the pictures of the console in docs/images: `npm run pictures`. Needs Chromium and ffmpeg (`hack/setup browser media`).

import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { startCamera } from '../../test/camera/camera.ts';
import { videoTrack } from '../../test/camera/tracks.ts';
import { footageStage } from '../../test/e2e/console/footage-stage.ts';
import { launchBrowser, videoState } from '../../test/support/browser.ts';
import { until } from '../../test/support/until.ts';
import { mediaOf, SCENES } from './scenes.ts';

const IMAGES = join(import.meta.dirname, '../../docs/images');
const FOOTAGE_SECONDS = 20 * 60;
/** The gate was away for a while, so that the timeline has a gap. */
const GAP = { from: 420, to: 540, cause: 'camera-unreachable' } as const;
/** The car is in the picture then. */
const SHOWN_SECONDS = 624;
const LIMIT_MS = 120_000;

const untilShown = (page: Page, selector: string): Promise<unknown> =>
  until(`${selector} shows a picture`, async () => (await videoState(page, selector)).framesShown > 0, LIMIT_MS);

const ends: (() => unknown)[] = [];
try {
  const browser = await launchBrowser();
  ends.push(() => browser.close());
  const cameras = await Promise.all(
    SCENES.map(async (scene) => {
      const media = await mediaOf(scene, browser);
      const camera = await startCamera({ tracks: [videoTrack(media)], pace: 'realtime' });
      ends.push(() => camera.close());
      return { id: scene.id, name: scene.name, media, source: camera.url, gaps: scene.id === 'gate' ? [GAP] : [] };
    }),
  );
  const startMs = Math.floor(Date.now() / 1000 - FOOTAGE_SECONDS) * 1000;
  const stage = await footageStage(
    { after: (end) => void ends.push(end as () => unknown) },
    {
      cameras,
      startMs,
      seconds: FOOTAGE_SECONDS,
      config: { cameras: cameras.map(({ id, name, source }) => ({ id, name, source })) },
    },
  );
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, timezoneId: 'Europe/Berlin' });
  await page.goto(`${stage.recorder.url}/`);
  for (const { id } of SCENES) await untilShown(page, `[data-camera=${id}] video`);
  await until(
    'everything is recorded',
    async () => (await page.locator('.pill').innerText()) === 'All 3 recorded',
    LIMIT_MS,
  );
  await page.screenshot({ path: join(IMAGES, 'live.png') });

  const at = new Date(startMs + SHOWN_SECONDS * 1000).toISOString();
  await page.goto(`${stage.recorder.url}/#/playback?c=${SCENES.map(({ id }) => id).join()}&t=${at}&z=20m`);
  await page.locator('.tile-screen, canvas').first().waitFor({ timeout: LIMIT_MS });
  for (const { id } of SCENES) await untilShown(page, `[data-camera=${id}] video`);
  await page.screenshot({ path: join(IMAGES, 'playback.png') });
} finally {
  for (const end of ends.reverse()) await end();
}
