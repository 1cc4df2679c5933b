import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Registry } from 'prom-client';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { MemoryBudget, type MemoryAccount } from '../../base/memory-budget.ts';
import { startCamera } from '../../test/camera/camera.ts';
import { decodeFiles } from '../../test/camera/frame-numbers.ts';
import { until } from '../../test/support/until.ts';
import { Archive } from '../archive/archive.ts';
import { GapLedger } from '../archive/gaps/ledger.ts';
import type { CameraArchive } from '../archive/segments/camera-archive.ts';
import { segmentPaths, temporaryDirectory } from '../archive/test-support.ts';
import { CameraSet, type WantedCamera } from './camera-set.ts';
import { ReadPacer } from '../camera/read-pacer.ts';
import { SlabPool } from '../codec/slab.ts';
import { SourceLimits } from '../live/source-limits.ts';
import type { Sample } from '../mp4/sample.ts';
import { anywhere } from '../reach/reach.ts';
import { StandbySet } from './standby-set.ts';

/** A node that can hold cameras and record them. */
async function open(
  t: TestContext,
  {
    memoryBytes = Infinity,
    wantedFromMs = () => -Infinity,
    ...deps
  }: { readonly memoryBytes?: number; readonly wantedFromMs?: () => number } & Partial<
    Pick<ConstructorParameters<typeof StandbySet>[0], 'memory' | 'recordingOf'>
  > = {},
) {
  const root = temporaryDirectory(t);
  const common = { clock: systemClock, log: silentLog };
  const archive = new Archive({ root, ...common, syncIntervalMs: 5_000 });
  await archive.recover();
  const checkDisk = (): Promise<void> => archive.checkDisk();
  const gaps = new GapLedger({ root, ...common, bootId: 'boot', registry: new Registry(), checkDisk });
  await gaps.load();
  const memory = new MemoryBudget(memoryBytes);
  const connecting = {
    ...common,
    reach: anywhere(),
    pool: new SlabPool(),
    pacer: new ReadPacer(),
    receiveBuffer: Buffer.alloc(65_536),
  };
  const standbys = new StandbySet({
    ...connecting,
    memory: (shed) => memory.open('standby', { maxBytes: memoryBytes, shed }),
    recordingOf: ({ id, name, record }) =>
      archive.sinkFor({ cameraId: id, name, ...record }, { needKeyFrame: () => {} }),
    ...deps,
  });
  const cameras = new CameraSet({
    ...connecting,
    archive,
    gaps,
    liveLimits: new SourceLimits(),
    standbys,
    wantedFromMs,
  });
  const ticking = setInterval(() => cameras.tick(), 50);
  t.after(async () => {
    clearInterval(ticking);
    await cameras.close();
    await gaps.close();
    await archive.close();
  });
  return {
    cameras,
    gaps,
    standbys,
    memory,
    hold: (camera: WantedCamera, holdMs = 30_000) => cameras.apply([], { cameras: [camera], holdMs }),
    report: () => standbys.reports().get('gate'),
    numbers: async (): Promise<number[]> =>
      (await decodeFiles(segmentPaths(root).map((path) => join(root, path)))).numbers.flat(),
    files: () => segmentPaths(root),
    /** Whether every file is complete. */
    isWritten: async () => {
      const { segments } = await archive.list('gate', { fromMs: 0, toMs: Date.now() + 60_000 });
      return segments.length > 0 && segments.every(({ endMs }) => endMs !== undefined);
    },
  };
}

const wanted = (source: string, over: Partial<WantedCamera> = {}): WantedCamera => ({
  id: 'gate',
  name: 'Gate',
  source,
  transport: 'tcp',
  maxBitrate: 1e8,
  tls: { verify: false },
  allowPlaintextLogin: false,
  snapshot: undefined,
  onvif: undefined,
  events: 'auto',
  activity: false,
  edge: undefined,
  ptz: false,
  preview: undefined,
  enabled: true,
  record: {
    format: 'fmp4',
    segmentDurationMs: 60_000,
    retention: { maxAgeMs: undefined, maxSizeBytes: undefined, minFree: undefined },
  },
  ...over,
});

test('a camera that is held is recorded from its first picture on when it is taken over, over the same connection', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const node = await open(t);
  await node.hold(wanted(camera.url));
  await until('three seconds are held', () => (node.standbys.heldSinceMs('gate') ?? Infinity) < Date.now() - 3_000);
  assert.deepEqual([node.report(), node.files(), node.cameras.list()], [{ state: 'Holding' }, [], []]);
  const heldSinceMs = node.standbys.heldSinceMs('gate') ?? 0;
  node.gaps.takeOver('gate', heldSinceMs + 1_000, heldSinceMs);
  await node.cameras.apply([wanted(camera.url)]);
  assert.equal(node.cameras.get('gate')?.status.state, 'recording');
  await until('it goes on', () => (node.cameras.get('gate')?.archive?.framesWritten ?? 0) > 150);
  const { gaps } = node.gaps.report('gate', heldSinceMs, Date.now(), []);
  assert.deepEqual(
    gaps.filter(({ isProvisional, isOpen }) => !isProvisional && !isOpen),
    [],
  );
  await node.cameras.apply([]);
  const numbers = await node.numbers();
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => i),
  );
  assert.equal(camera.connections.length, 1);
  assert.equal(node.memory.usedBytes, 0);
});

test('what another recorder missed that was restarted is written, while the camera is held as before', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const node = await open(t);
  await node.hold(wanted(camera.url));
  await until('three seconds are held', () => (node.standbys.heldSinceMs('gate') ?? Infinity) < Date.now() - 3_000);
  const heldSinceMs = node.standbys.heldSinceMs('gate');
  node.standbys.bridge('gate', -Infinity);
  await until('it is written', () => node.files().length > 0);
  await until('it ends', () => node.isWritten());
  assert.ok((await node.numbers()).length > 10 * 25);
  assert.deepEqual([node.standbys.heldSinceMs('gate'), node.report()?.state], [heldSinceMs, 'Holding']);
  // The camera is lost within these seconds: nothing is written twice.
  node.standbys.bridge('gate', -Infinity);
  await node.cameras.apply([wanted(camera.url)]);
  await until('it is recorded', () => (node.cameras.get('gate')?.archive?.framesWritten ?? 0) > 60);
  await node.cameras.apply([]);
  const numbers = await node.numbers();
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => i % 250),
  );
  assert.equal(camera.connections.length, 1);
  assert.equal(node.memory.usedBytes, 0);
});

test('only what was captured since the wanted time is written', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  let wantedFromMs = NaN;
  const node = await open(t, { wantedFromMs: () => wantedFromMs });
  await node.hold(wanted(camera.url));
  await until('five seconds are held', () => (node.standbys.heldSinceMs('gate') ?? Infinity) < Date.now() - 5_000);
  wantedFromMs = (node.standbys.heldSinceMs('gate') ?? NaN) + 3_000;
  await node.cameras.apply([wanted(camera.url)]);
  await until('it is written', () => (node.cameras.get('gate')?.archive?.framesWritten ?? 0) > 0);
  await node.cameras.apply([]);
  const numbers = await node.numbers();
  const first = numbers[0] ?? 0;
  assert.ok(first > 0 && first < 100, `${first}`);
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => first + i),
  );
});

test('a camera whose settings have changed is connected again, and one that is held no more is disconnected', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const node = await open(t);
  await node.hold(wanted(camera.url));
  await until('it is held', () => node.report()?.state === 'Holding');
  await node.cameras.apply([wanted(camera.url, { name: 'Front gate' })]);
  await until('it is recorded', () => (node.cameras.get('gate')?.archive?.framesWritten ?? 0) > 0);
  assert.equal(camera.connections.length, 2);
  await node.cameras.apply([]);
  await until('both are closed', () => camera.connections.every(({ closed }) => closed));
  assert.equal(node.standbys.size, 0);
});

test('a camera that refuses a second connection is reported, and the one that it has stays', async (t) => {
  await using camera = await startCamera({ pace: 'realtime', maxSessions: 1 });
  const owner = await open(t);
  await owner.cameras.apply([wanted(camera.url)]);
  await until('the owner records', () => (owner.cameras.get('gate')?.archive?.framesWritten ?? 0) > 0);
  const node = await open(t);
  await node.hold(wanted(camera.url));
  await until('it is refused', () => node.report()?.state === 'Failed');
  assert.equal(node.report()?.reason?.code, 'too-many-streams');
  const attempts = camera.connections.length;
  // Lasts: the pause before the next attempt.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assert.equal(camera.connections.length, attempts, 'the next attempt waits');
  assert.equal(owner.cameras.get('gate')?.status.counters.reconnects.size, 0);
  // The owner is gone: the pause ends.
  await owner.cameras.apply([]);
  await node.cameras.apply([wanted(camera.url)]);
  await until('it records', () => (node.cameras.get('gate')?.archive?.framesWritten ?? 0) > 0);
});

test('a node without memory for the cameras that it should hold says so', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const memoryBytes = 200 * 1024;
  const node = await open(t, { memoryBytes });
  await node.hold(wanted(camera.url));
  await until('it says so', () => node.report()?.reason?.code === 'no-memory');
  assert.equal(node.report()?.state, 'Failed');
  // One block of memory is larger than that.
  assert.ok(node.memory.usedBytes <= 2 * memoryBytes);
});

/** What a bridge writes. `endMs`: up to when this node has recorded the camera before. */
class FakeRecording {
  readonly wallMs: number[] = [];
  isClosed = false;
  endMs: number | undefined;

  begin(): void {}
  change(): void {}
  sample(sample: Sample): void {
    this.wallMs.push(sample.wallMs);
  }
  end(): void {}
  tick(): void {}
  hasTimeForMore(): boolean {
    return true;
  }
  async close(): Promise<void> {
    this.isClosed = true;
  }
}

test('what this node has recorded already is not written again, and a bridge ends with its standby', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const recording = new FakeRecording();
  const node = await open(t, { recordingOf: () => recording as unknown as CameraArchive });
  await node.hold(wanted(camera.url));
  await until('five seconds are held', () => (node.standbys.heldSinceMs('gate') ?? Infinity) < Date.now() - 5_000);
  recording.endMs = (node.standbys.heldSinceMs('gate') ?? NaN) + 2_500;
  node.standbys.bridge('gate', -Infinity);
  await until('it is written', () => recording.wallMs.length > 0);
  // Times of one picture in a file and in memory may differ by a fifth of a second.
  assert.ok(Math.min(...recording.wallMs) >= recording.endMs - 200, `${recording.wallMs[0]} and ${recording.endMs}`);
  assert.equal(recording.isClosed, false);
  await node.cameras.apply([], { cameras: [], holdMs: 30_000 });
  assert.equal(recording.isClosed, true);
});

test('when memory is short, the oldest pictures of all cameras go first', async (t) => {
  let mayStart = false;
  await using old = await startCamera({ pace: 'realtime' });
  await using young = await startCamera({
    pace: 'realtime',
    onFrame: (frame) => (mayStart ? frame : undefined),
  });
  let shed = (_bytes: number): void => {};
  let isFull = false;
  /** Full until something is dropped. */
  const account = {
    take: () => true,
    giveBack: () => void (isFull = false),
    get usedBytes() {
      return isFull ? 1 : 0;
    },
  } as unknown as MemoryAccount;
  const node = await open(t, { memory: (make) => ((shed = make), account) });
  const cameras = [wanted(young.url, { id: 'young' }), wanted(old.url, { id: 'old' })];
  await node.cameras.apply([], { cameras, holdMs: 30_000 });
  await until('one is held for two seconds', () => (node.standbys.heldSinceMs('old') ?? Infinity) < Date.now() - 2_000);
  mayStart = true;
  await until('both are held', () => node.standbys.heldSinceMs('young') !== undefined);
  const before = ['young', 'old'].map((id) => node.standbys.heldSinceMs(id));
  isFull = true;
  shed(1);
  assert.equal(node.standbys.heldSinceMs('young'), before[0]);
  assert.notEqual(node.standbys.heldSinceMs('old'), before[1]);
});
