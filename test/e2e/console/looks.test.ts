// How the console looks on a phone, a laptop and a large screen, in both themes: nothing is wider than the window, and no control
// is covered or cut off. `KUBE_NVR_SCREENSHOTS=DIRECTORY` keeps the pictures.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { startCamera } from '../../camera/camera.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { footageStage, type FootageStage } from './footage-stage.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SLOW_MS = 120_000;
const START_MS = Math.floor(Date.now() / 60_000 - 30) * 60_000;
const SIZES = [
  ['phone', 390, 844],
  ['laptop', 1440, 900],
  ['wall', 3840, 2160],
] as const;
const at = new Date(START_MS + 70_000).toISOString();
/** Views, and what each has when it is complete. */
const VIEWS = [
  ['live', '#/live', '.tile.playing'],
  ['large', '#/live?c=gate', '.screen.playing'],
  ['playback', `#/playback?c=gate,till&t=${at}&z=10m`, '.plate'],
  ['exports', '#/exports', '.exports p'],
  ['health', '#/health', '.strip'],
  ['add', '#/add', '.add form'],
] as const;

suite('looks of the console', { skip: browserMissing() }, () => {
  const ends: (() => unknown)[] = [];
  let stage: FootageStage;
  let browser: Browser;

  before(async () => {
    const stay = { after: (end?: unknown) => void ends.push(end as () => unknown) };
    const camera = await startCamera({ pace: 'realtime' });
    ends.push(() => camera.close());
    const cameras = [
      { id: 'gate', name: 'Front gate', gaps: [{ from: 60, to: 90, cause: 'camera-unreachable' as const }] },
      { id: 'till', name: 'Till' },
    ];
    stage = await footageStage(stay, {
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
            record: { retention: { maxAge: '30d' } },
          })),
          { id: 'yard-1', name: 'A yard with a name that is longer than any tile', source: camera.url, enabled: false },
        ],
      },
    });
    browser = await launchBrowser();
    ends.push(() => browser.close());
  });
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });

  for (const [size, width, height] of SIZES) {
    for (const colorScheme of ['dark', 'light'] as const) {
      test(`on a ${size}, in ${colorScheme}: everything fits, every control can be reached, axe finds no fault`, async () => {
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
        await page.goto(stage.recorder.url);
        for (const [view, hash, complete] of VIEWS) {
          await page.evaluate(`window.location.hash = ${JSON.stringify(hash)}`);
          await page.locator(complete).first().waitFor();
          const faults = await page.evaluate<string[]>(`(${faultsOf.toString()})()`);
          assert.deepEqual(faults, [], view);
          const directory = process.env['KUBE_NVR_SCREENSHOTS'];
          if (directory) await page.screenshot({ path: join(directory, `${view}-${size}-${colorScheme}.png`) });
          // A larger screen shows nothing else.
          if (size === 'wall') continue;
          await page.evaluate(AXE);
          const found = await page.evaluate<string[]>(
            'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))',
          );
          assert.deepEqual(found, [], view);
        }
        await context.close();
      });
    }
  }
});

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
