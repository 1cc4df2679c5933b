// A Chromium page with one video element and hls.js, to play what the recorder serves.

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { launchBrowser, showAt, videoState, type VideoState } from '../support/browser.ts';
import { PATIENCE_MS, until } from '../support/until.ts';

const HLS = new URL('../../node_modules/hls.js/dist/hls.min.js', import.meta.url);
const PAGE =
  '<!doctype html><title>player</title><video crossorigin="anonymous" muted></video><script src="/hls.js"></script>';

export class PlayerPage {
  readonly page: Page;
  /** Fatal errors of hls.js. Waiting for data, or aborting a load because of a seek, does not count. */
  readonly complaints: string[] = [];
  /** What hls.js was refused and requests again: kind and status. */
  readonly refusals: string[] = [];

  private constructor(page: Page) {
    this.page = page;
  }

  /** Closed after the test. The page has another port than what it plays. */
  static async open(t: Pick<TestContext, 'after'>): Promise<PlayerPage> {
    const script = await readFile(HLS);
    const server = createServer((request, response) => {
      response.setHeader('content-type', request.url === '/hls.js' ? 'text/javascript' : 'text/html');
      response.end(request.url === '/hls.js' ? script : PAGE);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const browser = await launchBrowser();
    t.after(async () => {
      await browser.close();
      server.close();
    });
    const player = new PlayerPage(await browser.newPage());
    player.page.on('console', (message) => {
      const [, kind, what = ''] = /^(hls|refused): (.*)$/.exec(message.text()) ?? [];
      if (kind === 'hls') player.complaints.push(what);
      else if (kind === 'refused') player.refusals.push(what);
    });
    await player.page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return player;
  }

  /** Sets the video's source. */
  async source(url: string): Promise<void> {
    await this.page.evaluate((src) => {
      const video = document.querySelector('video') as Media;
      video.src = src;
      return new Promise<void>((resolve, reject) => {
        video.addEventListener('loadeddata', () => resolve(), { once: true });
        video.addEventListener('error', () => reject(new Error(video.error?.message)), { once: true });
      });
    }, url);
  }

  /** Plays the address with hls.js. */
  async hls(url: string): Promise<void> {
    await this.page.evaluate((src) => {
      const video = document.querySelector('video') as Media;
      window.hls?.destroy();
      const hls = new Hls({ debug: false });
      window.hls = hls;
      hls.on('hlsError', (_event, { fatal, details, response }) => {
        if (fatal) console.log(`hls: ${details}`);
        else if (response && response.code >= 400) console.log(`refused: ${details} ${response.code}`);
      });
      hls.loadSource(src);
      hls.attachMedia(video);
      return new Promise<void>((resolve, reject) => {
        video.addEventListener('loadeddata', () => resolve(), { once: true });
        video.addEventListener('error', () => reject(new Error(video.error?.message)), { once: true });
      });
    }, url);
  }

  play(): Promise<void> {
    return this.page.evaluate(() => (document.querySelector('video') as Media).play());
  }

  pause(): Promise<void> {
    return this.page.evaluate(() => (document.querySelector('video') as Media).pause());
  }

  seek(seconds: number): Promise<void> {
    return showAt(this.page, seconds);
  }

  state(): Promise<VideoState> {
    return videoState(this.page, 'video');
  }

  read<T>(expression: string): Promise<T> {
    return this.page.evaluate<T>(expression);
  }

  async until(what: string, holds: (state: VideoState) => boolean, timeoutMs = PATIENCE_MS): Promise<VideoState> {
    let last: VideoState | undefined;
    try {
      return await until(
        what,
        async () => {
          last = await this.state();
          if (last.error !== undefined) throw new Error(last.error);
          return holds(last) && last;
        },
        timeoutMs,
      );
    } catch (error) {
      throw new Error(`${what}: ${JSON.stringify(last)}, ${this.complaints.join('; ')}`, { cause: error });
    }
  }
}

/** Properties used in the page; this program does not have the DOM's types. */
interface Media {
  src: string;
  currentTime: number;
  readonly error: { readonly message: string } | null;
  play(): Promise<void>;
  pause(): void;
  addEventListener(type: string, listener: () => void, options: { once: boolean }): void;
}
declare const document: { querySelector(selector: 'video'): Media | null };
declare const window: { hls?: Hls };
interface HlsError {
  readonly details: string;
  readonly fatal: boolean;
  readonly response?: { readonly code: number };
}
declare class Hls {
  constructor(options: object);
  on(event: string, listener: (event: string, data: HlsError) => unknown): void;
  loadSource(url: string): void;
  attachMedia(video: Media): void;
  destroy(): void;
}
