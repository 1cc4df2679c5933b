// What the console says when something is wrong, with the keyboard alone, and to people who do not see it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { startCamera, type Camera } from '../../camera/camera.ts';
import { videoMedia } from '../../camera/media.ts';
import { videoTrack } from '../../camera/tracks.ts';
import { browserMissing, launchBrowser, videoState } from '../../support/browser.ts';
import { freePorts, RecorderProcess } from '../../support/recorder-process.ts';
import { SlowLink } from '../../support/slow-link.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/until.ts';
import { LONG } from '../../support/variant.ts';
import { badgeOf, untilNoBadge } from './console.ts';
import { distance } from './footage-stage.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const AXE = readFileSync(new URL('../../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
/** A machine that runs other tests is slow. */
const SLOW_MS = 120_000;
const PLAYING = ['yard-1', 'yard-2', 'till'];
/** Footage of this age can be played. */
const PLAYABLE_MS = 16_000;
/** Of the soak test, which is an hour's worth of a wall in a third of it. */
const SOAK_MINUTES = 20;

suite('states of the console', { skip: browserMissing() }, () => {
  let directory: string;
  let camera: Camera;
  let recorder: RecorderProcess;
  let browser: Browser;
  /** Which picture the camera sent, and when it was due: a busy machine sends late. */
  const sent: { readonly atMs: number; readonly number: number }[] = [];
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kube-nvr-console-'));
    let startMs: number | undefined;
    camera = await startCamera({
      tracks: [videoTrack(await videoMedia('h264'))],
      pace: 'realtime',
      onFrame: (frame) => {
        startMs ??= Date.now() - frame.sendAtMs;
        sent.push({ atMs: startMs + frame.sendAtMs, number: frame.number });
        return frame;
      },
    });
    const [nobody = 1] = await freePorts(1);
    recorder = await RecorderProcess.start({
      directory,
      config: {
        console: { site: 'Corner shop' },
        redis: { url: `redis://127.0.0.1:${nobody}` },
        cameras: [
          ...PLAYING.map((id) => ({ id, name: `The ${id}`, source: camera.url })),
          { id: 'gone', name: 'The car park', source: `rtsp://127.0.0.1:${nobody}/stream` },
          { id: 'off', name: 'The office', group: 'Inside', source: camera.url, enabled: false },
        ],
      },
    });
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    await recorder?.stop();
    await camera?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function open(path = '', port = Number(new URL(recorder.url).port)): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(`http://127.0.0.1:${port}/${path}`, { timeout: SLOW_MS });
    return page;
  }
  const untilAway = async (page: Page): Promise<void> => {
    await until('the banner', async () => (await page.locator('.banner').count()) > 0);
    assert.equal(await page.locator('.pill').innerText(), 'State unknown');
    for (const id of [...PLAYING, 'gone', 'off']) assert.equal(await badgeOf(page, id), 'State unknown');
    assert.equal(await page.locator('.dot-fine').count(), 0);
  };
  const untilBack = async (page: Page): Promise<void> => {
    await until('it is back', async () => (await page.locator('.banner').count()) === 0, SLOW_MS);
    await untilNoBadge(page, 'till');
  };
  const untilPlaying = (page: Page): Promise<unknown> =>
    until('all play', async () => (await page.locator('.tile.playing').count()) === PLAYING.length, SLOW_MS);
  const lostFor = (page: Page): Promise<string | undefined> =>
    until(
      'the lost camera is told',
      async () => {
        const text = await badgeOf(page, 'gone');
        return text?.startsWith('Not recorded since') && text;
      },
      SLOW_MS,
    );

  test('a camera that does not answer is reported with time and reason, in tile, list, pill and health', async () => {
    const page = await open();
    assert.match((await lostFor(page)) ?? '', /^Not recorded since \d\d:\d\d – camera does not answer$/);
    assert.equal(await page.locator('.pill').innerText(), '1 camera not recorded');
    const first = page.locator('.camera-groups h2, .camera-groups .camera-item').first();
    assert.equal(await first.innerText(), 'Needs attention');
    assert.match(await page.locator('.camera-item').first().innerText(), /The car park/);
    await page.locator('.pill').click();
    await until('health says what to do', async () =>
      /The car park: Not recorded since .* Check its power/.test(await page.locator('.warnings').innerText()),
    );
    await page.close();
  });

  test('a camera that is turned off is no alarm, and one that is recorded has no badge', async () => {
    const page = await open();
    await untilPlaying(page);
    assert.equal(await badgeOf(page, 'off'), 'Turned off in the configuration');
    assert.equal(await page.locator('[data-camera=off].is-alarm').count(), 0);
    await untilNoBadge(page, ...PLAYING);
    await page.close();
  });

  test('while the recorder is away nothing is shown as recorded; it comes back by itself', async () => {
    const page = await open();
    await untilPlaying(page);
    await page.route('**/*', (route) => route.abort());
    await untilAway(page);
    assert.match(await page.locator('.banner').innerText(), /does not answer. Last contact \d+ s ago/);
    await page.unroute('**/*');
    await untilBack(page);
    await page.close();
  });

  test('a link on which nothing arrives is noticed, and the pictures come over another connection', async () => {
    const proxy = await TcpProxy.to(Number(new URL(recorder.url).port));
    const page = await open('', proxy.port);
    await untilPlaying(page);
    proxy.silence();
    await untilAway(page);
    proxy.heal();
    await untilBack(page);
    const { framesShown } = await videoState(page, '[data-camera=till] video');
    await until(
      'new pictures',
      async () => (await videoState(page, '[data-camera=till] video')).framesShown > framesShown,
    );
    await page.close();
    await proxy.close();
  });

  test('over a link of 1 Mbit/s and 200 ms every picture of the wall comes, and a camera that is lost is told', async () => {
    const port = Number(new URL(recorder.url).port);
    const link = await SlowLink.to({ port, bitsPerSecond: 1e6, roundTripMs: 200 });
    const page = await open('', link.port);
    await untilPlaying(page);
    await lostFor(page);
    assert.equal(await page.locator('.banner').count(), 0);
    await page.close();
    await link.close();
  });

  test('without Redis, exports and health say that there are no exports and why; cameras are shown as recorded', async () => {
    const page = await open('#/exports');
    const alert = page.locator('.exports [role=alert]');
    await alert.waitFor();
    assert.match(await alert.innerText(), /[Rr]edis/);
    await page.getByRole('link', { name: 'Health', exact: true }).click();
    await until(
      'the warning',
      async () => /[Ee]xports.*[Rr]edis/.test(await page.locator('.warnings').innerText()),
      SLOW_MS,
    );
    await page.getByRole('link', { name: 'Live', exact: true }).click();
    await untilPlaying(page);
    await untilNoBadge(page, ...PLAYING);
    await page.close();
  });

  test('an idle wall asks for little, and a hidden one gets no pictures', async () => {
    const page = await open();
    await untilPlaying(page);
    let requests = 0;
    let frames = 0;
    page.on('request', () => requests++);
    page.on('websocket', (socket) => socket.on('framereceived', () => frames++));
    const from = performance.now();
    // Lasts: the wall is idle.
    await sleep(10_000);
    const seconds = (performance.now() - from) / 1000;
    assert.ok(requests <= seconds, `${requests} requests in ${seconds} s`);
    // What the browser does when another tab is shown.
    await page.evaluate(`
      Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    `);
    await until('no stream', async () => (await page.locator('.tile.playing').count()) === 0);
    await page.evaluate(`
      delete document.hidden;
      document.dispatchEvent(new Event('visibilitychange'));
    `);
    await untilPlaying(page);
    assert.ok(frames > 0);
    await page.close();
  });

  const untilLarge = (page: Page, id: string | undefined): Promise<unknown> =>
    page.locator(`.screen[data-camera=${id}]`).waitFor();

  test('keys that come in the same moment as a change of the view are meant for the new view', async () => {
    const page = await open('#/live');
    await page.locator('.tile').first().waitFor();
    // In one task: the browser tells of the new address later.
    await page.evaluate(`(async () => {
      const press = (key) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      press('1');
      await Promise.resolve();
      await Promise.resolve();
      press('i');
    })()`);
    // They come with a later part of the page.
    await page.locator('.facts').waitFor();
    await page.close();
  });

  test('a key of a component comes before the same key of the component around it, from the first picture', async () => {
    const page = await open('#/health');
    await page.locator('.strip').first().waitFor();
    const pressed = await page.evaluate<string[]>(`(async () => {
      const [{ startKeyboard, useKeys }, { html }, { render }] = await Promise.all(
        ['app/keyboard.ts', 'parts/html.ts', 'vendor/preact.js'].map((path) => import('/page/' + path)),
      );
      startKeyboard();
      const pressed = [];
      const Inner = () => (useKeys({ q: () => pressed.push('inner') }), html\`<i></i>\`);
      const Outer = () => (useKeys({ q: () => pressed.push('outer') }), html\`<\${Inner} />\`);
      render(html\`<\${Outer} />\`, document.createElement('div'));
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'q', bubbles: true, cancelable: true }));
      return pressed;
    })()`);
    assert.deepEqual(pressed, ['inner']);
    await page.close();
  });

  test('with keys alone: from the wall to a camera, its facts, the next one and back; search; help', async () => {
    const page = await open();
    await untilPlaying(page);
    const focused = (): Promise<string> =>
      page.evaluate("document.activeElement.closest('[data-camera]')?.dataset.camera ?? ''");
    const tiles = await page
      .locator('.tile')
      .evaluateAll((all) => all.map((one) => (one as { dataset: { camera: string } }).dataset.camera));
    await page.keyboard.press('ArrowRight');
    assert.equal(await focused(), tiles[1]);
    await page.keyboard.press('Enter');
    await untilLarge(page, tiles[1]);
    await page.keyboard.press('i');
    await page.locator('.facts').waitFor();
    await page.keyboard.press('ArrowRight');
    await untilLarge(page, tiles[2]);
    await page.keyboard.press('Escape');
    await page.locator('.wall').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('till');
    await until('one is found', async () => (await page.locator('.camera-item').count()) === 1);
    await page.keyboard.press('Enter');
    await untilLarge(page, 'till');
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await until('closed', async () => (await page.getByRole('dialog').count()) === 0);
    // WCAG 2.1.4: speech input types single keys, so they can be switched off.
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByRole('group', { name: 'Single keys' }).getByRole('button', { name: 'Off' }).click();
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    assert.equal(await page.getByRole('dialog').count(), 0);
    await page.close();
  });

  test('a layout shows the chosen cameras, and is there after the page is loaded again', async () => {
    const page = await open();
    await untilPlaying(page);
    await page.getByRole('button', { name: 'All cameras' }).click();
    await page.getByRole('button', { name: 'New layout …' }).click();
    await page.getByLabel('Name').fill('Yard');
    for (const id of ['yard-1', 'yard-2']) await page.getByLabel(`The ${id}`, { exact: true }).check();
    await page.getByRole('button', { name: 'Save' }).click();
    await until('two tiles', async () => (await page.locator('.tile').count()) === 2);
    await page.reload();
    await page.getByRole('button', { name: 'Yard', exact: true }).waitFor();
    await until('two tiles again', async () => (await page.locator('.tile').count()) === 2);
    await page.close();
  });

  test('a group by setting, and one by what ids begin with, are in the list and on the wall', async () => {
    const page = await open();
    await untilPlaying(page);
    await until('the groups', async () => {
      const heads = await page.locator('.camera-groups h2').allInnerTexts();
      return ['Inside', 'yard'].every((name) => heads.includes(name));
    });
    const shown = (): Promise<string[]> => page.locator('.tile-name').allInnerTexts();
    await page.getByRole('button', { name: 'All cameras' }).click();
    await page.getByRole('button', { name: 'Inside', exact: true }).click();
    await until('one tile', async () => (await shown()).join() === 'The office');
    await page.reload();
    await until('one tile again', async () => (await shown()).join() === 'The office');
    await page.getByRole('button', { name: 'Inside', exact: true }).click();
    await page.getByRole('button', { name: 'yard', exact: true }).click();
    await until('the yard', async () => {
      const names = await shown();
      return names.length > 1 && names.every((name) => name.startsWith('The yard'));
    });
    await page.close();
  });

  for (const scheme of ['dark', 'light'] as const) {
    test(`no view has a fault that axe finds, in ${scheme}`, async () => {
      const page = await open();
      await page.emulateMedia({ colorScheme: scheme });
      await lostFor(page);
      const views = { '#/live': '.tile', '#/live?c=yard-1': '.screen.playing', '#/health': '.strip' };
      for (const [path, selector] of Object.entries(views)) {
        await page.goto(`${recorder.url}/${path}`);
        await page.locator(selector).first().waitFor();
        await page.evaluate(AXE);
        const found = await page.evaluate<string[]>(
          'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))',
        );
        assert.deepEqual(found, [], path);
      }
      await page.close();
    });
  }

  test(
    `a wall that is looked at for ${SOAK_MINUTES} minutes needs no more memory and no more connections`,
    { skip: LONG ? false : `takes ${SOAK_MINUTES} minutes; LONG=1 runs it` },
    async () => {
      const proxy = await TcpProxy.to(Number(new URL(recorder.url).port));
      const page = await open('', proxy.port);
      await untilPlaying(page);
      const session = await page.context().newCDPSession(page);
      const look = async (): Promise<{ readonly heap: number; readonly open: number }> => {
        await session.send('HeapProfiler.collectGarbage');
        const { usedSize } = await session.send('Runtime.getHeapUsage');
        return { heap: usedSize, open: proxy.open };
      };
      const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
      await pause(60_000);
      const first = await look();
      await pause(SOAK_MINUTES * 60_000);
      const last = await look();
      assert.ok(last.heap - first.heap < 5e6, `${first.heap} bytes, then ${last.heap}`);
      assert.ok(last.open <= first.open + 2, `${first.open} connections, then ${last.open}`);
      await page.close();
      await proxy.close();
    },
  );

  test('after a crash of the recorder the wall continues without a reload, and playback shows what was captured before and after it', async () => {
    const page = await open();
    await untilPlaying(page);
    await until('some seconds are recorded', () => (sent.at(-1)?.atMs ?? 0) - (sent[0]?.atMs ?? 0) > 8_000);
    const killedMs = Date.now();
    recorder.child.signal('SIGKILL');
    await untilAway(page);
    await recorder.child.exit();
    recorder = await recorder.restart();
    await recorder.untilRecording(...PLAYING);
    const againMs = Date.now();
    await untilBack(page);
    await untilPlaying(page);

    await until('it can be played', () => Date.now() - againMs > 4_000 + PLAYABLE_MS, SLOW_MS);
    const go = (atMs: number): Promise<unknown> =>
      page.evaluate(`window.location.hash = '#/playback?c=till&t=${new Date(atMs).toISOString()}&z=10m'`);
    for (const atMs of [killedMs - 4_000, againMs + 4_000]) {
      const wanted = sent.findLast((one) => one.atMs <= atMs)?.number ?? assert.fail('nothing was sent');
      await go(atMs);
      let seen = -1;
      await until(
        `the picture ${wanted}`,
        async () => {
          seen = (await videoState(page, '.ptile[data-picture=video] video')).frameNumber;
          return seen >= 0 && distance(seen, wanted) <= 3;
        },
        SLOW_MS,
      ).catch((error: unknown) => assert.fail(`${String(error)}: ${seen} is shown`));
    }
    // Before the next process has started: from then on another reason holds until the camera plays.
    await go(killedMs + 100);
    await until(
      'the reason',
      async () => /No recording .*: recorder was not running/.test(await page.locator('.plate').innerText()),
      SLOW_MS,
    );
    await page.close();
  });
});
