// A recorder without HTTP for tests: records a camera in this process into a temporary directory and checks it with a witness.

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, type Clock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import type { FileSystem } from '../../recorder/archive/disk/file-system.ts';
import { Camera } from '../../recorder/camera/camera.ts';
import type { TransportChoice } from '../../recorder/contract/camera-source.ts';
import type { SampleSink } from '../../recorder/contract/sink.ts';
import type { CameraStatus } from '../../recorder/contract/camera-status.ts';
import { SlabPool } from '../../recorder/codec/slab.ts';
import { PATIENCE_MS } from './until.ts';
import { Witness } from './witness.ts';
import { anywhere, type Reach } from '../../recorder/reach/reach.ts';

interface RecordOptions {
  readonly source: string;
  readonly id?: string;
  readonly transport?: TransportChoice;
  readonly maxBitrate?: number;
  readonly allowPlaintextLogin?: boolean;
  /** What is known about cameras; default: nothing. */
  readonly reach?: Reach;
  readonly clock?: Clock;
  readonly log?: Log;
  readonly format?: 'fmp4' | 'mp4';
  readonly segmentDurationMs?: number;
  /** The file system; default: the real one. */
  readonly fs?: FileSystem;
  /** Get the samples besides the archive. */
  readonly sinks?: readonly SampleSink[];
}

export interface Recording {
  readonly root: string;
  readonly camera: Camera;
  readonly archive: Archive;
  readonly pool: SlabPool;
  status(): CameraStatus;
  /** Calls the ticks of the camera and its watchers; also called automatically twenty times a second. */
  tick(): void;
  /** Resolves when `condition` holds (checked every 10 ms); rejects after `timeoutMs` with the last status. */
  until(condition: (status: CameraStatus) => boolean, timeoutMs?: number): Promise<CameraStatus>;
  /**
   * Stops the camera, closes every file, and returns the paths in order of their names. Fails if the recording violates an
   * invariant.
   */
  stop(): Promise<string[]>;
  /** Also removes the directory; for `t.after`. */
  close(): Promise<void>;
}

const TICK_MS = 50;

/** Starts to record one camera. */
export async function record(options: RecordOptions): Promise<Recording> {
  const clock = options.clock ?? systemClock;
  const log = options.log ?? silentLog;
  const root = await mkdtemp(join(tmpdir(), 'record-'));
  const pool = new SlabPool();
  const id = options.id ?? 'cam';
  const witness = new Witness(clock);
  const { observer } = witness;
  const fs = options.fs ? { fs: options.fs } : {};
  const archive = new Archive({ root, clock, log, syncIntervalMs: 5_000, observer, ...fs });
  await archive.recover();
  const recording = archive.sinkFor(
    {
      cameraId: id,
      name: id,
      format: options.format ?? 'fmp4',
      segmentDurationMs: options.segmentDurationMs ?? 300_000,
    },
    { needKeyFrame: () => undefined },
  );
  const camera = new Camera(
    {
      id,
      name: id,
      source: options.source,
      transport: options.transport ?? 'auto',
      ...(options.maxBitrate === undefined ? {} : { maxBitrate: options.maxBitrate }),
      allowPlaintextLogin: options.allowPlaintextLogin ?? false,
    },
    {
      clock,
      log,
      pool,
      reach: options.reach ?? anywhere(),
      receiveBuffer: Buffer.alloc(65_536),
      sinks: [recording, witness.sink, ...(options.sinks ?? [])],
    },
  );
  // What happens while it is being stopped does not count.
  let watched = true;
  const tick = (): void => {
    camera.tick(clock.monotonicMs());
    recording.tick();
    if (watched) witness.look({ camera: camera.status(), archive: recording.status(), written: recording.written() });
  };
  const timer = setInterval(tick, TICK_MS);
  camera.start();
  let stopped: Promise<string[]> | undefined;

  const stop = async (): Promise<string[]> => {
    watched = false;
    await camera.stop();
    await recording.close();
    clearInterval(timer);
    await archive.close();
    const files = await filesIn(root);
    await witness.judge(files);
    return files;
  };
  return {
    root,
    camera,
    archive,
    pool,
    status: () => camera.status(),
    tick,
    async until(condition, timeoutMs = PATIENCE_MS) {
      const endMs = performance.now() + timeoutMs;
      for (;;) {
        const status = camera.status();
        if (condition(status)) return status;
        if (performance.now() > endMs) throw new Error(`not reached in ${timeoutMs} ms: ${describe(status)}`);
        await systemClock.sleep(10);
      }
    },
    stop: () => (stopped ??= stop()),
    async close() {
      await (stopped ??= stop());
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Every recorded file under `root` in order of names; the archive's own files start with a dot. */
export async function filesIn(root: string): Promise<string[]> {
  const names = await readdir(root, { recursive: true });
  return names
    .filter((name) => name.endsWith('.mp4') && !name.startsWith('.'))
    .sort()
    .map((name) => join(root, name));
}

function describe(status: CameraStatus): string {
  const { counters, video, audio, ...rest } = status;
  const codecs = [video?.codecString, audio?.codecString];
  return JSON.stringify({
    ...rest,
    codecs,
    counters: { ...counters, reconnects: Object.fromEntries(counters.reconnects) },
  });
}
