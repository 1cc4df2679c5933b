// Events in the page: marks in the timeline, a list with stills, the key that goes to the next one, and the wall, which marks the camera.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { SIZES } from './console.ts';
import { footageStage } from './footage-stage.ts';

const AXE = readFileSync(new URL('../../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const SECOND_MS = 1_000;
const violations = 'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))';

test(
  'an event is in the timeline, in the list and on the wall, and a key goes to it',
  { skip: browserMissing() },
  async (t) => {
    const startMs = Math.floor(Date.now() / SECOND_MS) * SECOND_MS - 3_600_000;
    const cameras = [
      { id: 'gate', name: 'Front gate' },
      { id: 'till', name: 'Till' },
    ];
    const { recorder } = await footageStage(t, { cameras, startMs, seconds: 120 });
    const report = async (cameraId: string, id: string, type: string, atMs: number, endMs?: number): Promise<void> => {
      const body = {
        specversion: '1.0',
        id,
        source: 'test',
        type,
        time: new Date(atMs).toISOString(),
        ...(endMs === undefined ? {} : { endtime: new Date(endMs).toISOString() }),
      };
      const headers = { 'content-type': 'application/json' };
      const options = { method: 'POST', headers, body: JSON.stringify(body) };
      const answer = await recorder.fetch(`/api/cameras/${cameraId}/events`, options);
      assert.equal(answer.status, 200, await answer.text());
    };
    const at = (seconds: number): number => startMs + seconds * SECOND_MS;
    await report('gate', '1', 'motion', at(20), at(30));
    await report('gate', '2', 'person', at(60), at(62));
    await report('till', '3', 'digital-input', at(90));

    const browser = await launchBrowser();
    t.after(() => browser.close());
    for (const [name, width, height] of SIZES) {
      const page = await (await browser.newContext({ bypassCSP: true, viewport: { width, height } })).newPage();
      const moment = new Date(at(5)).toISOString();
      await page.goto(`${recorder.url}/#/playback?c=gate,till&t=${moment}&z=10m`);
      const list = page.locator('.event-list');
      await list.getByText('3 events in view').waitFor();
      assert.deepEqual(await list.locator('li span').allInnerTexts(), [
        'Till: Digital input',
        'Front gate: Person, 2 s',
        'Front gate: Motion, 10 s',
      ]);
      const time = (): string => new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get('t') ?? '';
      const isAt = (ms: number) =>
        until(`the page is at ${new Date(ms).toISOString()}`, () => Date.parse(time()) === ms);
      await page.locator('.timeline-slider').focus();
      await page.keyboard.press('v');
      await isAt(at(18));
      await page.keyboard.press('v');
      await isAt(at(58));
      await page.keyboard.press('Shift+V');
      await isAt(at(18));
      await list.getByRole('button', { name: /Digital input/ }).click();
      await isAt(at(88));
      await page.evaluate(AXE);
      assert.deepEqual(await page.evaluate(violations), [], name);

      // A bookmark: a moment with a name, a note and an author, which stays until it is removed.
      await page.locator('.timeline-slider').focus();
      await page.keyboard.press('b');
      const dialog = page.getByRole('dialog', { name: 'Bookmark' });
      await dialog.getByLabel('Name').fill('White van');
      await dialog.getByLabel('Note').fill('the second time');
      await page.evaluate(AXE);
      assert.deepEqual(await page.evaluate(violations), [], `the dialogue, ${name}`);
      const { KUBE_NVR_SHOTS: shots } = process.env;
      if (shots) await page.screenshot({ path: join(shots, `bookmark-${name}.png`) });
      await dialog.getByRole('checkbox').check();
      await dialog.getByRole('button', { name: 'Keep the bookmark' }).click();
      await dialog.waitFor({ state: 'detached' });
      await list.getByText('5 events in view').waitFor();
      const words = await list.locator('li span').allInnerTexts();
      assert.deepEqual(
        words.filter((one) => one.includes('van')),
        ['Front gate: White van (anonymous): the second time', 'Till: White van (anonymous): the second time'],
      );
      await until('its footage is protected', async () => {
        const answer = await (await recorder.fetch('/api/archive/protections')).json();
        return JSON.stringify(answer).split('White van').length === 3;
      });
      if (shots) await page.screenshot({ path: join(shots, `bookmarks-${name}.png`) });
      assert.deepEqual(await page.evaluate(violations), [], `the list, ${name}`);
      for (const id of ['Front gate', 'Till'])
        await list.getByRole('button', { name: new RegExp(`^Remove ${id}`) }).click();
      await list.getByText('3 events in view').waitFor();
      for (const { id } of (
        (await (await recorder.fetch('/api/archive/protections')).json()) as { protections: { id: string }[] }
      ).protections)
        await recorder.fetch(`/api/archive/protections/${id}`, { method: 'DELETE' });

      await page.goto(`${recorder.url}/#/live`);
      await page.locator('.tile[data-camera=gate]').waitFor();
      const mark = page.locator('.tile[data-camera=gate] .tile-event');
      const startedMs = Date.now();
      // The page may not follow the events yet.
      let told = 0;
      await until('the wall marks the camera', async () => {
        await report('gate', `now-${name}-${told++}`, 'motion', Date.now());
        return (await mark.count()) > 0;
      });
      assert.equal(await mark.innerText(), 'Motion');
      assert.equal(await page.locator('.tile[data-camera=till] .tile-event').count(), 0);
      assert.deepEqual(await page.evaluate(violations.replace('axe.run()', 'axe.run(".tile")')), [], name);
      await mark.click();
      await page.locator('.timeline-slider').waitFor();
      assert.ok(Math.abs(Date.parse(time()) - startedMs) < 60_000 + (Date.now() - startedMs), time());
      await page.close();
    }
  },
);
