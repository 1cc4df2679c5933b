// What a guard needs: from opening the page to the file of a camera at a time of last night, in at most five actions.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { Zone } from '../../../console/playback/zone.ts';
import { decodePictures } from '../../camera/frame-numbers.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { probe } from '../../support/probe.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { signIn } from './console.ts';
import { distance, footageStage, type FootageStage } from './footage-stage.ts';

const skip =
  browserMissing() || (spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false);
const berlin = new Zone('Europe/Berlin');

/** 02:13 is not "last night" while it is 2 o'clock, when its footage may be of the next minutes. */
const HOUR = berlin.local(Date.now()).hour === 2 ? 4 : 2;

/** The last 02:13 in Berlin that is over. */
function lastNight(): number {
  const today = berlin.local(Date.now());
  const at = (days: number): number =>
    berlin.instants({ ...today, day: today.day - days, hour: HOUR, minute: 13, second: 0, ms: 0 })[0] ?? 0;
  return at(0) < Date.now() ? at(0) : at(1);
}

async function open(
  t: TestContext,
  viewport = { width: 1440, height: 900 },
): Promise<{ page: Page; stage: FootageStage }> {
  const stage = await footageStage(t, {
    cameras: [1, 2, 3, 4].map((number) => ({ id: `cam${number}`, name: `Camera ${number}` })),
    startMs: lastNight() - 60_000,
    seconds: 180,
  });
  const browser = await launchBrowser();
  t.after(() => browser.close());
  // A phone has fingers in place of a pointer.
  const isPhone = viewport.width < 700;
  const page = await browser.newPage({ viewport, acceptDownloads: true, hasTouch: isPhone, isMobile: isPhone });
  await page.goto(stage.recorder.url);
  return { page, stage };
}

for (const viewport of [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
]) {
  test(`camera 4, last night 02:13: five actions to the file, at ${viewport.width} pixels`, { skip }, async (t) => {
    const { page, stage } = await open(t, viewport);
    const begun = page.waitForEvent('download', { timeout: 120_000 });
    const touch = (one: Locator): Promise<void> => (viewport.width < 700 ? one.tap() : one.click());
    await touch(page.getByRole('link', { name: 'Playback' })); // 1
    await touch(page.getByRole('button', { name: /^Camera 4/ })); // 2
    await page.getByLabel('Go to time').fill(`${HOUR}:13`); // 3
    await page.keyboard.press('Enter'); // 4
    await touch(page.getByRole('button', { name: 'Export MP4' })); // 5
    const file = join(workspace(t), 'export.mp4');
    await (await begun).saveAs(file);
    const { durationSeconds } = await probe(file);
    assert.ok(Math.abs(durationSeconds - 60) <= 0.003, `${durationSeconds} s`);
    const { numbers, complaints } = await decodePictures(file);
    assert.equal(complaints, '');
    const wanted = stage.numberAt('cam4', lastNight());
    assert.ok(distance(numbers[0] ?? -1, wanted ?? -1) <= 1, `picture ${numbers[0]} instead of ${wanted}`);
    const digest = createHash('sha256').update(readFileSync(file)).digest('hex');
    await until('the page shows the digest', async () =>
      (await page.locator('.job-digest').innerText()).includes(digest),
    );
  });
}

test('a link to a result opens in a program that has not signed in', { skip }, async (t) => {
  const sha256 = createHash('sha256').update('operator').digest('hex');
  const { recorder } = await footageStage(t, {
    cameras: [{ id: 'cam1', name: 'Camera 1' }],
    startMs: lastNight(),
    seconds: 60,
    config: { auth: { mode: 'token', tokens: [{ name: 'operator', role: 'operator', sha256 }] } },
  });
  const from = lastNight() / 1000;
  const headers = { authorization: 'Bearer operator' };
  const url = `${recorder.url}/api/archive/cam1/export?from=${from + 10}&to=${from + 20}`;
  assert.equal((await fetch(url, { method: 'POST', headers })).status, 202);
  const browser = await launchBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`${recorder.url}/#/exports`);
  await signIn(page, 'operator');
  await page.getByRole('button', { name: 'Copy link' }).click();
  const link = await page.getByLabel('Link to Camera 1').inputValue();
  assert.match(link, /\/api\/archive\/jobs\/[^/]+\/download\?download=1&access_link=/);
  const answer = await fetch(link);
  assert.equal(answer.status, 200);
  const digest = createHash('sha256')
    .update(Buffer.from(await answer.arrayBuffer()))
    .digest('hex');
  await until('it is the file of the page', async () =>
    (await page.locator('.job-digest').innerText()).includes(digest),
  );
  assert.equal((await fetch(link.replace('download=1', 'download=0'))).status, 401);
});

test('a selection is protected with a note, listed, and released', { skip }, async (t) => {
  const { page, stage } = await open(t);
  const at = berlin.iso(lastNight()).replace('+', '%2B');
  await page.goto(`${stage.recorder.url}/#/playback?c=cam2&t=${at}`);
  await page.getByRole('button', { name: 'Protect from deletion' }).click();
  await page.getByLabel('Why').fill('The red car');
  await page.getByRole('button', { name: 'Protect', exact: true }).click();
  await until('the timeline shows it', () =>
    page.evaluate(
      "document.querySelector('.timeline-canvas').model.rows[0].shapes.some(({ kind, detail }) => kind === 'protected' && detail === 'The red car')",
    ),
  );
  await page.getByRole('link', { name: 'Exports' }).click();
  await page.getByRole('button', { name: 'Protected' }).click();
  const item = page.locator('.protection');
  await until('the list has it', async () =>
    new RegExp(`Camera 2[^]*0${HOUR}:13:00[^]*The red car`).test(await item.innerText()),
  );
  await item.getByRole('button', { name: 'Release' }).click();
  await item.getByRole('button', { name: /^Release: / }).click();
  await page.getByText('Nothing is protected.').waitFor();
});
