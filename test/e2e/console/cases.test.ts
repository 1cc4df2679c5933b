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
    const address = `${recorder.url}/#/playback?c=${ids.join()}&t=${at(10)}&in=${at(10)}&out=${at(40)}&z=10m`;
    for (const [size, width, height] of SIZES) {
      const page = await (await browser.newContext({ bypassCSP: true, viewport: { width, height } })).newPage();
      page.setDefaultTimeout(60_000);
      await page.goto(address);
      assert.equal(await page.getByRole('button', { name: 'Export ZIP' }).count(), 1, 'several cameras are one file');
      await page.getByRole('button', { name: 'Make a case' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('Camera 1, Camera 2, Camera 3, Camera 4').waitFor();
      await dialog.getByLabel('Name').fill(`Theft, ${size}`);
      await dialog.getByLabel('Number').fill('2026-17');
      await dialog.getByLabel('Reason').fill('The police asked');
      await dialog.getByLabel('Notes').fill('A white van, twice');
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
