// Files that a crash cut off, in Chromium: everything that recovery can make of them, and each state in which they can
// lie on the disk before it, opens, plays to its end, and shows every picture of every whole fragment.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { recover } from '../../recorder/mp4/recover.ts';
import { drawingExpression } from '../camera/frame-numbers.ts';
import { browserMissing, launchBrowser, videoState } from '../support/browser.ts';
import { encodeAudio, encodeVideo, type Encoded, type EncodedSample } from '../support/encoded-samples.ts';
import { serveRanges, type RangeServer } from '../support/range-server.ts';
import { RecordedFile, complete, readFrom } from '../support/recorded-file.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import { workspace } from '../support/workspace.ts';

const VIDEO_RATE = 90_000;
const FRAME_TICKS = 3600;
/** What only an orderly end knows: a cut behind the whole final `moov` gives another file than one before. */
const CLOSING = { lostPackets: 3, wallDurationMs: 1234 };

interface Recording {
  readonly file: RecordedFile;
  readonly video: readonly EncodedSample[];
  readonly audioRate: number;
  /** Samples of sound in the first so many fragments. */
  readonly audioTicks: (fragments: number) => number;
}

const MEDIA = {
  'H.264 and AAC': { encoder: 'keyint=10:scenecut=0', audio: 'aac' },
  'H.264 with B-frames and FLAC': { encoder: 'keyint=10:scenecut=0:bframes=2:b-adapt=0', audio: 'flac' },
  'H.264 and MP3': { encoder: 'keyint=10:scenecut=0', audio: 'mp3' },
} as const;

/** A recording whose pictures carry their numbers in the order in which they are shown. */
function record(
  directory: string,
  media: (typeof MEDIA)[keyof typeof MEDIA],
  shape: { frames: number; size: string; fragmentMs: number },
): Recording {
  const { frames, size, fragmentMs } = shape;
  const drawing = `format=yuv420p,geq=lum='${drawingExpression(0)}':cb=128:cr=128`;
  const extra = ['-vf', drawing];
  const video = encodeVideo(directory, { codec: 'h264', encoderParameters: media.encoder, size, frames, extra });
  const audio = whileShown(encodeAudio(directory, media.audio, frames / 25), frames / 25);
  const file = new RecordedFile([video.parameters, audio.parameters]);
  file.appendAll(video, audio, fragmentMs);
  const audioRate = audio.parameters.sampleRate;
  return { file, video: video.samples, audioRate, audioTicks: (count) => ticksWithin(audio, count * fragmentMs) };
}

/** Without what an encoder adds behind the end, which would be a fragment of its own. */
function whileShown<P extends { sampleRate: number }>(audio: Encoded<P>, seconds: number): Encoded<P> {
  return { ...audio, samples: audio.samples.filter(({ dts }) => dts < seconds * audio.parameters.sampleRate) };
}

function ticksWithin({ parameters, samples }: Encoded<{ sampleRate: number }>, endMs: number): number {
  const last = samples.findLast(({ dts }) => (dts * 1000) / parameters.sampleRate < endMs);
  return last ? last.dts + last.duration : 0;
}

interface Shown {
  /** The pictures' numbers, and the times at which each is on screen. */
  readonly pictures: readonly { readonly number: number; readonly seconds: number }[];
  /** With B-frames the last whole fragment may end in pictures that are shown later than their number says. */
  readonly seconds: { readonly least: number; readonly most: number };
  /** How many pictures a seek may land behind the one that was asked for. */
  readonly seekSlack: number;
}

/** What a player should make of the first so many fragments. */
function expected({ file, video, audioRate, audioTicks }: Recording, fragments: number, finished: boolean): Shown {
  const count = file.fragmentPictures.slice(0, fragments).reduce((sum, pictures) => sum + pictures, 0);
  const firstTicks = Math.min(...video.map(({ dts, compositionOffset }) => dts + compositionOffset));
  const shown = video.slice(0, count).map(({ dts, compositionOffset }) => dts + compositionOffset);
  shown.sort((a, b) => a - b);
  // A growing file has no edit list to take away what the decoder needs for reordering.
  const originTicks = finished ? firstTicks : 0;
  const audioEnd = audioTicks(fragments) / audioRate - originTicks / VIDEO_RATE;
  const videoEnd = ((shown.at(-1) ?? 0) + FRAME_TICKS - originTicks) / VIDEO_RATE;
  return {
    pictures: shown.map((ticks) => ({
      number: (ticks - firstTicks) / FRAME_TICKS,
      seconds: (ticks - originTicks + FRAME_TICKS / 2) / VIDEO_RATE,
    })),
    seconds: { least: Math.max((count * FRAME_TICKS) / VIDEO_RATE, audioEnd), most: Math.max(videoEnd, audioEnd) },
    // Without an index Chromium looks for key frames by decoding time, which is ahead of what is shown.
    seekSlack: finished ? 0 : firstTicks / FRAME_TICKS,
  };
}

interface Played {
  readonly duration: number;
  readonly ended: boolean;
  readonly frames: number;
  readonly audioBytes: number;
  readonly error: string | null;
}

class Player {
  readonly #browser: Browser;
  readonly #page: Page;
  readonly #server: RangeServer;
  readonly #closeServer: () => void;
  #count = 0;

  private constructor(browser: Browser, page: Page, server: RangeServer, closeServer: () => void) {
    this.#browser = browser;
    this.#page = page;
    this.#server = server;
    this.#closeServer = closeServer;
  }

  static async start(): Promise<Player> {
    let closeServer: () => void = () => {};
    const server = await serveRanges({ after: (close) => (closeServer = close as () => void) });
    const browser = await launchBrowser();
    const page = await browser.newPage();
    await page.goto(server.url);
    return new Player(browser, page, server, closeServer);
  }

  async close(): Promise<void> {
    await this.#browser.close();
    this.#closeServer();
  }

  /** Plays a file from its first to its last picture, or to an error. */
  play(bytes: Buffer): Promise<Played> {
    const path = `/${this.#count++}.mp4`;
    this.#server.files.clear();
    this.#server.files.set(path, bytes);
    return this.#page.evaluate<Played>(`(async () => {
      const video = document.createElement('video');
      document.body.replaceChildren(video);
      video.muted = true;
      const over = new Promise((resolve) => { video.onended = resolve; video.onerror = resolve; });
      const loaded = new Promise((resolve) => { video.onloadeddata = resolve; });
      video.src = ${JSON.stringify(path)};
      await Promise.race([loaded, over]);
      const duration = video.duration;
      await video.play().catch(() => {});
      await over;
      return {
        duration,
        ended: video.ended,
        frames: video.getVideoPlaybackQuality().totalVideoFrames,
        audioBytes: video.webkitAudioDecodedByteCount,
        error: video.error && video.error.message,
      };
    })()`);
  }

  /** The number of the picture that is on screen after a seek: the first one in an interval, or the last one that was there. */
  async numberAt(seconds: number, from: number, to: number): Promise<number> {
    // On a busy machine the picture comes some time after `seeked`; for the one that is on screen already, none comes.
    await this.#page.evaluate(`new Promise((resolve) => {
      const video = document.querySelector('video');
      const shown = new Promise((done) => { video.requestVideoFrameCallback(done); });
      // Lasts: no new picture comes.
      const same = () => new Promise((done) => { setTimeout(done, 2_000); });
      video.onseeked = () => { Promise.race([shown, same()]).then(resolve); };
      video.currentTime = ${seconds};
    })`);
    let seen = NaN;
    const isThere = async (): Promise<boolean> => {
      seen = (await videoState(this.#page, 'video')).frameNumber;
      return seen >= from && seen <= to;
    };
    await until('the picture', isThere).catch(() => {}); // the caller says which one is there instead
    return seen;
  }

  /** Asserts that a file plays with all its pictures, and that these can be seen by seeking. */
  async assertShows(bytes: Buffer, shown: Shown, what: string): Promise<void> {
    const { pictures, seekSlack } = shown;
    const { least, most } = shown.seconds;
    const { duration, ended, frames, audioBytes, error } = await this.play(bytes);
    assert.deepEqual({ ended, error }, { ended: true, error: null }, what);
    assert.equal(frames, pictures.length, `${what}: pictures played`);
    assert.ok(duration > least - 0.002 && duration < most + 0.002, `${what}: ${duration} s for ${least} to ${most} s`);
    assert.ok(audioBytes > 0, `${what}: sound`);
    // All of them were played; of those in the middle some are looked at again.
    const sought = pictures.filter((_picture, i) => LONG || i % 4 === 0 || i >= pictures.length - 3);
    for (const { number, seconds } of sought) {
      const seen = await this.numberAt(seconds, number, number + seekSlack);
      assert.ok(seen >= number && seen <= number + seekSlack, `${what}: picture ${seen} for ${number}`);
    }
  }
}

/** Every different file that recovery makes of a recording cut at every `step`th byte, with its whole fragments. */
async function distinctRecoveries(
  { file }: Recording,
  from: number,
  step: number,
): Promise<{ bytes: Buffer; fragments: number }[]> {
  const appended = Buffer.concat([file.bytes, file.writer.finish(CLOSING).tail]);
  const distinct: { bytes: Buffer; fragments: number }[] = [];
  for (let left = Math.floor((appended.length - from) / step) * step; left >= 0; left -= step) {
    const cut = appended.length - left;
    const found = await recover(...readFrom(appended.subarray(0, cut)));
    const fragments = file.fragmentEnds.filter((end) => end <= cut).length;
    assert.equal(found.kind, fragments === 0 ? 'empty' : 'recovered', `cut at ${cut}`);
    if (found.kind !== 'recovered') continue;
    assert.equal(found.cutAt, file.fragmentEnds[fragments - 1], `cut at ${cut}`);
    const bytes = complete(appended.subarray(0, found.cutAt), found.writer.finish());
    if (!distinct.at(-1)?.bytes.equals(bytes)) distinct.push({ bytes, fragments });
  }
  return distinct;
}

describe('files of a crash in Chromium', { skip: browserMissing() }, () => {
  let player: Player;
  before(async () => {
    player = await Player.start();
  });
  after(() => player.close());

  for (const [name, media] of Object.entries(MEDIA)) {
    test(`${name}: Chromium plays every file that recovery makes of a cut one`, async (t) => {
      const recording = record(workspace(t), media, { frames: 20, size: '160x96', fragmentMs: 200 });
      const distinct = await distinctRecoveries(recording, 0, LONG ? 1 : 11);
      // One for each fragment, and the one that knows how the recording ended.
      assert.deepEqual(
        distinct.map(({ fragments }) => fragments),
        [1, 2, 3, 4, 4],
      );
      for (const [i, { bytes, fragments }] of distinct.entries()) {
        await player.assertShows(bytes, expected(recording, fragments, true), `result ${i}`);
      }
    });

    test(`${name}: Chromium plays a file of ordinary size that was cut in its last 64 KiB or its end`, async (t) => {
      const recording = record(workspace(t), media, { frames: LONG ? 100 : 50, size: '320x180', fragmentMs: 440 });
      const { fragmentEnds, bytes } = recording.file;
      const from = bytes.length - 65_536;
      assert.ok(from > 0, `${bytes.length} bytes`);
      const distinct = await distinctRecoveries(recording, from, LONG ? 1 : 331);
      assert.equal(distinct.length, fragmentEnds.filter((end) => end > from).length + 2);
      for (const { bytes, fragments } of distinct) {
        await player.assertShows(bytes, expected(recording, fragments, true), `${fragments} fragments`);
      }
    });

    test(`${name}: Chromium opens each state of a file before its recovery`, async (t) => {
      const recording = record(workspace(t), media, { frames: 20, size: '160x96', fragmentMs: 200 });
      const { file } = recording;
      const open = file.bytes;
      const end = file.writer.finish(CLOSING);
      const shows = (bytes: Buffer, fragments: number, finished: boolean, what: string): Promise<void> =>
        player.assertShows(bytes, expected(recording, fragments, finished), what);
      const [, second = 0, third = 0] = file.fragmentEnds;
      await shows(open.subarray(0, second), 2, false, 'fragments only');
      for (const headBytes of [1, 8, 60]) {
        await shows(open.subarray(0, third + headBytes), 3, false, `${headBytes} bytes of a fragment's head`);
      }
      await shows(Buffer.concat([open, end.tail.subarray(0, 100)]), 4, false, 'the start of the final moov');
      await shows(Buffer.concat([open, end.tail.subarray(0, -1)]), 4, false, 'all but the last byte of the final moov');
      await shows(Buffer.concat([open, end.tail]), 4, false, 'the final moov without effect');
      await shows(complete(open, end), 4, true, 'finished');

      // Where samples are torn a decoder stumbles there: until recovery has cut them off, the pictures before can be seen.
      for (const torn of [third + 700, open.length - 100]) {
        const { frames } = await player.play(open.subarray(0, torn));
        const whole = file.fragmentEnds.filter((fragmentEnd) => fragmentEnd <= torn).length;
        const before = expected(recording, whole - 1, false).pictures;
        assert.ok(frames >= before.length, `torn at ${torn}: ${frames} pictures`);
      }
    });
  }
});
