import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { AUDIO, VIDEO, runOf, segmentPaths } from '../../archive/test-support.ts';
import { carriedTime, resolved, samplesOf, stage, type PlayedSample, type Stage } from '../test-support.ts';

interface Part {
  readonly seconds: number;
  readonly bytes: Buffer;
}

interface Run {
  readonly startMs: number;
  readonly init: string;
  readonly parts: Part[];
}

interface Playlist {
  readonly tags: ReadonlyMap<string, string>;
  readonly ended: boolean;
  readonly runs: readonly Run[];
}

/** Reads a playlist as a player does, parts and all. */
async function load({ app }: Pick<Stage, 'app'>, url: string): Promise<Playlist> {
  const answer = await app.inject(url);
  assert.equal(answer.statusCode, 200, answer.body);
  assert.equal(answer.headers['content-type'], 'application/vnd.apple.mpegurl');
  const tags = new Map<string, string>();
  const runs: Run[] = [];
  let init = '';
  let seconds = 0;
  let range: string | undefined;
  let ended = false;
  let discontinuous = true;
  for (const line of answer.body.trimEnd().split('\n')) {
    const [, tag = '', value = ''] = /^(#EXT[A-Z0-9-]*):?(.*)$/.exec(line) ?? [];
    if (tag === '#EXT-X-DISCONTINUITY') discontinuous = true;
    else if (tag === '#EXT-X-MAP') init = resolved(/^URI="(.*)"$/.exec(value)?.[1] ?? '', url);
    else if (tag === '#EXT-X-PROGRAM-DATE-TIME') {
      assert.ok(discontinuous, 'times begin anew only at a discontinuity');
      runs.push({ startMs: Date.parse(value), init, parts: [] });
      discontinuous = false;
    } else if (tag === '#EXTINF') seconds = Number.parseFloat(value);
    else if (tag === '#EXT-X-BYTERANGE') range = value;
    else if (tag === '#EXT-X-ENDLIST') ended = true;
    else if (tag !== '') tags.set(tag, value);
    else {
      const [length = 0, offset = 0] = range?.split('@').map(Number) ?? [];
      const headers = range === undefined ? {} : { range: `bytes=${offset}-${offset + length - 1}` };
      range = undefined;
      const part = await app.inject({ url: resolved(line, url), headers });
      assert.ok(part.statusCode === 200 || part.statusCode === 206, `${line}: ${part.statusCode}`);
      runs.at(-1)?.parts.push({ seconds, bytes: part.rawPayload });
    }
  }
  return { tags, ended, runs };
}

async function tracksOf(run: Run): Promise<{ video: PlayedSample[]; audio: PlayedSample[] }> {
  const video: PlayedSample[] = [];
  const audio: PlayedSample[] = [];
  for (const { bytes } of run.parts) {
    const tracks = await samplesOf(bytes);
    const pictures = tracks.get(1) ?? [];
    assert.equal(pictures[0]?.sync, true, 'each part begins with a key frame');
    video.push(...pictures);
    audio.push(...(tracks.get(2) ?? []));
  }
  return { video, audio };
}

const secondsOf = (run: Run): number => run.parts.reduce((sum, { seconds }) => sum + seconds, 0);

for (const format of ['fmp4', 'mp4'] as const) {
  test(`${format}: a playlist lists each picture of an interval with gaps once, and when it was captured`, async (t) => {
    const stand = await stage(t, { format });
    const { camera, fs, clock, start } = stand;
    camera.begin(runOf({ audio: AUDIO }));
    await camera.play(50, fs);
    camera.end('camera-lost');
    clock.advance(100_000);
    camera.begin(runOf({ runId: '00000000000000bb', audio: AUDIO }));
    await camera.play(20, fs);
    camera.end('camera-lost');
    await fs.idle();
    const { tags, ended, runs } = await load(stand, `/hls/gate/index.m3u8?from=${start}&to=${start + 170}`);
    assert.ok(ended);
    assert.equal(tags.get('#EXT-X-PLAYLIST-TYPE'), 'VOD');
    assert.deepEqual(
      runs.map((run) => [run.startMs / 1000 - start, Math.round(secondsOf(run) * 100) / 100]),
      [
        [0, 30],
        [30, 20],
        [150, 20],
      ],
    );
    // The same parameters: a player fetches them once.
    assert.equal(new Set(runs.map(({ init }) => init)).size, 1);
    for (const run of runs) {
      for (const { seconds } of run.parts) assert.ok(seconds <= Number(tags.get('#EXT-X-TARGETDURATION')));
      const { video, audio } = await tracksOf(run);
      const first = carriedTime(video[0] as PlayedSample);
      video.forEach((picture, i) => {
        assert.equal(picture.dts, i * 3600);
        assert.equal(carriedTime(picture), first + i * 3600);
      });
      assert.equal(video.length, Math.round(secondsOf(run) * 25));
      assert.ok(audio.length > (video.length / 25) * 46);
      audio.forEach((frame, i) => assert.equal(frame.dts, (audio[0] as PlayedSample).dts + i * 1024));
    }
    const init = await stand.app.inject(runs[0]?.init ?? '');
    assert.deepEqual([init.statusCode, init.headers['content-type']], [200, 'video/mp4']);
    assert.equal(init.rawPayload.toString('latin1', 4, 8), 'ftyp');
  });
}

test('an interval begins with the part in which it lies, and says how far in', async (t) => {
  const stand = await stage(t, { segmentDurationMs: 60_000 });
  const { camera, fs, start } = stand;
  camera.begin();
  await camera.play(90, fs);
  const { tags, runs } = await load(stand, `/hls/gate/index.m3u8?from=${start + 20.5}&to=${start + 31}`);
  const [run] = runs;
  assert.ok(run && runs.length === 1);
  const offset = Number.parseFloat(/TIME-OFFSET=([\d.]+)/.exec(tags.get('#EXT-X-START') ?? '')?.[1] ?? '');
  assert.equal(run.startMs / 1000 + offset, start + 20.5);
  assert.ok(offset < 8);
  assert.ok(run.startMs / 1000 + secondsOf(run) >= start + 31);
  const { video } = await tracksOf(run);
  assert.equal(carriedTime(video[0] as PlayedSample), 900_000 + (run.startMs - start * 1000) * 90);
});

test('a playlist of what is being recorded grows by whole parts and never changes what it said', async (t) => {
  const stand = await stage(t, { segmentDurationMs: 40_000 });
  const { app, camera, fs, start } = stand;
  const url = `/hls/gate/index.m3u8?from=${start}`;
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(9, fs);
  const lines = async (): Promise<string[]> => {
    const { body } = await app.inject(url);
    assert.doesNotMatch(body, /ENDLIST/);
    // Retention may take from its front, which EVENT rules out.
    assert.doesNotMatch(body, /PLAYLIST-TYPE/);
    return body.trimEnd().split('\n');
  };
  let before = await lines();
  let grown = 0;
  for (let second = 0; second < 80; second++) {
    await camera.play(1, fs);
    const now = await lines();
    assert.deepEqual(now.slice(0, before.length), before);
    if (now.length > before.length) grown++;
    before = now;
  }
  assert.ok(grown >= 10, `${grown} times`);
});

/** Seconds from a key frame to the next, and what playlists promise then. */
const KEY_FRAME_DISTANCES: { seconds: number; target: number }[] = [
  { seconds: 1, target: 10 },
  { seconds: 4.4, target: 10 },
  { seconds: 7, target: 10 },
  { seconds: 10, target: 10 },
  { seconds: 24, target: 40 },
];
for (const { seconds, target } of KEY_FRAME_DISTANCES) {
  test(`key frames every ${seconds} s: each part begins with one, and none is longer than ${target} s`, async (t) => {
    const stand = await stage(t, { segmentDurationMs: 60_000 });
    const { app, camera, fs, clock, start } = stand;
    camera.keyFrameInterval = Math.round(seconds * 25);
    camera.begin();
    await camera.play(62, fs);
    const { body } = await app.inject(`/hls/gate/index.m3u8?from=${start}`);
    assert.match(body, new RegExp(`^#EXT-X-TARGETDURATION:${target}$`, 'm'));
    camera.end('camera-lost');
    await fs.idle();
    clock.advance(100_000);
    const { tags, runs } = await load(stand, `/hls/gate/index.m3u8?from=${start}&to=${start + 60}`);
    assert.equal(tags.get('#EXT-X-TARGETDURATION'), `${target}`);
    const durations = runs.flatMap(({ parts }) => parts.map((part) => part.seconds));
    assert.ok(Math.max(...durations) < target + 0.5, durations.join());
    assert.ok(durations.reduce((a, b) => a + b, 0) >= 60);
    for (const run of runs) await tracksOf(run);
  });
}

test('a camera that sends key frames more seldom changes nothing that a playlist has said', async (t) => {
  const stand = await stage(t, { segmentDurationMs: 300_000 });
  const { app, camera, fs, start, clock } = stand;
  const lines = async (): Promise<string[]> => {
    const { body } = await app.inject(`/hls/gate/index.m3u8?from=${start}`);
    return body.trimEnd().split('\n');
  };
  camera.begin();
  await camera.play(30, fs);
  const before = await lines();
  camera.keyFrameInterval = 20 * 25;
  await camera.play(60, fs);
  // And one picture that stays for longer than a part may.
  camera.video({ ticks: 14 * 90_000 });
  clock.advance(14_000);
  await camera.play(30, fs);
  const now = await lines();
  assert.ok(now.length > before.length + 10);
  assert.deepEqual(now.slice(0, before.length), before);
  for (const line of now) assert.ok(!line.startsWith('#EXTINF:') || Number.parseFloat(line.slice(8)) < 10.5, line);
  camera.end('camera-lost');
  await fs.idle();
  clock.advance(100_000);
  const after = await lines();
  assert.deepEqual(after.slice(0, now.length), now);
  assert.equal(after.at(-1), '#EXT-X-ENDLIST', 'the only other thing that may come');
});

test('a playlist ends when the camera is gone for a while, and not while it connects again', async (t) => {
  const stand = await stage(t);
  const { app, camera, fs, clock, start } = stand;
  const url = `/hls/gate/index.m3u8?from=${start}`;
  const ended = async (): Promise<boolean> => (await app.inject(url)).body.includes('#EXT-X-ENDLIST');
  camera.begin();
  await camera.play(20, fs);
  assert.equal(await ended(), false);
  camera.end('camera-lost');
  await fs.idle();
  clock.advance(30_000);
  assert.equal(await ended(), false);
  clock.advance(40_000);
  assert.equal(await ended(), true);
});

test('other parameters get an initialization section of their own', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start, clock } = stand;
  const larger = {
    ...VIDEO,
    width: 320,
    height: 192,
    sps: [Buffer.from('6742c00bd90141fb0110000003001000000300320f14a480', 'hex')],
  };
  for (const video of [VIDEO, larger, VIDEO]) {
    camera.begin(runOf({ lead: video }));
    await camera.play(10, fs);
    camera.end('parameters');
    clock.advance(5_000);
  }
  await fs.idle();
  const { runs } = await load(stand, `/hls/gate/index.m3u8?from=${start}&to=${start + 40}`);
  const [a, b, c] = runs.map(({ init }) => init);
  assert.notEqual(a, b);
  assert.equal(a, c);
});

test('where pictures are reordered, a part shows its first picture when it is decoded', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start, recording, clock } = stand;
  camera.begin(runOf({ audio: AUDIO }));
  // Two pictures later than they are decoded, as with B-frames.
  const send = recording.sample.bind(recording);
  recording.sample = (sample) => send(sample.kind === 'video' ? { ...sample, compositionOffset: 7200 } : sample);
  await camera.play(20, fs);
  camera.end('camera-lost');
  await fs.idle();
  clock.advance(100_000);
  const { runs } = await load(stand, `/hls/gate/index.m3u8?from=${start}&to=${start + 60}`);
  const { video, audio } = await tracksOf(runs[0] as Run);
  assert.equal(video.length, 500);
  video.forEach(({ dts, pts }, i) => assert.deepEqual([dts, pts], [i * 3600, i * 3600]));
  // Sound goes with the picture: what was heard before the first picture is left out.
  const firstAudio = audio[0] as PlayedSample;
  assert.ok(firstAudio.dts >= 0 && firstAudio.dts < 1024);
  audio.forEach((frame, i) => assert.equal(frame.dts, firstAudio.dts + i * 1024));
});

test('a file that is gone leaves a gap', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start, root, app } = stand;
  camera.begin();
  await camera.play(100, fs);
  const url = `/hls/gate/index.m3u8?from=${start}&to=${start + 90}`;
  assert.equal((await load(stand, url)).runs.length, 3);
  const [, gone = ''] = segmentPaths(root);
  rmSync(join(root, gone));
  stand.clock.advance(60_000);
  const { runs } = await load(stand, url);
  assert.deepEqual(
    runs.map(({ startMs }) => startMs / 1000 - start),
    [0, 60],
  );
  assert.equal((await app.inject(`/hls/gate/init/${gone}`)).statusCode, 404);
});

/** Addresses of parts by their numbers, `gap` for those that are said to be gone; and the discontinuities behind the front. */
async function numbered({ app }: Pick<Stage, 'app'>, url: string) {
  const { body, statusCode } = await app.inject(url);
  assert.equal(statusCode, 200, body);
  const value = (tag: string): number => Number(new RegExp(`^#${tag}:(\\d+)$`, 'm').exec(body)?.[1]);
  const first = value('EXT-X-MEDIA-SEQUENCE');
  const parts = new Map<number, string>();
  let discontinuity = value('EXT-X-DISCONTINUITY-SEQUENCE');
  let range = '';
  let gap = false;
  for (const line of body.trimEnd().split('\n')) {
    if (line === '#EXT-X-DISCONTINUITY') discontinuity++;
    else if (line.startsWith('#EXT-X-BYTERANGE:')) range = line.slice(17);
    else if (line === '#EXT-X-GAP') gap = true;
    else if (!line.startsWith('#')) {
      parts.set(first + parts.size, gap ? 'gap' : `${line} ${range} ${discontinuity}`);
      gap = false;
    }
  }
  return { first, parts, version: value('EXT-X-VERSION'), body };
}

test('files that go at the front of a playlist that is followed: its first number rises, and no number means another part', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start, root, app } = stand;
  camera.begin();
  await camera.play(130, fs);
  const url = `/hls/gate/index.m3u8?from=${start + 10}`;
  const before = await numbered(stand, url);
  const [a = '', b = ''] = segmentPaths(root);
  for (const path of [a, b]) rmSync(join(root, path));
  stand.clock.advance(6_000);
  await camera.play(20, fs);
  const now = await numbered(stand, url);
  const removed = [...before.parts.values()].filter((part) => part.includes(a) || part.includes(b)).length;
  assert.ok(removed >= 4);
  assert.equal(now.first, before.first + removed);
  for (const [number, part] of before.parts) if (number >= now.first) assert.equal(now.parts.get(number), part);
  assert.ok(now.parts.size > before.parts.size - removed, 'and it grows');
  assert.deepEqual([before.version, now.version], [8, 8]);
  for (const path of [`/hls/gate/parts/0/${a}`, `/${a}`]) assert.equal((await app.inject(path)).statusCode, 404);
});

test('a file that goes from the middle of a playlist that is followed stays listed as a gap', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start, root, clock } = stand;
  camera.begin();
  await camera.play(130, fs);
  const url = `/hls/gate/index.m3u8?from=${start}`;
  const before = await numbered(stand, url);
  const gone = segmentPaths(root)[1] ?? '';
  rmSync(join(root, gone));
  clock.advance(6_000);
  const now = await numbered(stand, url);
  assert.equal(now.first, before.first);
  assert.equal(now.version, 8);
  for (const [number, part] of before.parts) assert.equal(now.parts.get(number), part.includes(gone) ? 'gap' : part);
  // Who has not seen it is not told of it.
  const other = await numbered(stand, `/hls/gate/index.m3u8?from=${start}&to=${start + 9_000}`);
  assert.ok(![...other.parts.values()].includes('gap'));
});

test('without from, the last hour is one playlist: what becomes older than that goes at its front', async (t) => {
  const stand = await stage(t, { segmentDurationMs: 600_000 });
  const { camera, fs } = stand;
  camera.framesPerSecond = 1;
  camera.keyFrameInterval = 2;
  camera.begin();
  await camera.play(3_700, fs);
  const meant = new Map<number, string>();
  let last = -Infinity;
  for (let i = 0; i < 40; i++) {
    const { first, parts, body } = await numbered(stand, '/hls/gate/index.m3u8');
    assert.match(body, /^#EXT-X-START:TIME-OFFSET=0\.000,/m);
    assert.ok((first >= last && first <= last + 8) || i === 0, `${first} after ${last}`);
    last = first;
    for (const [number, part] of parts) {
      assert.equal(meant.get(number) ?? part, part);
      meant.set(number, part);
    }
    await camera.play(31, fs);
  }
});

const REFUSED: { query: string; status: number; code: string }[] = [
  { query: 'from=yesterday', status: 400, code: 'invalid-parameter' },
  { query: 'from=10&to=10', status: 400, code: 'invalid-interval' },
  { query: 'from=20&to=10', status: 400, code: 'invalid-interval' },
  { query: 'from=0&to=90001', status: 400, code: 'interval-too-wide' },
  { query: 'from=1e99', status: 400, code: 'invalid-parameter' },
  { query: 'from=0&to=60', status: 404, code: 'no-footage' },
  { query: '', status: 404, code: 'no-footage' },
];
for (const { query, status, code } of REFUSED) {
  test(`an interval of "${query}" is ${status}, ${code}`, async (t) => {
    const { app } = await stage(t);
    for (const url of [`/hls/gate/index.m3u8?${query}`, `/window/gate.mp4?${query}`]) {
      const answer = await app.inject(url);
      assert.deepEqual([answer.statusCode, answer.json().code], [status, code]);
    }
  });
}
