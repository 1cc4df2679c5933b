// The live wall with real cameras on it: what a new user sees after hack/demo.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browserMissing, launchBrowser, videoState } from '../../support/browser.ts';
import { GstreamerCameras, gstreamerMissing } from '../../support/gstreamer-cameras.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';

test(
  'the wall shows GStreamer cameras live side by side; facts name their codecs and newest recordings',
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
    for (const [id, width] of Object.entries({ gate: 640, hall: 320 })) {
      await until(`${id} plays`, async () => {
        const state = await videoState(page, `[data-camera=${id}] video`);
        return state.width === width && state.currentTime > 0 && state.framesShown > 25;
      });
    }
    await until('all are said to be recorded', async () =>
      /^All 2 recorded$/.test(await page.locator('.pill').innerText()),
    );
    assert.equal(await page.locator('.badge').count(), 0, 'nothing is wrong');

    for (const [id, streams] of Object.entries({ gate: /H\.264 640×360.* · AAC/, hall: /H\.264 320×180 · FLAC/ })) {
      await page.goto(`${recorder.url}/#/live?c=${id}`);
      await until('large', async () => (await videoState(page, `.screen[data-camera=${id}] video`)).framesShown > 5);
      await page.keyboard.press('i');
      await until('the streams', async () => streams.test(await page.locator('.facts').innerText()));
      const recordings = page.locator('.recordings a');
      await until('recordings', async () => (await recordings.count()) >= 2);
      assert.match((await recordings.nth(1).getAttribute('href')) ?? '', new RegExp(`^#/playback\\?c=${id}&t=\\d{4}-`));
      await page.keyboard.press('i');
    }
    assert.deepEqual(complaints, []);
  },
);
