// The page's player in headless Chromium, on live streams fed without a camera.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { buildApi } from '../../recorder/api/app.ts';
import {
  apiDeps,
  archiveStatus,
  cameraStatus,
  directoryOf,
  token,
  type TestedCamera,
} from '../../recorder/api/test-support.ts';
import type { AudioParameters, NalParameters } from '../../recorder/codec/access-unit.ts';
import { Authenticator } from '../../recorder/http/auth.ts';
import { LiveStream } from '../../recorder/live/test-support.ts';
import { LiveLimits } from '../../recorder/live/limits.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { audioSpecificConfig } from '../camera/tracks.ts';
import { browserMissing, launchBrowser, videoState } from '../support/browser.ts';
import type { VideoState } from '../support/browser.ts';
import { encodeAudio } from '../support/encoded-samples.ts';
import { feedVideo, LiveFeed } from './live-feed.ts';
import type { FeedTrack } from './live-feed.ts';
import { until } from '../support/until.ts';

const skip = browserMissing();
let browser: Browser;
before(async () => {
  if (!skip) browser = await launchBrowser();
});
after(async () => {
  if (!skip) await browser.close();
});

interface Studio {
  readonly hub: LiveStream;
  readonly page: Page;
  /** Ends every live connection as a broken network does. */
  cut(): void;
  start(video: FeedTrack<NalParameters>, audio?: FeedTrack<AudioParameters>): LiveFeed;
  readonly state: () => Promise<VideoState>;
}

/** A recorder's API with one camera, and a page that watches it. */
async function studio(t: TestContext): Promise<Studio> {
  const recordPath = await mkdtemp(join(tmpdir(), 'player-test-'));
  const hub = new LiveStream({ cameraId: 'gate', limits: new LiveLimits(), clock: systemClock, log: silentLog });
  let view: TestedCamera = {
    status: cameraStatus({ state: 'connecting' }),
    archive: archiveStatus(),
    live: hub,
  };
  const app = await buildApi(
    apiDeps({
      recordPath,
      auth: new Authenticator({ mode: 'token', tokens: [token('viewer')] }),
      cameras: {
        list: () => directoryOf([view]).list(),
        get: (id) => directoryOf([view]).get(id),
        streams: () => ({ live: hub }),
      },
      clock: systemClock,
    }),
  );
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const page = await browser.newPage();
  let feed: LiveFeed | undefined;
  t.after(async () => {
    feed?.stop();
    hub.close();
    await page.close();
    await app.close();
    await rm(recordPath, { recursive: true });
  });
  await page.request.post(`${address}/api/session`, { data: { token: 'viewer' } });
  await page.goto(address);
  return {
    hub,
    page,
    cut() {
      for (const client of app.websocketServer.clients) client.terminate();
    },
    start(video, audio) {
      view = { ...view, status: cameraStatus({ video: video.parameters, audio: audio?.parameters }) };
      feed = new LiveFeed(hub, video, audio);
      return feed;
    },
    state: () => videoState(page, '.tile video'),
  };
}

const h264 = async (name: 'h264' | 'h264-small' | 'h264-bframes' | 'h264-long-gop' = 'h264') =>
  feedVideo(await videoMedia(name));

async function aac(): Promise<FeedTrack<AudioParameters>> {
  const media = await audioMedia('aac');
  return {
    parameters: {
      kind: 'audio',
      codec: 'aac',
      sampleRate: media.sampleRate,
      channels: media.channels,
      config: audioSpecificConfig(media),
      codecString: 'mp4a.40.2',
    },
    frames: media.frames.map(({ data, pts }) => ({ bytes: data, dts: pts, compositionOffset: 0, sync: true })),
    lengthTicks: media.frames.length * media.samplesPerFrame,
    usualDuration: media.samplesPerFrame,
  };
}

async function flac(t: TestContext): Promise<FeedTrack<AudioParameters>> {
  const directory = await mkdtemp(join(tmpdir(), 'player-flac-'));
  t.after(() => rm(directory, { recursive: true }));
  const { parameters, samples } = encodeAudio(directory, 'flac', 5);
  const whole = samples.slice(0, -1); // the last frame is shorter
  const usualDuration = whole[0]?.duration ?? 0;
  return {
    parameters,
    frames: whole.map(({ bytes, dts }) => ({ bytes, dts, compositionOffset: 0, sync: true })),
    lengthTicks: whole.length * usualDuration,
    usualDuration,
  };
}

/** How old the picture on screen is, in seconds, by the number drawn into it; the numbers start over every ten seconds. */
const ageOf = (feed: LiveFeed, state: VideoState, framesPerSecond = 25): number =>
  ((((feed.seconds * framesPerSecond - state.frameNumber) % 250) + 250) % 250) / framesPerSecond;

/** Waits until a picture less than `seconds` old is on screen. */
async function untilFresh({ state }: Studio, feed: LiveFeed, seconds: number): Promise<VideoState> {
  return until(`a picture less than ${seconds} s old`, async () => {
    const now = await state();
    return now.frameNumber >= 0 && ageOf(feed, now) < seconds && now;
  });
}

/** Follows the screen for `seconds`: the longest time without another picture. A busy machine holds it up, too. */
async function longestStill({ state }: Studio, seconds: number): Promise<number> {
  const endMs = performance.now() + seconds * 1000;
  let shown = -1;
  let sinceMs = performance.now();
  let longestMs = 0;
  while (performance.now() < endMs) {
    const now = await state();
    if (now.frameNumber >= 0 && now.frameNumber !== shown) {
      shown = now.frameNumber;
      sinceMs = performance.now();
    }
    longestMs = Math.max(longestMs, performance.now() - sinceMs);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return longestMs / 1000;
}

test('H.264 with AAC plays at the live edge', { skip }, async (t) => {
  const room = await studio(t);
  const feed = room.start(await h264(), await aac());
  const first = await untilFresh(room, feed, 0.8);
  await until('sound', async () => (await room.state()).audioBytes > 0);
  await until('two seconds more', async () => {
    const now = await room.state();
    return now.currentTime > first.currentTime + 2 && now.framesShown > first.framesShown + 30;
  });
  await untilFresh(room, feed, 0.8);
});

test('H.264 with FLAC, as G.711 is carried, plays with sound', { skip }, async (t) => {
  const room = await studio(t);
  const feed = room.start(await h264(), await flac(t));
  await untilFresh(room, feed, 1);
  await until('sound', async () => (await room.state()).audioBytes > 0);
});

test('H.264 with B-frames plays', { skip }, async (t) => {
  const room = await studio(t);
  const feed = room.start(await h264('h264-bframes'));
  await untilFresh(room, feed, 1);
});

test(
  'a camera that lowers its frame rate within a group of pictures does not freeze the picture',
  { skip },
  async (t) => {
    const room = await studio(t);
    const video = await h264();
    // A group of pictures of eight seconds, whose times stretch: 25 frames, then 6 frames half a second apart, and so on.
    let dts = 0;
    const frames = video.frames.slice(0, 250).map((frame, i) => {
      const stretched = { ...frame, dts, sync: i === 0 };
      dts += i % 50 > 40 ? 45_000 : 3_600;
      return stretched;
    });
    // Every frame but the first refers to the one before it, except the key frames, which are sent as ordinary ones.
    const feed = room.start({ ...video, frames, lengthTicks: dts });
    await until('a picture', async () => (await room.state()).frameNumber >= 0);
    await until('the slow part', () => feed.seconds > 3);
    await until('no part freezes the picture', async () => (await longestStill(room, 8)) < 1.5);
  },
);

test('a hole in the audio does not freeze the picture, whose next key frame is a minute away', { skip }, async (t) => {
  const room = await studio(t);
  const feed = room.start(await h264('h264-long-gop'), await aac());
  await until('sound', async () => (await room.state()).audioBytes > 0);
  const from = feed.seconds;
  feed.dropAudio((seconds) => seconds > from && (seconds - from) % 8 < 1);
  // In twelve seconds at least one hole begins four seconds before they end.
  await until('no hole freezes the picture', async () => (await longestStill(room, 12)) < 1.9);
});

test('audio that stops for good costs the sound, not the picture', { skip }, async (t) => {
  const room = await studio(t);
  const feed = room.start(await h264(), await aac());
  await untilFresh(room, feed, 1);
  const from = feed.seconds;
  feed.dropAudio((seconds) => seconds > from);
  await until('the picture stands', () => feed.seconds > from + 2);
  await untilFresh(room, feed, 1);
});

test('another picture size comes with its own initialization segment, and continues playing', { skip }, async (t) => {
  const room = await studio(t);
  const feed = room.start(await h264());
  const before = await untilFresh(room, feed, 1);
  assert.equal(before.width, 320);
  feed.stop();
  room.start(await h264('h264-small'));
  await until('the small picture', async () => {
    const now = await room.state();
    return now.width === 160 && now.frameNumber >= 1000;
  });
});

test('a camera that comes back is shown again', { skip }, async (t) => {
  const room = await studio(t);
  room.start(await h264()).stop();
  const feed = room.start(await h264());
  await untilFresh(room, feed, 1);
});

test('a connection that breaks is made again', { skip }, async (t) => {
  const room = await studio(t);
  const feed = room.start(await h264(), await aac());
  await untilFresh(room, feed, 1);
  room.cut();
  await room.page.waitForSelector('.tile:not(.playing)');
  await room.page.waitForSelector('.tile.playing');
  await untilFresh(room, feed, 1);
});

test('a tab that slept shows the present when it wakes', { skip }, async (t) => {
  const room = await studio(t);
  const feed = room.start(await h264(), await aac());
  await untilFresh(room, feed, 1);
  const session = await room.page.context().newCDPSession(room.page);
  await session.send('Page.setWebLifecycleState', { state: 'frozen' });
  const from = feed.seconds;
  await until('some seconds of sleep', () => feed.seconds > from + 5);
  await session.send('Page.setWebLifecycleState', { state: 'active' });
  await untilFresh(room, feed, 1);
});

test('pictures that were shown are removed from memory, and playing continues', { skip }, async (t) => {
  const room = await studio(t);
  const feed = room.start(await h264(), await aac());
  const buffered = (): Promise<{ start: number; seconds: number }> =>
    room.page.evaluate(`(() => {
      const { buffered } = document.querySelector('.tile video');
      if (buffered.length === 0) return { start: 0, seconds: 0 };
      return { start: buffered.start(0), seconds: buffered.end(buffered.length - 1) - buffered.start(0) };
    })()`);
  const { start } = await until('a buffer', async () => {
    const now = await buffered();
    return now.seconds > 0 && now;
  });
  await until('the beginning is forgotten', async () => (await buffered()).start > start + 4);
  assert.ok((await buffered()).seconds < 12);
  await untilFresh(room, feed, 1);
});

test('a codec that this browser cannot play is named', { skip }, async (t) => {
  const room = await studio(t);
  const video = await h264();
  room.start({ ...video, parameters: { ...video.parameters, codec: 'h265', codecString: 'hvc1.1.6.L93.B0' } });
  await until('the notice', async () =>
    /cannot play H\.265/.test((await room.page.textContent('.tile .notice')) ?? ''),
  );
});
