// Live streams over a border that carries messages later, as copies.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deserialize, serialize } from 'node:v8';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { LiveNews } from '../contract/live-feed.ts';
import { CLOSE, STOPPED } from '../live/close.ts';
import { LiveLimits } from '../live/limits.ts';
import { SourceLimits } from '../live/source-limits.ts';
import { LiveSource } from '../live/source.ts';
import { FakeSocket, FRAME_TICKS, run, SampleMaker } from '../live/test-support.ts';
import type { RecordedCamera } from '../model/camera-view.ts';
import { LiveStreams } from './live-streams.ts';

function stage() {
  const clock = new VirtualClock();
  const limits = new LiveLimits();
  const cameras = new Map(['gate', 'yard'].map((id) => [id, sourceOf(id)]));
  const toEngine: (() => void)[] = [];
  const toFront: Buffer[] = [];
  const watched = new Map<number, LiveSource>();
  const watch = (number: number, cameraId: string): void => {
    const source = cameras.get(cameraId);
    const tell = (news: LiveNews): void => void toFront.push(serialize([number, news]));
    if (!source) return tell({ kind: 'closed', ...STOPPED });
    watched.set(number, source);
    return source.watch(tell);
  };
  const view = (id: string) => ({ status: { id }, archive: {} }) as unknown as RecordedCamera;
  const streams = new LiveStreams({
    engine: {
      list: () => [...cameras.keys()].map(view),
      get: (id) => (cameras.has(id) ? view(id) : undefined),
      watch: (number, cameraId) => void toEngine.push(() => watch(number, cameraId)),
      unwatch: (number) => void toEngine.push(() => watched.get(number)?.unwatch()),
    },
    limits,
    clock,
  });
  const maker = new SampleMaker();
  let frame = 0;

  function sourceOf(cameraId: string): LiveSource {
    const source = new LiveSource({ cameraId, limits: new SourceLimits(), clock, log: silentLog });
    source.begin(run());
    return source;
  }

  const asked = (): void => {
    for (const ask of toEngine.splice(0)) ask();
  };

  /** The kinds of what crossed. */
  const told = (): string[] =>
    toFront.splice(0).map((message) => {
      const [number, news] = deserialize(message) as [number, LiveNews];
      streams.hear(number, news);
      return news.kind;
    });

  return {
    clock,
    streams,
    cameras,
    asked,
    told,
    /** Each camera sends one picture. */
    play: (sync = false): void => {
      for (const source of cameras.values()) {
        const sample = maker.make({ dts: frame * FRAME_TICKS, sync });
        source.sample(sample);
        sample.data.slab.release();
      }
      frame++;
    },
    join: (cameraId = 'gate') => {
      const socket = new FakeSocket();
      const live = streams.streams(cameraId)?.live;
      const viewer = live?.add(socket);
      return { socket, leave: () => (viewer ? live?.remove(viewer) : undefined) };
    },
  };
}

test('only pictures of a camera that somebody watches are sent, and none when the last viewer has left', () => {
  const { play, join, asked, told } = stage();
  play(true);
  assert.deepEqual(told(), []);
  const viewers = [join(), join()];
  asked();
  told();
  play();
  assert.deepEqual(told(), ['picture'], 'once for both, and none of the other camera');
  for (const { leave } of viewers) leave();
  asked();
  play();
  assert.deepEqual(told(), []);
});

test('a viewer that joins gets the group of pictures once, and the others go on without it', () => {
  const { play, join, asked, told } = stage();
  play(true);
  const first = join();
  asked();
  told();
  assert.equal(first.socket.outline, 'init VIDEO');
  play();
  const [second, third] = [join(), join()];
  told();
  assert.equal(first.socket.outline, 'init VIDEO video');
  assert.equal(second.socket.outline, '', 'a picture without what comes before it is of no use');
  play();
  asked();
  told();
  play();
  told();
  for (const { socket } of [first, second, third]) assert.equal(socket.outline, 'init VIDEO video video video');
});

test('a stream that is closed may be watched again, and one that begins while a viewer waits reaches it', () => {
  const { clock, cameras, join, asked, told, play } = stage();
  const { socket, leave } = join();
  asked();
  cameras.get('gate')?.close(CLOSE.goingAway, 'the settings of the camera changed');
  told();
  assert.equal(socket.closeCode(), CLOSE.goingAway);
  leave();
  const source = new LiveSource({ cameraId: 'gate', limits: new SourceLimits(), clock, log: silentLog });
  cameras.set('gate', source);
  const next = join();
  asked();
  told();
  clock.advance(9_000);
  source.begin(run());
  play(true);
  told();
  clock.advance(9_000);
  assert.deepEqual([next.socket.outline, next.socket.closed], ['init VIDEO', undefined]);
});

test('the views of cameras have the counts of their viewers, also when those have left', () => {
  const { streams, join, asked, told } = stage();
  const { socket, leave } = join();
  asked();
  told();
  const sentBytes = socket.messages.reduce((sum, { length }) => sum + length, 0);
  assert.ok(sentBytes > 0);
  assert.deepEqual(streams.get('gate')?.live, { viewers: 1, sentBytes, droppedFrames: 0 });
  leave();
  const live = streams.list().map((camera) => camera.live);
  assert.deepEqual(live, [
    { viewers: 0, sentBytes, droppedFrames: 0 },
    { viewers: 0, sentBytes: 0, droppedFrames: 0 },
  ]);
  assert.equal(streams.get('cellar'), undefined);
});
