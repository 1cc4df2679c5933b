import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { Log } from '../../base/log.ts';
import { startCamera } from '../../test/camera/camera.ts';
import { SlabPool } from '../codec/slab.ts';
import { Camera } from './camera.ts';
import type { SampleSink } from './sink.ts';

const NO_SINK: SampleSink = { begin() {}, change() {}, sample() {}, end() {} };

function cameraFor(source: string, clock: VirtualClock, log: Log = silentLog, sinks = [NO_SINK]): Camera {
  return new Camera(
    { id: 'cam', name: 'Cam', source, transport: 'tcp' },
    { clock, log, pool: new SlabPool(), receiveBuffer: Buffer.alloc(65_536), sinks },
  );
}

/** Turns of the event loop until `condition` holds; what is waited for is a connection over loopback. */
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

/** A port on which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('a camera that cannot be reached is retried after 1 s, then up to 30 s apart, and says so in one line', async () => {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const log: Log = { ...silentLog, warn: (fields) => lines.push(JSON.stringify(fields)), child: () => log };
  const camera = cameraFor(`rtsp://user:secret@127.0.0.1:${await closedPort()}/x`, clock, log);
  camera.start();
  const delaysMs: number[] = [];
  for (let attempt = 1; attempt <= 120; attempt++) {
    await turnsUntil(() => attempts(camera) === attempt && camera.status().state === 'retrying');
    const startMs = clock.monotonicMs();
    while (camera.status().state === 'retrying') {
      clock.advance(100);
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
    }
    delaysMs.push(clock.monotonicMs() - startMs);
  }
  assert.ok(delaysMs[0] !== undefined && delaysMs[0] >= 1_000 && delaysMs[0] <= 1_200, `${delaysMs[0]}`);
  assert.ok(
    delaysMs.slice(6).every((ms) => ms >= 23_000 && ms <= 30_300),
    delaysMs.join(' '),
  );
  assert.equal(camera.status().reason?.code, 'unreachable');
  assert.equal(lines.length, 1, 'an hour of failures is one line');
  assert.doesNotMatch(lines.join(), /secret/);
  await camera.stop();
  assert.equal(camera.status().state, 'stopped');
});

test('a camera over rtsps whose certificate nobody vouches for is refused when it is to be verified', async (t) => {
  const clock = new VirtualClock();
  await using server = await startCamera({ tls: true });
  const camera = new Camera(
    { id: 'cam', name: 'Cam', source: server.url, transport: 'tcp', tls: { verify: true } },
    { clock, log: silentLog, pool: new SlabPool(), receiveBuffer: Buffer.alloc(65_536), sinks: [NO_SINK] },
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
  // The first pictures of a run wait for half a second.
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
