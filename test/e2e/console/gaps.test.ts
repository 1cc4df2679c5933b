// What is missing, as the timeline, its list and its keys tell it at each zoom. The footage is old: the recorder of today, whose
// cameras are switched off, has a gap of its own.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { suiteScope } from '../../support/suite-scope.ts';
import { footageStage, type FootageStage } from './footage-stage.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Half of the widest view ends long before today. */
const START_MS = Math.floor(Date.now() / DAY_MS - 40) * DAY_MS;
const SECONDS = 420;
const BOTH = { from: 300, to: 330, cause: 'process-down' } as const;
const CAMERAS = [
  { id: 'cam1', name: 'Front door', gaps: [{ from: 100, to: 140, cause: 'camera-unreachable' }, BOTH] },
  { id: 'cam2', name: 'Till', gaps: [BOTH] },
] as const;
const ZOOMS = { '10m': 10 * MINUTE_MS, '6h': 6 * HOUR_MS, '1d': DAY_MS, '7d': 7 * DAY_MS, '31d': 31 * DAY_MS };

const addressOf = (zoom: string): string =>
  `#/playback?c=cam1,cam2&t=${new Date(START_MS + 60_000).toISOString()}&z=${zoom}`;

describe('what is missing', { skip: browserMissing() }, () => {
  const scope = suiteScope();
  let stage: FootageStage;
  let browser: Browser;

  before(async () => {
    stage = await footageStage(scope, { cameras: CAMERAS, startMs: START_MS, seconds: SECONDS });
    browser = await launchBrowser();
    scope.after(() => browser.close());
  });

  const headingOf = async (page: Page): Promise<string> =>
    (await page.locator('.gap-list h2').innerText()).replaceAll(/\s+/g, ' ').trim();

  for (const width of [700, 1440, 3840]) {
    test(`at each zoom, ${width} pixels wide, seconds listed are seconds missing, and keys stop at each gap`, async () => {
      for (const [id, missing] of [
        ['cam1', 70],
        ['cam2', 30],
      ] as const) {
        const window = `from=${START_MS / 1000}&to=${START_MS / 1000 + SECONDS}`;
        const answer = await fetch(`${stage.recorder.url}/api/archive/${id}/gaps?${window}`);
        assert.equal(((await answer.json()) as { readonly missing_seconds: number }).missing_seconds, missing);
      }
      const page = await browser.newPage({ viewport: { width, height: 900 } });
      page.on('pageerror', (error) => assert.fail(error.stack ?? error.message));
      const show = async (zoom: string, heading: string): Promise<void> => {
        await page.evaluate(`window.location.hash = ${JSON.stringify(addressOf(zoom))}`);
        let seen = '';
        await until(`the heading of ${zoom}`, async () => (seen = await headingOf(page)) === heading).catch(
          (error: unknown) => assert.fail(`${String(error)}: ${seen}`),
        );
      };
      await page.goto(`${stage.recorder.url}/${addressOf('1m')}`);
      for (const [zoom, widthMs] of Object.entries(ZOOMS)) {
        // Nothing of the answer for the view before may be told of the next one.
        await show('1m', 'No gaps in view');
        await show(zoom, '3 gaps in view, 1 min 40 s');
        await until(`the rows of ${zoom}`, async () => {
          const model = (await page.evaluate("document.querySelector('.timeline-canvas').model")) as {
            readonly range: { readonly fromMs: number; readonly toMs: number };
            readonly rows: readonly {
              readonly cameraId?: string;
              readonly shapes: readonly { readonly kind: string }[];
            }[];
          };
          const rows = model.rows.filter(
            ({ cameraId, shapes }) => cameraId && shapes.some(({ kind }) => kind === 'gap'),
          );
          return Math.abs(model.range.toMs - model.range.fromMs - widthMs) < 1 && rows.length === CAMERAS.length;
        });
      }
      for (const at of [100, 140, 300, 330]) {
        await page.keyboard.press('n');
        const wanted = START_MS + at * 1000;
        const clock = page.locator('.clock time');
        await until(
          `the border at ${at} s`,
          async () => Date.parse((await clock.getAttribute('datetime')) ?? '') === wanted,
        );
      }
      await page.close();
    });
  }

  test('a list whose answer has not come says so', async () => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(`${stage.recorder.url}/${addressOf('1m')}`);
    await until('the first view', async () => (await headingOf(page)) === 'No gaps in view');
    const held = Promise.withResolvers<undefined>();
    await page.route(/\/api\/archive\/timeline/, async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.evaluate(`window.location.hash = ${JSON.stringify(addressOf('10m'))}`);
    await until('it is not known', async () => (await headingOf(page)) === 'Gaps in view: loading …');
    held.resolve(undefined);
    await until('it is known', async () => (await headingOf(page)) === '3 gaps in view, 1 min 40 s');
    await page.close();
  });
});
