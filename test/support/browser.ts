// Headless Chromium for tests, and what they read from a <video> in it: whether it plays, and which picture it shows.

import { spawnSync } from 'node:child_process';
import { chromium, type Browser, type Page } from 'playwright-core';
import { PATIENCE_MS } from './until.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

function findBrowser(): string | undefined {
  return NAMES.find((name) => spawnSync(name, ['--version'], { timeout: 120_000 }).status === 0);
}

/** Why there is no browser, or false; the value for a test's `skip`. */
export function browserMissing(): string | false {
  return findBrowser() === undefined ? 'Chromium is not installed' : false;
}

/** `through`: a script that runs the browser, such as in a network of its own; it gets the browser's path and arguments. */
export async function launchBrowser({
  through,
}: { readonly through?: (path: string) => string } = {}): Promise<Browser> {
  const name = findBrowser();
  if (name === undefined) throw new Error('Chromium is not installed');
  const path = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim();
  const browser = await chromium.launch({
    executablePath: through?.(path) ?? path,
    timeout: PATIENCE_MS,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--autoplay-policy=no-user-gesture-required',
    ],
  });
  // `newPage` of a browser calls this as well.
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PATIENCE_MS);
    return context;
  };
  return browser;
}

export interface VideoState {
  readonly currentTime: number;
  readonly framesShown: number;
  readonly audioBytes: number;
  readonly width: number;
  /** The number that a test camera drew into the picture on screen; -1 if there is none, see camera/frame-numbers.ts. */
  readonly frameNumber: number;
  readonly error: string | undefined;
}

/** A page of any browser. */
interface Evaluator {
  evaluate<T>(script: string): Promise<T>;
}

/** Reads the video that `selector` finds; the function runs in the page, so it must be self-contained. */
export function videoState(page: Evaluator, selector: string): Promise<VideoState> {
  return page.evaluate<VideoState>(`(${readVideo.toString()})(document.querySelector(${JSON.stringify(selector)}))`);
}

/** Pictures that are sought in turn are farther apart than this, and each is on screen for less. */
export const NEAR_S = 0.2;

/** Resolves when the picture of this time is on screen, in the only video of a page, which has shown another time before. */
export async function showAt(page: Page, seconds: number): Promise<void> {
  // `seeked` comes when the picture is decoded, which may be before it is on screen: until then the last one is. While the video seeks,
  // it may have none.
  await page.evaluate(`new Promise((resolve) => {
    const video = document.querySelector('video');
    const settled = () => (video.seeking ? video.addEventListener('seeked', resolve, { once: true }) : resolve());
    const shown = (_, { mediaTime }) =>
      Math.abs(mediaTime - ${seconds}) < ${NEAR_S} ? settled() : video.requestVideoFrameCallback(shown);
    video.pause();
    video.requestVideoFrameCallback(shown);
    video.currentTime = ${seconds};
  })`);
}

interface PageVideo {
  readonly videoWidth: number;
  readonly videoHeight: number;
  readonly currentTime: number;
  readonly readyState: number;
  readonly webkitAudioDecodedByteCount: number;
  readonly error: { readonly message: string } | null;
  getVideoPlaybackQuality(): { readonly totalVideoFrames: number; readonly droppedVideoFrames: number };
}
interface PageCanvas {
  width: number;
  height: number;
  getContext(kind: '2d'): {
    drawImage(video: PageVideo, ...box: number[]): void;
    getImageData(x: number, y: number, width: number, height: number): { readonly data: Uint8ClampedArray };
  };
}
declare const document: { createElement(name: 'canvas'): PageCanvas };

function readVideo(video: PageVideo | null): VideoState {
  if (!video) {
    return { currentTime: 0, framesShown: 0, audioBytes: 0, width: 0, frameNumber: -1, error: 'no video element' };
  }
  const quality = video.getVideoPlaybackQuality();
  let frameNumber = -1;
  if (video.readyState >= 2 && video.videoWidth > 0) {
    const canvas = document.createElement('canvas');
    canvas.width = 160;
    canvas.height = 10;
    const context = canvas.getContext('2d');
    context.drawImage(video, 0, 0, video.videoWidth, video.videoHeight / 9, 0, 0, 160, 10);
    const pixels = context.getImageData(0, 5, 160, 1).data;
    let code = 0;
    for (let square = 0; square < 16; square++) if (pixels[(square * 10 + 5) * 4]! >= 128) code += 2 ** square;
    const number = code % 4096;
    const check = (number * 5 + Math.floor(number / 16) * 3 + Math.floor(number / 256) * 7 + 9) % 16;
    if (Math.floor(code / 4096) === check) frameNumber = number;
  }
  return {
    currentTime: video.currentTime,
    framesShown: quality.totalVideoFrames - quality.droppedVideoFrames,
    audioBytes: video.webkitAudioDecodedByteCount,
    width: video.videoWidth,
    frameNumber,
    error: video.error?.message,
  };
}
