// The console in Firefox: signing in, live, playback at a moment, export. Chromium has all other tests.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startCamera } from '../../camera/camera.ts';
import { decodePictures } from '../../camera/frame-numbers.ts';
import { videoState } from '../../support/browser.ts';
import { Firefox, firefoxMissing } from '../../support/firefox.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { distance, footageStage } from './footage-stage.ts';

const SLOW_MS = 120_000;
const START_MS = Math.floor(Date.now() / 60_000 - 60) * 60_000;
const AT_SECONDS = 33.5;

test(
  'Firefox signs in, plays live and a moment of the archive, and downloads an export',
  {
    skip: firefoxMissing(),
  },
  async (t) => {
    await using camera = await startCamera({ pace: 'realtime' });
    const sha256 = createHash('sha256').update('operator').digest('hex');
    const { recorder, numberAt } = await footageStage(t, {
      cameras: [{ id: 'gate', name: 'The gate' }],
      startMs: START_MS,
      seconds: 120,
      config: {
        auth: { mode: 'token', tokens: [{ name: 'operator', role: 'operator', sha256 }] },
        cameras: [{ id: 'gate', name: 'The gate', source: camera.url }],
      },
    });
    await using firefox = await Firefox.start(workspace(t));
    const textOf = (selector: string): Promise<string> =>
      firefox.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`);

    await firefox.goto(recorder.url);
    await firefox.click('.login-tabs button:nth-child(2)');
    await firefox.click('input[name=token]');
    await firefox.type('operator\n');

    const seen = new Set<number>();
    await until(
      'ten numbered pictures on screen',
      async () => {
        const { frameNumber } = await videoState(firefox, '[data-camera=gate] video');
        if (frameNumber >= 0) seen.add(frameNumber);
        return seen.size >= 10;
      },
      SLOW_MS,
    );
    await until('it is said to be recorded', async () => (await textOf('.pill')) === 'All 1 recorded', SLOW_MS);

    const atMs = START_MS + AT_SECONDS * 1000;
    await firefox.evaluate(
      `window.location.hash = ${JSON.stringify(`#/playback?c=gate&t=${new Date(atMs).toISOString()}&z=10m`)}`,
    );
    const wanted = numberAt('gate', atMs) ?? assert.fail();
    await until(
      `the picture ${wanted}`,
      async () => {
        const { frameNumber } = await videoState(firefox, '.ptile[data-picture=video] video');
        return frameNumber >= 0 && distance(frameNumber, wanted) <= 1;
      },
      SLOW_MS,
    );

    await firefox.click('.export-panel button.primary');
    const file = await until(
      'the file',
      () => readdirSync(firefox.downloads).find((name) => name.endsWith('.mp4') && !name.endsWith('.part')),
      SLOW_MS,
    );
    const digest = await until(
      'the digest',
      async () => /[0-9a-f]{64}/.exec(await textOf('.job-digest'))?.[0],
      SLOW_MS,
    );
    const path = join(firefox.downloads, file);
    await until(
      'the whole file',
      () => createHash('sha256').update(readFileSync(path)).digest('hex') === digest,
      SLOW_MS,
    );
    const { numbers } = await decodePictures(path);
    assert.ok(distance(numbers[0] ?? -1, wanted) <= 1, `${numbers[0]} instead of ${wanted}`);
  },
);
