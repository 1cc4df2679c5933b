// The disks of one archive. A file has the same relative path on whichever disk it is; this is the only place that knows
// where a path is. State of the archive (protections, gaps, sizes) is on one of them, usually the first, the record path; the others
// have copies (`state-copies.ts`).

import { cameraOfFootage } from '../../../base/camera-id.ts';
import { systemClock, type Clock } from '../../../base/clock.ts';
import { quietly } from '../../../base/error.ts';
import { silentLog, type Log } from '../../../base/log.ts';
import { chooseDisk } from './disk-choice.ts';
import { diskFault, type DiskFault } from './faults.ts';
import type { FileSystem } from './file-system.ts';
import { dayPath, dayStartMs, readNamesOfDay, type SegmentName } from './names.ts';

/** Knows the disk that must be under a path. */
export interface DiskGuard {
  /** Rejects with WrongDiskError when the disk is another one now. */
  check(): Promise<void>;
  readonly device: number | undefined;
}

const anyDisk: DiskGuard = { check: async () => {}, device: undefined };

/** Shows whether a disk can be written: a file of its own. Rejects with the error of the system. */
type Probe = (disk: Disk) => Promise<void>;

export class Disk {
  readonly root: string;
  readonly guard: DiskGuard;
  weight = 1;
  /** It gets no new files, and loses those that it has to the other disks. */
  isLeaving = false;
  /** It is configured no longer. */
  isRemoved = false;
  /** Nothing is written to it because of this: it is missing, another one, or was not recovered yet. */
  refused: Error | undefined;
  /** Why its files go to other disks now. Only where there are others. */
  fault: DiskFault | undefined;
  /** The day whose directories are known to survive a power failure. */
  safeDay: string | undefined;
  /** Nothing waits for it. */
  hangs = false;
  goodSinceMs: number | undefined;
  probe: { readonly sinceMs: number } | undefined;
  readonly #waiting = new Set<(err: unknown) => void>();

  constructor(root: string, guard: DiskGuard) {
    this.root = root;
    this.guard = guard;
  }

  /** Waits for an answer of the disk, but not once it hangs. */
  answers<T>(work: Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.add(reject);
    void work.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    return promise;
  }

  /** Nobody waits for it any longer. */
  giveUp(): void {
    for (const reject of this.#waiting) reject(new Error(HANGS.message));
    this.#waiting.clear();
  }
}

interface DiskSetOptions {
  readonly fs: FileSystem;
  readonly clock: Clock;
  readonly log: Log;
  /** The root of the disk with the state; undefined: the first. */
  readonly stateRoot?: string | undefined;
  /** How long a probe of a disk took. */
  readonly probed?: ((root: string, durationMs: number) => void) | undefined;
}

const HANGS: DiskFault = { code: 'disk-error', message: 'the disk has not answered for 10 seconds' };
export const HANGS_MS = 10_000;
const PROBE_MS = 5_000;
/** Probes have succeeded for this long: a disk that fails now and then does not get its cameras back each time. */
const WELL_MS = 60_000;

export class DiskSet {
  /** A disk fails: nothing of what is being written to it can be relied on. */
  failing: (disk: Disk, fault: DiskFault) => void = () => {};
  readonly #options: DiskSetOptions;
  #disks: readonly [Disk, ...Disk[]];
  /** Where each camera's files go, and on which day that was decided. */
  readonly #homes = new Map<string, { readonly disk: Disk; readonly dayMs: number }>();
  #learning: Promise<unknown> | undefined;
  #probedMs = -Infinity;

  constructor(first: Disk, options: DiskSetOptions) {
    this.#disks = [first];
    this.#options = options;
  }

  get first(): Disk {
    return this.#disks[0];
  }

  /** Has the state of the archive as long as this process runs. */
  get state(): Disk {
    return this.#disks.find(({ root }) => root === this.#options.stateRoot) ?? this.first;
  }

  get all(): readonly Disk[] {
    return this.#disks;
  }

  get hasOthers(): boolean {
    return this.#disks.length > 1;
  }

  /** Whether a disk takes new files and does not fail. */
  get hasHealthy(): boolean {
    return this.hasOthers && this.#disks.some(takesFiles);
  }

  add(disk: Disk): void {
    this.#disks = [...this.#disks, disk];
  }

  remove(disk: Disk): void {
    const [first, ...others] = this.#disks;
    this.#disks = [first, ...others.filter((other) => other !== disk)];
  }

  /** Why no disk takes new files now; undefined if one does. */
  get refused(): Error | undefined {
    return this.#disks.every(({ refused }) => refused) ? this.first.refused : undefined;
  }

  /** The disks that can be read now. Rejects with the error of the first when there is none. */
  async present(): Promise<readonly Disk[]> {
    if (!this.hasOthers) {
      await this.first.guard.check();
      return this.#disks;
    }
    const checks = await Promise.allSettled(this.#disks.map((disk) => this.#check(disk)));
    const found = this.#disks.filter((_, i) => checks[i]?.status === 'fulfilled');
    const [failed] = checks;
    if (found.length === 0 && failed?.status === 'rejected') throw failed.reason;
    return found;
  }

  /** Rejects when a disk cannot be read: a file that is nowhere may be on it. */
  async checkAll(): Promise<void> {
    await (this.hasOthers ? Promise.all(this.#disks.map((disk) => this.#check(disk))) : this.first.guard.check());
  }

  async #check(disk: Disk): Promise<void> {
    if (disk.refused) throw disk.refused;
    if (disk.hangs) throw new Error(HANGS.message);
    await disk.answers(disk.guard.check());
  }

  /** The disk that has a file; one that can be read if none has it. */
  async diskOf(path: string): Promise<Disk> {
    if (!this.hasOthers) return this.first;
    const readable = this.#disks.filter(({ refused, hangs }) => !refused && !hangs);
    for (const disk of readable) {
      // A disk that does not answer has not told that it has the file.
      const found = await disk.answers(this.#options.fs.facts(`${disk.root}/${path}`)).catch(() => undefined);
      if (found) return disk;
    }
    return readable.find(({ hangs }) => !hangs) ?? this.first;
  }

  /** The disk to which an absolute path belongs. */
  under(absolute: string): Disk {
    return this.#disks.findLast(({ root }) => absolute.startsWith(`${root}/`)) ?? this.first;
  }

  /** The disk for a new segment. A camera stays on its disk for a UTC day: the loss of a disk costs days of some cameras. */
  async choose({ cameraId, startMs }: SegmentName): Promise<Disk> {
    if (!this.hasOthers) return this.first;
    const dayMs = dayStartMs(startMs);
    await (this.#learning ??= this.#learn(dayMs));
    const camera = cameraOfFootage(cameraId);
    const home = this.#homes.get(camera);
    if (home && home.dayMs >= dayMs && takesFiles(home.disk)) return home.disk;
    const wanted = this.#disks.filter(takesFiles);
    const able = wanted.length > 0 ? wanted : this.#disks.filter(({ refused }) => !refused);
    const spaces = await Promise.all(
      able.map((disk) =>
        // It counts as full.
        disk.answers(this.#options.fs.space(disk.root)).catch(() => ({ freeBytes: 0, totalBytes: 0 })),
      ),
    );
    const cameras = new Map<Disk, number>();
    for (const [id, { disk, dayMs: sinceMs }] of this.#homes) {
      if (id !== camera && sinceMs >= dayMs) cameras.set(disk, (cameras.get(disk) ?? 0) + 1);
    }
    const choices = able.map((disk, i) => {
      const space = spaces[i] ?? { freeBytes: 0, totalBytes: 0 };
      return { ...space, weight: disk.weight, cameras: cameras.get(disk) ?? 0 };
    });
    const disk = able[chooseDisk(choices)] ?? this.first;
    this.#homes.set(camera, { disk, dayMs: Math.max(dayMs, home?.dayMs ?? dayMs) });
    return disk;
  }

  /** After a start: the disks on which the cameras were on this day. */
  async #learn(dayMs: number): Promise<void> {
    for (const disk of this.#disks.filter(takesFiles)) {
      // Of a disk that cannot be listed, the cameras get a disk as on a new day.
      const names = await disk.answers(this.#options.fs.list(`${disk.root}/${dayPath(dayMs)}`)).catch(() => []);
      for (const { cameraId } of readNamesOfDay(dayMs, names)) {
        const camera = cameraOfFootage(cameraId);
        if (!this.#homes.has(camera)) this.#homes.set(camera, { disk, dayMs });
      }
    }
  }

  /** Writing to a disk has failed. With another disk, all cameras leave it until probes have succeeded for a minute. */
  failed(disk: Disk, fault: DiskFault): void {
    disk.goodSinceMs = undefined;
    if (!this.hasOthers || disk.refused) return;
    if (disk.fault) return;
    disk.fault = fault;
    const { root: path } = disk;
    this.#options.log.error({ path, code: fault.code, reason: fault.message }, 'a disk of the archive fails');
    this.failing(disk, fault);
  }

  /** Call it a few times a second: probes the disks. */
  tick(probe: Probe): void {
    if (!this.hasOthers) return;
    const nowMs = this.#options.clock.monotonicMs();
    for (const disk of this.#disks) {
      if (disk.hangs || !disk.probe || nowMs - disk.probe.sinceMs < HANGS_MS) continue;
      disk.hangs = true;
      disk.giveUp();
      this.failed(disk, HANGS);
    }
    if (nowMs - this.#probedMs < PROBE_MS) return;
    this.#probedMs = nowMs;
    for (const disk of this.#disks) if (!disk.probe && !disk.refused) void this.#probe(disk, probe, nowMs);
  }

  async #probe(disk: Disk, probe: Probe, sinceMs: number): Promise<void> {
    disk.probe = { sinceMs };
    const fault = await probe(disk).then(
      () => undefined,
      (err: unknown) => diskFault(err),
    );
    disk.probe = undefined;
    disk.hangs = false;
    const { clock, log, probed } = this.#options;
    const nowMs = clock.monotonicMs();
    probed?.(disk.root, nowMs - sinceMs);
    if (fault) return this.failed(disk, fault);
    disk.goodSinceMs ??= nowMs;
    if (!disk.fault || nowMs - disk.goodSinceMs < WELL_MS) return;
    disk.fault = undefined;
    log.info({ path: disk.root }, 'a disk of the archive works again');
  }

  /** Resolves when no probe is under way, but for those of disks that hang. */
  async settled(): Promise<void> {
    await quietly(this.#learning ?? Promise.resolve());
  }
}

const takesFiles = ({ refused, fault, isLeaving, isRemoved }: Disk): boolean =>
  !refused && !fault && !isLeaving && !isRemoved;

/** One disk, which is always there. */
export const oneDisk = (root: string, fs: FileSystem, guard = anyDisk): DiskSet =>
  new DiskSet(new Disk(root, guard), { fs, clock: systemClock, log: silentLog });
