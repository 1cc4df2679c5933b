// A case of four cameras: made in the page, kept, read by others, and ended.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { verifyResult } from '../../../recorder/jobs/verify.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { SIZES } from './console.ts';
import { footageStage } from './footage-stage.ts';

const AXE = readFileSync(new URL('../../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const violations = 'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))';
const skip =
  browserMissing() || (spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false);

test(
  'four cameras are one case with number, reason and notes; it is kept, verified, and ended',
  { skip },
  async (t) => {
    const startMs = Math.floor(Date.now() / 1000) * 1000 - 3_600_000;
    const ids = ['cam1', 'cam2', 'cam3', 'cam4'];
    const { recorder } = await footageStage(t, {
      cameras: ids.map((id, i) => ({
        id,
        name: `Camera ${i + 1}`,
        gaps: i === 1 ? [{ from: 20, to: 30, cause: 'camera-unreachable' }] : [],
      })),
      startMs,
      seconds: 60,
    });
    const browser = await launchBrowser();
    t.after(() => browser.close());
    const at = (seconds: number): string => new Date(startMs + seconds * 1000).toISOString();
    const bookmark = JSON.stringify({ name: 'Red car', from: startMs / 1000 + 15 });
    const headers = { 'content-type': 'application/json' };
    const made = await recorder.fetch('/api/cameras/cam2/bookmarks', { method: 'POST', headers, body: bookmark });
    assert.equal(made.status, 201, await made.text());
    const address = `${recorder.url}/#/playback?c=${ids.join()}&t=${at(10)}&in=${at(10)}&out=${at(40)}&z=10m`;
    for (const [size, width, height] of SIZES) {
      const page = await (await browser.newContext({ bypassCSP: true, viewport: { width, height } })).newPage();
      page.setDefaultTimeout(60_000);
      await page.goto(address);
      // Several cameras are one file. Length and gaps are there: nothing moves the button while it is pressed.
      await page.getByRole('button', { name: 'Export ZIP' }).waitFor();
      await page.locator('.export-facts').getByText('1 gap: camera does not answer').waitFor();
      await page.getByRole('button', { name: 'Make a case' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('Camera 1, Camera 2, Camera 3, Camera 4').waitFor();
      await dialog.getByLabel('Name').fill(`Theft, ${size}`);
      await dialog.getByLabel('Number').fill('2026-17');
      await dialog.getByLabel('Reason').fill('The police asked');
      const notes = dialog.getByLabel('Notes');
      await until('the bookmark is suggested', async () =>
        (await notes.inputValue()).endsWith(' Camera 2: Red car (anonymous)'),
      );
      await notes.fill('A white van, twice');
      await page.addScriptTag({ content: AXE });
      assert.deepEqual(await page.evaluate(violations), [], `the dialogue, ${size}`);
      const { KUBE_NVR_SHOTS: shots } = process.env;
      if (shots) await page.screenshot({ path: join(shots, `case-dialog-${size}.png`) });
      const download = page.waitForEvent('download');
      await dialog.getByRole('button', { name: 'Make the case' }).click();
      const item = page.locator('.job', { hasText: `Theft, ${size}` });
      await item.getByText('Done · kept until it is ended').waitFor();
      for (const text of ['2026-17 · Camera 1, Camera 2, Camera 3, Camera 4', 'The police asked', 'A white van, twice'])
        await item.getByText(text).waitFor();
      assert.deepEqual(await page.evaluate(violations), [], `the list, ${size}`);
      if (shots) await page.screenshot({ path: join(shots, `cases-${size}.png`) });
      const file = join(workspace(t), 'case.zip');
      await (await download).saveAs(file);
      assert.match(
        (await download).suggestedFilename(),
        /^Plant 7 - Case 2026-17 Theft, \w+ - [\d-]+ [\d.]+ CES?T\.zip$/,
      );
      const { wrong, right } = await verifyResult({ path: file });
      assert.deepEqual(wrong, []);
      for (const line of [
        /^Plant 7 - Camera 4 \(cam4\) - [\d-]+ [\d.]+ CES?T\.mp4: /,
        /^report\.html: /,
        /^camera cam2: 20 s of movie, 1 gap of 10 s/,
      ])
        assert.ok(
          right.some((one) => line.test(one)),
          `${String(line)}: ${right.join('\n')}`,
        );
      await item.getByRole('button', { name: 'End the case' }).click();
      await item.getByRole('button', { name: 'End the case: its file is removed' }).click();
      await until('the case is gone', async () => (await item.count()) === 0);
      await page.close();
    }
  },
);

test(
  'a dialogue or a view whose scripts do not arrive says so, is tried again, and the page keeps what was entered',
  { skip },
  async (t) => {
    const startMs = Math.floor(Date.now() / 1000) * 1000 - 3_600_000;
    const { recorder } = await footageStage(t, { cameras: [{ id: 'gate', name: 'Gate' }], startMs, seconds: 10 });
    const browser = await launchBrowser();
    t.after(() => browser.close());
    const page = await browser.newPage();
    let isAway = true;
    const asked: string[] = [];
    await page.route(/\/later\.ts/, (route) => {
      asked.push(route.request().url());
      return isAway ? route.abort() : route.continue();
    });
    await page.goto(`${recorder.url}/#/playback?c=gate&t=${new Date(startMs).toISOString()}&z=10m`);
    const goTo = page.getByRole('textbox', { name: 'Go to time' });
    await goTo.fill('yesterday 2:1');
    await page.getByRole('button', { name: 'Make a case' }).click();
    const missing = page.getByRole('dialog', { name: 'This part of the page did not arrive' });
    await missing.getByRole('button', { name: 'Try again' }).click();
    await until('it was asked for twice', () => asked.length === 2);
    await missing.waitFor();
    const { KUBE_NVR_SHOTS: shots } = process.env;
    if (shots) await page.screenshot({ path: join(shots, 'part-missing.png') });
    isAway = false;
    await missing.getByRole('button', { name: 'Try again' }).click();
    const dialog = page.getByRole('dialog', { name: 'Make a case' });
    await dialog.getByLabel('Name').fill('Theft');
    assert.equal(await goTo.inputValue(), 'yesterday 2:1');
    // Text is selected with the pointer, which is let go beside the dialogue.
    await dialog.getByLabel('Name').hover();
    await page.mouse.down();
    await page.mouse.move(5, 300);
    await page.mouse.up();
    assert.equal(await dialog.getByLabel('Name').inputValue(), 'Theft');
    await page.mouse.click(5, 300);
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await goTo.inputValue(), 'yesterday 2:1', 'the page was not loaded again');
    isAway = true;
    const other = await browser.newPage();
    await other.route(/\/later\.ts/, (route) => (isAway ? route.abort() : route.continue()));
    await other.goto(`${recorder.url}/#/exports`);
    const alert = other.getByRole('alert').filter({ hasText: 'This part of the page did not arrive.' });
    await alert.waitFor();
    if (shots) await other.screenshot({ path: join(shots, 'view-missing.png') });
    isAway = false;
    await alert.getByRole('button', { name: 'Try again' }).click();
    await other.getByRole('heading', { name: 'Exports' }).waitFor();
  },
);
