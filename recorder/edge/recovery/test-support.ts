// For this room's tests: a camera whose pictures carry their numbers, on a virtual clock; what it sends is recorded, and its memory has
// all of it.

import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import type { Interval } from '../../../base/interval.ts';
import { Archive } from '../../archive/archive.ts';
import type { GapReport } from '../../contract/gap-report.ts';
import { isTriedAgain } from '../../contract/gap-fill.ts';
import { GapLedger } from '../../archive/gaps/ledger.ts';
import type { CameraArchive } from '../../archive/segments/camera-archive.ts';
import { readSegments, systemError, temporaryDirectory, TestFileSystem, VIDEO } from '../../archive/test-support.ts';
import { FanOut } from '../../camera/fan-out.ts';
import type { EndReason } from '../../contract/sink.ts';
import { newCounters } from '../../contract/camera-status.ts';
import { SlabPool, SlabWriter, type MediaData } from '../../codec/slab.ts';
import type { RecordedMeta } from '../../mp4/meta.ts';
import {
  EdgeError,
  type EdgeClock,
  type EdgeErrorCode,
  type EdgeMemory,
  type EdgeRecording,
  type EdgeUnit,
  type Replay,
  type ReplayRequest,
} from '../memory.ts';
import { EdgeRecovery } from './recovery.ts';

const FRAME_MS = 40;
const UNWRITTEN_MS = 7_000;
const TICKS = 3_600;

/** What the camera's memory does. */
class FakeMemory implements EdgeMemory {
  readonly #world: World;
  /** The camera's clock minus ours, by the number of a picture. */
  offsetMs: (frame: number) => number = () => 0;
  told: EdgeClock | undefined = { offsetMs: 0, errorMs: 20 };
  /** Pictures that it does not have. */
  lacks: (frame: number) => boolean = () => false;
  /** Pictures are from another encoder. */
  isOther = false;
  /** Ends a replay with an error before its n-th picture, once for each entry. */
  readonly faults: { readonly afterPictures: number; readonly code: EdgeErrorCode }[] = [];
  claims: readonly EdgeRecording[] | undefined;
  readonly requests: ReplayRequest[] = [];
  /** Pictures that were sent. */
  sent = 0;
  running = 0;

  constructor(world: World) {
    this.#world = world;
  }

  clock = async (): Promise<EdgeClock | undefined> => this.told;
  recordings = async (): Promise<readonly EdgeRecording[] | undefined> => this.claims;

  cameraMs(frame: number): number {
    return this.#world.captureMs(frame) + this.offsetMs(frame);
  }

  replay(request: ReplayRequest, signal: AbortSignal): Replay {
    this.requests.push(request);
    let end: Replay['end'];
    const units = this.#units(request, signal, (how) => (end = how));
    return {
      get end() {
        return end;
      },
      [Symbol.asyncIterator]: () => units,
    };
  }

  async *#units(
    { window }: ReplayRequest,
    signal: AbortSignal,
    ended: (how: 'window' | 'footage') => void,
  ): AsyncGenerator<EdgeUnit> {
    const world = this.#world;
    const [fault] = this.faults;
    const frames: number[] = [];
    for (let frame = 0; frame < world.frames; frame++) {
      if (!this.lacks(frame) && this.cameraMs(frame) < window.untilMs) frames.push(frame);
    }
    const firstIn = frames.findIndex((frame) => this.cameraMs(frame) >= window.fromMs);
    if (firstIn < 0) throw new EdgeError('nothing-recorded', 'no pictures there');
    let from = firstIn;
    while (from > 0 && !(world.isKey(frames[from] as number) && this.cameraMs(frames[from] as number) <= window.fromMs))
      from--;
    while (from < frames.length && !world.isKey(frames[from] as number)) from++;
    assert.equal(this.running, 0, 'one replay a camera');
    this.running++;
    try {
      let count = 0;
      for (const frame of frames.slice(from)) {
        if (signal.aborted) throw signal.reason as Error;
        if (fault && count === fault.afterPictures) {
          this.faults.shift();
          throw new EdgeError(fault.code, 'as the test wants');
        }
        if (count % 50 === 0) await turn();
        const cameraMs = this.cameraMs(frame);
        yield {
          kind: 'video',
          parameters: VIDEO,
          clockRate: 90_000,
          cameraMs,
          dated: 'unit',
          cleanPoint: world.isKey(frame),
          endsSection: this.lacks(frame + 1),
          discontinuity: count > 0 && this.lacks(frame - 1),
          unit: {
            data: world.data(frame, this.isOther),
            timestamp: (frame * TICKS) >>> 0,
            randomAccess: world.isKey(frame),
            lostPackets: 0,
            durationTicks: 0,
            bidirectional: false,
          },
        };
        count++;
        this.sent++;
      }
      ended(window.untilMs > this.cameraMs(world.frames - 1) ? 'footage' : 'window');
    } finally {
      this.running--;
    }
  }
}

/** A camera and the recorder that records it; `kill` ends the process. */
export class World {
  /** The disk of the node that runs the process. */
  root: string;
  readonly clock = new VirtualClock();
  readonly startMs = this.clock.wallMs();
  readonly memory = new FakeMemory(this);
  keyFrameInterval = 25;
  /** Pictures that the camera has made. */
  frames = 0;
  /** From capture to the time at which live pictures are dated. */
  delayMs = 0;
  fs!: TestFileSystem;
  ledger!: GapLedger;
  archive!: Archive;
  recording!: CameraArchive;
  recovery!: EdgeRecovery;
  keptMs: number | undefined;
  /** By the sender reports of the camera. */
  clockAheadMs: number | undefined;
  /** Under which the node records the camera; undefined: without a cluster. */
  epoch: number | undefined;
  isEnabled = true;
  readonly #pool = new SlabPool();
  readonly #writer = new SlabWriter(this.#pool);
  #sink!: FanOut;
  #isConnected = false;
  /** While it is closed: how long that takes by its clock depends on the real disk. */
  #endMs: number | undefined;
  #counters = newCounters();
  #runs = 0;

  constructor(t: { after(callback: () => void | Promise<void>): void }) {
    this.root = temporaryDirectory(t);
    t.after(() => this.close().catch(() => {}));
  }

  captureMs(frame: number): number {
    return this.startMs + frame * FRAME_MS;
  }

  isKey(frame: number): boolean {
    return frame % this.keyFrameInterval === 0;
  }

  /** An access unit: a slice that says its number, and looks like noise. */
  data(frame: number, isOther = false): MediaData {
    const unit = Buffer.alloc(100 + ((frame * 7) % 50), isOther ? 0x77 : 0x55);
    unit.writeUInt32BE(unit.length - 4, 0);
    unit.writeUInt8(this.isKey(frame) ? 0x65 : 0x41, 4);
    unit.writeUIntBE(frame * TICKS, 5, 6);
    this.#writer.append(unit, 0, unit.length);
    return this.#writer.finish();
  }

  /** A process starts. `lostMs`: on a node that takes the camera over, which nobody has recorded since. */
  async start(lostMs?: number): Promise<void> {
    const { clock, root } = this;
    this.#endMs = undefined;
    const fs = (this.fs = new TestFileSystem(root));
    this.ledger = new GapLedger({ root, clock, log: silentLog, bootId: 'boot', fs });
    this.archive = new Archive({
      root,
      clock,
      log: silentLog,
      fs,
      syncIntervalMs: 5_000,
      observer: this.ledger,
      epochOf: () => this.epoch,
    });
    await this.ledger.load();
    await this.archive.recover();
    this.#counters = newCounters();
    if (lostMs !== undefined) this.ledger.takeOver('gate', lostMs);
    this.ledger.configure([{ id: 'gate', enabled: true }]);
    const record = { format: 'fmp4', segmentDurationMs: 10_000 } as const;
    this.recording = this.archive.sinkFor({ cameraId: 'gate', name: 'Gate', ...record }, { needKeyFrame() {} });
    this.#sink = new FanOut([this.recording, this.ledger.sinkFor('gate')], silentLog);
    const cameras = () =>
      this.isEnabled
        ? [
            {
              id: 'gate',
              name: 'Gate',
              record,
              isRecording: this.#isConnected,
              memory: this.memory,
              maxBitrate: 1e9,
              video: VIDEO,
              clockAheadMs: this.clockAheadMs,
            },
          ]
        : [];
    this.recovery = new EdgeRecovery({
      archive: this.archive,
      gaps: this.ledger,
      cameras,
      keptMs: () => this.keptMs,
      oldestMs: (id) => this.archive.catalogue.oldestStartMs(id),
      unwrittenMs: UNWRITTEN_MS,
      clock,
      log: silentLog,
    });
    await fs.idle();
  }

  /** The camera makes pictures, which arrive while it is connected. */
  async run(frames: number): Promise<void> {
    for (let i = 0; i < frames; i++) {
      if (this.#isConnected) this.#send(this.frames);
      this.frames++;
      this.clock.advance(FRAME_MS);
      if (i % 5 === 0) this.#tick();
      if (i % 25 === 0) await this.#idle();
    }
    await this.#idle();
  }

  /** The next picture may be any, so recording begins at the next key frame. */
  async connect(): Promise<void> {
    while (!this.isKey(this.frames)) await this.run(1);
    this.#isConnected = true;
    this.#sink.begin({ runId: (++this.#runs).toString(16).padStart(16, '0'), lead: VIDEO, audio: undefined });
  }

  disconnect(reason: EndReason = 'camera-lost'): void {
    if (this.#isConnected) this.#sink.end(reason);
    this.#isConnected = false;
  }

  /** As `kill -9`: nothing that is not with the disk by now will ever be. */
  async kill(): Promise<void> {
    await this.fs.idle();
    this.fs.killAfter(0);
    this.#isConnected = false;
    await Promise.all([this.recovery.close(), this.recording.close()]);
    await this.archive.close().catch(() => {});
  }

  fillDisk(): void {
    this.fs.before = ({ name }) => {
      if (name === 'write' || name === 'create') throw systemError('ENOSPC');
    };
  }

  freeDisk(): void {
    this.fs.before = () => {};
  }

  /** Until nothing is left to do, at most so long. */
  async settle(seconds = 120): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      await this.run(25);
      const { gaps } = this.report();
      if (
        i > 12 &&
        this.memory.running === 0 &&
        gaps.every(({ notFilled }) => notFilled && !isTriedAgain(notFilled.reason))
      )
        return;
    }
  }

  report(): GapReport {
    return this.ledger.report('gate', this.startMs, this.#endMs ?? this.clock.wallMs(), []);
  }

  async close(): Promise<void> {
    this.#endMs = this.clock.wallMs();
    this.disconnect('stopped');
    const closing = Promise.all([this.recovery.close(), this.recording.close()]);
    while (!(await Promise.race([closing.then(() => true), turn(false)]))) this.clock.advance(10);
    await this.archive.close();
    await this.ledger.close();
  }

  #send(frame: number): void {
    const data = this.data(frame);
    const sync = this.isKey(frame);
    const dts = 900_000 + frame * TICKS;
    const wallMs = this.captureMs(frame) + this.delayMs;
    this.#sink.sample({
      kind: 'video',
      dts,
      compositionOffset: 0,
      usualDuration: TICKS,
      sync,
      data,
      wallMs,
      lostPackets: 0,
    });
    data.slab.release();
  }

  #tick(): void {
    this.recording.tick();
    this.#counters.leadFrames = this.frames;
    const reason = this.#isConnected ? undefined : { code: 'unreachable', message: '' };
    this.ledger.observe('gate', {
      camera: { state: this.#isConnected ? 'recording' : 'retrying', counters: this.#counters, reason },
      archive: this.recording.status(),
      written: this.recording.written(),
    });
    this.ledger.tick();
    this.recovery.tick();
  }

  /** Lets replays and the disk work. */
  async #idle(): Promise<void> {
    for (let i = 0; i < 4; i++) await turn();
    await this.fs.idle();
  }
}

/** A file, and the numbers of its pictures. */
export interface NumberedFile extends Interval {
  readonly path: string;
  readonly meta: RecordedMeta;
  readonly frames: readonly number[];
}

export async function numberedFiles(root: string): Promise<NumberedFile[]> {
  const files = await readSegments(root);
  return files.map(({ path, meta, video }) => ({
    path,
    meta,
    frames: video.dts.map((dts) => dts / TICKS),
    fromMs: meta.wallStartMs,
    toMs: meta.wallStartMs + meta.wallDurationMs,
  }));
}
