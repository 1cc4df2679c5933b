import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readlinkSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { AUDIO, VIDEO, runOf, segmentPaths } from '../archive/test-support.ts';
import { parameterSetsOf } from '../mp4/entry-sets.ts';
import { sampleEntry } from '../mp4/sample-entry.ts';
import { carriedTime, resolved, samplesOf, stage, type PlayedSample, type Stage } from './test-support.ts';

const FRAME = 3600;

interface Window {
  readonly video: PlayedSample[];
  readonly audio: PlayedSample[];
}

async function load({ app }: Pick<Stage, 'app'>, url: string): Promise<Window> {
  const answer = await app.inject(url);
  assert.equal(answer.statusCode, 200, answer.body);
  const bytes = answer.rawPayload;
  const init = bytes.readUInt32BE(0);
  const tracks = await samplesOf(bytes, init + bytes.readUInt32BE(init));
  return { video: tracks.get(1) ?? [], audio: tracks.get(2) ?? [] };
}

/** Time of the camera's run as seconds since its start. */
const captured = (picture: PlayedSample): number => (carriedTime(picture) - 900_000) / 90_000;

/** Samples follow one another without holes. */
function assertSteady(samples: readonly PlayedSample[], ticks: number): void {
  for (let i = 1; i < samples.length; i++) {
    const distance = (samples[i] as PlayedSample).dts - (samples[i - 1] as PlayedSample).dts;
    assert.ok(Math.abs(distance - ticks) <= 1, `${distance} ticks after sample ${i - 1}`);
  }
}

for (const format of ['fmp4', 'mp4'] as const) {
  test(`${format}: a window over files has each picture and sound of it once, at even times`, async (t) => {
    const stand = await stage(t, { format });
    const { camera, fs, start } = stand;
    camera.begin(runOf({ audio: AUDIO }));
    await camera.play(100, fs);
    camera.end('camera-lost');
    await fs.idle();
    const { video, audio } = await load(stand, `/window/gate.mp4?from=${start + 12.5}&to=${start + 75}`);
    const first = video.findIndex((picture) => captured(picture) >= 12.47);
    const shown = video.slice(first);
    assert.equal(captured(shown[0] as PlayedSample), 12.48);
    assert.equal(shown.length, Math.round((75 - 12.48) * 25));
    shown.forEach((picture, i) => assert.ok(Math.abs(captured(picture) - (12.48 + i * 0.04)) < 1e-6));
    // The picture on screen at 12.5 s is shown from the start on: half of its time is over.
    assertSteady(shown.slice(1), FRAME);
    assert.equal((shown[1] as PlayedSample).pts - (shown[0] as PlayedSample).pts, FRAME / 2);
    // The pictures from the key frame to there, a tick each.
    assert.equal(first, 12);
    video.slice(0, first).forEach(({ pts, sync }, i) => assert.deepEqual([pts, sync], [i, i === 0]));
    assertSteady(audio, 1024);
    const seconds = (audio.length * 1024) / 48_000;
    assert.ok(Math.abs(seconds - 62.5) < 0.1, `${seconds} s of sound`);
    // The sound begins with the frame of which more than half is heard in the window.
    const firstHeard = carriedTime(audio[0] as PlayedSample) - 10 * 48_000 - 12.5 * 48_000;
    assert.ok(Math.abs(firstHeard) <= 512, `${firstHeard} ticks from the start of the window`);
  });
}

test('gaps are closed: the next run follows the last picture', async (t) => {
  const stand = await stage(t);
  const { camera, fs, clock, start } = stand;
  for (const runId of ['00000000000000aa', '00000000000000bb']) {
    camera.begin(runOf({ runId, audio: AUDIO }));
    await camera.play(10, fs);
    camera.end('camera-lost');
    clock.advance(60_000);
  }
  await fs.idle();
  const { video, audio } = await load(stand, `/window/gate.mp4?from=${start}&to=${start + 120}`);
  assert.equal(video.length, 500);
  assertSteady(video, FRAME);
  assert.ok(audio.length > 900);
  for (let i = 1; i < audio.length; i++) assert.ok((audio[i] as PlayedSample).dts > (audio[i - 1] as PlayedSample).dts);
});

test('a window reaches into what is being written, up to its last fragment', async (t) => {
  const stand = await stage(t, { segmentDurationMs: 300_000 });
  const { camera, fs, start } = stand;
  camera.begin();
  await camera.play(10, fs);
  const { video } = await load(stand, `/window/gate.mp4?from=${start + 8.02}`);
  assert.ok(captured(video.at(-1) as PlayedSample) > 8.5);
  assert.equal(
    video.findIndex((picture) => captured(picture) > 7.99),
    0,
  );
});

test('a window that begins in a gap begins with the footage after it', async (t) => {
  const stand = await stage(t);
  const { camera, fs, clock, start } = stand;
  clock.advance(10_000);
  camera.begin();
  await camera.play(5, fs);
  camera.end();
  await fs.idle();
  const { video } = await load(stand, `/window/gate.mp4?from=${start}&to=${start + 60}`);
  assert.deepEqual([video.length, video[0]?.dts, captured(video[0] as PlayedSample)], [125, 0, 0]);
});

test('where the parameters change, key frames bring them; sound of another kind is left out', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start } = stand;
  const other = { ...VIDEO, pps: [Buffer.from('68cb83cb21', 'hex')] };
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(5, fs);
  camera.end('parameters');
  camera.begin(runOf({ runId: '00000000000000bb', lead: other, audio: { ...AUDIO, channels: 2 } }));
  await camera.play(5, fs);
  camera.end('parameters');
  await fs.idle();
  const { video, audio } = await load(stand, `/window/gate.mp4?from=${start}&to=${start + 60}`);
  assert.equal(video.length, 250);
  const sets = parameterSetsOf(sampleEntry(other));
  assert.equal(sets.toString('hex', sets.length - 5), '68cb83cb21');
  for (const [i, picture] of video.entries()) {
    const expected = i >= 125 && picture.sync;
    assert.equal(picture.bytes.subarray(0, sets.length).equals(sets), expected, `picture ${i}`);
  }
  const seconds = (audio.length * 1024) / 48_000;
  assert.ok(Math.abs(seconds - 5) < 0.1, `${seconds} s of sound`);
});

test('where there is only sound, other parameters end a window', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start } = stand;
  camera.begin(runOf({ lead: AUDIO }));
  await camera.play(10, fs);
  camera.end('parameters');
  camera.begin(runOf({ runId: '00000000000000bb', lead: { ...AUDIO, channels: 2 } }));
  await camera.play(10, fs);
  const { video, audio } = await load(stand, `/window/gate.mp4?from=${start + 2}&to=${start + 20}`);
  assert.equal(audio.length, 0);
  assert.equal(video.length, 8 * 25);
});

test('another video codec ends a window, which says where, and with which window it continues; a playlist crosses it', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start } = stand;
  const hevc = {
    ...VIDEO,
    codec: 'h265' as const,
    vps: [Buffer.from('40010c01ffff01600000030090000003000003003cba0240', 'hex')],
    sps: [Buffer.from('42010101600000030090000003000003003ca00a080c1f3e5ba4a4c2f0168080000003008000000c84', 'hex')],
    pps: [Buffer.from('4401c073c189', 'hex')],
    codecString: 'hvc1.1.6.L120.90',
  };
  camera.begin(runOf());
  await camera.play(5, fs);
  camera.end('parameters');
  camera.begin(runOf({ runId: '00000000000000bb', lead: hevc }));
  await camera.play(5, fs);
  camera.end('parameters');
  await fs.idle();
  assert.equal(segmentPaths(stand.root).length, 2);
  const url = `/window/gate.mp4?from=${start}&to=${start + 60}`;
  const { video } = await load(stand, url);
  assert.equal(video.length, 125);
  const { headers } = await stand.app.inject({ method: 'HEAD', url });
  assert.equal(Date.parse(String(headers['x-window-ends-at'])), start * 1000 + 5_000);
  const next = resolved(/^<([^>]*)>; rel="next"$/.exec(String(headers.link))?.[1] ?? '', url);
  assert.equal(next, `/window/gate.mp4?from=${start + 5}&to=${start + 60}`);
  assert.equal((await load(stand, next)).video.length, 125);
  const last = await stand.app.inject({ method: 'HEAD', url: next });
  assert.deepEqual([last.headers.link, last.headers['x-window-ends-at']], [undefined, undefined]);

  const playlist = (await stand.app.inject(`/hls/gate/index.m3u8?from=${start}&to=${start + 60}`)).body;
  const [before = '', after = ''] = playlist.split('#EXT-X-DISCONTINUITY\n');
  const maps = [before, after].map((part) => /#EXT-X-MAP:URI="([^"]*)"/.exec(part)?.[1] ?? '');
  const codecs = await Promise.all(
    maps.map(
      async (map) =>
        /avc1|hvc1/.exec(
          (await stand.app.inject(resolved(map, '/hls/gate/index.m3u8'))).rawPayload.toString('latin1'),
        )?.[0],
    ),
  );
  assert.deepEqual(codecs, ['avc1', 'hvc1']);
});

test('a file that retention takes away meanwhile is a gap', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start, root } = stand;
  camera.begin();
  await camera.play(85, fs);
  camera.end();
  await fs.idle();
  const url = `/window/gate.mp4?from=${start}&to=${start + 85}`;
  assert.equal((await load(stand, url)).video.length, 85 * 25);
  // The list still has it.
  rmSync(join(root, segmentPaths(root)[1] as string));
  assert.equal((await load(stand, url)).video.length, 55 * 25);
});

test('HEAD says what would come; only cameras that could exist have windows', async (t) => {
  const stand = await stage(t);
  const { app, camera, fs, start } = stand;
  camera.begin();
  await camera.play(5, fs);
  const answer = await app.inject({ method: 'HEAD', url: `/window/gate.mp4?from=${start}&download=1` });
  assert.deepEqual(
    [answer.statusCode, answer.headers['content-type'], answer.rawPayload.length],
    [200, 'video/mp4', 0],
  );
  assert.match(String(answer.headers['content-disposition']), /^attachment; filename="gate_\d{8}T\d{6}Z\.mp4"$/);
  for (const url of ['/window/gate', '/window/.mp4', '/window/a_b.mp4', '/window/..%2fx.mp4']) {
    assert.equal((await app.inject(`${url}?from=${start}`)).statusCode, 404, url);
  }
});

const openFootage = (root: string): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(root);
    } catch {
      return false;
    }
  }).length;

test('readers that go away at any moment leave no file open and hold no footage', async (t) => {
  const stand = await stage(t);
  const { app, camera, fs, start, root } = stand;
  camera.bytesPerFrame = 40_000;
  camera.begin();
  await camera.play(65, fs);
  camera.end();
  await fs.idle();
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const [path = ''] = segmentPaths(root);
  for (const target of [`/${path}`, `/window/gate.mp4?from=${start + 3}&to=${start + 60}`]) {
    for (let i = 0; i < 20; i++) {
      const request = get({ port, path: target, agent: false });
      request.on('error', () => {});
      const [response] = await once(request, 'response');
      // None, some or much of it.
      for (let reads = 0; reads < i % 4; reads++) await once(response, 'data');
      request.destroy();
    }
  }
  while (openFootage(root) > 0) await new Promise((resolve) => setImmediate(resolve));
});
