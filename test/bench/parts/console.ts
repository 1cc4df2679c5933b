// The console in a browser: how soon it shows live pictures, also over a slow link; a moment of the archive and seeks; how old a
// picture on screen is. Another part leaves a wall alone for half an hour and looks what that costs.

import { loadavg } from 'node:os';
import { join } from 'node:path';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { bundleProgram } from '../../../build/image/program-bundle.ts';
import { startCamera, type Camera } from '../../camera/camera.ts';
import { videoMedia } from '../../camera/media.ts';
import { videoTrack } from '../../camera/tracks.ts';
import { footageStage, type FootageStage } from '../../e2e/console/footage-stage.ts';
import { launchBrowser } from '../../support/browser.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { SlowLink } from '../../support/slow-link.ts';
import { until } from '../../support/until.ts';
import { emptyDirectory, type Bench } from '../bench.ts';
import { sleep } from '../processes.ts';
import { summarize } from '../report.ts';

const DAY_MS = 86_400_000;
const TILES = 16;
const IDLE_TILES = 30;
const IDLE_MINUTES = 30;
const FOOTAGE_SECONDS = 180;
const WINDOW_MS = 1_000;
const LIMIT_MS = 120_000;
const FRAME_MS = 40;
/** Test pictures begin again after so many. */
const NUMBERS = 250;
const LINKS = [
  { name: '100 Mbit/s', bitsPerSecond: 100e6, roundTripMs: 2, must: undefined },
  { name: '1 Mbit/s, 200 ms', bitsPerSecond: 1e6, roundTripMs: 200, must: 3_000 },
];

type Stay = Parameters<typeof footageStage>[0];

export const measureConsole = (bench: Bench): Promise<void> =>
  inBrowser(bench, async (browser, program, stay) => {
    await measureArchive(bench, browser, program, stay);
    await measureLive(bench, browser, program, stay);
  });

export const measureIdleConsole = (bench: Bench): Promise<void> =>
  inBrowser(bench, async (browser, program, stay) => {
    const { recorder } = await liveStage(bench, program, stay);
    await measureIdle(bench, browser, recorder);
  });

async function inBrowser(
  bench: Bench,
  measure: (browser: Browser, program: string, stay: Stay) => Promise<void>,
): Promise<void> {
  const ends: (() => unknown)[] = [];
  const stay = { after: (end?: unknown) => void ends.push(end as () => unknown) };
  try {
    // As it is shipped: the page of a checkout has a file a module.
    const built = emptyDirectory(bench, 'built');
    await bundleProgram('recorder', built);
    const program = join(built, 'recorder', 'main.js');
    const browser = await launchBrowser();
    ends.push(() => browser.close());
    await measure(browser, program, stay);
  } finally {
    for (const end of ends.toReversed()) await end();
  }
  bench.say(
    `load ${loadavg()
      .map((one) => one.toFixed(1))
      .join(' ')} at the end`,
  );
}

/** One number a picture; the same as in the tests, in the page. */
const SHOWN = `(selector) => {
  const video = document.querySelector(selector);
  if (!video || video.hidden || video.readyState < 2) return -1;
  const canvas = (window.measured ??= Object.assign(document.createElement('canvas'), { width: 160, height: 10 }));
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.drawImage(video, 0, 0, video.videoWidth, video.videoHeight / 9, 0, 0, 160, 10);
  const pixels = context.getImageData(0, 5, 160, 1).data;
  let code = 0;
  for (let square = 0; square < 16; square++) if (pixels[(square * 10 + 5) * 4] >= 128) code += 2 ** square;
  return code % 4096;
}`;

/** Waits in the page, at every repaint, so that the moment is exact. Resolves to milliseconds since 1970 then. */
const untilInPage = (page: Page, condition: string): Promise<number> =>
  page.evaluate<number>(`(async () => {
    const end = performance.now() + ${LIMIT_MS};
    while (!(${condition})) {
      if (performance.now() > end) throw new Error('not within the limit');
      await new Promise(requestAnimationFrame);
    }
    return Date.now();
  })()`);

async function measureArchive(bench: Bench, browser: Browser, program: string, stay: Stay): Promise<void> {
  const startMs = Math.floor((Date.now() - 30 * DAY_MS) / 60_000) * 60_000;
  const stage = await footageStage(stay, {
    cameras: [{ id: 'gate', name: 'Gate' }],
    startMs,
    seconds: FOOTAGE_SECONDS,
    program,
  });
  const rounds = bench.quick ? 20 : 100;
  const opened: number[] = [];
  const sought: number[] = [];
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  for (let i = 0; i < rounds; i++) {
    const page = await context.newPage();
    // Chromium draws the frame of each new window as a page of its own, which takes 280 ms of the processor.
    await sleep(WINDOW_MS);
    const at = momentOf(stage, (i * 37) % (FOOTAGE_SECONDS - 20));
    const fromMs = performance.now();
    await page.goto(`${stage.recorder.url}/${at.hash}`, { waitUntil: 'commit' });
    await untilInPage(
      page,
      `document.querySelector('.ptile video:not([hidden])')?.readyState >= 2 || document.querySelector('.ptile img')?.naturalWidth > 0`,
    );
    opened.push(performance.now() - fromMs);
    await page.close();
  }
  const page = await context.newPage();
  await page.goto(`${stage.recorder.url}/${momentOf(stage, 5).hash}`);
  await untilInPage(page, `document.querySelector('.ptile video:not([hidden])')?.readyState >= 2`);
  for (let i = 0; i < rounds; i++) {
    const at = momentOf(stage, 3 + ((i * 53) % (FOOTAGE_SECONDS - 20)));
    sought.push(
      await page.evaluate<number>(`(async () => {
        const shown = ${SHOWN};
        const from = performance.now();
        window.location.hash = ${JSON.stringify(at.hash)};
        for (;;) {
          await new Promise(requestAnimationFrame);
          const apart = (shown('.ptile video') - ${at.number} + ${NUMBERS}) % ${NUMBERS};
          if (Math.min(apart, ${NUMBERS} - apart) <= 1) return performance.now() - from;
          if (performance.now() - from > ${LIMIT_MS}) throw new Error('no picture');
        }
      })()`),
    );
  }
  await context.close();
  const [open, seek] = [summarize(opened), summarize(sought)];
  const about = (one: typeof open): string => `p50 ${one.p50.toFixed(0)} ms, ${one.count} times`;
  bench.figure({
    figure: 'address of a moment a month ago to its picture, p99',
    unit: 'ms',
    measured: open.p99,
    must: 500,
    note: about(open),
  });
  bench.figure({ figure: 'seek to its picture, p99', unit: 'ms', measured: seek.p99, must: 200, note: about(seek) });
}

function momentOf(stage: FootageStage, seconds: number): { readonly hash: string; readonly number: number } {
  const atMs = stage.startMs + seconds * 1000 + 120;
  return {
    hash: `#/playback?c=gate&t=${new Date(atMs).toISOString()}&z=10m`,
    number: stage.numberAt('gate', atMs) ?? -1,
  };
}

interface LiveStage {
  readonly recorder: RecorderProcess;
  readonly ids: readonly string[];
  /** By number of a picture: when the camera handed it out last. */
  readonly sent: ReadonlyMap<number, number>;
}

async function liveStage(bench: Bench, program: string, stay: Stay): Promise<LiveStage> {
  const sent = new Map<number, number>();
  const media = await videoMedia('h264');
  const camera: Camera = await startCamera({
    tracks: [videoTrack(media)],
    pace: 'realtime',
    onFrame: (frame) => {
      if (frame.number >= 0) sent.set(frame.number % NUMBERS, Date.now());
      return frame;
    },
  });
  stay.after(() => camera.close());
  const ids = Array.from({ length: IDLE_TILES }, (_, i) => `camera-${String(i + 1).padStart(2, '0')}`);
  const recorder = await RecorderProcess.start({
    program,
    directory: emptyDirectory(bench, 'console'),
    config: { cameras: ids.map((id) => ({ id, name: id, source: camera.url })) },
  });
  stay.after(() => recorder[Symbol.asyncDispose]());
  await recorder.untilRecording(...ids);
  return { recorder, ids, sent };
}

async function measureLive(bench: Bench, browser: Browser, program: string, stay: Stay): Promise<void> {
  const { recorder, ids, sent } = await liveStage(bench, program, stay);
  const port = Number(new URL(recorder.url).port);
  const layout = JSON.stringify([{ name: 'wall', cameras: ids.slice(0, TILES), perPage: null }]);
  for (const { name, must, ...options } of LINKS) {
    const first: number[] = [];
    const all: number[] = [];
    let bytes = 0;
    for (let i = 0; i < (bench.quick ? 3 : 10); i++) {
      const link = await SlowLink.to({ port, ...options });
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
      await context.addInitScript(`localStorage.setItem('kube-nvr.layouts', ${JSON.stringify(layout)})`);
      const page = await context.newPage();
      const pageBytes = bytesOf(await context.newCDPSession(page));
      const fromMs = performance.now();
      await page.goto(`http://127.0.0.1:${link.port}/#/live?layout=wall`, { waitUntil: 'commit', timeout: LIMIT_MS });
      await untilInPage(page, `document.querySelector('.tile.playing')`);
      first.push(performance.now() - fromMs);
      bytes = pageBytes();
      // A link that is too slow for all streams at once never has all of them.
      if (options.bitsPerSecond > 10e6) {
        await untilInPage(page, `document.querySelectorAll('.tile.playing').length === ${TILES}`);
        all.push(performance.now() - fromMs);
      }
      await context.close();
      await link.close();
    }
    const opened = summarize(first);
    bench.figure({
      figure: `opening the console to the first live picture, ${TILES} tiles, ${name}`,
      unit: 'ms',
      measured: opened.p50,
      ...(must === undefined ? {} : { must }),
      note: `median of ${opened.count}, worst ${opened.max.toFixed(0)} ms${all.length === 0 ? '' : `; all ${TILES} after ${summarize(all).p50.toFixed(0)} ms`}`,
    });
    if (all.length > 0) {
      bench.figure({
        figure: 'bytes of the page, compressed',
        unit: 'kB',
        measured: Math.round(bytes / 1000),
        note: 'without pictures',
      });
    }
  }
  await measureOneTile(bench, browser, recorder, ids[0] ?? '', sent);
}

/** Bytes of all answers except those of WebSockets. */
function bytesOf(session: CDPSession): () => number {
  let sum = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => (sum += encodedDataLength));
  void session.send('Network.enable');
  return () => sum;
}

/** From the moment at which the camera hands a picture out to the one at which it is on screen. */
async function measureOneTile(
  bench: Bench,
  browser: Browser,
  recorder: RecorderProcess,
  id: string,
  sent: ReadonlyMap<number, number>,
): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(`${recorder.url}/#/live?c=${id}`);
  await page.locator('.screen.playing').waitFor({ timeout: LIMIT_MS });
  await sleep(5_000);
  const seconds = bench.quick ? 10 : 60;
  const ages: number[] = [];
  // In parts shorter than the numbers take to come again.
  for (let part = 0; part < seconds / 5; part++) {
    const seen = await page.evaluate<[number, number][]>(`(async () => {
      const shown = ${SHOWN};
      const seen = new Map();
      const end = performance.now() + 5000;
      while (performance.now() < end) {
        await new Promise(requestAnimationFrame);
        const number = shown('.screen video');
        if (number >= 0 && !seen.has(number)) seen.set(number, Date.now());
      }
      return [...seen];
    })()`);
    // The first may have been on screen for some time.
    for (const [number, atMs] of seen.slice(1)) {
      const sentMs = sent.get(number);
      if (sentMs !== undefined && atMs >= sentMs) ages.push(atMs - sentMs);
    }
  }
  await page.close();
  const { p50, p99, count } = summarize(ages);
  bench.figure({
    figure: 'glass to glass: a picture of the camera to the screen, p99',
    unit: 'ms',
    measured: p99,
    note: `p50 ${p50.toFixed(0)} ms, ${count} pictures of ${(seconds * 1000) / FRAME_MS}`,
  });
}

/** Requests, sockets and memory of a wall that nobody touches. */
async function measureIdle(bench: Bench, browser: Browser, recorder: RecorderProcess): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 1920, height: 1080 } });
  const page = await context.newPage();
  const asked = new Map<string, number>();
  page.on('request', (request) => {
    const path = new URL(request.url()).pathname;
    asked.set(path, (asked.get(path) ?? 0) + 1);
  });
  await page.goto(`${recorder.url}/#/live`);
  await until('all play', async () => (await page.locator('.tile.playing').count()) === IDLE_TILES, LIMIT_MS);
  await sleep(10_000);
  const session = await context.newCDPSession(page);
  const heap = async (): Promise<number> => {
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    return usedSize / 1e6;
  };
  const before = await heap();
  const startMs = performance.now();
  asked.clear();
  const minutes = bench.quick ? 1 : IDLE_MINUTES;
  while (performance.now() - startMs < minutes * 60_000) await sleep(1_000);
  const seconds = (performance.now() - startMs) / 1000;
  const requests = [...asked.values()].reduce((sum, count) => sum + count, 0);
  const [most] = [...asked].sort(([, a], [, b]) => b - a);
  bench.figure({
    figure: `requests a second of an idle wall of ${IDLE_TILES} cameras`,
    unit: '/s',
    measured: requests / seconds,
    must: 1,
    note: `${requests} in ${seconds.toFixed(0)} s, most for ${most?.[0] ?? 'nothing'}: ${most?.[1] ?? 0}`,
  });
  const after = await heap();
  bench.figure({
    figure: `heap of the page after ${minutes} min`,
    unit: 'MB more',
    measured: after - before,
    must: 5,
    note: `${before.toFixed(1)} MB, then ${after.toFixed(1)} MB`,
  });
  await context.close();
}
