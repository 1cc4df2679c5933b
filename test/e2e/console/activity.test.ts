// A night in which almost nothing moves, in the page: where something changed, when somebody came through a door, and playback that
// skips the rest.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { formatPath } from '../../../recorder/archive/disk/names.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { encodeVideo } from '../../support/encoded-samples.ts';
import { recordedPart } from '../../support/joined-file.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { SIZES } from './console.ts';

const AXE = readFileSync(new URL('../../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const violations = 'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))';
const { KUBE_NVR_SHOTS: shots } = process.env;

const FILE_SECONDS = 600;
const FILES = 48;
/** The file in which a cat passes on the right, and that in which somebody comes through the door on the left; at this second of it. */
const CAT = 10;
const PERSON = 31;
const AT = 300;

/** Eight hours of a camera at a door, which end in five minutes, with a key frame each four seconds. All of it was looked at. */
async function nightAtTheDoor(t: TestContext) {
  const directory = workspace(t);
  const startMs = Math.floor(Date.now() / 1000) * 1000 - (FILES * FILE_SECONDS - 300) * 1000;
  const film = (box: string): ReturnType<typeof encodeVideo> => {
    const moves = box && `,drawbox=${box}:t=fill:color=white:enable='between(t,${AT - 0.1},${AT + 8.1})'`;
    const filter = `trim=0:0.04,loop=-1:1:0,setpts=N/5/TB${moves},noise=alls=5:allf=t`;
    const encoderParameters = 'keyint=20:min-keyint=20:scenecut=0:crf=30';
    const look = { codec: 'h264', encoderParameters, size: '320x180', frames: FILE_SECONDS * 5 } as const;
    const video = encodeVideo(directory, { ...look, extra: ['-r', '5', '-vf', filter] });
    // The last picture is as long as the others.
    return { ...video, samples: video.samples.map((sample) => ({ ...sample, duration: 18_000 })) };
  };
  const quiet = film('');
  const others = new Map([
    [CAT, film('x=iw*0.75:y=ih*0.7:w=iw*0.15:h=ih*0.2')],
    [PERSON, film('x=iw*0.1:y=ih*0.3:w=iw*0.1:h=ih*0.5')],
  ]);
  for (let i = 0; i < FILES; i++) {
    const atMs = startMs + i * FILE_SECONDS * 1000;
    const path = join(directory, 'recordings', formatPath({ name: 'door', cameraId: 'door', startMs: atMs }));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, recordedPart(others.get(i) ?? quiet, { wallStartMs: atMs }));
  }
  const source = 'rtsp://127.0.0.1:9/';
  const recorder = await RecorderProcess.start({
    directory,
    config: {
      console: { timeZone: 'Europe/Berlin' },
      cameras: [
        { id: 'door', name: 'Back door', source, enabled: false, activity: true },
        { id: 'yard', name: 'Yard', source, enabled: false },
      ],
    },
  });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  const endMs = startMs + FILES * FILE_SECONDS * 1000;
  const lookedAtMs = async (): Promise<number> => {
    const query = `camera=door&from=${startMs / 1000}&to=${endMs / 1000}&activity=1`;
    const answer = (await (await recorder.fetch(`/api/archive/timeline?${query}`)).json()) as {
      cameras: { bands: { start_ms: number; end_ms: number }[] }[];
    };
    return (answer.cameras[0]?.bands ?? []).reduce((sum, band) => sum + band.end_ms - band.start_ms, 0);
  };
  // It has the lowest priority: a busy machine may need long for all of it, but not for an hour of it.
  for (let hour = 1; hour <= 8; hour++)
    await until(`${hour} hours are looked at`, async () => (await lookedAtMs()) > hour * 3_600_000 - 60_000);
  return { recorder, startMs, at: (file: number): number => startMs + (file * FILE_SECONDS + AT) * 1000 };
}

const shownMs = async (page: Page): Promise<number> =>
  Date.parse((await page.locator('.clock time').getAttribute('datetime')) ?? '');

test(
  'a guard finds in five actions when somebody came through a door at night, and sees eight quiet hours in three minutes',
  { skip: browserMissing() },
  async (t) => {
    const { recorder, startMs, at } = await nightAtTheDoor(t);
    const browser = await launchBrowser();
    t.after(() => browser.close());
    for (const [size, width, height] of SIZES) {
      const page = await (await browser.newContext({ bypassCSP: true, viewport: { width, height } })).newPage();
      await page.goto(`${recorder.url}/#/live`);
      await page.locator('.tile').first().waitFor();
      const begunMs = performance.now();
      await page.getByRole('link', { name: 'Playback' }).click();
      await page.locator('.camera-item', { hasText: 'Back door' }).click();
      await page.getByRole('button', { name: 'Find changes' }).click();
      const area = page.locator('.ptile-area');
      await area.waitFor();
      const box = await area.boundingBox();
      assert.ok(box);
      const point = (x: number, y: number) => [box.x + box.width * x, box.y + box.height * y] as const;
      await page.mouse.move(...point(0.05, 0.2));
      await page.mouse.down();
      await page.mouse.move(...point(0.3, 0.9), { steps: 4 });
      await page.mouse.up();
      const list = page.getByRole('region', { name: 'Changes' });
      await list.getByText('1 change in view').waitFor();
      await list.locator('li button').click();
      await until('the page is at the door', async () => {
        const beforeMs = at(PERSON) - (await shownMs(page));
        return beforeMs >= 0 && beforeMs <= 6_000;
      });
      t.diagnostic(
        `${size}: five actions, ${((performance.now() - begunMs) / 1000).toFixed(1)} s of the page and the test`,
      );
      if (shots) {
        await page.locator('.ptile[data-picture=video]').waitFor();
        await page.waitForTimeout(1_500);
        await page.screenshot({ path: join(shots, `changes-${size}.png`) });
      }
      await page.evaluate(AXE);
      assert.deepEqual(await page.evaluate(violations), [], size);
      await page.keyboard.press('Escape');
      await until('the search has ended', async () => (await list.count()) === 0 && (await area.count()) === 0);
      await page.close();
    }

    const page = await browser.newPage();
    const begin = new Date(startMs + 1_000).toISOString();
    await page.goto(`${recorder.url}/#/playback?c=door&t=${begin}&z=6h`);
    await page.getByRole('button', { name: 'Skip quiet' }).waitFor();
    await page.locator('.ptile[data-picture=video]').waitFor();
    // Which moments are shown, ten times a second.
    await page.evaluate(`{
      const time = document.querySelector('.clock time');
      window.shown = [];
      setInterval(() => window.shown.push(Date.parse(time.getAttribute('datetime'))), 100);
    }`);
    await page.keyboard.press('q');
    const begunMs = performance.now();
    await page.keyboard.press('Space');
    await page
      .getByText(/^Skipped .* of quiet time\.$/)
      .first()
      .waitFor();
    if (shots) await page.screenshot({ path: join(shots, 'skipped.png') });
    const lastMs = startMs + (FILES - 2) * FILE_SECONDS * 1000;
    await until('it is morning', async () => (await shownMs(page)) >= lastMs);
    t.diagnostic(`eight hours took ${((performance.now() - begunMs) / 1000).toFixed(0)} s on this machine`);
    const shown = (await page.evaluate('window.shown')) as number[];
    for (const file of [CAT, PERSON]) {
      const seen = new Set(
        shown.filter((ms) => ms >= at(file) && ms < at(file) + 8_000).map((ms) => Math.floor(ms / 1000)),
      );
      assert.ok(seen.size > 0, `what moved in file ${file} was not shown`);
      t.diagnostic(`what moved in file ${file} was shown for ${seen.size} s`);
    }
    const playedMs = shown.reduce((sum, ms, i) => {
      const passed = ms - (shown[i - 1] ?? ms);
      return passed > 0 && passed < 5_000 ? sum + passed : sum;
    }, 0);
    t.diagnostic(`${Math.round(playedMs / 1000)} s of it were played`);
    assert.ok(playedMs < 180_000, `${playedMs} ms were played`);
  },
);
