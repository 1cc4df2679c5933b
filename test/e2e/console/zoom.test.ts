// Looking closer, and looking back: pictures are enlarged, live and recorded, and the last seconds are replayed in their place.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { startCamera } from '../../camera/camera.ts';
import { videoMedia } from '../../camera/media.ts';
import { videoTrack } from '../../camera/tracks.ts';
import { browserMissing, launchBrowser, videoState } from '../../support/browser.ts';
import { probe } from '../../support/probe.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { SIZES } from './console.ts';
import { footageStage } from './footage-stage.ts';

const skip = browserMissing();
const { KUBE_NVR_SHOTS: shots } = process.env;

const zoomOf = (page: Page, selector: string): Promise<number> =>
  page.locator(selector).evaluate((element) => Number(element.style.getPropertyValue('--zoom')) || 1);

const heightOf = async (page: Page, selector: string): Promise<number> =>
  (await page.locator(selector).boundingBox())?.height ?? 0;

/** Of the still that a key saves. */
async function stillWidth(t: TestContext, page: Page): Promise<number> {
  const download = page.waitForEvent('download');
  await page.keyboard.press('s');
  const file = join(workspace(t), 'still.jpg');
  await (await download).saveAs(file);
  return (await probe(file)).streams[0]?.width ?? 0;
}

test(
  'a recorded picture is enlarged by wheel and keys, full screen has clock and buttons, and a still is what is seen',
  { skip },
  async (t) => {
    const startMs = Math.floor(Date.now() / 1000) * 1000 - 3_600_000;
    const { recorder } = await footageStage(t, {
      cameras: [
        { id: 'gate', name: 'Gate' },
        { id: 'yard', name: 'Yard' },
      ],
      startMs,
      seconds: 30,
    });
    const browser = await launchBrowser();
    t.after(() => browser.close());
    for (const [size, width, height] of SIZES) {
      const page = await browser.newPage({ viewport: { width, height } });
      await page.goto(`${recorder.url}/#/playback?c=gate,yard&t=${new Date(startMs + 10_000).toISOString()}&z=10m`);
      const gate = '.ptile[data-camera=gate]';
      await until('both have a picture', async () => (await page.locator('.ptile[data-picture=video]').count()) === 2);
      await page.locator(gate).hover();
      await page.mouse.wheel(0, -400);
      await until('the wheel enlarges', async () => (await zoomOf(page, gate)) > 2);
      assert.equal(await zoomOf(page, '.ptile[data-camera=yard]'), 1, 'the other picture stays');
      if (shots) await page.screenshot({ path: join(shots, `zoom-${size}.png`) });
      await page.keyboard.press('Escape');
      assert.equal(await zoomOf(page, gate), 1);
      for (let i = 0; i < 2; i++) await page.keyboard.press('z');
      assert.equal(await zoomOf(page, gate), 2.25);
      const clock = page.locator('.clock time');
      const before = await clock.innerText();
      await page.keyboard.press('ArrowRight');
      assert.equal(await clock.innerText(), before, 'the arrow moved the picture, not the time');
      const enlarged = await stillWidth(t, page);
      await page.keyboard.press('Escape');
      const whole = await stillWidth(t, page);
      assert.ok(enlarged > 0 && enlarged < whole, `${enlarged} of ${whole} pixels`);
      await page.keyboard.press('f');
      await until('full screen', () => page.evaluate('document.fullscreenElement !== null'));
      assert.equal(await clock.isVisible(), true);
      assert.equal(await page.getByRole('button', { name: 'Play', exact: true }).isVisible(), true);
      assert.equal(await page.locator('.side').isVisible(), false);
      if (shots) await page.screenshot({ path: join(shots, `full-${size}.png`) });
      if (size === 'phone') {
        await page.keyboard.press('f');
        await until('no full screen', () => page.evaluate('document.fullscreenElement === null'));
        // It lies on its side.
        await page.setViewportSize({ width: height, height: width });
        await until('pictures have the height', async () => (await heightOf(page, '.pb-grid')) > 300);
        for (const button of [
          page.getByRole('button', { name: 'Play', exact: true }),
          page.locator('.camera-item').first(),
        ])
          await until('it is in sight', async () => ((await button.boundingBox())?.y ?? Infinity) < width - 50);
        if (shots) await page.screenshot({ path: join(shots, 'landscape-playback.png') });
      }
      await page.close();
    }
  },
);

test(
  'the last ten seconds are replayed in the tile and large, then the picture is live again; large it is enlarged',
  { skip },
  async (t) => {
    await using camera = await startCamera({ tracks: [videoTrack(await videoMedia('h264'))], pace: 'realtime' });
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        archive: { segmentDuration: '2s' },
        cameras: ['Gate', 'Yard'].map((name) => ({ id: name.toLowerCase(), name, source: camera.url })),
      },
    });
    const browser = await launchBrowser();
    t.after(() => browser.close());
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await until('the last ten seconds are recorded', async () => {
      const { archive } = (await recorder.get('/api/archive/gate/segments')) as { archive: { start_ms: number }[] };
      return archive.some(({ start_ms: startMs }) => startMs < Date.now() - 11_000);
    });
    for (const [address, place] of [
      ['', '.tile[data-camera=gate]'],
      ['#/live?c=gate', '.screen[data-camera=gate]'],
    ] as const) {
      await page.goto(`${recorder.url}/${address}`);
      await until('it plays', async () => (await videoState(page, `${place} video`)).framesShown > 5);
      await page.locator(place).hover();
      await page.getByRole('button', { name: 'Replay the last 10 seconds of Gate' }).click();
      await until('the replay plays', async () => (await videoState(page, `${place} .replay video`)).framesShown > 5);
      assert.match(await page.locator(`${place} .replay .badge`).innerText(), /^Replay of the last 10 s$/);
      if (address !== '') assert.match(await page.locator('.stage-clock b').innerText(), /^[\d:]{8} – [\d:]{8}$/);
      if (shots) await page.screenshot({ path: join(shots, `replay-${address === '' ? 'tile' : 'large'}.png`) });
      await until('it is live again', async () => (await page.locator('.replay').count()) === 0);
    }
    await page.goto(`${recorder.url}/`);
    const order = (): Promise<string[]> => page.locator('.tile-name').allTextContents();
    const focused = (): Promise<unknown> => page.evaluate('document.activeElement.closest(".tile")?.dataset.camera');
    await page.locator('.tile[data-camera=gate] .tile-open').focus();
    await page.keyboard.press('Shift+ArrowDown');
    await until('the tile is moved', async () => (await order()).join() === 'Yard,Gate');
    await until('it keeps the focus', async () => (await focused()) === 'gate');
    await page.getByText('Gate: place 2 of 2').waitFor();
    await page.keyboard.press('Shift+ArrowUp');
    await until('it is moved back', async () => (await order()).join() === 'Gate,Yard');
    await until('it keeps the focus again', async () => (await focused()) === 'gate');
    await page.keyboard.press('Enter');
    await page.locator('.screen[data-camera=gate]').waitFor();
    await page.keyboard.press('Shift+R');
    await page.locator('.replay .badge').waitFor();
    await page.keyboard.press('Shift+R');
    await until('the key ends it', async () => (await page.locator('.replay').count()) === 0);
    await page.keyboard.press('r');
    await page.locator('.replay .badge').waitFor();
    await page.keyboard.press('ArrowRight');
    await page.locator('.screen[data-camera=yard]').waitFor();
    assert.equal(await page.locator('.replay').count(), 0, 'the replay of one camera is not shown for another');
    await page.keyboard.press('z');
    assert.equal(await zoomOf(page, '.screen'), 1.5);
    if (shots) await page.screenshot({ path: join(shots, 'zoom-live.png') });
    // On a phone, the list takes the place of the picture.
    await page.getByRole('button', { name: 'Cameras', exact: true }).click();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.keyboard.press('r');
    await page.locator('.replay .badge').waitFor();
    for (const button of await page.locator('.stage-controls > *').all()) {
      assert.ok(((await button.boundingBox())?.x ?? 0) > 0, 'no button is cut off');
    }
    if (shots) await page.screenshot({ path: join(shots, 'replay-phone.png') });
    await page.setViewportSize({ width: 844, height: 390 });
    await until('the picture has the height', async () => (await heightOf(page, '.screen')) > 300);
    if (shots) await page.screenshot({ path: join(shots, 'landscape-live.png') });
  },
);
