// The memory of cameras as the archive uses it: over ONVIF Profile G, and at addresses with times.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { systemClock } from '../../base/clock.ts';
import { EdgeCamera } from '../../test/camera/edge-camera.ts';
import { audioMedia, videoMedia } from '../../test/camera/media.ts';
import type { MemoryOptions } from '../../test/camera/memory.ts';
import type { CameraOptions } from '../../test/camera/options.ts';
import { audioTrack, videoTrack } from '../../test/camera/tracks.ts';
import type { DeviceOptions } from '../../test/onvif/device.ts';
import { SlabPool } from '../codec/slab.ts';
import { anywhere } from '../reach/reach.ts';
import { EdgeError } from './memory.ts';
import type { EdgeClock, EdgeErrorCode, EdgeMemory, EdgeRecording, EdgeUnit, ReplayRequest } from './memory.ts';
import { lookForMemory } from './look.ts';
import type { EdgeSource } from '../contract/edge-source.ts';
import { openEdgeMemory } from './open.ts';

const ONVIF: EdgeSource = { kind: 'onvif', recording: undefined };
const CREDENTIALS = { username: 'operator', password: 'pass word' };

interface Stage {
  readonly edge: EdgeCamera;
  readonly memory: EdgeMemory;
}

interface StageOptions extends CameraOptions {
  readonly source?: (edge: EdgeCamera) => EdgeSource;
  readonly device?: DeviceOptions;
}

async function stage(t: TestContext, memory: MemoryOptions = {}, options: StageOptions = {}): Promise<Stage> {
  const { source, ...others } = options;
  const edge = await EdgeCamera.start({ ...others, memory });
  t.after(() => edge.close());
  const deps = { clock: systemClock, reach: anywhere(), pool: new SlabPool() };
  const settings = {
    source: edge.camera.urlWithLogin,
    onvif: edge.device.url,
    tls: { verify: false },
    allowPlaintextLogin: false,
  };
  return { edge, memory: openEdgeMemory(settings, source?.(edge) ?? ONVIF, deps) };
}

const never = new AbortController().signal;

async function take(
  memory: EdgeMemory,
  request: Partial<ReplayRequest> & Pick<ReplayRequest, 'window'>,
): Promise<EdgeUnit[]> {
  const units: EdgeUnit[] = [];
  for await (const unit of memory.replay({ maxBitrate: 1e9, like: undefined, ...request }, never)) {
    unit.unit.data.slab.release();
    units.push(unit);
  }
  return units;
}

/** The window of the memory from `fromMs` to `untilMs` after its first frame. */
function windowOf({ memory }: EdgeCamera, fromMs: number, untilMs: number): ReplayRequest['window'] {
  const first = memory.frames[0]?.cameraMs ?? 0;
  // Not just at a picture: times of NTP are not exact.
  return { fromMs: first + fromMs + 5, untilMs: first + untilMs - 5 };
}

const offsets = ({ memory }: EdgeCamera, units: readonly EdgeUnit[]): number[] => {
  const first = memory.frames[0]?.cameraMs ?? 0;
  return units.filter(({ kind }) => kind === 'video').map(({ cameraMs }) => Math.round(cameraMs - first) + 0);
};

const pictures = (fromMs: number, untilMs: number): number[] =>
  Array.from({ length: (untilMs - fromMs) / 40 }, (_, index) => fromMs + index * 40);

const fails = (promise: Promise<unknown>, code: EdgeErrorCode, words = /./): Promise<void> =>
  assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof EdgeError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    return true;
  });

test('a camera says which footage it has, and replays it', async (t) => {
  const tracks = [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))];
  const { edge, memory } = await stage(t, {}, { tracks, credentials: CREDENTIALS });
  edge.camera.send(300);
  const found: readonly EdgeRecording[] = (await memory.recordings(never)) ?? [];
  assert.deepEqual(
    found.map((one) => ({ ...one })),
    [
      {
        token: 'card',
        source: 'source-0',
        fromMs: Math.floor(edge.memory.span?.fromMs ?? 0),
        untilMs: Infinity,
        tracks: ['video', 'audio'],
      },
    ],
  );
  const units = await take(memory, { window: windowOf(edge, 2_000, 6_000) });
  assert.deepEqual(offsets(edge, units), pictures(2_000, 6_000));
});

test('the clock of a camera is compared to within a few hundredths of a second, although it states seconds', async (t) => {
  const { edge, memory } = await stage(t);
  edge.setClock(37_250);
  const clock: EdgeClock | undefined = await memory.clock(never);
  assert.ok(clock && clock.errorMs < 200, JSON.stringify(clock));
  assert.ok(Math.abs(clock.offsetMs - 37_250) <= clock.errorMs, JSON.stringify(clock));
});

test('the replay is at the camera itself, whatever host it names', async (t) => {
  let port = 0;
  const device = { replayUri: () => `rtsp://203.0.113.9:${port}/replay` };
  const { edge, memory } = await stage(t, {}, { device });
  port = edge.camera.port;
  edge.camera.send(100);
  assert.deepEqual(offsets(edge, await take(memory, { window: windowOf(edge, 1_000, 2_000) })), pictures(1_000, 2_000));
});

test('with a clock that is 37 s off, windows and pictures are by the clock of the camera', async (t) => {
  const { edge, memory } = await stage(t, { clockOffsetMs: 37_000 });
  edge.camera.send(200);
  const realMs = (edge.memory.frames[0]?.cameraMs ?? 0) - 37_000;
  assert.ok(Math.abs(realMs - Date.now()) < 60_000, 'the memory is dated by its clock');
  assert.deepEqual(offsets(edge, await take(memory, { window: windowOf(edge, 3_000, 5_000) })), pictures(3_000, 5_000));
});

test('a clock that was set in the middle of the footage shows as a discontinuity', async (t) => {
  const { edge, memory } = await stage(t);
  edge.camera.send(100);
  edge.setClock(-37_000);
  edge.camera.send(100);
  const units = await take(memory, { window: windowOf(edge, -60_000, 60_000) });
  assert.equal(units.length, 200);
  assert.deepEqual(
    units.flatMap(({ discontinuity }, index) => (discontinuity ? [index] : [])),
    [0, 100],
  );
  assert.equal(Math.round((units[100]?.cameraMs ?? 0) - (units[99]?.cameraMs ?? 0)), 40 - 37_000);
});

test('footage that is younger than the window: the camera says what it has', async (t) => {
  const { edge, memory } = await stage(t, { capacityMs: 4_000 });
  edge.camera.send(500);
  await fails(
    take(memory, { window: windowOf(edge, -20_000, -10_000) }),
    'nothing-recorded',
    /oldest footage is of \d{4}-/,
  );
});

test('a hole in the footage is said by the pictures around it', async (t) => {
  const { edge, memory } = await stage(t);
  edge.camera.send(100);
  edge.memory.recording = false;
  edge.camera.send(100);
  edge.memory.recording = true;
  edge.camera.send(100);
  const units = await take(memory, { window: windowOf(edge, 0, 11_000) });
  const marks = units.flatMap(({ endsSection, discontinuity }, index) =>
    endsSection || discontinuity ? [{ index, endsSection, discontinuity }] : [],
  );
  assert.deepEqual(marks, [
    { index: 0, endsSection: false, discontinuity: true },
    { index: 99, endsSection: true, discontinuity: false },
  ]);
  assert.equal(Math.round((units[100]?.cameraMs ?? 0) - (units[99]?.cameraMs ?? 0)), 4_040);
});

test('another profile on the card is told from the live one by codec and size', async (t) => {
  const { edge, memory } = await stage(t, { tracks: [videoTrack(await videoMedia('h264-small'))] });
  edge.camera.send(200);
  const window = windowOf(edge, 2_000, 4_000);
  const all = await take(memory, { window });
  const small = all[0]?.kind === 'video' ? all[0].parameters : undefined;
  assert.equal(small?.width, 160);
  assert.equal((await take(memory, { window, like: small })).length, all.length);
  await fails(
    take(memory, { window, like: { ...small, width: 320 } }),
    'other-profile',
    /h264 of 160x96.*h264 of 320x96/,
  );
});

test('a card with key frames only replays those', async (t) => {
  const { edge, memory } = await stage(t, { keyFramesOnly: true });
  edge.camera.send(200);
  const units = await take(memory, { window: windowOf(edge, 2_000, 6_000) });
  assert.deepEqual(offsets(edge, units), [2_000, 3_000, 4_000, 5_000]);
  assert.ok(units.every(({ cleanPoint }) => cleanPoint));
});

test('a card that failed is told in the words of the camera', async (t) => {
  const { edge, memory } = await stage(t);
  edge.camera.send(50);
  edge.memory.failed = true;
  const window = windowOf(edge, 0, 1_000);
  await fails(memory.recordings(never), 'card-failed', /storage medium is not available/);
  await fails(take(memory, { window }), 'card-failed', /storage medium is not available/);
});

test('a camera without search and replay has no memory, one with an empty card nothing recorded', async (t) => {
  const none = await stage(t, {}, { device: { withoutPtzService: true } });
  none.edge.device.behave('GetServices', [{ kind: 'raw', body: NO_MEMORY_SERVICES }]);
  await fails(none.memory.recordings(never), 'not-supported', /Profile G/);
  const empty = await stage(t);
  assert.deepEqual(await empty.memory.recordings(never), []);
  await fails(take(empty.memory, { window: { fromMs: 0, untilMs: 1_000 } }), 'nothing-recorded');
});

test('a wrong password, and a camera that is away', async (t) => {
  const wrong = await stage(t, {}, { credentials: CREDENTIALS });
  const { edge } = wrong;
  edge.device.behave('GetServices', [{ kind: 'fault', reason: 'Sender not authorized', code: 'ter:NotAuthorized' }]);
  await fails(wrong.memory.recordings(never), 'refused-login');
  const away = await stage(t);
  await away.edge.cut();
  await fails(away.memory.recordings(never), 'unreachable');
  await away.edge.mend();
  assert.deepEqual(await away.memory.recordings(never), []);
});

test('a device with recordings of several sources is asked for the one of this camera', async (t) => {
  let recordings: ReturnType<NonNullable<DeviceOptions['memory']>> = [];
  const device: DeviceOptions = { memory: () => recordings };
  const source: EdgeSource = { kind: 'onvif', recording: 'two' };
  const { edge, memory } = await stage(t, {}, { device });
  edge.camera.send(100);
  const window = windowOf(edge, 1_000, 2_000);
  const span = { fromMs: window.fromMs - 5_000, untilMs: window.untilMs + 5_000, tracks: ['video'] as const };
  recordings = [
    { token: 'one', source: 'input-1', ...span },
    { token: 'two', source: 'input-2', ...span },
  ];
  await fails(take(memory, { window }), 'not-supported', /edge\.recordingId/);
  const chosen = await stage(t, {}, { device, source: () => source });
  chosen.edge.camera.send(100);
  const units = await take(chosen.memory, { window: windowOf(chosen.edge, 1_000, 2_000) });
  assert.deepEqual(offsets(chosen.edge, units), pictures(1_000, 2_000));
  const asked = chosen.edge.device.calls.find(({ operation }) => operation === 'GetReplayUri');
  assert.equal(asked?.content.children.find(({ name }) => name === 'RecordingToken')?.text, 'two');
});

test('people are told whether a camera has a memory', async (t) => {
  const { edge } = await stage(t);
  const deps = { clock: systemClock, reach: anywhere(), pool: new SlabPool() };
  const camera = {
    source: edge.camera.url,
    onvif: edge.device.url,
    tls: { verify: false },
    allowPlaintextLogin: false,
  };
  const look = (): ReturnType<typeof lookForMemory> => lookForMemory(camera, deps, never);
  const { answer, message } = await look();
  assert.deepEqual([answer, message], ['yes', 'ONVIF search and replay (Profile G), no footage by its clock']);
  edge.camera.send(50);
  assert.match((await look()).message, /footage since \d{4}-/);
  edge.device.behave('GetServices', [{ kind: 'raw', body: NO_MEMORY_SERVICES }]);
  assert.equal((await look()).answer, 'no');
  await edge.cut();
  assert.equal((await look()).answer, 'unknown');
});

const HIKVISION = '/Streaming/tracks/101?starttime={start}&endtime={end}';
const DAHUA = '/cam/playback?channel=1&starttime={start:yyyy_MM_dd_HH_mm_ss}&endtime={end:yyyy_MM_dd_HH_mm_ss}';

for (const [maker, path, timeZone] of [
  ['Hikvision, in UTC', HIKVISION, undefined],
  ['Hikvision, in local time', HIKVISION, 'Asia/Kolkata'],
  ['Dahua, in local time', DAHUA, 'America/St_Johns'],
] as const) {
  const source = ({ camera }: EdgeCamera): EdgeSource => ({
    kind: 'address',
    replay: camera.url.replace(/\/stream$/, path),
    timeZone,
  });

  test(`an address with times as of ${maker}: the window, dated by the header extension`, async (t) => {
    const options = timeZone === undefined ? {} : { timeZone };
    const { edge, memory } = await stage(t, options, { source, credentials: CREDENTIALS });
    edge.camera.send(300);
    assert.equal(await memory.recordings(never), undefined);
    const units = await take(memory, { window: windowOf(edge, 3_000, 6_000) });
    const found = offsets(edge, units);
    assert.deepEqual(found, pictures(found[0] ?? 0, 6_000));
    assert.ok((found[0] ?? 0) <= 3_000 && (found[0] ?? 0) >= 1_000);
    assert.ok(units.every(({ dated }) => dated === 'unit'));
  });

  test(`an address with times as of ${maker}, of a camera that does not know ONVIF's header fields`, async (t) => {
    const options: MemoryOptions = { plain: true, extension: 'none', speed: 100, ...(timeZone ? { timeZone } : {}) };
    const { edge, memory } = await stage(t, options, { source });
    edge.camera.send(300);
    const units = await take(memory, { window: windowOf(edge, 3_000, 6_000) });
    assert.ok(units.every(({ dated }) => dated === 'range'));
    const found = offsets(edge, units);
    const steps = found.slice(1).map((ms, index) => ms - (found[index] as number));
    assert.deepEqual([...new Set(steps)], [40]);
    // Right to within the distance of two key pictures, and the second to which times are rounded.
    assert.ok(Math.abs((found[0] ?? 0) - 3_000) <= 1_000, `starts at ${found[0]}`);
  });
}

test('an address without ONVIF has no clock', async (t) => {
  const source = ({ camera }: EdgeCamera): EdgeSource => ({
    kind: 'address',
    replay: camera.url.replace(/\/stream$/, HIKVISION),
    timeZone: undefined,
  });
  const { edge, memory } = await stage(t, {}, { source });
  await edge.cut();
  assert.equal(await memory.clock(never), undefined);
});

/** GetServices of a camera without Profile G. */
const NO_MEMORY_SERVICES =
  '<env:Envelope xmlns:env="http://www.w3.org/2003/05/soap-envelope"><env:Body><GetServicesResponse><Service>' +
  '<Namespace>http://www.onvif.org/ver10/device/wsdl</Namespace><XAddr>http://127.0.0.1/onvif/device_service</XAddr>' +
  '</Service></GetServicesResponse></env:Body></env:Envelope>';
