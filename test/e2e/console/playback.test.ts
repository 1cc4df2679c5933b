// Playback in the console: what is on screen was captured then, cameras are in step, gaps say why.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { browserMissing, launchBrowser, videoState } from '../../support/browser.ts';
import { seeded } from '../../support/random.ts';
import { PATIENCE_MS, until } from '../../support/until.ts';
import { LONG } from '../../support/variant.ts';
import { suiteScope } from '../../support/suite-scope.ts';
import { distance, footageStage, type FootageStage } from './footage-stage.ts';

const MINUTE_MS = 60_000;
/** A machine that runs other tests decodes slowly. */
const SLOW_MS = 120_000;
const START_MS = Math.floor(Date.now() / MINUTE_MS - 180) * MINUTE_MS;
const SECONDS = 420;
const BOTH = { from: 300, to: 330, cause: 'process-down' } as const;
const CAMERAS = [
  { id: 'cam1', name: 'Front door', gaps: [{ from: 100, to: 140, cause: 'camera-unreachable' }, BOTH] },
  { id: 'cam2', name: 'Till', gaps: [BOTH] },
  { id: 'cam3', name: 'Stock room', gaps: [BOTH] },
  { id: 'cam4', name: 'Back yard', gaps: [BOTH] },
] as const;
const IDS = CAMERAS.map(({ id }) => id);
const MOMENTS = LONG ? 200 : 12;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const addressAt = (seconds: number, ids: readonly string[] = IDS): string =>
  `#/playback?c=${ids.join(',')}&t=${new Date(START_MS + Math.round(seconds * 1000)).toISOString()}&z=10m`;

/** The shapes of the timeline that the canvas says it shows. */
interface Model {
  readonly rows: readonly {
    readonly cameraId?: string;
    readonly shapes: readonly { kind: string; startMs: number; endMs: number; detail?: string; x: number }[];
  }[];
}

describe('playback in the console', { skip: browserMissing() }, () => {
  const scope = suiteScope();
  let stage: FootageStage;
  let browser: Browser;

  before(async () => {
    stage = await footageStage(scope, { cameras: CAMERAS, startMs: START_MS, seconds: SECONDS });
    browser = await launchBrowser();
    scope.after(() => browser.close());
  });

  async function open(
    seconds: number,
    ids: readonly string[] = IDS,
    prepare?: (page: Page) => Promise<unknown>,
    screen: BrowserContextOptions = { viewport: { width: 1440, height: 900 } },
  ): Promise<Page> {
    const page = await browser.newPage(screen);
    page.setDefaultTimeout(SLOW_MS);
    page.on('pageerror', (error) => assert.fail(error.stack ?? error.message));
    const pending = new Set<string>();
    const failed: string[] = [];
    page.on('request', (request) => pending.add(request.url()));
    page.on('requestfinished', (request) => pending.delete(request.url()));
    page.on('requestfailed', (request) => {
      pending.delete(request.url());
      failed.push(`${request.url()}: ${request.failure()?.errorText}`);
    });
    await prepare?.(page);
    await page.goto(`${stage.recorder.url}/${addressAt(seconds, ids)}`);
    await until('the view', async () => (await page.locator('.ptile').count()) > 0, SLOW_MS).catch(async (error) => {
      const text = (await page.locator('body').innerText()).slice(0, 500);
      assert.fail(
        `${String(error)}: ${page.url()} shows ${text}; pending ${[...pending].join(' ')}; failed ${failed.join(' ')}`,
      );
    });
    return page;
  }

  const go = (page: Page, seconds: number): Promise<unknown> =>
    page.evaluate(`window.location.hash = ${JSON.stringify(addressAt(seconds))}`);

  let shared: Page | undefined;
  /** All cameras at a moment, paused, on a page that tests share: to load it takes longer than most of what they do. */
  async function show(seconds: number): Promise<Page> {
    if (!shared) return (shared = await open(seconds));
    await shared.locator('.ptile').first().click();
    await shared.keyboard.press('k');
    await shared.getByLabel('Speed').selectOption('1');
    // The address may already be the wanted one although the test before has played on from there.
    for (const one of [1, seconds]) {
      await go(shared, one);
      const wanted = START_MS + Math.round(one * 1000);
      await until('the moment', async () => (await clockOf(shared as Page)) === wanted, SLOW_MS);
    }
    return shared;
  }

  const clockOf = async (page: Page): Promise<number> =>
    Date.parse((await page.locator('.clock time').getAttribute('datetime')) ?? '');

  /** Waits until the clock stands, which it may do later than the player. */
  async function standing(page: Page): Promise<number> {
    let before = NaN;
    return until('the clock stands', async () => {
      const shown = await clockOf(page);
      if (shown === before) return shown;
      before = shown;
      // Lasts: the clock must show nothing else.
      await sleep(1_000);
      return false;
    });
  }

  const pictureOf = (page: Page, id: string): Promise<string> =>
    page.evaluate(`document.querySelector('[data-camera=${id}]').dataset.picture`);

  /** Waits until each camera shows what it captured at a moment, or says that it has nothing. */
  async function assertShown(page: Page, seconds: number, ids: readonly string[] = IDS): Promise<void> {
    for (const id of ids) {
      const wanted = stage.numberAt(id, START_MS + Math.round(seconds * 1000));
      let seen = '';
      await until(
        `${id} at ${seconds} s: ${wanted}`,
        async () => {
          const [kind, { frameNumber }] = [
            await pictureOf(page, id),
            await videoState(page, `[data-camera=${id}] video`),
          ];
          seen = `${kind} ${frameNumber}`;
          return wanted === undefined ? kind === 'plate' : kind === 'video' && distance(frameNumber, wanted) <= 1;
        },
        SLOW_MS,
      ).catch(async (error: unknown) => {
        const about = `${page.url()} ${(await page.locator('body').innerText()).slice(0, 500)}`;
        assert.fail(`${String(error)}: ${seen}; ${about}`);
      });
    }
  }

  /** Numbers on screen of all cameras at one moment; -1 without a picture. */
  const numbersOf = (page: Page): Promise<number[]> => page.evaluate(`(${readNumbers.toString()})()`);

  test('a hidden page pauses and receives no media; visible again, it continues', async () => {
    const page = await open(10, ['cam2']);
    await until('a picture', async () => (await pictureOf(page, 'cam2')) === 'video', SLOW_MS);
    // Sixteen times as fast: without a pause, parts would be requested all the time.
    for (let presses = 0; presses < 5; presses++) await page.keyboard.press('l');
    const from = await clockOf(page);
    await until('it plays', async () => (await clockOf(page)) > from + 5_000, SLOW_MS);
    const setHidden = (hidden: boolean): Promise<unknown> =>
      page.evaluate(`
        Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      `);
    await setHidden(true);
    // What was requested before has been told by then.
    const stood = await standing(page);
    const media: string[] = [];
    page.on('request', (request) => /\/playback\/|\/still/.test(request.url()) && media.push(request.url()));
    // Lasts: the page is hidden.
    await sleep(5_000);
    assert.deepEqual(media, []);
    assert.equal(await clockOf(page), stood);
    await setHidden(false);
    await until('it plays on', async () => (await clockOf(page)) > stood + 5_000, SLOW_MS);
    await page.close();
  });

  test('what is on screen after each random seek was captured then, for four cameras', async () => {
    const chance = seeded();
    const page = await show(10);
    for (let i = 0; i < MOMENTS; i++) {
      const seconds = Math.floor(chance() * SECONDS * 1000) / 1000;
      await go(page, seconds);
      await assertShown(page, seconds);
    }
  });

  test('a seek while the videos are loaded is not lost', async () => {
    for (const seconds of [50, 250]) {
      const held = Promise.withResolvers<undefined>();
      const page = await open(200, IDS, (opened) =>
        opened.route(/index\.m3u8/, async (route) => {
          await held.promise;
          await route.continue();
        }),
      );
      await go(page, seconds);
      const wanted = START_MS + seconds * 1000;
      await until('the clock', async () => (await clockOf(page)) === wanted, SLOW_MS);
      held.resolve(undefined);
      await assertShown(page, seconds);
      await page.close();
    }
  });

  test('an address that comes when the own one is about to be written is followed', async () => {
    const page = await show(200);
    await assertShown(page, 200);
    await page.keyboard.press('ArrowRight');
    // The page is busy until its address is overdue, and the new one comes in the same task.
    await page.evaluate(`
      const endMs = performance.now() + 1000;
      while (performance.now() < endMs);
      window.location.hash = ${JSON.stringify(addressAt(60))};
    `);
    await until('the clock', async () => (await clockOf(page)) === START_MS + 60_000, SLOW_MS);
    await assertShown(page, 60);
  });

  for (const speed of [1, 8]) {
    test(`four cameras play in step at ${speed}×`, async () => {
      const page = await show(150);
      await assertShown(page, 150);
      await page.getByLabel('Speed').selectOption(String(speed));
      await page.keyboard.press('Escape');
      await page.locator('.ptile').first().click();
      await page.keyboard.press('Space');
      // A hundred milliseconds are two and a half pictures at the speed of life.
      const isInStep = (numbers: readonly number[]): boolean =>
        numbers.every((number) => number >= 0 && distance(number, numbers[0] as number) <= 3 * speed);
      let inStep = 0;
      let before = NaN;
      let looks: number[][] = [];
      const untilMs = performance.now() + PATIENCE_MS;
      while (inStep < 8 && performance.now() < untilMs) {
        // A slow computer needs more looks than there is footage for.
        const nowMs = await clockOf(page);
        if (nowMs > START_MS + (BOTH.from - 20) * 1000) await go(page, 150);
        // Lasts: the time between two looks.
        await sleep(200);
        const numbers = await numbersOf(page);
        looks = [...looks.slice(-20), numbers];
        inStep = isInStep(numbers) && nowMs !== before ? inStep + 1 : 0;
        before = nowMs;
      }
      assert.ok(inStep >= 8, `eight looks in a row are in step: ${JSON.stringify(looks)}`);
    });
  }

  test('a camera in a gap says why, the others continue, and it resumes by itself', async () => {
    const page = await show(135);
    await assertShown(page, 135);
    const plate = page.locator('[data-camera=cam1] .plate');
    await until('the reason', async () =>
      /No recording .*: camera does not answer\.\s+Next footage/.test(await plate.innerText()),
    );
    await page.keyboard.press('Space');
    await until('cam1 plays', async () => (await pictureOf(page, 'cam1')) === 'video');
  });

  test('where all cameras are in a gap the clock stands, and skipping goes to the next footage', async () => {
    const page = await show(296);
    await assertShown(page, 296);
    await page.keyboard.press('Space');
    await page.getByRole('button', { name: 'Skip the gap' }).click();
    await until('the cameras play after the gap', async () => {
      const numbers = await numbersOf(page);
      return numbers.every((number) => number >= 0) && (await pictureOf(page, 'cam2')) === 'video';
    });
    await page.keyboard.press('k');
    const shown = await page.locator('.clock time').getAttribute('datetime');
    assert.ok(Date.parse(shown ?? '') >= START_MS + 330_000, `${shown}`);
  });

  test('the timeline shows footage and gaps where they are, as text too, and keys go to them', async () => {
    const page = await show(60);
    const shapes = async (): Promise<Model['rows'][number]['shapes']> => {
      const model: Model | undefined = await page.evaluate("document.querySelector('.timeline-canvas').model");
      return model?.rows.find(({ cameraId }) => cameraId === 'cam1')?.shapes ?? [];
    };
    const gaps = await until('the gaps', async () => {
      const found = (await shapes()).filter(({ kind }) => kind === 'gap');
      return found.length >= 2 && found;
    });
    assert.deepEqual(
      gaps.map(({ startMs, endMs, detail }) => [(startMs - START_MS) / 1000, (endMs - START_MS) / 1000, detail]),
      [
        [100, 140, 'camera-unreachable'],
        [300, 330, 'process-down'],
      ],
    );
    assert.ok((await shapes()).some(({ kind }) => kind === 'footage'));
    assert.match(await page.locator('.gap-list h2').innerText(), /^5 gaps in view, 2 min 40 s$/);
    const slider = page.getByRole('slider', { name: 'Timeline' });
    await until('what the slider says', async () =>
      ((await slider.getAttribute('aria-valuetext')) ?? '').endsWith('recorded'),
    );
    await page.keyboard.press('n');
    await until('the gap', async () =>
      ((await slider.getAttribute('aria-valuetext')) ?? '').endsWith('3 of 4 cameras recorded'),
    );
    await assertShown(page, 100);
  });

  test('a click on the timeline goes there, and the wheel zooms around the pointer', async () => {
    const page = await show(200);
    const canvas = page.locator('.timeline-canvas');
    const box = (await canvas.boundingBox()) ?? assert.fail('no timeline');
    const read = <T>(what: string): Promise<T> =>
      page.evaluate(`(() => { const model = document.querySelector('.timeline-canvas').model; return ${what}; })()`);
    const timeAt = (x: number): Promise<number> =>
      read(
        `model.range.fromMs + (${x} - model.left) / (model.width - model.left) * (model.range.toMs - model.range.fromMs)`,
      );
    const x = 800;
    const wanted = await timeAt(x);
    await page.mouse.click(box.x + x, box.y + 30);
    await until('the moment', async () => {
      const shown = await page.locator('.clock time').getAttribute('datetime');
      return Math.abs(Date.parse(shown ?? '') - wanted) < 2_000;
    });
    const before = await timeAt(x);
    await page.mouse.wheel(0, -600);
    await until('it is zoomed', async () => (await read<number>('model.range.toMs - model.range.fromMs')) < 500_000);
    assert.ok(Math.abs((await timeAt(x)) - before) < 1_500);
  });

  test('dragging the playhead scrubs: the picture of the place where it is left is shown', async () => {
    const page = await show(200);
    await assertShown(page, 200);
    const box = (await page.locator('.timeline-canvas').boundingBox()) ?? assert.fail('no timeline');
    const x: number = await page.evaluate("document.querySelector('.timeline-canvas').model.playheadX");
    await page.mouse.move(box.x + x, box.y + 30);
    await page.mouse.down();
    for (let step = 1; step <= 8; step++) await page.mouse.move(box.x + x + step * 15, box.y + 30);
    await page.mouse.up();
    const seconds = ((await standing(page)) - START_MS) / 1000;
    assert.ok(seconds > 230 && seconds < 290, `${seconds} s`);
    await assertShown(page, seconds);
  });

  test('on a phone, a finger on the playhead scrubs, elsewhere it moves the timeline or goes there, and two fingers zoom', async () => {
    const ids = ['cam2'];
    const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
    const page = await open(200, ids, undefined, phone);
    await assertShown(page, 200, ids);
    const box = (await page.locator('.timeline-canvas').boundingBox()) ?? assert.fail('no timeline');
    const session = await page.context().newCDPSession(page);
    /** Puts fingers at the first places, moves them over the others, and lifts them. */
    const touch = async (...places: readonly (readonly number[])[]): Promise<void> => {
      for (const [i, xs] of places.entries()) {
        const touchPoints = xs.map((x, id) => ({ x: box.x + x, y: box.y + 32, id }));
        await session.send('Input.dispatchTouchEvent', { type: i === 0 ? 'touchStart' : 'touchMove', touchPoints });
      }
      await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
    };
    const model = <T>(what: string): Promise<T> =>
      page.evaluate(`document.querySelector('.timeline-canvas').model.${what}`);
    const rangeOf = async (): Promise<{ fromMs: number; toMs: number }> => model('range');
    const secondsAt = async (x: number): Promise<number> => {
      const [{ fromMs, toMs }, width] = [await rangeOf(), await model<number>('width')];
      return (fromMs + (x / width) * (toMs - fromMs) - START_MS) / 1000;
    };
    const steps = (from: number, to: number): number[][] =>
      Array.from({ length: 7 }, (_, i) => [from + ((to - from) * i) / 6]);
    const clock = async (): Promise<number> => ((await clockOf(page)) - START_MS) / 1000;

    const playhead = await model<number>('playheadX');
    const left = await secondsAt(playhead + 50);
    await touch(...steps(playhead + 8, playhead + 50));
    await until('the place where it is left', async () => Math.abs((await clock()) - left) < 3);
    await assertShown(page, await clock(), ids);

    const { fromMs: before } = await rangeOf();
    const stood = await clock();
    await touch(...steps(60, 120));
    await until('it has moved', async () => (await rangeOf()).fromMs < before - 60_000);
    assert.equal(await clock(), stood);

    const wanted = await secondsAt(90);
    await touch([90]);
    await until('the place of the tap', async () => Math.abs((await clock()) - wanted) < 3);

    const { fromMs, toMs } = await rangeOf();
    await touch([40, 340], [90, 290], [120, 260]);
    await until('more time is in view', async () => {
      const range = await rangeOf();
      return range.toMs - range.fromMs > 1.5 * (toMs - fromMs);
    });
    await page.close();
  });

  test('above sixteen times, pictures follow the clock', async () => {
    const page = await show(145);
    await assertShown(page, 145);
    await page.getByLabel('Speed').selectOption('32');
    await page.getByRole('button', { name: 'Play', exact: true }).click();
    await until('the clock has come far', async () => {
      const shown = await page.locator('.clock time').getAttribute('datetime');
      return Date.parse(shown ?? '') > START_MS + 220_000;
    });
    await page.keyboard.press('k');
    await assertShown(page, ((await standing(page)) - START_MS) / 1000);
  });

  test('a time that people type is found, and the address leads there again', async () => {
    const page = await open(200, ['cam2']);
    const moment = new Date(START_MS + 245_000).toISOString();
    const field = page.locator('[name=go-to]');
    // A key that is pressed before the page knows its keys does nothing.
    await until('the field has the keys', async () => {
      if (await page.evaluate<boolean>("document.activeElement?.name === 'go-to'")) return true;
      await page.keyboard.press('g');
      return false;
    });
    await field.fill('');
    await page.keyboard.type(moment);
    assert.equal(await field.inputValue(), moment);
    await page.keyboard.press('Enter');
    await until('the address', () => page.url().includes('c=cam2') && !page.url().includes('undefined'));
    await until('the moment', async () => (await clockOf(page)) === START_MS + 245_000, SLOW_MS);
    const wanted = await page.locator('.clock').innerText();
    await until('the address has the moment', async () => {
      const t = new URLSearchParams(page.url().split('?')[1]).get('t') ?? '';
      return Date.parse(t.replace(' ', '+')) === START_MS + 245_000;
    });
    await page.reload();
    await until('the same moment', async () => (await page.locator('.clock').innerText()) === wanted, SLOW_MS);
    await page.close();
  });

  for (const [theme, size] of [
    ['dark', { width: 1440, height: 900 }],
    ['light', { width: 390, height: 844 }],
  ] as const) {
    test(`axe finds nothing to complain of in ${theme} at ${size.width} pixels`, async () => {
      const page = await browser.newPage({ viewport: size, colorScheme: theme, bypassCSP: true });
      await page.goto(`${stage.recorder.url}/${addressAt(120)}`);
      await until('a gap', async () => (await page.locator('.plate').count()) > 0, SLOW_MS);
      await until('the gaps', async () => (await page.locator('.gap-list li').count()) > 2);
      await page.evaluate(AXE);
      const found = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
        'axe.run(document)',
      );
      assert.deepEqual(
        found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' ')}`),
        [],
      );
      await page.close();
    });
  }
});

/** Runs in the page: all videos in one turn, so that they are of the same moment. */
function readNumbers(): number[] {
  const videos: PageVideo[] = Array.from(document.querySelectorAll('.ptile video'));
  return videos.map((video) => {
    if (video.readyState < 2) return -1;
    const canvas = document.createElement('canvas');
    canvas.width = 160;
    canvas.height = 10;
    const context = canvas.getContext('2d');
    context.drawImage(video, 0, 0, video.videoWidth, video.videoHeight / 9, 0, 0, 160, 10);
    const pixels = context.getImageData(0, 5, 160, 1).data;
    let code = 0;
    for (let square = 0; square < 16; square++) if ((pixels[(square * 10 + 5) * 4] ?? 0) >= 128) code += 2 ** square;
    return code % 4096;
  });
}

/** What is used of the page; this program does not have the DOM's types. */
interface PageVideo {
  readonly readyState: number;
  readonly videoWidth: number;
  readonly videoHeight: number;
}
declare const document: {
  querySelectorAll(selector: string): Iterable<PageVideo>;
  createElement(name: 'canvas'): {
    width: number;
    height: number;
    getContext(kind: '2d'): {
      drawImage(video: PageVideo, ...box: number[]): void;
      getImageData(x: number, y: number, width: number, height: number): { readonly data: Uint8ClampedArray };
    };
  };
};
