// Time in the console: nights in which clocks change, devices in other zones and with a wrong clock, and every cause of a gap.

import assert from 'node:assert/strict';
import { before, suite, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { GAP_CAUSES } from '../../../recorder/contract/gap-cause.ts';
import { causeWords } from '../../../console/playback/footage.ts';
import { browserMissing, launchBrowser, videoState } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { suiteScope } from '../../support/suite-scope.ts';
import { distance, footageStage, type FootageStage } from './footage-stage.ts';

const SLOW_MS = 120_000;
const HOUR_MS = 3_600_000;
/** Summer time ends at 3:00, which is 2:00 again: the first 02:13, and the second an hour later. */
const FIRST_MS = Date.parse('2025-10-26T02:13:00+02:00');
const SECOND_MS = FIRST_MS + HOUR_MS;
const START_MS = FIRST_MS - 60_000;
const LENGTH_S = 60;
/** Causes that the ledger of one camera keeps; the others are of the cluster, and of the start. */
const CAUSES = GAP_CAUSES.filter((cause) => !['starting', 'on-other-node', 'on-node-away'].includes(cause));
const CAUSE_S = 20;

suite('times in the console', { skip: browserMissing() }, () => {
  const scope = suiteScope();
  let stage: FootageStage;
  let browser: Browser;

  before(async () => {
    stage = await footageStage(scope, {
      cameras: [
        { id: 'night', name: 'Night', gaps: [{ from: 2 * LENGTH_S, to: HOUR_MS / 1000, cause: 'process-down' }] },
        {
          id: 'causes',
          name: 'Causes',
          gaps: CAUSES.map((cause, i) => ({ from: (2 * i + 1) * CAUSE_S, to: (2 * i + 2) * CAUSE_S, cause })),
        },
      ],
      startMs: START_MS,
      seconds: HOUR_MS / 1000 + 2 * LENGTH_S,
    });
    browser = await launchBrowser();
    scope.after(() => browser.close());
  });

  async function open(hash: string, options: { timezoneId?: string; aheadMs?: number } = {}): Promise<Page> {
    const { timezoneId = 'UTC', aheadMs = 0 } = options;
    const context = await browser.newContext({ timezoneId, viewport: { width: 1440, height: 900 } });
    await context.addInitScript(`{
      const Real = Date;
      globalThis.Date = class extends Real {
        constructor(...parts) {
          if (parts.length === 0) super(Real.now() + ${aheadMs});
          else super(...parts);
        }
        static now() {
          return Real.now() + ${aheadMs};
        }
      };
    }`);
    const page = await context.newPage();
    page.setDefaultTimeout(SLOW_MS);
    await page.goto(`${stage.recorder.url}/${hash}`);
    return page;
  }

  const clockOf = async (page: Page): Promise<number> =>
    Date.parse((await page.locator('.clock time').getAttribute('datetime')) ?? '');

  for (const timezoneId of ['Europe/Berlin', 'Asia/Kolkata', 'America/Los_Angeles']) {
    test(`a time that a night has twice is reached both times, on a device in ${timezoneId}`, async () => {
      const page = await open('#/playback?c=night&t=2025-10-26T01:00:00+02:00', { timezoneId });
      for (const [choice, atMs, offset] of [
        ['first 02:13', FIRST_MS, '+02:00'],
        ['second 02:13', SECOND_MS, '+01:00'],
      ] as const) {
        await page.locator('[name=go-to]').fill('2:13');
        await page.locator('[name=go-to]').press('Enter');
        await page.getByRole('button', { name: choice }).click();
        await until('the moment', async () => (await clockOf(page)) === atMs, SLOW_MS);
        assert.match(await page.locator('.clock').innerText(), new RegExp(`^02:13:00\\.0[^]*${choice}$`));
        const wanted = stage.numberAt('night', atMs) ?? assert.fail();
        await until(
          'its picture',
          async () => {
            const { frameNumber } = await videoState(page, '.ptile[data-picture=video] video');
            return frameNumber >= 0 && distance(frameNumber, wanted) <= 1;
          },
          SLOW_MS,
        );
        await until('its address', () =>
          new RegExp(`t=2025-10-26T02:13:00(\\.000)?${offset.replace('+', '(\\+|%2B)')}`).test(page.url()),
        );
      }
      await page.context().close();
    });
  }

  test('a time that does not exist in a night leads to the time after the change of the clock', async () => {
    const page = await open('#/playback?c=night&t=2026-03-29T01:00:00+01:00');
    await page.locator('[name=go-to]').fill('2:13');
    await page.locator('[name=go-to]').press('Enter');
    const shown = await until('a moment or a reason', async () => {
      const problem = await page.locator('.go-to-problem').innerText();
      const atMs = await clockOf(page);
      return problem !== '' ? problem : atMs !== Date.parse('2026-03-29T00:00:00Z') && atMs;
    });
    assert.ok(typeof shown === 'string' || Math.abs(shown - Date.parse('2026-03-29T01:13:00Z')) <= HOUR_MS, `${shown}`);
    await page.context().close();
  });

  for (const hours of [-30, -2, 2, 30]) {
    test(`the recorder's clock counts on a device whose clock is ${hours} h off`, async () => {
      const page = await open('#/playback?c=night', { aheadMs: hours * HOUR_MS });
      await page.locator('.banner', { hasText: /clock of this device is .* (slow|fast)/ }).waitFor();
      await until('now', async () => Math.abs((await clockOf(page)) - Date.now()) < 5 * 60_000, SLOW_MS);
      await page.context().close();
    });
  }

  test('every cause of a gap is on the timeline, in the list and in the picture, in words', async () => {
    const [first = 'unknown'] = CAUSES;
    const at = new Date(START_MS + 10 * 60_000).toISOString();
    const page = await open(`#/playback?c=causes&t=${at}&z=30m`);
    const gaps = await until(
      'the gaps',
      async () => {
        const found: readonly { kind: string; detail: string; startMs: number }[] | undefined = await page.evaluate(
          "document.querySelector('.timeline-canvas')?.model?.rows[0]?.shapes.filter(({ kind }) => kind === 'gap')",
        );
        return found && found.length >= CAUSES.length && found;
      },
      SLOW_MS,
    );
    const drawn = gaps.slice(0, CAUSES.length).map(({ detail, startMs }) => [detail, (startMs - START_MS) / 1000]);
    assert.deepEqual(
      drawn,
      CAUSES.map((cause, i) => [cause, (2 * i + 1) * CAUSE_S]),
    );
    const list = await page.locator('.gap-list').innerText();
    for (const [i, cause] of CAUSES.entries()) {
      const words = causeWords(cause);
      assert.ok(list.includes(words), words);
      const inside = new Date(START_MS + ((2 * i + 1) * CAUSE_S + 5) * 1000).toISOString();
      await page.evaluate(`window.location.hash = '#/playback?c=causes&t=${inside}&z=30m'`);
      await until('the plate', async () => (await page.locator('.plate').innerText()).includes(`: ${words}.`), SLOW_MS);
    }
    assert.notEqual(causeWords(first), first);
    await page.context().close();
  });
});

test('every cause has words', () => {
  assert.deepEqual(
    GAP_CAUSES.filter((cause) => causeWords(cause) === cause),
    [],
  );
});
