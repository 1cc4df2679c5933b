// For this room's tests: an archive with limits, several cameras, and a disk of a chosen size that a stranger fills.

import { readdirSync, statSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../../base/clock.ts';
import { Archive, type DiskSettings } from '../archive.ts';
import type { ClosedSegment } from '../catalogue/segment.ts';
import { formatPath, parsePath, type SegmentName } from '../disk/names.ts';
import type { CameraArchive } from '../segments/camera-archive.ts';
import { systemError, TestCamera, TestFileSystem, TestLog } from '../test-support.ts';
import type { Limits, RetentionLimits } from './plan.ts';

/** A disk of `capacityBytes` on which `strangerBytes` are not ours: writes beyond fail as on a full one. */
export class SmallDisk {
  readonly fs: TestFileSystem;
  readonly #root: string;
  capacityBytes: number;
  strangerBytes = 0;
  /** How often a write found it full. */
  refusals = 0;

  constructor(root: string, capacityBytes = Infinity) {
    this.#root = root;
    this.capacityBytes = capacityBytes;
    this.fs = new TestFileSystem(root);
    this.fs.spaceOf = async () => ({ freeBytes: Math.max(0, this.freeBytes), totalBytes: this.capacityBytes });
    this.limit();
  }

  /** Sets the hook of the file system, which a test may have replaced. */
  limit(): void {
    this.fs.before = ({ name }) => {
      if (name !== 'write' && name !== 'create' && name !== 'makeDirectory') return;
      if (this.freeBytes > 0) return;
      this.refusals++;
      throw systemError('ENOSPC');
    };
  }

  get freeBytes(): number {
    return this.capacityBytes === Infinity ? 1e12 : this.capacityBytes - this.strangerBytes - bytesIn(this.#root);
  }
}

/** Bytes of all files below a directory. */
export function bytesIn(root: string, wanted: (path: string) => boolean = () => true): number {
  let bytes = 0;
  for (const path of readdirSync(root, { recursive: true }) as string[]) {
    const stats = factsOf(join(root, path));
    if (stats?.isFile() === true && wanted(path)) bytes += stats.size;
  }
  return bytes;
}

/** Files come and go while one looks. */
function factsOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

export const isFootage = (path: string): boolean => parsePath(path) !== undefined;

interface RetentionBenchOptions {
  readonly root: string;
  readonly workDir?: string;
  readonly clock?: VirtualClock;
  readonly disk?: SmallDisk;
  readonly node?: RetentionLimits;
  readonly cameras?: Readonly<Record<string, RetentionLimits>>;
  /** Ids of the cameras. */
  readonly ids?: readonly string[];
  readonly segmentDurationMs?: number;
  /** Further disks; `disk` must be made for a directory that contains all. */
  readonly disks?: () => readonly DiskSettings[];
  readonly stateRoot?: string;
}

interface TestRecording {
  readonly id: string;
  readonly recording: CameraArchive;
  readonly camera: TestCamera;
}

export class RetentionBench {
  readonly root: string;
  readonly clock: VirtualClock;
  readonly disk: SmallDisk;
  readonly log = new TestLog();
  readonly registry = new Registry();
  readonly archive: Archive;
  readonly all: TestRecording[] = [];
  node: RetentionLimits;
  cameras: Map<string, RetentionLimits>;
  /** What an observer was told. */
  readonly closed: string[] = [];
  readonly removed: string[] = [];
  readonly #segmentDurationMs: number;

  private constructor(options: RetentionBenchOptions) {
    const { root } = options;
    this.root = root;
    this.clock = options.clock ?? new VirtualClock();
    this.disk = options.disk ?? new SmallDisk(root);
    this.node = options.node ?? {};
    this.cameras = new Map(Object.entries(options.cameras ?? {}));
    this.#segmentDurationMs = options.segmentDurationMs ?? 2_000;
    this.archive = new Archive({
      root,
      clock: this.clock,
      log: this.log,
      fs: this.disk.fs,
      registry: this.registry,
      syncIntervalMs: 5_000,
      ...(options.workDir === undefined ? {} : { workDir: options.workDir }),
      ...(options.disks && { disks: options.disks }),
      stateRoot: options.stateRoot,
      limits: (): Limits => ({ node: this.node, cameras: this.cameras }),
      observer: {
        closed: ({ path }: ClosedSegment) => void this.closed.push(path),
        removed: (segment: SegmentName) => void this.removed.push(formatPath(segment)),
      },
    });
  }

  static async start(options: RetentionBenchOptions): Promise<RetentionBench> {
    const bench = new RetentionBench(options);
    await bench.archive.recover();
    for (const id of options.ids ?? ['gate']) bench.addCamera(id);
    return bench;
  }

  addCamera(id: string): TestRecording {
    const recording = this.archive.sinkFor(
      { cameraId: id, name: id, format: 'fmp4', segmentDurationMs: this.#segmentDurationMs },
      { needKeyFrame() {} },
    );
    const camera = new TestCamera(this.clock, recording, () => recording.tick());
    const made = { id, recording, camera };
    this.all.push(made);
    return made;
  }

  begin(): void {
    for (const { camera } of this.all) camera.begin();
  }

  /** All cameras send for `seconds`, a picture at a time, while the disk works and the archive is looked after. */
  async play(seconds: number): Promise<void> {
    const frames = seconds * 25;
    for (let i = 0; i < frames; i++) {
      for (const { camera } of this.all) camera.video();
      this.clock.advance(40);
      if (i % 5 !== 4) continue;
      for (const { recording } of this.all) recording.tick();
      this.archive.tick();
      await this.disk.fs.idle();
    }
  }

  /** Time passes without pictures. */
  async wait(ms: number, stepMs = 250): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(stepMs);
      for (const { recording } of this.all) recording.tick();
      this.archive.tick();
      await this.disk.fs.idle();
    }
  }

  async stop(): Promise<void> {
    for (const { camera } of this.all) camera.end();
    await this.archive.close();
  }

  get framesDropped(): number {
    const drops = this.all.flatMap(({ recording }) => [...recording.status().framesDropped.values()]);
    return drops.reduce((sum, count) => sum + count, 0);
  }

  async metric(name: string): Promise<string[]> {
    const lines = (await this.registry.metrics()).split('\n');
    return lines.filter((line) => line.startsWith(`kube_nvr_${name}`));
  }
}
