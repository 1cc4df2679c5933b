import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { Log } from '../../base/log.ts';
import { startCamera } from '../../test/camera/camera.ts';
import { freePorts } from '../../test/support/recorder-process.ts';
import { SlabPool } from '../codec/slab.ts';
import { Camera } from './camera.ts';
import type { SampleSink } from '../contract/sink.ts';
import { anywhere } from '../reach/reach.ts';

const NO_SINK: SampleSink = { begin() {}, change() {}, sample() {}, end() {} };

function cameraFor(source: string, clock: VirtualClock, log: Log = silentLog, sinks = [NO_SINK]): Camera {
  return new Camera(
    { id: 'cam', name: 'Cam', source, transport: 'tcp' },
    { reach: anywhere(), clock, log, pool: new SlabPool(), receiveBuffer: Buffer.alloc(65_536), sinks },
  );
}

/** Runs turns of the event loop until `condition` holds; it depends on connections over loopback. */
async function turnsUntil(condition: () => boolean): Promise<void> {
  for (let turn = 0; !condition(); turn++) {
    if (turn > 20_000) throw new Error('nothing happened');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const attempts = (camera: Camera): number => {
  let sum = 0;
  for (const count of camera.status().counters.reconnects.values()) sum += count;
  return sum;
};

test('a port that nobody listens at is tried each second, for good, and that is said in one line', async () => {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const log: Log = { ...silentLog, warn: (fields) => lines.push(JSON.stringify(fields)), child: () => log };
  const [port = 0] = await freePorts(1);
  const camera = cameraFor(`rtsp://user:secret@127.0.0.1:${port}/x`, clock, log);
  camera.start();
  const sinceMs = clock.monotonicMs();
  await turnsUntil(() => camera.status().state === 'retrying');
  const { stateSinceMs } = camera.status();
  for (let i = 0; i < 600; i++) {
    clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(clock.monotonicMs() - sinceMs, 60_000);
  const status = camera.status();
  assert.deepEqual([status.state, status.reason?.code], ['retrying', 'unreachable']);
  assert.equal(status.stateSinceMs, stateSinceMs, 'the state does not change with each try');
  assert.equal(attempts(camera), 1, 'a connect without an answer is no connection that ended');
  assert.equal(lines.length, 1, 'a minute of failures is one line');
  assert.doesNotMatch(lines.join(), /secret/);
  const source = await startCamera({ clock, port });
  const openedMs = clock.monotonicMs();
  while (source.connections.length === 0 && clock.monotonicMs() - openedMs < 5_000) {
    clock.advance(100);
    // A connection takes turns that are nobody's time.
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(clock.monotonicMs() - openedMs <= 1_300, `${clock.monotonicMs() - openedMs} ms`);
  await camera.stop();
  assert.equal(camera.status().state, 'stopped');
  await source.close();
});

test('a camera over rtsps whose certificate nobody vouches for is refused when it is to be verified', async (t) => {
  const clock = new VirtualClock();
  await using server = await startCamera({ tls: true });
  const camera = new Camera(
    { id: 'cam', name: 'Cam', source: server.url, transport: 'tcp', tls: { verify: true } },
    {
      reach: anywhere(),
      clock,
      log: silentLog,
      pool: new SlabPool(),
      receiveBuffer: Buffer.alloc(65_536),
      sinks: [NO_SINK],
    },
  );
  t.after(() => camera.stop());
  camera.start();
  await turnsUntil(() => camera.status().state === 'retrying');
  assert.equal(camera.status().reason?.code, 'unreachable');
  assert.equal(server.requests.length, 0);
});

test('the first key frame resets the pause before the next try', async (t) => {
  const clock = new VirtualClock();
  const source = await startCamera({ clock, maxSessions: 0 });
  t.after(() => source.close());
  const camera = cameraFor(source.url, clock);
  t.after(() => camera.stop());
  camera.start();
  for (let attempt = 1; attempt <= 5; attempt++) {
    await turnsUntil(() => attempts(camera) === attempt && camera.status().state === 'retrying');
    if (attempt === 5) source.options.maxSessions = 10;
    clock.advance(30_000);
  }
  await source.untilPlaying();
  // The first pictures of a run are held back for half a second.
  for (let i = 0; i < 20; i++) {
    source.send(1);
    await source.settled();
    clock.advance(40);
  }
  assert.equal(camera.status().state, 'recording');
  source.disconnect();
  await turnsUntil(() => camera.status().state === 'retrying');
  clock.advance(1_000);
  await turnsUntil(() => camera.status().state === 'connecting');
});

test('a receiver that throws harms neither camera nor the other receivers', async (t) => {
  const clock = new VirtualClock();
  const source = await startCamera({ clock });
  t.after(() => source.close());
  let samples = 0;
  const broken: SampleSink = {
    ...NO_SINK,
    sample() {
      throw new Error('a bug');
    },
  };
  const counting: SampleSink = { ...NO_SINK, sample: () => void samples++ };
  const camera = cameraFor(source.url, clock, silentLog, [broken, counting]);
  t.after(() => camera.stop());
  camera.start();
  await source.untilPlaying();
  for (let i = 0; i < 50; i++) {
    source.send(1);
    await source.settled();
    clock.advance(40);
  }
  assert.equal(camera.status().state, 'recording');
  assert.ok(samples > 40);
});
