// A movie in a Chromium page: the duration that it reports, and which numbered picture it shows when.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { launchBrowser, videoState } from './browser.ts';
import { serveRanges } from './range-server.ts';

/** Pictures that are asked for in turn are farther apart than this, and each is on screen for less. */
const NEAR_S = 0.2;

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
      // `seeked` comes when the picture is decoded, which may be before it is on screen: until then the last one is. While the video seeks,
      // it may have none.
      await page.evaluate(`new Promise((resolve) => {
        const video = document.querySelector('video');
        const settled = () => (video.seeking ? video.addEventListener('seeked', resolve, { once: true }) : resolve());
        const shown = (_, { mediaTime }) =>
          Math.abs(mediaTime - ${seconds}) < ${NEAR_S} ? settled() : video.requestVideoFrameCallback(shown);
        video.requestVideoFrameCallback(shown);
        video.currentTime = ${seconds};
      })`);
      return (await videoState(page, 'video')).frameNumber;
    },
  };
}
