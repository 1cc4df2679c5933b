// Time-lapses by the installed ffmpeg.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join as joinPath } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { systemClock, VirtualClock } from '../../base/clock.ts';
import { decodeFrameNumbers } from '../../test/camera/frame-numbers.ts';
import { join, numberedVideo, recordedPart, wallWindow, WALL_START_MS } from '../../test/support/joined-file.ts';
import { probe } from '../../test/support/probe.ts';
import { until } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import { FfmpegCheck, lapseDurationMs, makeTimelapse } from './ffmpeg.ts';

const run = promisify(execFile);
type Numbered = ReturnType<typeof numberedVideo>;
const watched = { progress: () => {}, spareBytes: async () => Infinity, clock: systemClock };

test('a time-lapse over a change of resolution keeps its length and its first size, and small pictures stay small', async (t) => {
  const directory = workspace(t);
  const [input, output] = [joinPath(directory, 'in.mp4'), joinPath(directory, 'out.mp4')];
  const larger = numberedVideo(directory, { size: '320x192' });
  const parts = [
    recordedPart(numberedVideo(directory)),
    recordedPart(larger, { run: 'b', wallStartMs: WALL_START_MS + 10_000 }),
  ];
  const { bytes, plan } = await join(parts, wallWindow(1_530, 14_000));
  writeFileSync(input, bytes);
  for (const speed of [2, 7, 120]) {
    const run = { program: 'ffmpeg', input, output, speed, durationMs: plan.durationMs, ...watched };
    await makeTimelapse(run, new AbortController().signal);
    const { streams, durationSeconds } = await probe(output);
    assert.deepEqual([streams.length, streams[0]?.width, streams[0]?.height], [1, 160, 96]);
    const wanted = plan.durationMs / 1000 / speed;
    assert.ok(Math.abs(durationSeconds - wanted) <= 1 / 30 + 0.001, `${durationSeconds} s for ${wanted}`);
    // x264 writes its settings into the stream: these are the ones of "veryfast" that no other preset has, and the quality.
    assert.match(readFileSync(output, 'latin1'), / subme=2 .* trellis=0 .* rc_lookahead=10 .* crf=23\.0 /);
  }
});

test('what ffmpeg says becomes the reason; without it, its absence; a cancelled run is killed', async (t) => {
  const directory = workspace(t);
  const input = joinPath(directory, 'in.mp4');
  writeFileSync(input, 'no movie');
  const run = {
    program: 'ffmpeg',
    input,
    output: joinPath(directory, 'out.mp4'),
    speed: 2,
    durationMs: 1_000,
    ...watched,
  };
  const { signal } = new AbortController();
  await assert.rejects(makeTimelapse(run, signal), {
    code: 'ffmpeg-failed',
    message: /^ffmpeg failed: .*Invalid data found/,
  });
  await assert.rejects(makeTimelapse({ ...run, program: 'no-ffmpeg' }, signal), { code: 'ffmpeg-missing' });
  const cancel = new AbortController();
  const cancelled = makeTimelapse(run, cancel.signal);
  cancel.abort(new Error('cancelled'));
  // Not what ffmpeg said when it was killed.
  await assert.rejects(cancelled, { message: 'cancelled' });
});

/** What a decoder makes of each picture of a file. */
const decoded = async (file: string): Promise<string[]> => {
  const { stdout } = await run('ffmpeg', ['-v', 'error', '-i', file, '-map', '0:v', '-f', 'framemd5', '-']);
  return stdout.split('\n').filter((line) => /^\d/.test(line));
};

for (const [name, encoder] of [
  ['plain', 'keyint=25:min-keyint=25:scenecut=0'],
  ['with B-frames', 'keyint=25:min-keyint=25:scenecut=0:bframes=3:b-adapt=0'],
  ['with open groups', 'keyint=25:min-keyint=25:scenecut=0:bframes=3:b-adapt=0:open-gop=1'],
] as const) {
  test(`${name}: a time-lapse shows the pictures that were on screen, and what is not needed for them is not decoded`, async (t) => {
    const directory = workspace(t);
    const [first, second] = [0, 1000].map((firstNumber) =>
      numberedVideo(directory, { firstNumber, frames: 200, encoder }),
    );
    const parts = [
      recordedPart(first as Numbered),
      recordedPart(second as Numbered, { run: 'b', wallStartMs: WALL_START_MS + 10_000 }),
    ];
    const window = wallWindow(530, 17_000);
    const whole = await join(parts, window);
    // On screen, by 40 ms each: 13 to 199 from 0.53 s on, then 1000 to 1174.
    const onScreen = (seconds: number): number =>
      seconds < 7.47 - 1e-9
        ? Math.floor((seconds + 0.53) * 25 + 1e-9)
        : 1000 + Math.floor((seconds - 7.47) * 25 + 1e-9);
    for (const speed of [2, 7, 120]) {
      const thinned = await join(parts, window, { looksEvery: speed * 3_000 });
      assert.equal(thinned.plan.durationMs, whole.plan.durationMs);
      const made: string[][] = [];
      for (const [i, { bytes, plan }] of [whole, thinned].entries()) {
        const [input, output] = [joinPath(directory, `in${i}.mp4`), joinPath(directory, `out${i}.mp4`)];
        writeFileSync(input, bytes);
        const lapse = { program: 'ffmpeg', input, output, speed, durationMs: plan.durationMs, ...watched };
        await makeTimelapse(lapse, new AbortController().signal);
        made.push(await decoded(output));
      }
      assert.deepEqual(made[1], made[0], `${speed}: the same pictures at the same times`);
      const count = Math.ceil(((whole.plan.durationMs / 1000) * 30) / speed - 1e-6);
      const numbers = await decodeFrameNumbers(joinPath(directory, 'out1.mp4'));
      assert.deepEqual(
        numbers,
        Array.from({ length: count }, (_, i) => onScreen((i * speed) / 30)),
        `${speed}`,
      );
      // Of groups of one second one in four is looked at, and half of it on the average.
      if (speed === 120 && name !== 'with open groups') {
        const share = thinned.plan.contents.sizeBytes / whole.plan.contents.sizeBytes;
        assert.ok(share < 0.6, `${Math.round(share * 100)} % is read`);
      }
    }
  });
}

test('a time-lapse has a picture for each time that its footage reaches, but not for less than a millisecond', () => {
  for (const [ms, speed, pictures] of [
    [24_000, 4, 180],
    [24_000.3, 4, 180],
    [24_002, 4, 181],
    [60_000, 7, 258],
    [500, 120, 1],
    [0, 2, 1],
  ] as const) {
    assert.equal(Math.round(lapseDurationMs(ms, speed) * 30), pictures * 1000, `${ms} ms, ${speed} times faster`);
  }
});

test('a time-lapse that would use the space reserved for recording is ended, with a reason', async (t) => {
  const directory = workspace(t);
  const input = joinPath(directory, 'in.mp4');
  writeFileSync(input, (await join([recordedPart(numberedVideo(directory))], wallWindow(0, 4_000))).bytes);
  const lapse = { program: 'ffmpeg', input, output: joinPath(directory, 'out.mp4'), speed: 2, durationMs: 4_000 };
  await assert.rejects(
    makeTimelapse({ ...lapse, ...watched, spareBytes: async () => -1 }, new AbortController().signal),
    {
      code: 'disk-full',
    },
  );
});

test('a crafted file makes ffmpeg open no address: neither a playlist nor a description of a session is mistaken for a movie', async (t) => {
  const directory = workspace(t);
  const [input, output] = [joinPath(directory, 'in.mp4'), joinPath(directory, 'out.mp4')];
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.ts`;
  const lapse = { program: 'ffmpeg', input, output, speed: 2, durationMs: 1_000, ...watched };
  for (const crafted of [
    `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n${url}\n#EXT-X-ENDLIST\n`,
    `ffconcat version 1.0\nfile ${url}\n`,
    `v=0\no=- 0 0 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 45678 RTP/AVP 96\na=rtpmap:96 H264/90000\n`,
  ]) {
    writeFileSync(input, crafted);
    await assert.rejects(makeTimelapse(lapse, new AbortController().signal), {
      message: /Invalid data found|moov atom not found/,
    });
  }
  assert.equal(connections, 0);
});

test('whether ffmpeg is there is told at once after the first time, and a program that has gone is noticed', async (t) => {
  const directory = workspace(t);
  const [program, mayEnd] = [joinPath(directory, 'ffmpeg'), joinPath(directory, 'may-end')];
  const clock = new VirtualClock();
  const check = new FfmpegCheck(program, clock);
  assert.equal(await check.seemsThere(), false);
  clock.advance(10_000);
  writeFileSync(program, '#!/bin/sh\nexit 0\n');
  chmodSync(program, 0o755);
  assert.equal(await check.seemsThere(), true);
  writeFileSync(program, `#!/bin/sh\nwhile ! [ -e ${mayEnd} ]; do sleep 0.02; done\nexit 1\n`);
  clock.advance(10_000);
  assert.equal(await check.seemsThere(), true, 'while the check still runs');
  writeFileSync(mayEnd, '');
  await until('it is noticed', async () => !(await check.seemsThere()));
});
