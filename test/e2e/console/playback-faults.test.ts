// Playback on a slow computer, and over a connection that fails: what did not come once comes later, without a reload of the page.

import assert from 'node:assert/strict';
import { before, describe, test, type TestContext } from 'node:test';
import type { Browser, Page, Route } from 'playwright-core';
import { browserMissing, launchBrowser, videoState } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { suiteScope } from '../../support/suite-scope.ts';
import { distance, footageStage, type FootageStage } from './footage-stage.ts';

const MINUTE_MS = 60_000;
/** A machine that runs other tests decodes slowly. */
const SLOW_MS = 180_000;
const START_MS = Math.floor(Date.now() / MINUTE_MS - 180) * MINUTE_MS;
const AT_SECONDS = 15;
/** Four files: those that are read stay for a minute, and the first one is read by every player. */
const SECONDS = 240;

const hashAt = (seconds: number): string =>
  `#/playback?c=gate&t=${new Date(START_MS + seconds * 1000).toISOString()}&z=10m`;

describe('playback when something fails', { skip: browserMissing() }, () => {
  const scope = suiteScope();
  let stage: FootageStage;
  let browser: Browser;

  before(async () => {
    stage = await footageStage(scope, { cameras: [{ id: 'gate', name: 'Gate' }], startMs: START_MS, seconds: SECONDS });
    browser = await launchBrowser();
    scope.after(() => browser.close());
  });

  async function open(
    t: TestContext,
    prepare: (page: Page) => Promise<unknown>,
    atSeconds = AT_SECONDS,
  ): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1000, height: 700 } });
    t.after(() => page.close());
    page.on('pageerror', (error) => assert.fail(error.stack ?? error.message));
    await prepare(page);
    await page.goto(`${stage.recorder.url}/${hashAt(atSeconds)}`);
    return page;
  }

  async function untilShown(page: Page, atSeconds = AT_SECONDS): Promise<void> {
    const wanted = stage.numberAt('gate', START_MS + atSeconds * 1000) ?? assert.fail();
    await until(
      `the picture ${wanted}`,
      async () => {
        if ((await page.locator('[data-camera=gate][data-picture=video]').count()) === 0) return false;
        const { frameNumber } = await videoState(page, '[data-camera=gate] video');
        return frameNumber >= 0 && distance(frameNumber, wanted) <= 1;
      },
      SLOW_MS,
    );
  }

  /** Fails the first requests for an address, and lets the others through. Returns how many were failed. */
  async function failFirst(page: Page, address: RegExp, count: number, fail: (route: Route) => Promise<void>) {
    let failed = 0;
    await page.route(address, async (route) => {
      if (failed >= count) return route.continue();
      failed++;
      return fail(route);
    });
    return (): number => failed;
  }

  const abort = (route: Route): Promise<void> => route.abort('connectionreset');

  for (const [what, address] of [
    ['a script of the page', /\/app\/shell\.ts$/],
    ['the session', /\/api\/session$/],
    ['the list of cameras', /\/api\/cameras$/],
    ['what is recorded', /\/api\/archive\/timeline/],
    ['the playlist', /index\.m3u8/],
    ['the library that plays', /\/vendor\/hls\.js/],
  ] as const) {
    test(`the picture comes although the first requests for ${what} get no answer`, async (t) => {
      let failed = (): number => 0;
      const page = await open(t, async (one) => (failed = await failFirst(one, address, 2, abort)));
      await untilShown(page);
      // The list of cameras is asked for once more than the picture needs.
      assert.ok(failed() > 0);
    });
  }

  test('the picture comes although no script of the page gets an answer at first', async (t) => {
    let pages = 0;
    const page = await open(t, async (one) => {
      await one.route(
        ({ pathname }) => pathname === '/',
        (route) => (pages++, route.continue()),
      );
      // As when a computer changes its network: the browser gives up everything at once.
      await one.route(/\/page\/.*\.[jt]s$/, (route) =>
        pages < 2 ? route.abort('internetdisconnected') : route.continue(),
      );
    });
    await untilShown(page);
    assert.ok(pages > 1, `${pages} pages`);
  });

  test('the picture comes although the page, loaded again after a script got no answer, gets none itself', async (t) => {
    let pages = 0;
    const page = await open(t, async (one) => {
      // The request that the page makes in advance, and that of the module that needs it.
      await failFirst(one, /\/app\/shell\.ts$/, 2, abort);
      await one.route(
        ({ pathname }) => pathname === '/',
        // Neither an answer nor an error.
        (route) => (++pages === 2 ? Promise.resolve() : route.continue()),
      );
    });
    await untilShown(page);
    assert.ok(pages > 2, `${pages} pages`);
  });

  test('what never gets an answer is asked again', async (t) => {
    const page = await open(t, (one) => failFirst(one, /\/api\/archive\/timeline/, 3, () => Promise.resolve()));
    await until(
      'footage on the timeline',
      async () =>
        page.evaluate<boolean>(
          "!!document.querySelector('.timeline-canvas').model?.rows.some(({ shapes }) => shapes.some(({ kind }) => kind === 'footage'))",
        ),
      SLOW_MS,
    );
    await untilShown(page);
  });

  test('the picture comes although every answer takes seconds', async (t) => {
    const page = await open(t, (one) =>
      one.route(/\/(api|playback)\//, async (route) => {
        // Lasts: the answer is slow.
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        await route.continue();
      }),
    );
    await untilShown(page);
  });

  test('a decoder that breaks down is started again', async (t) => {
    const page = await open(t, () => Promise.resolve());
    await untilShown(page);
    const before = await page.locator('[data-camera=gate] video').getAttribute('src');
    // What the browser reports when its decoder is gone.
    await page.evaluate(`Object.defineProperty(document.querySelector('[data-camera=gate] video'), 'error', {
      configurable: true,
      get() { return this.currentSrc === ${JSON.stringify(before)} ? { code: 3, message: 'gone' } : null; },
    })`);
    await until(
      'another source',
      async () => {
        const src = await page.locator('[data-camera=gate] video').getAttribute('src');
        return src !== null && src !== before;
      },
      SLOW_MS,
    );
    await untilShown(page);
  });

  test('a video that a busy computer gave up is tried again, and stills take its place until then', async (t) => {
    const page = await open(t, () => Promise.resolve());
    await untilShown(page);
    await page.evaluate(`Object.defineProperty(document.querySelector('[data-camera=gate] video'), 'error', {
      configurable: true,
      get: () => ({ code: 3, message: 'too slow' }),
    })`);
    const note = page.getByText('Stills: this browser cannot play the video');
    await note.waitFor({ timeout: SLOW_MS });
    await page.evaluate("delete document.querySelector('[data-camera=gate] video').error");
    await untilShown(page);
    await note.waitFor({ state: 'detached' });
  });

  test('where retention removes footage while it is looked at, the reason is shown, and not that it loads', async (t) => {
    const page = await open(t, () => Promise.resolve(), SECONDS - 15);
    await untilShown(page, SECONDS - 15);
    const { recorder } = stage;
    const gate = { id: 'gate', name: 'Gate', source: 'rtsp://127.0.0.1:9/', enabled: false };
    recorder.rewriteConfig({ cameras: [{ ...gate, record: { retention: { maxAge: '1h' } } }] });
    recorder.child.signal('SIGHUP');
    const gone = new Date(START_MS + (SECONDS - 120) * 1000).toISOString().slice(11, 16).replace(':', '');
    await until(
      'the file is removed',
      async () => !(await recorder.files()).some((file) => file.includes(`_${gone}`)),
      SLOW_MS,
    );
    await page.evaluate(`window.location.hash = ${JSON.stringify(hashAt(SECONDS - 90))}`);
    await page.locator('.plate').waitFor({ timeout: SLOW_MS });
    assert.match(
      await page.locator('.plate').innerText(),
      /No footage from before .* is kept|Nothing is recorded here/,
    );
  });
});
