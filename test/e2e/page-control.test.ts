// The page as a remote control: a camera is stopped and started by its button, and shows what was seen last meanwhile.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { startCamera } from '../camera/camera.ts';
import { browserMissing, launchBrowser } from '../support/browser.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const token = (role: string) => ({ name: role, role, sha256: createHash('sha256').update(role).digest('hex') });

test(
  'the page stops and starts a camera, shows its last picture, and says why it may not',
  { skip: browserMissing() },
  async (t) => {
    await using camera = await startCamera({ pace: 'realtime' });
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        auth: { mode: 'token', tokens: [token('operator'), token('viewer')] },
        cameras: [{ id: 'gate', source: camera.url }],
      },
    });
    await using browser = await launchBrowser();
    const open = async (role: string) => {
      const page = await browser.newPage();
      await page.goto(`${recorder.url}/#access_token=${role}`);
      const text = (selector: string): Promise<string | null> => page.locator(`.camera ${selector}`).textContent();
      await until('the camera records', async () => (await text('.badge')) === 'Recording');
      return { page, text };
    };
    const { page, text } = await open('operator');
    await page.click('.camera .switch');
    await until('it is stopped', async () => (await text('.badge')) === 'Stopped');
    assert.equal(await text('.reason'), 'stopped by operator');
    await until('the camera is let go of', () => camera.sessions.size === 0);
    const poster = await until(
      'a poster',
      async () => (await page.getAttribute('.camera video', 'poster')) ?? undefined,
    );
    const width = await page.evaluate<number>(`(async () => {
    const image = new Image();
    image.src = ${JSON.stringify(poster)};
    await image.decode();
    return image.naturalWidth;
  })()`);
    assert.ok(width > 0 && width <= 640, `${width}`);
    await page.click('.camera .switch');
    await until('it records again', async () => (await text('.badge')) === 'Recording');

    const viewer = await open('viewer');
    await viewer.page.click('.camera .switch');
    await until('the reason is shown', async () => /operator/.test((await viewer.text('.reason')) ?? ''));
    assert.equal(camera.playing.length, 1);
    assert.equal((await recorder.stop()).code, 0);
  },
);
