import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { MemoryBudget } from '../../base/memory-budget.ts';
import type { Reason } from '../../base/reason.ts';
import type { SampleSink } from '../contract/sink.ts';
import { stoppedStatus, type CameraState, type CameraStatus } from '../contract/camera-status.ts';
import { LiveLimits } from '../live/limits.ts';
import { SourceLimits } from '../live/source-limits.ts';
import { PreviewStream } from './preview.ts';
import { AUDIO, FakeSocket, hubOf, run, SampleMaker, VIDEO } from '../live/test-support.ts';
import { CLOSE } from '../live/close.ts';
import type { LiveHub } from '../live/hub.ts';

/** A connection that does what the test says. */
class FakeConnection {
  readonly #sinks: readonly SampleSink[];
  readonly #changed: (connection: FakeConnection) => void;
  #state: CameraState = 'stopped';
  #reason: Reason | undefined;
  isStarted = false;
  isStopped = false;
  bytes = 0;
  /** Resolves the `stop` that waits. */
  stopped: () => void = () => {};
  isStopSlow = false;

  constructor(sinks: readonly SampleSink[], changed: (connection: FakeConnection) => void) {
    this.#sinks = sinks;
    this.#changed = changed;
  }

  start(): void {
    this.isStarted = true;
    this.become('connecting');
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    this.become('stopped');
    if (this.isStopSlow) await new Promise<void>((resolve) => (this.stopped = resolve));
    for (const sink of this.#sinks) sink.end('stopped');
  }

  tick(): void {}

  reconnect(): void {}

  condition() {
    const { state, reason, counters } = this.status();
    return { state, reason, counters };
  }

  status(): CameraStatus {
    const plain = stoppedStatus({ id: 'gate', name: 'Gate' }, 0);
    const counters = { ...plain.counters, bytesReceived: this.bytes };
    const isLive = this.#state === 'recording';
    const media = isLive ? { video: VIDEO, audio: AUDIO } : {};
    return { ...plain, ...media, state: this.#state, reason: this.#reason, counters };
  }

  become(state: CameraState, reason?: Reason): void {
    this.#state = state;
    this.#reason = reason;
    this.#changed(this);
  }

  /** Pictures arrive. */
  play(): void {
    const maker = new SampleMaker();
    for (const sink of this.#sinks) sink.begin(run());
    const sample = maker.make();
    for (const sink of this.#sinks) sink.sample(sample);
    sample.data.slab.release();
    maker.close();
    this.become('recording');
  }
}

/** Where a preview is recorded. */
class FakeRecording implements SampleSink {
  samples = 0;
  isClosed = false;

  begin(): void {}
  change(): void {}
  end(): void {}
  tick(): void {}

  sample(): void {
    this.samples++;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

const REFUSED: Reason = { code: 'too-many-streams', message: 'the camera has no connection left' };

function setup(memory = new MemoryBudget(64 * 1024 * 1024), recording?: FakeRecording) {
  const clock = new VirtualClock();
  const limits = new SourceLimits({}, memory);
  const connections: FakeConnection[] = [];
  const make = (cameraId = 'gate'): PreviewStream =>
    new PreviewStream({
      cameraId,
      limits,
      clock,
      log: silentLog,
      recording,
      connection(sinks, changed) {
        connections.push(new FakeConnection(sinks, changed));
        return connections.at(-1) as FakeConnection;
      },
    });
  const preview = make();
  const hubs = new Map<PreviewStream, LiveHub>();
  const viewersOf = (of = preview): LiveHub => {
    const hub = hubs.get(of) ?? hubOf(of, new LiveLimits(), clock);
    hubs.set(of, hub);
    return hub;
  };
  const watch = (of = preview) => {
    const socket = new FakeSocket();
    const viewer = viewersOf(of).add(socket);
    return { socket, leave: () => (viewer ? viewersOf(of).remove(viewer) : undefined) };
  };
  const open = (): FakeConnection[] => connections.filter(({ isStarted, isStopped }) => isStarted && !isStopped);
  return { clock, limits, connections, make, preview, watch, open, memory };
}

/** Work that waits for promises only. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('nobody watches: no connection; two watch: one; both see the pictures', () => {
  const { connections, preview, watch } = setup();
  assert.equal(preview.status().state, 'idle');
  assert.equal(connections.length, 0);
  const [one, other] = [watch(), watch()];
  assert.equal(connections.length, 1);
  assert.equal(preview.status().state, 'connecting');
  connections[0]?.play();
  assert.equal(preview.status().state, 'live');
  for (const { socket } of [one, other]) assert.equal(socket.outline, 'init VIDEO');
});

test('the connection stays ten seconds after its last viewer, and a viewer who comes meanwhile keeps it', async () => {
  const { clock, connections, preview, watch, open, memory } = setup();
  const first = watch();
  connections[0]?.play();
  const { video, audio } = preview.status();
  first.leave();
  clock.advance(9_000);
  assert.equal(open().length, 1);
  const second = watch();
  assert.equal(second.socket.outline, 'init VIDEO', 'there is a picture at once');
  clock.advance(60_000);
  assert.equal(open().length, 1);
  second.leave();
  clock.advance(10_000);
  assert.equal(open().length, 0);
  assert.deepEqual([preview.status().state, memory.usedBytes], ['idle', 0]);
  assert.deepEqual(preview.status().video, video, 'the page knows the codecs of the next connection');
  assert.deepEqual(preview.status().audio, audio);
  await settle();
  watch();
  assert.equal(connections.length, 2);
});

test('a camera that refuses: viewers are told at once, and it is asked less and less often', async () => {
  const { clock, connections, preview, watch, open } = setup();
  const first = watch();
  connections[0]?.become('retrying', REFUSED);
  assert.deepEqual(first.socket.closed, {
    code: CLOSE.offline,
    reason: 'the camera does not deliver its preview (too-many-streams)',
  });
  first.leave();
  assert.deepEqual([preview.status().state, preview.status().reason], ['failed', REFUSED]);
  assert.equal(open().length, 0);
  await settle();
  const pauses: number[] = [];
  for (let attempt = 1; attempt <= 8; attempt++) {
    let pauseMs = 0;
    for (; connections.length === attempt; pauseMs += 1_000) {
      const { socket, leave } = watch();
      leave();
      if (!socket.closed) continue;
      assert.equal(socket.closeCode(), CLOSE.offline);
      clock.advance(1_000);
    }
    pauses.push(pauseMs);
    connections.at(-1)?.become('retrying', REFUSED);
    await settle();
  }
  assert.equal(pauses[0], 6_000);
  assert.ok(pauses.every((pauseMs) => pauseMs <= 302_000));
  assert.ok((pauses.at(-1) as number) >= 200_000, pauses.join(' '));
  assert.equal(preview.status().failures.get('too-many-streams'), 9);
});

test('a stream that was there and breaks is connected again while its viewers wait', () => {
  const { connections, preview, watch } = setup();
  const { socket } = watch();
  connections[0]?.play();
  connections[0]?.become('retrying', { code: 'closed-by-camera', message: 'the camera ended the connection' });
  assert.equal(socket.closed, undefined);
  assert.equal(preview.status().state, 'connecting');
  connections[0]?.become('connecting');
  connections[0]?.play();
  assert.equal(preview.status().state, 'live');
});

test('the next connection begins when the last one has ended: a camera may have only one', async () => {
  const { clock, connections, watch } = setup();
  const { leave } = watch();
  const [first] = connections;
  first!.isStopSlow = true;
  leave();
  clock.advance(10_000);
  watch();
  assert.deepEqual([connections.length, connections[1]?.isStarted], [2, false]);
  first?.stopped();
  await settle();
  assert.equal(connections[1]?.isStarted, true);
});

test('bytes that were received are counted over all connections, and never become fewer', async () => {
  const { clock, connections, preview, watch } = setup();
  const { leave } = watch();
  connections[0]!.bytes = 700;
  assert.equal(preview.status().bytesReceived, 700);
  connections[0]!.isStopSlow = true;
  leave();
  clock.advance(10_000);
  assert.equal(preview.status().bytesReceived, 700);
  connections[0]?.stopped();
  await settle();
  watch();
  connections[1]!.bytes = 40;
  assert.equal(preview.status().bytesReceived, 740);
});

test('previews have a share of the memory, and give way to recording: those that nobody watches first', () => {
  const memory = new MemoryBudget(4 * 1024 * 1024);
  const { make, watch, limits, connections } = setup(memory);
  const writing = memory.open('writing', { maxBytes: Infinity });
  const [much, little, third] = ['a', 'b', 'c'].map(make) as [PreviewStream, PreviewStream, PreviewStream];
  const seen = watch(much);
  watch(little).leave();
  assert.equal(limits.previewMemory.usedBytes, limits.previewMemory.maxBytes);
  const late = watch(third);
  assert.equal(late.socket.closed, undefined);
  assert.equal(seen.socket.closed, undefined);
  assert.equal(connections[1]?.isStopped, true, 'one of them had to go');
  assert.equal(limits.previewMemory.usedBytes, limits.previewMemory.maxBytes);
  assert.ok(writing.take(memory.limitBytes));
  assert.equal(limits.previewMemory.usedBytes, 0);
  assert.ok(connections.every(({ isStopped }) => isStopped));
});

test('a closed preview takes no viewer, and lets those it has go', async () => {
  const { preview, watch, open, memory } = setup();
  const { socket } = watch();
  await preview.close(CLOSE.unknownCamera, 'the camera was removed');
  assert.equal(socket.closeCode(), CLOSE.unknownCamera);
  assert.equal(watch().socket.closeCode(), CLOSE.offline);
  assert.deepEqual([open().length, memory.usedBytes], [0, 0]);
});

test('a preview that is recorded is connected all the time, costs no memory of others, and is repaired like a camera', async () => {
  const recording = new FakeRecording();
  const { clock, connections, limits, preview, watch, open } = setup(undefined, recording);
  assert.deepEqual([open().length, preview.status().state], [1, 'connecting']);
  const [connection] = connections;
  connection?.play();
  const { socket, leave } = watch();
  assert.equal(socket.outline, 'init VIDEO');
  leave();
  clock.advance(60_000);
  limits.previewMemory.shed(1);
  assert.deepEqual([open().length, connections.length, recording.samples], [1, 1, 1]);
  assert.equal(limits.previewMemory.usedBytes, 0);

  connection?.become('retrying', { code: 'closed-by-camera', message: 'the camera ended the connection' });
  const waiting = watch();
  assert.equal(waiting.socket.closed, undefined, 'it may be back at once');
  connection?.become('connecting');
  connection?.become('retrying', REFUSED);
  assert.equal(waiting.socket.closeCode(), CLOSE.offline);
  assert.deepEqual([preview.status().state, preview.status().reason], ['failed', REFUSED]);
  assert.equal(watch().socket.closeCode(), CLOSE.offline);
  connection?.become('connecting');
  connection?.play();
  assert.equal(preview.status().state, 'live');
  assert.deepEqual([connections.length, watch().socket.closed], [1, undefined]);
  await preview.close(CLOSE.goingAway, 'the recorder is stopping');
  assert.deepEqual([open().length, recording.isClosed], [0, true]);
});
