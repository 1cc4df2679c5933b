// How the console looks on a phone, a laptop and a large screen, in both themes: as in the pictures in `seen/`, nothing is wider than
// the window, and no control is covered or cut off. And what screen readers get of each view, as the files in `heard/` have it.
// `KUBE_NVR_UPDATE=1` writes these files and pictures.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import type { Browser, Locator, Page } from 'playwright-core';
import { startCamera } from '../../camera/camera.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { suiteScope } from '../../support/suite-scope.ts';
import { assertSeen, SIZES, useOneFont } from './console.ts';
import { footageStage, type FootageStage } from './footage-stage.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SLOW_MS = 120_000;
/** The time that the console shows: that of its pictures. */
const NOW_MS = Date.parse('2026-06-17T12:40:00Z');
const START_MS = NOW_MS - 30 * 60_000;
const at = new Date(START_MS + 70_000).toISOString();
/** Views, and what each has when it is complete. */
const VIEWS = [
  ['live', '#/live', '.tile.playing ~ .tile.playing'],
  ['large', '#/live?c=gate', '.screen.playing'],
  ['playback', `#/playback?c=gate,till&t=${at}&z=10m`, '.pb-grid:has(.plate):has([data-picture=video])'],
  ['exports', '#/exports', '.exports p'],
  ['health', '#/health', '.strip'],
  ['add', '#/add', '.add form'],
] as const;

/** Each dialogue: the view, what that has when it is complete, and how the dialogue is opened. */
const DIALOGS: readonly (readonly [string, string, string, (page: Page) => Promise<unknown>])[] = [
  ['keys', '#/live', '.tile.playing', (page) => page.keyboard.press('?')],
  [
    'layout',
    '#/live',
    '.tile.playing',
    async (page) => {
      await page.getByRole('button', { name: 'All cameras' }).click();
      await page.getByRole('button', { name: 'New layout …' }).click();
    },
  ],
  [
    'stop',
    '#/live?c=gate',
    '.screen.playing',
    async (page) => {
      await page.getByRole('button', { name: 'More' }).click();
      await page.getByRole('button', { name: 'Stop recording …' }).click();
    },
  ],
  ['protect', `#/playback?c=gate,till&t=${at}&z=10m`, '.gap-list li', (page) => page.keyboard.press('p')],
];

suite('looks of the console', { skip: browserMissing() }, () => {
  const scope = suiteScope();
  let stage: FootageStage;
  let browser: Browser;

  before(async () => {
    const camera = await startCamera({ pace: 'realtime' });
    scope.after(() => camera.close());
    const cameras = [
      { id: 'gate', name: 'Front gate', gaps: [{ from: 60, to: 90, cause: 'camera-unreachable' as const }] },
      { id: 'till', name: 'Till' },
    ];
    stage = await footageStage(scope, {
      cameras,
      startMs: START_MS,
      seconds: 120,
      config: {
        cameras: [
          ...cameras.map(({ id, name }) => ({
            id,
            name,
            group: 'Entrance',
            source: camera.url,
          })),
          { id: 'yard-1', name: 'A yard with a name that is longer than any tile', source: camera.url, enabled: false },
        ],
      },
    });
    browser = await launchBrowser();
    scope.after(() => browser.close());
  });

  /** Compares with the file, but for numbers, names of days and months, and the calendar, whose weeks are another number. */
  async function assertHeard(name: string, locator: Locator): Promise<void> {
    const path = join(import.meta.dirname, 'heard', `${name}.txt`);
    const read = async (): Promise<string> => withoutTimes(await locator.ariaSnapshot());
    if (process.env['KUBE_NVR_UPDATE'] === '1') {
      mkdirSync(join(path, '..'), { recursive: true });
      // What comes last is there by then.
      // Lasts: only while a person writes the files.
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      writeFileSync(path, await read());
    }
    const wanted = readFileSync(path, 'utf8');
    await until(name, async () => (await read()) === wanted).catch(async () =>
      assert.equal(await read(), wanted, `${name}: KUBE_NVR_UPDATE=1 writes the files`),
    );
  }

  const faultsIn = async (page: Page): Promise<string[]> => {
    await page.evaluate(AXE);
    return page.evaluate(
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))',
    );
  };

  for (const colorScheme of ['dark', 'light'] as const) {
    test(`every dialogue is announced, has no fault that axe finds, and is left with Escape, in ${colorScheme}`, async () => {
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme, bypassCSP: true });
      page.setDefaultTimeout(SLOW_MS);
      await page.goto(stage.recorder.url);
      const dialog = page.getByRole('dialog');
      for (const [name, hash, complete, open] of DIALOGS) {
        await page.evaluate(`window.location.hash = ${JSON.stringify(hash)}`);
        await page.locator(complete).first().waitFor();
        await open(page);
        await dialog.waitFor();
        await assertHeard(`dialog-${name}`, dialog);
        assert.deepEqual(await faultsIn(page), [], name);
        await page.keyboard.press('Escape');
        await dialog.waitFor({ state: 'detached' });
      }
      await page.close();
    });
  }

  test('screen readers get the headings, controls and states of each view', async () => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    page.setDefaultTimeout(SLOW_MS);
    await page.goto(stage.recorder.url);
    for (const [view, hash, complete] of VIEWS) {
      await page.evaluate(`window.location.hash = ${JSON.stringify(hash)}`);
      await page.locator(complete).first().waitFor();
      await page.locator('.pill', { hasText: '2 of 3 recorded' }).waitFor();
      await assertHeard(view, page.locator('body'));
    }
    await page.close();
  });

  for (const [size, width, height] of SIZES) {
    for (const colorScheme of ['dark', 'light'] as const) {
      test(`on a ${size}, in ${colorScheme}: every view looks as expected, everything fits, every control can be reached, axe finds no fault`, async () => {
        const isPhone = size === 'phone';
        const context = await browser.newContext({
          viewport: { width, height },
          colorScheme,
          bypassCSP: true,
          hasTouch: isPhone,
          isMobile: isPhone,
        });
        const page = await context.newPage();
        page.setDefaultTimeout(SLOW_MS);
        await alwaysTheSame(page);
        await useOneFont(page);
        await page.goto(stage.recorder.url);
        for (const [view, hash, complete] of VIEWS) {
          await page.evaluate(`window.location.hash = ${JSON.stringify(hash)}`);
          await page.locator(complete).first().waitFor();
          const faults = await page.evaluate<string[]>(`(${faultsOf.toString()})()`);
          assert.deepEqual(faults, [], view);
          await assertSeen(page, `${view}-${size}-${colorScheme}`);
          // A larger screen shows nothing else.
          if (size === 'wall') continue;
          assert.deepEqual(await faultsIn(page), [], view);
        }
        await page.unrouteAll({ behavior: 'ignoreErrors' });
        await context.close();
      });
    }
  }
});

/** What depends on this machine, and what changes while the page is looked at. */
const MEASURED: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  '/api/session': { server_time_ms: NOW_MS },
  '/api/metrics': {
    cpu_load: 12,
    mem_used_gb: 3,
    mem_total_gb: 16,
    storage_free_gb: 3200,
    storage_total_gb: 4000,
    storage_days: 41,
  },
  '/api/health/ready': { version: '1.0.0' },
};
const MEASURED_CAMERA = {
  state_since: new Date(NOW_MS - 5 * 3_600_000).toISOString(),
  bitrate: 4_200_000,
  frame_rate: 25,
  usual_frame_rate: 25,
  max_age_seconds: 30 * 86_400,
};
interface CameraAnswer {
  readonly id: string;
  readonly state: string;
}

/** On a machine that is too busy, a camera is lost now and then. */
const RECORDED = { state: 'recording', reason: null, silent: false, recording: { state: 'writing', reason: null } };
const measuredCamera = (camera: CameraAnswer): CameraAnswer => ({
  ...camera,
  ...MEASURED_CAMERA,
  ...(camera.state === 'stopped' ? {} : RECORDED),
});

/** The console at a fixed time, with fixed numbers where it shows measurements. */
async function alwaysTheSame(page: Page): Promise<void> {
  await page.addInitScript(`
    Date = class extends Date {
      constructor(...args) { super(...(args.length === 0 ? [${NOW_MS}] : args)); }
      static now() { return ${NOW_MS}; }
    };`);
  await page.route(
    ({ pathname }) => pathname === '/api/alarms',
    (route) => route.fulfill({ json: { alarms: [], log: [] } }),
  );
  await page.route(
    ({ pathname }) => pathname in MEASURED || pathname === '/api/cameras',
    async (route) => {
      const response = await route.fetch();
      const answer = (await response.json()) as { readonly cameras?: readonly CameraAnswer[] };
      const fixed = answer.cameras
        ? { ...answer, warnings: [], cameras: answer.cameras.map(measuredCamera) }
        : { ...answer, ...MEASURED[new URL(route.request().url()).pathname] };
      await route.fulfill({ response, json: fixed });
    },
  );
}

/** What differs from run to run is replaced or left out: numbers, names of times, the weeks of the calendar, the cells of tables. */
function withoutTimes(snapshot: string): string {
  const lines: string[] = [];
  let leftOut = Infinity;
  for (const line of snapshot.split('\n')) {
    const indent = line.search(/\S/);
    if (indent <= leftOut) leftOut = /- (?:region "Calendar"|'?cell\b)/.test(line) ? indent : Infinity;
    if (indent > leftOut) continue;
    lines.push(
      line
        .replace(/- ('?)(row|cell)\b.*/, '- $2')
        .replaceAll(/\bCES?T\b/g, 'Zone')
        .replaceAll(/\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b/g, 'Day')
        .replaceAll(/\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b/g, 'Month')
        .replaceAll(/\d+/g, '0'),
    );
  }
  return `${lines.join('\n')}\n`;
}

/** Runs in the page. */
function faultsOf(): string[] {
  const faults: string[] = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`${root.scrollWidth} pixels in ${root.clientWidth}`);
  for (const control of document.querySelectorAll('button, a[href], input, select')) {
    const box = control.getBoundingClientRect();
    if (box.width === 0 || box.height === 0 || getComputedStyle(control).visibility === 'hidden') continue;
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    let isScrolledAway = x < 0 || y < 0 || x >= root.clientWidth || y >= root.clientHeight;
    for (let around = control.parentElement; around && !isScrolledAway; around = around.parentElement) {
      if (!/auto|scroll/.test(getComputedStyle(around).overflow)) continue;
      const frame = around.getBoundingClientRect();
      isScrolledAway = x < frame.left || x > frame.right || y < frame.top || y > frame.bottom;
    }
    if (isScrolledAway) continue;
    const hit = document.elementFromPoint(x, y);
    if (!hit || control.contains(hit) || hit.contains(control) || hit.closest('label')?.contains(control)) continue;
    faults.push(`${control.outerHTML.slice(0, 120)} is below ${hit.outerHTML.slice(0, 120)}`);
  }
  return faults;
}

/** What is used of the page; this program does not have the DOM's types. */
interface PageElement {
  readonly parentElement: PageElement | null;
  readonly outerHTML: string;
  readonly scrollWidth: number;
  readonly clientWidth: number;
  readonly clientHeight: number;
  getBoundingClientRect(): { left: number; right: number; top: number; bottom: number; width: number; height: number };
  contains(other: PageElement): boolean;
  closest(selector: string): PageElement | null;
}
declare const document: {
  readonly documentElement: PageElement;
  querySelectorAll(selector: string): Iterable<PageElement>;
  elementFromPoint(x: number, y: number): PageElement | null;
};
declare function getComputedStyle(element: PageElement): { readonly visibility: string; readonly overflow: string };
