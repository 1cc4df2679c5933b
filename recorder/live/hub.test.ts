import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { MemoryBudget, unlimitedMemory } from '../../base/memory-budget.ts';
import { initSegment } from '../mp4/init.ts';
import type { Sample } from '../mp4/sample.ts';
import { LiveLimits } from './limits.ts';
import type { LiveLimitOptions } from './limits.ts';
import { SourceLimits } from './source-limits.ts';
import { AUDIO, FakeSocket, FRAME_TICKS, LiveStream, run, SampleMaker, VIDEO } from './test-support.ts';
import { CLOSE } from './close.ts';
import { Viewer, type ViewerOptions } from './viewer.ts';

function setup(limits: LiveLimitOptions & { readonly maxGopBytes?: number } = {}) {
  const clock = new VirtualClock();
  const shared = new LiveLimits(limits);
  const sources = new SourceLimits(limits);
  const hub = new LiveStream({ cameraId: 'gate', limits: shared, sources, clock, log: silentLog });
  const maker = new SampleMaker();
  /** Passes one sample on and releases its slab, as the camera's pipeline does. */
  const send = (changes: Partial<Sample> = {}, bytes?: Buffer | number): void => {
    const sample = maker.make(changes, bytes);
    hub.sample(sample);
    sample.data.slab.release();
  };
  /** A group of pictures that starts at frame `first`. */
  const group = (first: number, frames: number, bytes?: number): void => {
    for (let i = 0; i < frames; i++) send({ dts: (first + i) * FRAME_TICKS, sync: i === 0 }, bytes);
  };
  const watch = (
    options?: ViewerOptions,
    stalled = false,
  ): { socket: FakeSocket; viewer: ReturnType<LiveStream['add']> } => {
    const socket = new FakeSocket();
    socket.stalled = stalled;
    return { socket, viewer: hub.add(socket, options) };
  };
  return { clock, hub, limits: shared, maker, send, group, watch };
}

test('a viewer gets the initialization segment, the present group of pictures, and then every frame as it comes', () => {
  const { hub, group, send, watch } = setup();
  hub.begin(run());
  group(0, 5);
  group(5, 3);
  const { socket } = watch();
  assert.equal(socket.outline, 'init VIDEO video video');
  send({ dts: 8 * FRAME_TICKS, sync: false });
  assert.equal(socket.outline, 'init VIDEO video video video');
  assert.deepEqual(socket.messages[0], initSegment([VIDEO]));
});

test('a message is one fragment with the frame in it', () => {
  const { hub, send, watch } = setup();
  hub.begin(run());
  const { socket } = watch();
  send({ dts: 100, compositionOffset: 7 }, Buffer.from('frame'));
  const [, seen] = socket.seen;
  assert.equal(String(seen?.payload), 'frame');
  assert.deepEqual([seen?.compositionOffset, seen?.duration, seen?.sync], [7, FRAME_TICKS, true]);
});

test('all viewers share one message a frame', () => {
  const { hub, send, group, watch } = setup();
  hub.begin(run());
  group(0, 2);
  const sockets = [watch().socket, watch().socket];
  send({ dts: 2 * FRAME_TICKS, sync: false });
  for (let i = 1; i < 4; i++) assert.equal(sockets[0]?.messages[i], sockets[1]?.messages[i]);
});

test('a viewer that comes before the first key frame waits for it', () => {
  const { hub, send, watch } = setup();
  hub.begin(run());
  const { socket } = watch();
  send({ sync: false });
  assert.equal(socket.outline, 'init');
  send({ dts: FRAME_TICKS });
  assert.equal(socket.outline, 'init VIDEO');
});

test('audio goes between the pictures, and a viewer that does not want it is not told of it', () => {
  const { hub, send, watch } = setup();
  hub.begin(run({ audio: AUDIO }));
  const { socket } = watch();
  const { socket: silent } = watch({ audio: false });
  send({ kind: 'audio', dts: 0, usualDuration: 1024 });
  send({ dts: 0 });
  send({ kind: 'audio', dts: 1024, usualDuration: 1024 });
  assert.equal(socket.outline, 'init VIDEO audio');
  assert.equal(silent.outline, 'init VIDEO');
  assert.deepEqual(socket.messages[0], initSegment([VIDEO, AUDIO]));
  assert.deepEqual(silent.messages[0], initSegment([VIDEO]));
});

test('other parameters: a new initialization segment before the key frame that needs it', () => {
  const { hub, group, watch } = setup();
  hub.begin(run());
  const { socket } = watch();
  group(0, 2);
  const larger = { ...VIDEO, width: 1280, height: 720 };
  hub.change(run({ lead: larger }));
  group(2, 2);
  assert.equal(socket.outline, 'init VIDEO video init VIDEO video');
  assert.deepEqual(socket.messages[3], initSegment([larger]));
});

test('the same parameters again: no new initialization segment', () => {
  const { hub, group, watch } = setup();
  hub.begin(run());
  const { socket } = watch();
  group(0, 2);
  hub.change(run({ lead: { ...VIDEO } }));
  group(2, 2);
  assert.equal(socket.outline, 'init VIDEO video VIDEO video');
});

test('audio that comes asks viewers to connect again, but not those that do not want it', () => {
  const { hub, group, watch } = setup();
  hub.begin(run());
  const { socket } = watch();
  const { socket: silent } = watch({ audio: false });
  group(0, 1);
  hub.end('parameters');
  hub.begin(run({ audio: AUDIO }));
  group(0, 1);
  assert.equal(socket.closeCode(), CLOSE.codecsChanged);
  assert.equal(silent.closeCode(), undefined);
  assert.equal(silent.outline, 'init VIDEO VIDEO');
});

test('sound that is alone is heard at once, with audio and without, and is no picture to show', () => {
  const { hub, group, send, watch } = setup();
  hub.begin(run({ lead: AUDIO }));
  group(0, 1);
  send({ dts: FRAME_TICKS });
  for (const audio of [true, false]) {
    const { socket } = watch({ audio });
    assert.equal(socket.outline, 'init VIDEO');
    assert.deepEqual(socket.messages[0], initSegment([AUDIO]));
  }
  assert.equal(hub.keyFrame(), undefined);
});

test('another video codec asks the viewer to connect again', () => {
  const socket = new FakeSocket();
  const viewer = new Viewer(socket, { audio: true }, 1_000, unlimitedMemory('viewers'));
  viewer.start({ init: Buffer.from('one'), tracks: 'h264, aac' });
  viewer.start({ init: Buffer.from('two'), tracks: 'h265, aac' });
  assert.equal(socket.closeCode(), CLOSE.codecsChanged);
  assert.equal(socket.messages.length, 1);
});

test('parameters that cannot be described leave viewers waiting, and the recording alone', () => {
  const { hub, clock, send, watch } = setup({ offlineWaitMs: 1_000 });
  const { socket } = watch();
  hub.begin(run({ lead: { ...VIDEO, sps: [] } }));
  send();
  assert.equal(socket.messages.length, 0);
  clock.advance(1_000);
  assert.equal(socket.closeCode(), CLOSE.offline);
});

test('a slow viewer loses frames up to the next key frame, and others lose nothing', () => {
  const { hub, limits, group, watch } = setup({ maxViewerBytes: 300_000 });
  hub.begin(run());
  const slow = watch().socket;
  const fast = watch().socket;
  slow.stalled = true;
  group(0, 10, 50_000);
  group(10, 2, 50_000);
  assert.equal(fast.messages.length, 1 + 12);
  assert.equal(slow.outline, 'init VIDEO video', 'its connection is given little more than it takes');
  assert.equal(limits.viewerMemory.usedBytes, slow.bufferedBytes, 'what waited beyond that is dropped');
  slow.drain();
  group(12, 1, 50_000);
  assert.equal(slow.outline, 'init VIDEO video VIDEO');
  assert.equal(hub.stats.droppedFrames, 10);
  assert.equal(limits.viewerMemory.usedBytes, 0);
});

test('a viewer that is slow for a moment gets every frame, in order', () => {
  const { hub, limits, group, watch } = setup({ maxViewerBytes: 300_000 });
  hub.begin(run());
  const { socket } = watch();
  socket.stalled = true;
  group(0, 5, 50_000);
  assert.ok(socket.messages.length < 5);
  socket.drain();
  group(5, 1, 50_000);
  assert.equal(socket.outline, 'init VIDEO video video video video VIDEO');
  const times = socket.seen.map(({ decodeTime }) => decodeTime);
  assert.deepEqual(
    times,
    times.toSorted((x, y) => x - y),
  );
  assert.equal(hub.stats.droppedFrames, 0);
  assert.equal(limits.viewerMemory.usedBytes, 0);
});

test('a group of pictures larger than what may wait for a viewer starts it anyway', () => {
  const { hub, group, watch } = setup({ maxViewerBytes: 300_000 });
  hub.begin(run());
  group(0, 20, 50_000);
  const { socket, viewer } = watch({ audio: true }, true);
  assert.ok((viewer?.droppableBytes ?? 0) > 800_000);
  socket.drain();
  assert.equal(socket.messages.length, 1 + 20);
});

test('what waits for many viewers counts once', () => {
  const { hub, limits, group, watch } = setup();
  hub.begin(run());
  const sockets = Array.from({ length: 50 }, () => watch().socket);
  for (const socket of sockets) socket.stalled = true;
  group(0, 3, 50_000);
  assert.ok(sockets.every(({ bufferedBytes }) => bufferedBytes > 100_000));
  assert.ok(limits.viewerMemory.usedBytes < 200_000, `${limits.viewerMemory.usedBytes} bytes`);
  for (const socket of sockets) socket.drain();
  assert.equal(limits.viewerMemory.usedBytes, 0);
});

test('when memory is short, the most backward viewers are disconnected first, then caches are emptied, then others are refused', () => {
  const memory = new MemoryBudget(4_000_000);
  const limits = new LiveLimits({}, memory);
  const sources = new SourceLimits({}, memory);
  const writing = memory.open('writing', { maxBytes: 4_000_000 });
  const clock = new VirtualClock();
  const maker = new SampleMaker();
  const cameras = [10, 40].map((frames) => {
    const hub = new LiveStream({ cameraId: `camera-${frames}`, limits, sources, clock, log: silentLog });
    hub.begin(run());
    const socket = new FakeSocket();
    socket.stalled = true;
    hub.add(socket);
    for (let i = 0; i < frames; i++) {
      const sample = maker.make({ dts: i * FRAME_TICKS, sync: i === 0 }, 20_000);
      hub.sample(sample);
      sample.data.slab.release();
    }
    return { hub, socket };
  });
  const [little, much] = cameras;
  const cached = sources.cacheMemory.usedBytes;
  assert.ok(cached > 900_000);
  const free = memory.limitBytes - memory.usedBytes;
  assert.ok(writing.take(free + 1));
  assert.deepEqual([little?.socket.closeCode(), much?.socket.closeCode()], [undefined, CLOSE.tooSlow]);
  assert.equal(sources.cacheMemory.usedBytes, cached);
  assert.ok(writing.take(memory.limitBytes - memory.usedBytes + 500_000));
  assert.equal(little?.socket.closeCode(), CLOSE.tooSlow);
  assert.ok(sources.cacheMemory.usedBytes < cached);
  assert.ok(!writing.take(memory.limitBytes));
  assert.equal(sources.cacheMemory.usedBytes, 0);
  for (const { hub, socket } of cameras) {
    hub.close();
    socket.drain();
  }
  assert.equal(memory.usedBytes, writing.usedBytes, 'nothing of it is held any more');
  maker.close();
});

test('what connections copy to encrypt it counts for each viewer, within the one budget of all, and is free at once', () => {
  const memory = new MemoryBudget(2_000_000);
  const limits = new LiveLimits({}, memory);
  const sources = new SourceLimits({}, memory);
  const writing = memory.open('writing', { maxBytes: Infinity });
  const hub = new LiveStream({ cameraId: 'gate', limits, sources, clock: new VirtualClock(), log: silentLog });
  const maker = new SampleMaker();
  hub.begin(run());
  const watching = Array.from({ length: 50 }, () => {
    const socket = new FakeSocket();
    socket.isCopying = true;
    socket.stalled = true;
    return { socket, viewer: hub.add(socket) };
  });
  for (let i = 0; i < 3; i++) {
    const sample = maker.make({ dts: i * FRAME_TICKS, sync: i === 0 }, 50_000);
    hub.sample(sample);
    sample.data.slab.release();
  }
  const left = watching.filter(({ socket }) => !socket.isTerminated);
  const copied = left.reduce((sum, { socket }) => sum + socket.bufferedBytes, 0);
  assert.ok(left.length > 0 && left.length < 50, `${left.length} viewers`);
  assert.ok(limits.viewerMemory.usedBytes >= copied, 'each has a copy');
  assert.ok(limits.viewerMemory.usedBytes <= memory.limitBytes / 2);
  assert.ok(writing.take(memory.limitBytes), 'recording gets all of it');
  assert.ok(watching.every(({ socket }) => socket.isTerminated));
  assert.equal(limits.viewerMemory.usedBytes, 0);
  for (const { socket, viewer } of watching) {
    socket.drain();
    if (viewer) hub.remove(viewer);
  }
  hub.close();
  assert.equal(memory.usedBytes, writing.usedBytes);
  maker.close();
});

test('a viewer whose connection takes nothing for half a minute is disconnected', () => {
  const { hub, clock, group, watch } = setup({ maxViewerBytes: 300_000 });
  hub.begin(run());
  const { socket } = watch();
  socket.stalled = true;
  group(0, 10, 50_000);
  clock.advance(29_000);
  group(10, 1, 50_000);
  assert.equal(socket.closeCode(), undefined);
  clock.advance(2_000);
  group(11, 1, 50_000);
  assert.equal(socket.closeCode(), CLOSE.tooSlow);
});

test('a viewer that waits for the key frame of a long group is not called slow', () => {
  const { hub, clock, group, send, watch } = setup({ maxViewerBytes: 300_000 });
  hub.begin(run());
  const { socket } = watch();
  socket.stalled = true;
  group(0, 10, 50_000);
  socket.drain();
  clock.advance(60_000);
  send({ dts: 40 * FRAME_TICKS, sync: false });
  assert.equal(socket.closeCode(), undefined);
  send({ dts: 41 * FRAME_TICKS });
  assert.equal(socket.seen.at(-1)?.sync, true);
});

test('a group of pictures beyond the bound is not kept: a new viewer waits for the next key frame', () => {
  const { hub, group, send, watch } = setup({ maxGopBytes: 1_000 });
  hub.begin(run());
  group(0, 5, 300);
  assert.equal(hub.cachedBytes, 0);
  const { socket } = watch();
  assert.equal(socket.outline, 'init');
  send({ dts: 5 * FRAME_TICKS });
  assert.equal(socket.outline, 'init VIDEO');
});

test('the groups of all cameras together are bounded, by the blocks that they keep from others', () => {
  const block = 256 * 1024;
  const limits = new LiveLimits();
  const sources = new SourceLimits({ maxCacheBytes: 3 * block });
  const hubs = [1, 2, 3, 4].map(
    () => new LiveStream({ cameraId: 'x', limits, sources, clock: new VirtualClock(), log: silentLog }),
  );
  for (const hub of hubs) {
    const maker = new SampleMaker();
    hub.begin(run());
    for (let i = 0; i < 3; i++) hub.sample(maker.make({ dts: i * FRAME_TICKS, sync: i === 0 }, 300));
  }
  const cached = hubs.map((hub) => hub.cachedBytes);
  assert.equal(cached.filter((bytes) => bytes === 900).length, 3, String(cached));
  assert.equal(sources.cacheMemory.usedBytes, 3 * block);
  for (const hub of hubs) hub.end('stopped');
  assert.equal(sources.cacheMemory.usedBytes, 0);
});

test('every slab is given back, with viewers and without', () => {
  const { hub, maker, group, watch } = setup();
  const big = 200 * 1024; // one block each
  hub.begin(run());
  group(0, 3, big);
  const { viewer } = watch();
  group(3, 3, big);
  if (viewer) hub.remove(viewer);
  group(6, 3, big);
  hub.end('camera-lost');
  maker.close();
  assert.equal(maker.slabs.size, 9);
  for (const slab of maker.slabs) assert.throws(() => slab.retain(), /after its last release/);
});

test('one timeline over all runs: times never go back, and keep up with the clock', () => {
  const { hub, clock, group, watch } = setup();
  hub.begin(run());
  const { socket } = watch();
  group(0, 3);
  hub.end('camera-lost');
  clock.advance(5_000);
  hub.begin(run());
  group(0, 3);
  hub.end('clock');
  hub.begin(run());
  group(0, 3);
  const times = socket.seen.filter((s) => s.kind === 'video').map((s) => s.decodeTime / 90_000);
  for (let i = 1; i < times.length; i++) assert.ok((times[i] as number) > (times[i - 1] as number), times.join(' '));
  assert.ok((times[3] as number) - (times[0] as number) >= 5);
  assert.ok((times[3] as number) - (times[0] as number) < 5.5);
});

test('audio keeps its distance to the picture in every run', () => {
  const { hub, clock, send, watch } = setup();
  clock.advance(12_345);
  hub.begin(run({ audio: AUDIO }));
  const { socket } = watch();
  send({ dts: 9_000 });
  send({ kind: 'audio', dts: 4_800, usualDuration: 1024 });
  const [, video, audio] = socket.seen;
  assert.ok(Math.abs((video?.decodeTime ?? 0) / 90_000 - (audio?.decodeTime ?? 0) / 48_000) < 1e-4);
});

test('a viewer of a camera without stream waits, and is disconnected after a while', () => {
  const { hub, clock, group, watch } = setup({ offlineWaitMs: 10_000 });
  const { socket } = watch();
  clock.advance(9_000);
  assert.equal(socket.closeCode(), undefined);
  hub.begin(run());
  group(0, 1);
  assert.equal(socket.outline, 'init VIDEO');
  clock.advance(20_000);
  assert.equal(socket.closeCode(), undefined);
  hub.end('camera-lost');
  clock.advance(10_000);
  assert.deepEqual(socket.closed, { code: CLOSE.offline, reason: 'the camera is offline' });
});

test('too many viewers of a camera or of the process are turned away, and a place is free again afterwards', () => {
  const limits = new LiveLimits({ maxViewersPerCamera: 2, maxViewers: 3 });
  const hubs = ['a', 'b'].map(
    (cameraId) => new LiveStream({ cameraId, limits, clock: new VirtualClock(), log: silentLog }),
  );
  const [a, b] = hubs as [LiveStream, LiveStream];
  const add = (hub: LiveStream) => {
    const socket = new FakeSocket();
    return { viewer: hub.add(socket), code: socket.closeCode() };
  };
  const first = add(a);
  assert.equal(add(a).code, undefined);
  assert.equal(add(a).code, CLOSE.tooManyViewers);
  assert.equal(add(b).code, undefined);
  assert.equal(add(b).code, CLOSE.tooManyViewers);
  if (first.viewer) {
    a.remove(first.viewer);
    a.remove(first.viewer);
  }
  assert.equal(limits.viewers, 2);
  assert.equal(add(b).code, undefined);
});

/** Hubs of cameras with the same limits; `add` returns the close code and reason of a viewer who was refused. */
function crowd(options: LiveLimitOptions) {
  const limits = new LiveLimits(options);
  const hubs = new Map<string, LiveStream>();
  return (cameraId: string, name: string, isOperator = false) => {
    const hub = hubs.get(cameraId) ?? new LiveStream({ cameraId, limits, clock: new VirtualClock(), log: silentLog });
    hubs.set(cameraId, hub);
    const socket = new FakeSocket();
    const viewer = hub.add(socket, { audio: true, watcher: { name, isOperator } });
    return viewer ? 'watches' : `${socket.closed?.code} ${socket.closed?.reason}`;
  };
}

test('one caller has a bounded number of viewers of a camera, and takes no place of others there', () => {
  const add = crowd({ maxViewersPerCaller: 2 });
  assert.deepEqual(
    [add('gate', 'wall'), add('gate', 'wall'), add('gate', 'wall'), add('gate', 'anna'), add('yard', 'wall')],
    ['watches', 'watches', '4429 you have 2 viewers of this camera', 'watches', 'watches'],
  );
});

test('one caller has at most half of the viewers of a node', () => {
  const add = crowd({ maxViewers: 6 });
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((cameraId) => add(cameraId, 'wall')),
    ['watches', 'watches', 'watches', '4429 you have half of the viewers of this node'],
  );
  assert.equal(add('d', 'anna'), 'watches');
});

test('the last tenth of the viewers of a camera and of a node is for operators and admins', () => {
  const full = '4429 too many viewers';
  const ofCamera = crowd({ maxViewersPerCamera: 10 });
  for (let i = 0; i < 9; i++) assert.equal(ofCamera('gate', `viewer ${i}`), 'watches');
  assert.equal(ofCamera('gate', 'one more'), full);
  assert.equal(ofCamera('gate', 'operator', true), 'watches');
  assert.equal(ofCamera('gate', 'second operator', true), full);
  const ofNode = crowd({ maxViewers: 10 });
  for (let i = 0; i < 9; i++) assert.equal(ofNode(`camera-${i}`, `viewer ${i}`), 'watches');
  assert.equal(ofNode('gate', 'one more'), full);
  assert.equal(ofNode('gate', 'operator', true), 'watches');
});

test('a closed hub turns everyone away', () => {
  const { hub, group, watch } = setup();
  hub.begin(run());
  group(0, 1);
  const { socket } = watch();
  hub.close();
  assert.equal(socket.closeCode(), CLOSE.goingAway);
  assert.equal(watch().socket.closeCode(), CLOSE.offline);
  assert.equal(hub.cachedBytes, 0);
});

test('counts outlive the viewers', () => {
  const { hub, group, watch } = setup();
  hub.begin(run());
  const { viewer, socket } = watch();
  group(0, 3);
  const sent = socket.messages.reduce((sum, m) => sum + m.length, 0);
  if (viewer) hub.remove(viewer);
  assert.deepEqual(hub.stats, { viewers: 0, sentBytes: sent, droppedFrames: 0 });
});
