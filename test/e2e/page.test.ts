// The page with real cameras on it: what a new user sees after hack/demo.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { browserMissing, launchBrowser, videoState } from '../support/browser.ts';
import { GstreamerCameras, gstreamerMissing } from '../support/gstreamer-cameras.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

test(
  'the page shows GStreamer cameras live side by side, their state, and plays their newest recordings',
  { skip: browserMissing() || gstreamerMissing() },
  async (t) => {
    await using cameras = await GstreamerCameras.start([
      { name: 'gate', video: 'h264', audio: 'aac', gop: 25 },
      { name: 'hall', video: 'h264-b', audio: 'pcma', gop: 25, width: 320, height: 180 },
    ]);
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        archive: { segmentDuration: '2s' },
        cameras: ['gate', 'hall'].map((id) => ({ id, name: `The ${id}`, source: cameras.url(id) })),
      },
    });
    await using browser = await launchBrowser();
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${recorder.url}/`);
    for (const [index, width] of [640, 320].entries()) {
      const selector = `.camera:nth-of-type(${index + 1}) video`;
      await until(`video ${index + 1} plays`, async () => {
        const state = await videoState(page, selector);
        return state.width === width && state.currentTime > 0 && state.framesShown > 25;
      });
    }
    await until('both are said to record', async () =>
      (await page.locator('.camera').allTextContents()).every((text) => /recording/i.test(text)),
    );
    const text = (await page.locator('.camera').allTextContents()).join('\n');
    assert.match(text, /The gate[^]*H\.264[^]*AAC[^]*The hall[^]*H\.264[^]*FLAC/);

    await until('finished recordings are listed', async () => {
      const counts = await Promise.all([0, 1].map((i) => page.locator('.camera').nth(i).locator('li').count()));
      return counts.every((count) => count >= 2);
    });
    // Not the first one, which is still being written.
    await page.locator('.camera').first().locator('li').nth(1).locator('a, button').first().click();
    await until('the recording plays', async () => {
      const { currentTime, width, error } = await videoState(page, 'dialog[open] video');
      if (error !== undefined) throw new Error(error);
      return width === 640 && currentTime > 0.5;
    });
    assert.deepEqual(complaints, []);
  },
);
