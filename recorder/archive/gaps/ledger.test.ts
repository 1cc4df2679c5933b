import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../../base/clock.ts';
import { until } from '../../../test/support/until.ts';
import { FanOut } from '../../camera/fan-out.ts';
import { newCounters, type CameraState } from '../../contract/camera-status.ts';
import { Archive } from '../archive.ts';
import type { CameraArchive } from '../segments/camera-archive.ts';
import {
  gate,
  readSegments,
  systemError,
  temporaryDirectory,
  TestCamera,
  TestFileSystem,
  TestLog,
} from '../test-support.ts';
import type { GapObserver } from './gap-teller.ts';
import { GapLedger } from './ledger.ts';

const HOUR_MS = 3_600_000;
const DOWN_MS = 20_000;

/** One process after the other, each with one camera, over one directory and one clock. */
class Node {
  readonly root: string;
  readonly clock = new VirtualClock();
  readonly log = new TestLog();
  readonly startMs = this.clock.wallMs();
  bootId = 'boot-1';
  checkDisk: () => Promise<void> = async () => {};
  fs: TestFileSystem;
  registry = new Registry();
  ledger!: GapLedger;
  archive!: Archive;
  recording!: CameraArchive;
  camera!: TestCamera;
  state: CameraState = 'connecting';
  reason: string | undefined;
  counters = newCounters();
  /** What observers of all processes were told: `silent`, `heard`, or a gap's beginning or whole seconds, and its cause. */
  readonly told: [what: string, seconds: number | undefined, cause: string | undefined][] = [];
  #open: GapObserver['openBefore'];

  constructor(t: TestContext) {
    this.root = temporaryDirectory(t);
    this.fs = new TestFileSystem(this.root);
    t.after(() => this.kill());
  }

  /** A process starts. */
  async start(enabled = true): Promise<void> {
    const { clock, log, root } = this;
    this.fs = new TestFileSystem(root);
    const { fs } = this;
    this.registry = new Registry();
    this.ledger = new GapLedger({
      root,
      clock,
      log,
      bootId: this.bootId,
      registry: this.registry,
      fs,
      checkDisk: () => this.checkDisk(),
      observerOf: () => this.#observer(),
    });
    this.archive = new Archive({ root, clock, log, fs, syncIntervalMs: 5_000, observer: this.ledger });
    await this.ledger.load();
    await this.archive.recover().catch(() => {});
    this.state = 'connecting';
    this.reason = undefined;
    this.counters = newCounters();
    this.configure(enabled);
    const options = { cameraId: 'gate', name: 'Gate', format: 'fmp4', segmentDurationMs: 10_000 } as const;
    this.recording = this.archive.sinkFor(options, { needKeyFrame: () => {} });
    const sink = new FanOut([this.recording, this.ledger.sinkFor('gate')], log);
    this.camera = new TestCamera(clock, sink, () => this.tick());
    await fs.idle();
  }

  #observer(): GapObserver {
    const seconds = (ms: number): number => Math.round(ms / 100) / 10;
    return {
      openBefore: this.#open,
      silent: (sinceMs, cause) => this.told.push(['silent', seconds(this.clock.wallMs() - sinceMs), cause]),
      heard: (sinceMs, untilMs) => this.told.push(['heard', seconds(untilMs - sinceMs), undefined]),
      opened: (gap) => {
        assert.equal(this.#open, undefined, 'one gap at a time');
        this.#open = gap;
        this.told.push(['opened', undefined, gap.cause]);
      },
      closed: ({ fromMs, toMs, cause }) => {
        assert.equal(this.#open?.fromMs, fromMs);
        this.#open = undefined;
        this.told.push(['closed', seconds(toMs - fromMs), cause]);
      },
      filled: ({ fromMs, toMs, cause }) => this.told.push(['filled', seconds(toMs - fromMs), cause]),
      removed: () => this.told.push(['removed', 0, '']),
    };
  }

  /** Gaps that were told of as closed. */
  closed(): [number, string][] {
    return this.told.flatMap(([what, seconds, cause]) => (what === 'closed' ? [[seconds ?? 0, cause ?? '']] : []));
  }

  configure(enabled: boolean): void {
    this.ledger.configure([{ id: 'gate', enabled }]);
  }

  tick(): void {
    const { recording, state, counters, reason } = this;
    counters.leadFrames = Math.round(this.camera.videoDts / 3_600);
    recording.tick();
    this.ledger.observe('gate', {
      camera: { state, counters, reason: reason === undefined ? undefined : { code: reason, message: '' } },
      archive: recording.status(),
      written: recording.written(),
    });
    this.ledger.tick();
  }

  /** The camera sends. */
  async play(seconds: number): Promise<void> {
    this.camera.begin();
    this.state = 'recording';
    await this.camera.play(seconds, this.fs);
  }

  /** The camera does not send, and says why. */
  async fail(reason: string, seconds: number, noticedAfterSeconds = 0): Promise<void> {
    await this.wait(noticedAfterSeconds);
    if (this.state === 'recording') this.camera.end('camera-lost');
    this.state = 'retrying';
    this.reason = reason;
    await this.wait(seconds);
  }

  async wait(seconds: number): Promise<void> {
    await this.camera.wait(seconds * 1000, this.fs);
  }

  /** As `kill -9`: nothing that is not with the disk by now will ever be. */
  async kill(downMs = 0): Promise<void> {
    this.fs.killAfter(0);
    await this.fs.idle();
    await this.recording.close().catch(() => {});
    this.clock.advance(downMs);
  }

  async stop(downMs = 0): Promise<void> {
    this.ledger.stopping();
    if (this.state === 'recording') this.camera.end();
    await this.archive.close();
    await this.ledger.close();
    this.clock.advance(downMs);
  }

  gaps(): [number, string][] {
    const { clock, startMs } = this;
    const { gaps } = this.ledger.report('gate', startMs - HOUR_MS, clock.wallMs() + HOUR_MS, []);
    return gaps.map((gap) => [Math.round((gap.toMs - gap.fromMs) / 100) / 10, gap.cause]);
  }

  async metric(name: string): Promise<number> {
    const line = (await this.registry.metrics()).split('\n').find((line) => line.startsWith(`${name}{camera="gate"`));
    return Number(line?.split(' ').at(-1));
  }

  async counted(cause: string): Promise<number> {
    const prefix = `kube_nvr_gap_seconds_total{camera="gate",cause="${cause}"}`;
    const line = (await this.registry.metrics()).split('\n').find((line) => line.startsWith(prefix));
    return Number(line?.split(' ').at(-1));
  }

  journal(): string {
    return join(this.root, '.kube-nvr/gaps/gate.jsonl');
  }
}

test('a camera that comes, goes and comes back: each second is footage or has its cause', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.wait(2);
  await node.play(30);
  await node.fail('stream-silent', 20, 10);
  await node.play(10);
  assert.deepEqual(node.gaps(), [
    [2, 'starting'],
    [30, 'stream-silent'],
  ]);
  const { wantedMs, recordedMs, knownUntilMs } = node.ledger.report('gate', node.startMs, node.clock.wallMs(), []);
  assert.equal(wantedMs, knownUntilMs - node.startMs);
  assert.equal(recordedMs, wantedMs - 32_000);
  await node.stop();
});

test('each gap is reported once, when it is certain and when it is over, as the list has it', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.wait(2);
  await node.play(30);
  await node.fail('unreachable', 300);
  assert.deepEqual(node.told, [
    ['opened', undefined, 'starting'],
    ['closed', 2, 'starting'],
    ['opened', undefined, 'camera-unreachable'],
    ['silent', 15, 'camera-unreachable'],
  ]);
  await node.play(20);
  assert.deepEqual(node.told.slice(4), [
    ['closed', 300, 'camera-unreachable'],
    // A file has a picture a second after it arrived.
    ['heard', 301, undefined],
  ]);
  // A gap that is over before it was certain is told of as a whole.
  await node.fail('closed-by-camera', 4);
  await node.play(20);
  assert.deepEqual(node.told.slice(6), [
    ['opened', undefined, 'connection-lost'],
    ['closed', 4, 'connection-lost'],
  ]);
  assert.deepEqual(node.closed(), node.gaps());
  await node.stop();
});

test('a gap that lasts over kills is closed by the next process, and what came between is reported', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  await node.fail('refused-login', 60);
  await node.kill(DOWN_MS);
  await node.start();
  await node.fail('refused-login', 60, 1);
  await node.kill(DOWN_MS);
  await node.start();
  await node.play(20);
  await node.wait(1);
  const causes = node.told.map(([what, , cause]) => `${what} ${cause}`).filter((text) => !text.startsWith('silent'));
  const round = ['opened refused-login', 'closed refused-login', 'opened process-down', 'closed process-down'];
  assert.deepEqual(causes, [...round, ...round]);
  assert.deepEqual(node.closed(), node.gaps());
  await node.stop();
});

test('kill -9: process-down from the last written fragment to the start; another boot id: node-down', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(25);
  await node.kill(DOWN_MS);
  await node.start();
  await node.play(5);
  const [down] = node.gaps();
  assert.ok(down && down[1] === 'process-down' && down[0] >= 20 && down[0] <= 22, JSON.stringify(node.gaps()));
  await node.kill(DOWN_MS);
  node.bootId = 'boot-2';
  await node.start();
  await node.play(5);
  assert.deepEqual(
    node.gaps().map(([, cause]) => cause),
    ['process-down', 'node-down'],
  );
  await node.stop();
});

test('a camera that was unreachable stays so until the last sign of life, which is not older than some seconds', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(5);
  await node.fail('unreachable', 60);
  await node.kill(DOWN_MS);
  await node.start();
  await node.play(5);
  const [unreachable, down] = node.gaps();
  assert.equal(unreachable?.[1], 'camera-unreachable');
  assert.ok((unreachable?.[0] ?? 0) >= 55, JSON.stringify(node.gaps()));
  assert.deepEqual([down?.[1], (unreachable?.[0] ?? 0) + (down?.[0] ?? 0)], ['process-down', 80]);
  await node.stop();
});

test('a stop that was asked for is down time as well, and the next process tells the same of what was before', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  await node.fail('refused-login', 30);
  await node.play(10);
  const before = node.gaps();
  await node.stop(DOWN_MS);
  await node.start();
  await node.play(5);
  assert.deepEqual(node.gaps(), [...before, [20, 'process-down']]);
  await node.stop();
});

test('a camera that a user stopped is stopped over a restart; one that was removed has no gaps', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  node.configure(false);
  node.camera.end();
  await node.wait(10);
  await node.kill(DOWN_MS);
  await node.start(false);
  await node.wait(10);
  node.configure(true);
  await node.play(5);
  assert.deepEqual(node.gaps(), [[40, 'stopped']]);
  node.ledger.configure([]);
  node.camera.end();
  await node.wait(60);
  assert.deepEqual(node.gaps(), [[40, 'stopped']]);
  assert.doesNotMatch(await node.registry.metrics(), /camera="gate"/);
  await node.stop();
});

test('a camera that leaves the configuration is told once, also when it left while no process ran', async (t) => {
  const node = new Node(t);
  const removals = () => node.told.filter(([what]) => what === 'removed').length;
  await node.start();
  await node.play(5);
  node.ledger.configure([]);
  node.ledger.configure([]);
  assert.equal(removals(), 1);
  node.configure(true);
  await node.play(5);
  await node.kill(DOWN_MS);
  await node.start();
  assert.equal(removals(), 1);
  await node.kill(DOWN_MS);
  node.configure = () => node.ledger.configure([]);
  await node.start();
  assert.equal(removals(), 2);
  await node.stop();
  await node.start();
  assert.equal(removals(), 2);
  await node.stop();
});

test('a camera that comes from a lost node: moved since that was seen last, in list and counter, also after a restart', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(10);
  node.ledger.configure([]);
  await node.wait(60);
  node.ledger.takeOver('gate', node.clock.wallMs() - 16_000);
  node.configure(true);
  await node.wait(2);
  await node.play(10);
  assert.deepEqual(node.gaps(), [[18, 'moved']]);
  assert.equal(Math.round(await node.counted('moved')), 18);
  await node.stop();
  await node.start();
  assert.deepEqual(node.gaps()[0], [18, 'moved']);
  await node.stop();
});

test('a lost node answers for no time before the camera was gone from it, and for none that it answered for already', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(10);
  node.ledger.takeOver('gate', node.startMs - HOUR_MS);
  node.configure(true);
  assert.deepEqual(node.gaps(), [], 'it has the camera: nobody else was lost with it');
  node.ledger.configure([]);
  const goneMs = node.clock.wallMs();
  await node.wait(5);
  node.ledger.takeOver('gate', node.startMs - HOUR_MS);
  node.configure(true);
  await node.wait(1);
  const [gap] = node.ledger.report('gate', node.startMs - HOUR_MS, node.clock.wallMs(), []).gaps;
  assert.equal(gap?.cause, 'moved');
  assert.ok(goneMs - gap.fromMs < 100, `${goneMs - gap.fromMs}`);
  await node.stop();
});

test('a node whose cameras went to another while it was down was not down for them', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(10);
  const deadMs = node.clock.wallMs();
  await node.kill(DOWN_MS);
  await node.start();
  await node.wait(1);
  assert.deepEqual(node.gaps()[0]?.[1], 'process-down', 'as long as nobody has said so');
  node.ledger.giveUp('gate', undefined);
  node.ledger.configure([]);
  await node.wait(10);
  const { gaps, wantedMs } = node.ledger.report('gate', node.startMs, node.clock.wallMs(), []);
  // The newest fragment died with the process.
  assert.deepEqual(
    gaps.map(({ cause, toMs }) => [cause, toMs - deadMs]),
    [['process-down', 0]],
  );
  assert.ok(wantedMs <= deadMs - node.startMs && wantedMs >= deadMs - node.startMs - 5_000, `${wantedMs}`);
  await node.stop();
});

test('a node that was cut off answers up to where it was seen last, and lists what it recorded since', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(30);
  node.ledger.giveUp('gate', node.startMs + 12_345);
  node.ledger.configure([]);
  const { gaps, wantedMs, recordedMs } = node.ledger.report('gate', node.startMs, node.clock.wallMs(), []);
  assert.deepEqual([gaps, wantedMs, recordedMs], [[], 12_345, 12_345]);
  await node.stop();
});

test('packets that were lost for more than a second, and the wait for a key frame after them', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  await node.wait(3);
  node.camera.end('gap');
  await node.wait(2);
  await node.play(10);
  assert.deepEqual(node.gaps(), [[5, 'packets-lost']]);
  await node.stop();
});

test('a camera that stood still, one that came back before anybody looked, and one whose clock was set', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  for (const reason of ['stalled', 'camera-lost', 'clock'] as const) {
    node.clock.advance(2_960);
    node.camera.end(reason);
    await node.play(20);
  }
  assert.deepEqual(node.gaps(), [
    [3, 'camera-stalled'],
    [3, 'connection-lost'],
    [3, 'clock-step'],
  ]);
  await node.stop();
});

test('packets come, and hardly a picture: packets-lost while it lasts', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  node.counters.packetsLost = 100;
  await node.wait(20);
  assert.deepEqual(node.gaps(), [[20, 'packets-lost']]);
  await node.stop();
});

/** Of a node's ledger: stretches as [seconds since the first, seconds long, lost, expected]. */
function degradedOf(node: Node): number[][] {
  const { degraded } = node.ledger.report('gate', node.startMs, node.clock.wallMs(), []);
  const seconds = (ms: number): number => Math.round(ms / 100) / 10;
  return degraded.map(({ fromMs, toMs, lost, expected }) => [
    seconds(fromMs - node.startMs),
    seconds(toMs - fromMs),
    lost,
    expected,
  ]);
}

test('pictures that are lost below a second add up by minutes, also for the next process and in the counter', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(65);
  // Ten of 25 pictures, then one; then one that no packet says was lost: a camera may take its time.
  const frame = 3_600;
  node.camera.video({ ticks: 11 * frame });
  node.camera.video({ lostPackets: 12, ticks: 2 * frame });
  node.camera.video({ lostPackets: 1, ticks: 2 * frame });
  node.camera.video({ lostPackets: 0 });
  node.clock.advance(640);
  await node.camera.play(10, node.fs);
  const lost = 11;
  const soFar = degradedOf(node).map((row) => row.slice(0, 3));
  assert.deepEqual(soFar, [[60, 15.6, lost]], 'also of the minute that is not over');
  await node.camera.play(120, node.fs);
  const [stretch = []] = degradedOf(node);
  // One of the 1500 was never made.
  assert.deepEqual(stretch, [60, 60, lost, 1_499]);
  assert.equal(degradedOf(node).length, 1);
  assert.equal(await node.metric('kube_nvr_camera_lost_frames_total'), lost);
  assert.deepEqual(node.gaps(), [], 'it is footage');
  await node.stop(DOWN_MS);
  await node.start();
  assert.deepEqual(degradedOf(node), [stretch]);
  await node.stop();
});

test('video that arrives and is not written: the disk is slow, or full', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(10);
  const disk = gate();
  node.fs.before = ({ name, path }) => {
    return name === 'write' && path.endsWith('.mp4') ? disk.passed : undefined;
  };
  await node.camera.play(12, node.fs);
  assert.equal(node.ledger.silenceOf('gate')?.cause, undefined);
  await node.camera.play(6, node.fs);
  assert.equal(node.ledger.silenceOf('gate')?.cause, 'disk-slow');
  node.fs.before = () => {};
  disk.open();
  await node.fs.idle();
  await node.camera.play(3, node.fs);
  assert.deepEqual(node.gaps(), [], 'what waited is written after all');
  assert.equal(await node.counted('disk-slow'), 0);
  node.fs.before = ({ name, path }) => {
    if (name === 'write' && path.endsWith('.mp4')) throw systemError('ENOSPC');
  };
  await node.camera.play(30, node.fs);
  node.fs.before = () => {};
  await node.camera.play(40, node.fs);
  const gaps = node.gaps();
  assert.deepEqual(
    gaps.map(([, cause]) => cause),
    ['disk-full'],
  );
  assert.ok((gaps[0]?.[0] ?? 0) >= 30, JSON.stringify(gaps));
  await node.stop();
});

test('what is missing since the process stood still is the machine’s, and what the cameras kept is no gap', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  node.clock.standStill(25_000);
  node.tick();
  // The kernel kept nothing: the camera goes on with other packets, two seconds later.
  await node.wait(2);
  node.camera.end('gap');
  await node.play(20);
  assert.deepEqual(node.gaps(), [[27, 'machine-frozen']]);
  node.clock.standStill(12_000);
  node.tick();
  // It ends the connection because nobody read, and comes back at once.
  await node.fail('closed-by-camera', 1);
  await node.play(20);
  assert.deepEqual(node.gaps(), [
    [27, 'machine-frozen'],
    [13, 'machine-frozen'],
  ]);
  assert.deepEqual(
    node.told.filter(([what]) => what === 'silent'),
    [],
  );
  await node.stop();
});

test('a process that stood still while a camera was away: it was away', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  await node.fail('unreachable', 5);
  node.clock.standStill(25_000);
  await node.wait(5);
  await node.play(20);
  assert.deepEqual(node.gaps(), [[35, 'camera-unreachable']]);
  await node.stop();
});

test('the clock is set forward and back: skipped time is a gap, repeated time is none', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  node.clock.stepWall(HOUR_MS);
  await node.camera.play(2, node.fs);
  node.camera.end('clock');
  await node.play(20);
  assert.deepEqual(node.gaps(), [[3600, 'clock-step']]);
  node.clock.stepWall(-HOUR_MS / 60);
  await node.camera.play(2, node.fs);
  node.camera.end('clock');
  await node.play(100);
  // A minute is lived again, and 38 s of it lie in the hour that was skipped.
  assert.deepEqual(node.gaps(), [[3562, 'clock-step']]);
  await node.stop();
});

test('the clock is set back to before the present state: the gap continues from there, and the log says it', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(20);
  await node.fail('unreachable', 5);
  node.clock.stepWall(-15_000);
  await node.wait(3);
  const nowMs = node.clock.wallMs();
  const { wantedMs, gaps } = node.ledger.report('gate', nowMs - 2_000, nowMs, []);
  // Those seconds have footage, of the time before; that they are wanted is known only if the step was seen.
  assert.deepEqual([wantedMs, gaps], [2_000, []]);
  assert.deepEqual(
    node.log.lines.filter(({ message }) => message.includes('clock')).map(({ fields }) => fields['seconds']),
    [-15],
  );
  await node.stop();
});

test('silence: 15 s without written video, one line at its start and one at its end, and none for a camera nobody wants', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(10);
  const sinceMs = node.clock.wallMs();
  await node.wait(14);
  assert.equal(node.ledger.silenceOf('gate'), undefined);
  await node.wait(2);
  const silence = node.ledger.silenceOf('gate');
  assert.ok(silence && Math.abs(silence.sinceMs - sinceMs) < 1_000);
  assert.equal(await node.metric('kube_nvr_camera_silent'), 1);
  assert.ok((await node.metric('kube_nvr_camera_silence_seconds')) >= 15);
  await node.wait(30);
  await node.play(3);
  assert.equal(node.ledger.silenceOf('gate'), undefined);
  assert.equal(await node.metric('kube_nvr_camera_silent'), 0);
  await node.wait(20);
  assert.ok(node.ledger.silenceOf('gate'));
  node.configure(false);
  node.camera.end();
  await node.wait(60);
  assert.equal(node.ledger.silenceOf('gate'), undefined);
  const lines = node.log.lines.filter(({ message }) => message.includes('silent')).map(({ message }) => message);
  const both = ['a camera is silent: no video is being written', 'a camera is no longer silent'];
  assert.deepEqual(lines, [...both, ...both]);
  await node.stop();
});

test('a camera that never connects is silent from the time when it should have been recorded', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.fail('unreachable', 16);
  const silence = node.ledger.silenceOf('gate');
  assert.deepEqual([silence?.cause, silence && silence.sinceMs - node.startMs], ['camera-unreachable', 0]);
  await node.stop();
});

test('counters grow during a gap, and say what the list says when it is over', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(10);
  await node.fail('unreachable', 30);
  const during = await node.counted('camera-unreachable');
  assert.ok(Math.abs(during - 30) <= 1, `${during}`);
  await node.wait(10);
  assert.ok(Math.abs((await node.counted('camera-unreachable')) - during - 10) < 0.01);
  await node.play(10);
  assert.ok(Math.abs((await node.counted('camera-unreachable')) - 40) <= 1);
  await node.kill(DOWN_MS);
  await node.start();
  await node.play(10);
  assert.ok((await node.counted('process-down')) >= 20);
  assert.equal(await node.counted('camera-unreachable'), 0, 'of an earlier process');
  await node.stop();
});

test('retention makes no gaps: what was recorded is remembered when its files are gone, also by the next process', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(35);
  await node.fail('unreachable', 10);
  await node.play(15);
  await node.stop();
  const before = node.gaps();
  rmSync(join(node.root, '2026'), { recursive: true });
  node.clock.advance(5_000);
  await node.start();
  await node.play(5);
  assert.deepEqual(node.gaps(), [...before, [5, 'process-down']]);
  await node.stop();
});

test('footage of which there are files is no gap, whatever the journal has lost', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(95);
  await node.stop();
  const lines = readFileSync(node.journal(), 'utf8').split('\n');
  writeFileSync(node.journal(), lines.filter((line) => !line.includes('recorded')).join('\n'));
  await node.start();
  const { startMs } = node;
  assert.notDeepEqual(node.gaps(), []);
  const files = await node.archive.recorded('gate', startMs, startMs + 95_000);
  assert.deepEqual(node.ledger.report('gate', startMs, startMs + 95_000, files).gaps, []);
  await node.stop();
});

test('a journal torn at any byte: the next process starts, footage is no gap, and later gaps are right', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(12);
  await node.fail('refused-login', 10);
  await node.play(12);
  await node.kill(DOWN_MS);
  const journal = readFileSync(node.journal());
  const sign = join(node.root, '.kube-nvr/gaps/alive');
  const alive = readFileSync(sign);
  for (let bytes = 0; bytes <= journal.length; bytes += 3) {
    writeFileSync(sign, alive);
    writeFileSync(node.journal(), journal.subarray(0, bytes));
    await node.start();
    const gaps = node.gaps();
    if (gaps.length > 0 || bytes > 60)
      assert.equal(gaps.at(-1)?.[1], 'process-down', `${bytes}: ${JSON.stringify(gaps)}`);
    await node.kill();
  }
});

test('the sign of life torn at any byte costs one sign, never the start', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.fail('unreachable', 60);
  const path = join(node.root, '.kube-nvr/gaps/alive');
  await node.kill(DOWN_MS);
  const whole = readFileSync(path);
  for (const place of [0, 512]) {
    const journal = readFileSync(node.journal());
    for (let bytes = 0; bytes < 90; bytes += 7) {
      const torn = Buffer.from(whole);
      torn.fill(0, place + bytes, place + 512);
      writeFileSync(path, torn);
      writeFileSync(node.journal(), journal);
      await node.start();
      const [unreachable, down] = node.gaps();
      assert.deepEqual([unreachable?.[1], down?.[1]], ['camera-unreachable', 'process-down']);
      assert.ok((unreachable?.[0] ?? 0) >= 49, JSON.stringify(node.gaps()));
      await node.kill();
    }
    rmSync(path);
    writeFileSync(path, whole);
    writeFileSync(node.journal(), journal);
  }
});

test('a disk that is mounted after the start: what is on it is read then, and nothing in it is lost', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(25);
  await node.fail('refused-login', 10);
  await node.play(10);
  const before = node.gaps();
  await node.stop(DOWN_MS);
  const away = `${node.root}.away`;
  t.after(() => rmSync(away, { recursive: true, force: true }));
  renameSync(node.root, away);
  mkdirSync(node.root);
  node.checkDisk = async () => {
    throw new Error('another disk');
  };
  await node.start();
  await node.fail('unreachable', 30);
  assert.deepEqual(node.gaps(), [[30, 'camera-unreachable']]);
  rmSync(node.root, { recursive: true });
  renameSync(away, node.root);
  node.checkDisk = async () => {};
  await node.wait(10);
  assert.deepEqual(node.gaps(), [...before, [20, 'process-down'], [40, 'camera-unreachable']]);
  await node.kill(DOWN_MS);
  await node.start();
  const after = node.gaps();
  assert.deepEqual(after.slice(0, before.length + 1), [...before, [20, 'process-down']]);
  assert.deepEqual(
    after.slice(before.length + 1).map(([, cause]) => cause),
    ['camera-unreachable', 'process-down'],
  );
  await node.stop();
});

test('a camera that was removed while the disk was away is no gap once the disk is back', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(25);
  await node.stop(DOWN_MS);
  let isAway = true;
  const ledger = new GapLedger({
    root: node.root,
    clock: node.clock,
    log: node.log,
    bootId: node.bootId,
    checkDisk: async () => {
      if (isAway) throw new Error('another disk');
    },
  });
  await ledger.load();
  ledger.configure([]);
  isAway = false;
  const wantedMs = (): number => ledger.report('gate', node.startMs, node.clock.wallMs(), []).wantedMs;
  await until('the journal is read', () => {
    node.clock.advance(1_000);
    ledger.tick();
    return wantedMs() > 0;
  });
  const before = wantedMs();
  node.clock.advance(HOUR_MS);
  assert.equal(wantedMs(), before);
  await ledger.close();
});

test('while another disk is in the place of the right one, nothing is written to it, and all of it later', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(12);
  const written = readFileSync(node.journal(), 'utf8');
  node.checkDisk = async () => {
    throw new Error('another disk');
  };
  await node.fail('unreachable', 30);
  assert.equal(readFileSync(node.journal(), 'utf8'), written);
  node.checkDisk = async () => {};
  const gaps = node.gaps();
  await node.wait(10);
  await node.kill();
  await node.start();
  assert.deepEqual(node.gaps()[0]?.[1], gaps[0]?.[1]);
  assert.deepEqual(gaps[0]?.[1], 'camera-unreachable');
  await node.stop();
});

test('seconds of a gap are counted once, for the cause that holds in the end', async (t) => {
  const node = new Node(t);
  await node.start();
  await node.play(10);
  await node.fail('closed-by-camera', 2);
  // Up to the first look after the last picture.
  const lookSeconds = 0.25;
  assert.ok(((await node.counted('connection-lost')) || 0) <= lookSeconds, 'the rest may still be explained');
  await node.fail('unreachable', 30);
  await node.play(10);
  assert.ok(((await node.counted('connection-lost')) || 0) <= lookSeconds);
  const [seconds, cause] = node.gaps()[0] ?? [NaN, ''];
  assert.equal(cause, 'camera-unreachable');
  assert.ok(Math.abs((await node.counted('camera-unreachable')) - seconds) <= lookSeconds + 0.1);
  await node.stop();
});

test('killed at any step of the disk, the next process knows all footage, and every gap has a cause', async (t) => {
  for (let step = 5; step < 400; step += 13) {
    const node = new Node(t);
    await node.start();
    const startMs = node.clock.wallMs();
    node.fs.killAfter(step, step % 3 === 0 ? 9 : 0);
    await node.play(8);
    await node.fail('unreachable', 8);
    await node.play(8);
    await node.kill(DOWN_MS);
    const restartMs = node.clock.wallMs();
    await node.start();
    const { gaps } = node.ledger.report('gate', startMs, restartMs, []);
    const footage = (await readSegments(node.root)).map(({ meta }) => [meta.wallStartMs, meta.wallDurationMs] as const);
    const recordedMs = footage.reduce((sum, [, durationMs]) => sum + durationMs, 0);
    const missingMs = gaps.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0);
    assert.ok(Math.abs(recordedMs + missingMs - (restartMs - startMs)) <= 100, `step ${step}`);
    for (const gap of gaps) {
      assert.ok(['starting', 'camera-unreachable', 'process-down'].includes(gap.cause), `step ${step}: ${gap.cause}`);
      for (const [fromMs, durationMs] of footage)
        assert.ok(gap.toMs <= fromMs + 1 || gap.fromMs >= fromMs + durationMs - 1);
    }
    await node.kill();
  }
});

test('in random histories files and gaps are the time that was wanted', async (t) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('play' as const), seconds: fc.integer({ min: 2, max: 14 }) }),
    fc.record({ kind: fc.constant('fail' as const), seconds: fc.integer({ min: 1, max: 14 }) }),
    fc.record({ kind: fc.constantFrom('kill' as const, 'stop' as const), seconds: fc.integer({ min: 1, max: 14 }) }),
    fc.record({ kind: fc.constant('off' as const), seconds: fc.integer({ min: 1, max: 14 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 10 }), async (steps) => {
      const node = new Node(t);
      await node.start();
      const expected = new Set(['starting']);
      for (const { kind, seconds } of steps) {
        if (kind === 'play') {
          if (node.state === 'recording') await node.camera.play(seconds, node.fs);
          else await node.play(seconds);
          continue;
        }
        if (kind === 'fail') {
          await node.fail('refused-login', seconds);
          expected.add('refused-login');
          continue;
        }
        if (kind === 'off') {
          node.configure(false);
          if (node.state === 'recording') node.camera.end();
          node.state = 'connecting';
          node.reason = undefined;
          await node.wait(seconds);
          node.configure(true);
          expected.add('stopped');
          continue;
        }
        await (kind === 'kill' ? node.kill(seconds * 1000) : node.stop(seconds * 1000));
        await node.start();
        expected.add('process-down');
      }
      const nowMs = node.clock.wallMs();
      await node.stop(1_000);
      await node.start();
      const { gaps } = node.ledger.report('gate', node.startMs, nowMs, []);
      const footage = (await readSegments(node.root)).map(({ meta }) => meta.wallDurationMs);
      const recordedMs = footage.reduce((sum, durationMs) => sum + durationMs, 0);
      const missingMs = gaps.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0);
      const wantedMs = nowMs - node.startMs;
      assert.ok(Math.abs(recordedMs + missingMs - wantedMs) <= 100, `${recordedMs} + ${missingMs} of ${wantedMs}`);
      for (const { cause } of gaps) assert.ok(expected.has(cause) || cause === 'process-down', cause);
      await node.kill();
      rmSync(node.root, { recursive: true, force: true });
    }),
    { numRuns: 40 },
  );
});

test('gaps are known for 400 days', async (t) => {
  const DAY_MS = 86_400_000;
  const clock = new VirtualClock();
  const root = temporaryDirectory(t);
  const ledger = new GapLedger({ root, clock, log: new TestLog(), bootId: 'boot', fs: new TestFileSystem(root) });
  await ledger.load();
  const nowMs = clock.wallMs();
  ledger.takeOver('gate', nowMs - 1_000 * DAY_MS);
  ledger.configure([{ id: 'gate', enabled: true }]);
  const { gaps } = ledger.report('gate', nowMs - 2_000 * DAY_MS, nowMs, []);
  assert.equal(nowMs - (gaps[0]?.fromMs ?? 0), 400 * DAY_MS);
  await ledger.close();
});
