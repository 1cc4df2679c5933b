// Replays of the scripted camera's memory over sockets: the numbered frames of a window, exactly, whatever the camera does.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { systemClock } from '../../base/clock.ts';
import { startCamera, type Camera } from '../../test/camera/camera.ts';
import { audioMedia, videoMedia } from '../../test/camera/media.ts';
import type { MemoryOptions } from '../../test/camera/memory.ts';
import type { CameraOptions } from '../../test/camera/options.ts';
import { audioTrack, videoTrack } from '../../test/camera/tracks.ts';
import { SlabPool } from '../codec/slab.ts';
import { anywhere } from '../reach/reach.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import { EdgeError, type EdgeErrorCode, type EdgeUnit, type ReplayEnd, type ReplayRequest } from './memory.ts';
import { LazyReplay, replayFrom } from './replay.ts';

async function cameraWith(t: TestContext, memory: MemoryOptions, options: CameraOptions = {}): Promise<Camera> {
  const camera = await startCamera({ memory, ...options });
  t.after(() => camera.close());
  return camera;
}

interface Got {
  readonly units: EdgeUnit[];
  readonly end: ReplayEnd | undefined;
}

interface Asked extends Partial<ReplayRequest> {
  readonly path?: string;
  readonly fields?: 'clock' | 'fast' | 'none';
  readonly pool?: SlabPool;
  readonly each?: (unit: EdgeUnit) => Promise<void> | void;
  readonly signal?: AbortSignal;
}

function replayOf(camera: Camera, asked: Asked = {}): LazyReplay {
  const { fromMs, untilMs } = camera.memory?.span ?? { fromMs: 0, untilMs: 1 };
  const url = parseRtspUrl(camera.url.replace(/\/stream$/, asked.path ?? '/replay'));
  const place = {
    url,
    credentials: camera.options.credentials,
    tls: { verify: false },
    allowPlaintextLogin: false,
    startMs: (asked.window ?? { fromMs }).fromMs,
    fields: asked.fields ?? ('clock' as const),
  };
  const request = {
    window: asked.window ?? { fromMs, untilMs: untilMs + 1 },
    maxBitrate: asked.maxBitrate ?? 1e9,
    like: asked.like,
  };
  const deps = { clock: systemClock, reach: anywhere(), pool: asked.pool ?? new SlabPool() };
  const signal = asked.signal ?? new AbortController().signal;
  return new LazyReplay(() => replayFrom(place, request, deps, signal));
}

async function take(camera: Camera, asked: Asked = {}): Promise<Got> {
  const replay = replayOf(camera, asked);
  const units: EdgeUnit[] = [];
  for await (const unit of replay) {
    await asked.each?.(unit);
    unit.unit.data.slab.release();
    units.push(unit);
  }
  return { units, end: replay.end };
}

const fails = (promise: Promise<unknown>, code: EdgeErrorCode): Promise<void> =>
  assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof EdgeError, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  });

/** Milliseconds since the first frame of the memory, of the units of a kind. */
function times(camera: Camera, units: readonly EdgeUnit[], kind: 'video' | 'audio' = 'video'): number[] {
  const first = camera.memory?.frames[0]?.cameraMs ?? 0;
  return units.filter((unit) => unit.kind === kind).map(({ cameraMs }) => Math.round(cameraMs - first) + 0); // no -0: times of NTP are not exact
}

/** The window of the memory between two moments after its first frame. */
function windowOf(camera: Camera, fromMs: number, untilMs: number): ReplayRequest['window'] {
  const first = camera.memory?.frames[0]?.cameraMs ?? 0;
  return { fromMs: first + fromMs, untilMs: first + untilMs };
}

/** What a replay of the window must bring: from the key picture at or before it on. */
function expected(camera: Camera, fromMs: number, untilMs: number, track = 0): number[] {
  const stored = camera.memory?.frames ?? [];
  const first = stored[0]?.cameraMs ?? 0;
  const start = stored.findLastIndex(
    ({ frame, cameraMs }) => frame.track === 0 && frame.key && cameraMs - first <= fromMs,
  );
  return stored
    .slice(start)
    .filter(({ frame, cameraMs }) => frame.track === track && cameraMs - first < untilMs)
    .map(({ cameraMs }) => Math.round(cameraMs - first) + 0); // no -0: times of NTP are not exact
}

for (const codec of ['h264', 'h264-bframes', 'h265', 'h265-layers'] as const) {
  test(`${codec} with sound: exactly the window, dated as it was taken`, async (t) => {
    const tracks = [videoTrack(await videoMedia(codec)), audioTrack(await audioMedia('aac'))];
    const camera = await cameraWith(t, {}, { tracks });
    camera.send(600);
    const { units, end } = await take(camera, { window: windowOf(camera, 3_100, 16_500) });
    assert.equal(end, 'window');
    assert.deepEqual(times(camera, units), expected(camera, 3_100, 16_500));
    assert.deepEqual(times(camera, units, 'audio'), expected(camera, 3_100, 16_500, 1));
    assert.ok(units.every(({ dated }) => dated === 'unit'));
    assert.equal(units[0]?.kind === 'video' && units[0].cleanPoint && units[0].discontinuity, true);
    assert.deepEqual(
      units.filter(({ unit }) => unit.lostPackets > 0),
      [],
    );
  });
}

const H264_WINDOW = [3_100, 6_500] as const;

async function h264(t: TestContext, memory: MemoryOptions, pictures = 300): Promise<Camera> {
  const camera = await cameraWith(t, memory);
  camera.send(pictures);
  return camera;
}

test('the header extension on key frames only: the others are dated by their RTP timestamps', async (t) => {
  const tracks = [videoTrack(await videoMedia('h265')), audioTrack(await audioMedia('pcma'))];
  const camera = await cameraWith(t, { extension: 'key-frames' }, { tracks });
  camera.send(300);
  const { units } = await take(camera, { window: windowOf(camera, ...H264_WINDOW) });
  const pictures = units.filter(({ kind }) => kind === 'video');
  assert.deepEqual(times(camera, pictures), expected(camera, ...H264_WINDOW));
  assert.deepEqual([...new Set(pictures.map(({ dated }) => dated))], ['unit', 'stream']);
});

test('a replay that never ends, or starts before the window, ends with the window', async (t) => {
  const endless = await h264(t, { neverEnds: true });
  const window = windowOf(endless, 3_000, 12_500);
  await fails(take(endless, { window }), 'range-ignored');
  const early = await h264(t, { ignoresRange: true });
  const { units, end } = await take(early, { window: windowOf(early, ...H264_WINDOW) });
  assert.equal(end, 'window');
  assert.deepEqual(times(early, units), expected(early, 0, H264_WINDOW[1]));
});

test('a replay of quite another time is refused with its first picture', async (t) => {
  const camera = await h264(t, { ignoresRange: true }, 4_000);
  await fails(take(camera, { window: windowOf(camera, 150_000, 155_000) }), 'range-ignored');
});

test('a replay that is cut delivers what came before, and says that it was cut', async (t) => {
  const camera = await h264(t, {});
  camera.memory?.cuts.push(40);
  const got: EdgeUnit[] = [];
  const each = (unit: EdgeUnit): void => void got.push(unit);
  const window = windowOf(camera, ...H264_WINDOW);
  await fails(take(camera, { window, each }), 'cut');
  assert.deepEqual(times(camera, got), expected(camera, ...H264_WINDOW).slice(0, got.length));
  assert.ok(got.length >= 39, `${got.length} pictures came before the cut`);
  assert.equal((await take(camera, { window })).end, 'window');
});

for (const atEnd of ['silence', 'bye', 'announce', 'close'] as const) {
  test(`footage that ends before the window does, and then: ${atEnd}`, async (t) => {
    const camera = await h264(t, { atEnd });
    if (camera.memory) camera.memory.recording = false;
    const { units, end } = await take(camera, { window: windowOf(camera, 8_000, 60_000) });
    assert.equal(end, 'footage');
    assert.deepEqual(times(camera, units), expected(camera, 8_000, 60_000));
    assert.equal(units.at(-1)?.endsSection, true);
  });
}

test('a consumer that takes nothing makes the camera wait', async (t) => {
  const track = videoTrack(await videoMedia('h264'));
  // Pictures of 30 kB, so that what the system keeps for the sockets is a small part of them.
  const message = Buffer.concat([Buffer.from([0x06, 0x05]), Buffer.alloc(30_000, 0xaa)]);
  const frames = track.frames.map((frame) => ({ ...frame, units: [message, ...frame.units] }));
  const camera = await cameraWith(t, {}, { tracks: [{ ...track, frames }] });
  camera.send(4_000);
  const sent = (): number => [...camera.replays.values()][0]?.picturesSent ?? 0;
  let waited = 0;
  const each = async (): Promise<void> => {
    if (waited > 0) return;
    // Lasts: nothing is taken.
    for (let before = -1; sent() !== before; await systemClock.sleep(500)) before = sent();
    waited = sent();
  };
  const { units } = await take(camera, { window: windowOf(camera, 0, 200_000), each });
  assert.ok(waited < 2_000, `${waited} of 4000 pictures left while nobody took them`);
  assert.equal(units.length, 4_000);
});

test('a replay ends when its signal aborts, and when its loop is left; the camera is told', async (t) => {
  const camera = await h264(t, {}, 3_000);
  const window = windowOf(camera, 0, 100_000);
  const stop = new AbortController();
  const reason = new Error('the recorder stops');
  await assert.rejects(take(camera, { window, signal: stop.signal, each: () => stop.abort(reason) }), reason);
  for await (const unit of replayOf(camera, { window })) {
    unit.unit.data.slab.release();
    break;
  }
  await camera.until(() => camera.connections.every(({ closed }) => closed), 'the connections to end');
  assert.deepEqual(
    camera.methods.filter((method) => method === 'TEARDOWN'),
    ['TEARDOWN', 'TEARDOWN'],
  );
});

test('a camera that replays to others, does not know replays, or has a broken card', async (t) => {
  const busy = await h264(t, { maxReplays: 0 });
  await fails(take(busy), 'busy');
  await fails(take(await h264(t, { plain: true })), 'not-supported');
  const broken = await h264(t, {});
  if (broken.memory) broken.memory.failed = true;
  await fails(take(broken), 'card-failed');
});

test('what a camera is told of a window: its times, and to send as fast as we read', async (t) => {
  const camera = await h264(t, {});
  const { fromMs, untilMs } = windowOf(camera, ...H264_WINDOW);
  await take(camera, { window: { fromMs, untilMs } });
  const play = camera.requests.find(({ method }) => method === 'PLAY');
  const fields = Object.fromEntries(play?.headers ?? []);
  const time = (ms: number): string => new Date(ms).toISOString().replaceAll(/[-:]/g, '');
  assert.equal(fields['Range'], `clock=${time(fromMs)}-${time(untilMs + 2_000)}`);
  assert.deepEqual([fields['Require'], fields['Rate-Control'], fields['Immediate']], ['onvif-replay', 'no', 'yes']);
  const setUp = camera.requests.find(({ method }) => method === 'SETUP');
  assert.equal(Object.fromEntries(setUp?.headers ?? [])['Require'], 'onvif-replay');
});
