// Playback in Chromium: files that grow, playlists with hls.js, windows of time. Every picture carries its number, so
// that what is on screen is known.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { silentLog } from '../../base/log.ts';
import { segmentPaths } from '../../recorder/archive/test-support.ts';
import { openFootage } from '../../recorder/footage/open.ts';
import { Authenticator } from '../../recorder/http/auth.ts';
import { buildPlayback } from '../../recorder/playback/app.ts';
import { writeDay } from '../bench/archive.ts';
import { cameraId } from '../bench/recorder.ts';
import { startCamera } from '../camera/camera.ts';
import { audioMedia, videoMedia, type VideoName } from '../camera/media.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { browserMissing } from '../support/browser.ts';
import { Footage, type FootageCamera } from '../support/footage.ts';
import { decodingErrors, probe } from '../support/probe.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { workspace } from '../support/workspace.ts';
import { PlayerPage } from './player-page.ts';
import { until } from '../support/until.ts';

const START_MS = Date.UTC(2026, 0, 1, 12);
const FRAMES_PER_SECOND = 25;
/** Pictures begin anew after ten seconds. */
const NUMBERS = 250;

interface Stage {
  readonly footage: Footage;
  readonly camera: FootageCamera;
  readonly url: string;
  /** Seconds since the start of the footage as seconds since 1970. */
  readonly at: (seconds: number) => number;
}

async function stage(t: TestContext, segmentSeconds: number, video: VideoName = 'h264-bframes'): Promise<Stage> {
  const footage = await Footage.open(t, { startMs: START_MS });
  const camera = footage.camera({
    video: await videoMedia(video),
    audio: await audioMedia('aac'),
    segmentDurationMs: segmentSeconds * 1000,
  });
  const playback = await buildPlayback({
    version: '1.2.3',
    auth: new Authenticator({ mode: 'none', tokens: [] }),
    footage: openFootage({ recordPath: footage.root, archive: footage.archive, clock: footage.clock, log: silentLog }),
    clock: footage.clock,
    log: silentLog,
  });
  const url = await playback.listen({ host: '127.0.0.1', port: 0 });
  t.after(() => playback.close());
  return { footage, camera, url, at: (seconds) => START_MS / 1000 + seconds };
}

/** Pictures from `a` to `b`, where their numbers begin anew. */
const distance = (a: number, b: number): number => {
  const forward = (((b - a) % NUMBERS) + NUMBERS) % NUMBERS;
  return Math.min(forward, NUMBERS - forward);
};

const numberAt = (seconds: number): number => Math.floor(seconds * FRAMES_PER_SECOND + 1e-6) % NUMBERS;

/** Files of the archive that this process has open. */
const openFiles = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).endsWith('.mp4');
    } catch {
      return false;
    }
  }).length;

describe('playback in Chromium', { skip: browserMissing() }, () => {
  test('a file that is still written plays from its start to its live end, and seeks', async (t) => {
    const { footage, camera, url } = await stage(t, 300);
    camera.begin();
    await camera.play(40);
    const [path] = segmentPaths(footage.root);
    const player = await PlayerPage.open(t);
    await player.source(`${url}/${path}`);
    const duration = await player.read<number>('document.querySelector("video").duration');
    assert.ok(duration > 39 && duration < 40.1, `${duration} s of 40 s`);
    for (const seconds of [30, 2, 39, 17.4]) {
      // It grows meanwhile.
      await camera.play(3);
      await player.seek(seconds + 0.02);
      const { frameNumber } = await player.state();
      assert.equal(frameNumber, numberAt(seconds + 0.02));
    }
    await player.seek(0);
    await player.play();
    await player.until('it plays', ({ currentTime, audioBytes }) => currentTime > 1 && audioBytes > 0);
    await player.seek(duration - 1);
    await player.play();
    await until('it reaches its live end', () => player.read<boolean>('document.querySelector("video").ended'));
    // Asked again, it is longer.
    await player.source(`${url}/${path}`);
    assert.ok((await player.read<number>('document.querySelector("video").duration')) > 51);
  });

  test('a window begins with the picture of the asked moment and continues over files and gaps', async (t) => {
    const { camera, url, at } = await stage(t, 10);
    camera.begin();
    await camera.play(25);
    camera.end('camera-lost');
    camera.recording.tick();
    const player = await PlayerPage.open(t);
    for (const seconds of [3.5, 8.02, 13.98]) {
      await player.source(`${url}/window/gate.mp4?from=${at(seconds + 0.01)}&to=${at(24)}`);
      await player.play();
      // A slow computer shows a picture late now and then.
      await player.until(
        `it plays from ${seconds} s`,
        ({ currentTime, frameNumber }) =>
          currentTime > 0.3 && distance(frameNumber, numberAt(seconds + 0.01 + currentTime)) <= 2,
      );
    }
    await player.source(`${url}/window/gate.mp4?from=${at(8)}&to=${at(13)}`);
    await player.play();
    const { currentTime } = await player.until('it ends', () => true);
    assert.ok(currentTime >= 0);
    await player.until('it plays to its end', (state) => state.currentTime > 4.9);
  });

  for (const video of ['h264', 'h264-bframes'] as const) {
    test(`hls.js plays an archive of ${video} with gaps, and seeks in all of it`, async (t) => {
      const { footage, camera, url, at } = await stage(t, 10, video);
      camera.begin();
      await camera.play(24);
      camera.end('camera-lost');
      footage.clock.advance(30_000);
      camera.begin();
      await camera.play(24);
      camera.end('camera-lost');
      await footage.fs.idle();
      const player = await PlayerPage.open(t);
      // 3 s into the first run up to the end of the second.
      await player.hls(`${url}/hls/gate/index.m3u8?from=${at(3)}&to=${at(80)}`);
      const duration = await player.read<number>('document.querySelector("video").duration');
      assert.ok(Math.abs(duration - 48) < 0.3, `${duration} s`);
      const start = await player.read<number>('document.querySelector("video").currentTime');
      assert.ok(Math.abs(start - 3) < 0.1, `begins at ${start} s`);
      // The time line of the player closes the gap: 24 s in is the start of the second run.
      for (const seconds of [5.5, 12.3, 22, 26.2, 35.5, 46.5, 1.1]) {
        await player.seek(seconds);
        const { frameNumber } = await player.until(`picture at ${seconds} s`, (state) => state.frameNumber >= 0);
        const inRun = seconds < 24 ? seconds : seconds - 24;
        assert.ok(
          distance(frameNumber, numberAt(inRun)) <= 3,
          `${frameNumber} instead of ${numberAt(inRun)} at ${seconds} s`,
        );
      }
      await player.seek(30);
      const date = await player.read<number>('hls.playingDate.getTime()');
      assert.ok(Math.abs(date - (START_MS + 60_000)) < 200, `${new Date(date).toISOString()} is on screen`);
      await player.seek(22.5);
      await player.play();
      await player.until('it plays over the gap', ({ currentTime }) => currentTime > 25.5);
      assert.deepEqual(player.complaints, []);
    });

    test(`hls.js follows a file of ${video} that is being written, over its end and into the next`, async (t) => {
      const { camera, url, at } = await stage(t, 20, video);
      camera.begin();
      await camera.play(18);
      const player = await PlayerPage.open(t);
      await player.hls(`${url}/hls/gate/index.m3u8?from=${at(0)}`);
      await player.seek(13);
      await player.play();
      for (let second = 0; second < 24; second += 2) await camera.play(2);
      await player.until(
        'it is in the second file',
        ({ currentTime, frameNumber }) => currentTime > 22 && distance(frameNumber, numberAt(currentTime)) <= 5,
      );
      assert.deepEqual(player.complaints, []);
    });
  }

  test('hls.js follows a camera with a key frame a minute, and seeks to any picture between', async (t) => {
    const { camera, url, at } = await stage(t, 300, 'h264-long-gop');
    camera.begin();
    await camera.play(125);
    const player = await PlayerPage.open(t);
    await player.hls(`${url}/hls/gate/index.m3u8?from=${at(0)}`);
    assert.equal(await player.read('hls.levels[0].details.targetduration'), 80);
    for (const seconds of [35.1, 5.1, 83.1]) {
      await player.seek(seconds);
      const wanted = Math.floor(seconds * camera.video.framesPerSecond);
      await player.until(`picture ${wanted}`, ({ frameNumber }) => Math.abs(frameNumber - wanted) <= 1);
    }
    assert.deepEqual(player.complaints, []);
  });

  test('hls.js continues where old files go at the front, and where one goes between two that are kept', async (t) => {
    const { camera, url, at, footage } = await stage(t, 10, 'h264');
    camera.begin();
    await camera.play(78);
    const player = await PlayerPage.open(t);
    await player.hls(`${url}/hls/gate/index.m3u8?from=${at(0)}`);
    const details = (what: string): Promise<number> => player.read(`hls.levels[0].details.${what}`);
    const first = await details('startSN');
    const assertPicture = async (seconds: number, what: string): Promise<void> => {
      await player.seek(seconds);
      const { frameNumber } = await player.until(what, (state) => state.frameNumber >= 0);
      assert.ok(distance(frameNumber, numberAt(seconds)) <= 3, `${what}: ${frameNumber}, not ${numberAt(seconds)}`);
    };
    await assertPicture(24.5, 'before');
    const paths = segmentPaths(footage.root);
    for (const gone of [0, 1, 4]) rmSync(join(footage.root, paths[gone] as string));
    await camera.play(10);
    // Others' changes in a directory that is written to are noticed within a minute.
    footage.clock.advance(61_000);
    await until('it has heard of it', async () => (await details('startSN')) > first);
    assert.equal(await details('startSN'), first + 4, 'two files of two parts each');
    assert.ok((await details('totalduration')) > 55);
    await assertPicture(31, 'behind what has gone');
    await assertPicture(65.5, 'behind the gap');
    await player.seek(38);
    await player.play();
    await player.until(
      'it plays over the gap',
      ({ currentTime, frameNumber }) => currentTime > 51.5 && distance(frameNumber, numberAt(currentTime)) <= 5,
    );
    assert.deepEqual(player.complaints, []);
  });

  test('hls.js says so when it comes to a file that has gone, and plays the rest when it asks again', async (t) => {
    const { camera, url, at, footage } = await stage(t, 10, 'h264');
    camera.begin();
    await camera.play(45);
    camera.end('camera-lost');
    await footage.fs.idle();
    footage.clock.advance(61_000);
    const player = await PlayerPage.open(t);
    const interval = `${url}/hls/gate/index.m3u8?from=${at(0)}&to=${at(45)}`;
    await player.hls(interval);
    rmSync(join(footage.root, segmentPaths(footage.root)[4] as string));
    await player.seek(39.5);
    await player.play();
    await until('it says so', () => player.refusals.includes('fragLoadError 404'));
    footage.clock.advance(61_000);
    player.refusals.length = 0;
    await player.hls(interval);
    assert.ok(Math.abs((await player.read<number>('document.querySelector("video").duration')) - 40) < 0.3);
    await player.seek(33.3);
    const { frameNumber } = await player.until('a picture', (state) => state.frameNumber >= 0);
    assert.ok(distance(frameNumber, numberAt(33.3)) <= 3);
    assert.deepEqual([...player.complaints, ...player.refusals], []);
  });
});

for (const video of ['h264', 'h264-bframes'] as const) {
  test(`ffprobe finds each picture and sound of ${video} in a playlist over files and a gap`, async (t) => {
    const { footage, camera, url, at } = await stage(t, 10, video);
    for (let run = 0; run < 2; run++) {
      camera.begin();
      await camera.play(24);
      camera.end('camera-lost');
      footage.clock.advance(30_000);
    }
    await footage.fs.idle();
    const playlist = `${url}/hls/gate/index.m3u8?from=${at(0)}&to=${at(90)}`;
    const { streams, durationSeconds } = await probe(playlist);
    const [pictures, sounds] = streams.map(({ codec_name, nb_read_packets }) => ({ codec_name, n: +nb_read_packets }));
    assert.deepEqual(pictures, { codec_name: 'h264', n: 48 * FRAMES_PER_SECOND });
    assert.equal(sounds?.codec_name, 'aac');
    // What is heard before the first picture of a file is left out.
    assert.ok(Math.abs((sounds?.n ?? 0) / (48 * 15.625) - 1) < 0.02, `${sounds?.n} sounds`);
    assert.ok(Math.abs(durationSeconds - 48) < 0.2, `${durationSeconds} s`);
    assert.equal(await decodingErrors(playlist), '');
  });
}

/** The most memory that a process ever had, bytes; undefined where the system does not tell. */
function peakMemory(pid: number): number | undefined {
  try {
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}

test('a file of any length and a window over many are sent with the memory of a few buffers', async (t) => {
  const directory = workspace(t);
  // Ten minutes of 4 Mbit/s, whose pictures are holes: nothing of it is on the disk.
  const startMs = Date.UTC(2026, 0, 1);
  writeDay(join(directory, 'recordings'), 0, startMs, 2);
  await using recorder = await RecorderProcess.start({ directory, config: {} });
  const before = peakMemory(recorder.child.pid);
  if (before === undefined) {
    t.skip('this system does not say how much memory a process has had');
    return;
  }
  const [path] = await recorder.files();
  const from = startMs / 1000;
  const urls = [`/${path}`, `/window/${cameraId(0)}.mp4?from=${from}&to=${from + 600}`];
  let sent = 0;
  for (const url of urls) {
    const answer = await fetch(recorder.playbackUrl + url);
    assert.equal(answer.status, 200);
    for await (const chunk of answer.body ?? []) sent += chunk.length;
  }
  const grown = (peakMemory(recorder.child.pid) ?? NaN) - before;
  t.diagnostic(`${Math.round(sent / 1e6)} MB sent, ${Math.round(grown / 1e6)} MB more memory at most`);
  assert.ok(sent > 400e6);
  assert.ok(grown < 60e6, `${grown} bytes`);
});

test('a reader that goes away leaves no file open', async (t) => {
  const { camera, url, at, footage } = await stage(t, 10);
  camera.begin();
  await camera.play(60);
  const [path] = segmentPaths(footage.root);
  const before = openFiles();
  for (const target of [`/window/gate.mp4?from=${at(0)}`, `/${path}`]) {
    for (let i = 0; i < 20; i++) {
      const abort = new AbortController();
      const answer = await fetch(url + target, { signal: abort.signal });
      await answer.body?.getReader().read();
      abort.abort();
    }
  }
  await until('its files are closed', () => openFiles() === before);
});

/** A way to a server that notes the addresses which are requested. */
async function askedThrough(server: string) {
  const asked: string[] = [];
  const door = createServer((request, response) => {
    asked.push(request.url ?? '');
    const headers = Object.entries(request.headers).filter(([name]) => ['range', 'icy-metadata'].includes(name)) as [
      string,
      string,
    ][];
    void fetch(server + request.url, { redirect: 'manual', headers }).then(async (answer) => {
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      response.end(Buffer.from(await answer.arrayBuffer()));
    });
  }).listen(0, '127.0.0.1');
  await once(door, 'listening');
  const { port } = door.address() as AddressInfo;
  return {
    asked,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      door.closeAllConnections();
      door.close();
      await once(door, 'close');
    },
  };
}

test('what is recorded now is reported, and plays, only while it is recorded as fMP4', async (t) => {
  const tracks = [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))];
  await using camera = await startCamera({ tracks, pace: 'realtime' });
  await using recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      cameras: [
        { id: 'gate', source: camera.url },
        { id: 'yard', source: camera.url, record: { format: 'mp4' } },
        { id: 'hall', source: camera.url, enabled: false },
      ],
    },
  });
  await recorder.untilRecording('gate', 'yard');
  const current = (id: string) => fetch(`${recorder.url}/api/archive/${id}/current`);
  const reported = await until('some seconds are recorded', async () => {
    const answer = await current('gate');
    if (!answer.ok) return undefined;
    const body = (await answer.json()) as { filename: string; size: number };
    return body.size > 100_000 ? body : undefined;
  });
  const url = `${recorder.playbackUrl}/${reported.filename}`;
  // ffprobe, like any player, follows the way from the file to a state of it.
  const { streams, durationSeconds } = await probe(url);
  assert.deepEqual(
    streams.map(({ codec_name }) => codec_name),
    ['h264', 'aac'],
  );
  assert.ok(durationSeconds > 0.8, `${durationSeconds} s`);
  // It reads the index at the end of that state, however far the file has grown meanwhile.
  await using door = await askedThrough(recorder.playbackUrl);
  await probe(`${door.url}/${reported.filename}`);
  const [first, ...others] = door.asked;
  assert.equal(first, `/${reported.filename}`);
  assert.ok(others.length > 1);
  assert.deepEqual([...new Set(others)], [others[0]]);
  assert.equal(await decodingErrors(url), '');
  assert.equal(await decodingErrors(`${url}?size=${reported.size}`), '');
  const cameras = (await recorder.get('/api/cameras')) as { cameras: { node: { playback: string } }[] };
  assert.equal(cameras.cameras[0]?.node.playback, recorder.playbackUrl);

  for (const id of ['yard', 'hall', 'nobody']) assert.equal((await current(id)).status, 404, id);
  await camera.close();
  await until('nothing is recorded any more', async () => (await current('gate')).status === 404);
  // The same address, now of a finished file.
  assert.equal(await decodingErrors(url), '');
  const yard = (await recorder.files()).find((file) => file.includes('_yard_'));
  assert.equal(await decodingErrors(`${recorder.playbackUrl}/${yard}`), '');
});
