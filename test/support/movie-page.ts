// A movie in a Chromium page: the duration that it reports, and which numbered picture it shows when.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { launchBrowser, NEAR_S, showAt, videoState } from './browser.ts';
import { serveRanges } from './range-server.ts';

interface MoviePage {
  readonly durationSeconds: number;
  /** The number of the picture on screen after seeking. */
  readonly numberAt: (seconds: number) => Promise<number>;
}

export async function openMovie(t: TestContext, bytes: Buffer): Promise<MoviePage> {
  const server = await serveRanges(t);
  server.files.set('/movie.mp4', bytes);
  const browser = await launchBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.goto(server.url);
  const duration = await page.evaluate(`new Promise((resolve, reject) => {
    const video = document.body.appendChild(document.createElement('video'));
    video.muted = true;
    video.onloadeddata = () => resolve(video.duration);
    video.onerror = () => reject(new Error(video.error.message));
    video.src = '/movie.mp4';
  })`);
  let lastSeconds = -1;
  return {
    durationSeconds: duration as number,
    async numberAt(seconds) {
      assert.ok(Math.abs(seconds - lastSeconds) > NEAR_S);
      lastSeconds = seconds;
      await showAt(page, seconds);
      return (await videoState(page, 'video')).frameNumber;
    },
  };
}
