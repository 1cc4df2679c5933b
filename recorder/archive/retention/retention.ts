// Keeps the archive within its limits, and space on the disk. It checks about once a second and removes the oldest closed
// segments one by one; when a write finds the disk full, it does so at once.

import type { Registry } from 'prom-client';
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { ClosedSegment } from '../catalogue/segment.ts';
import type { Disk } from '../disk/disk-set.ts';
import { spaceOfAll, type FileSystem, type Space } from '../disk/file-system.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import { AgeGuard } from './age-guard.ts';
import { Alarms, type RetentionWarning } from './alarms.ts';
import { Candidates, type Candidate, type Respect } from './candidates.ts';
import { Futility } from './futility.ts';
import { KnownLimits } from './known-limits.ts';
import { Leases } from './leases.ts';
import { RetentionMetrics, type RetentionFigures } from './metrics.ts';
import { outlookOf, wantedAge } from './outlook.ts';
import { headroomFor } from '../disk/space.ts';
import { bySpace, oldestOfAll, planRemoval, type CameraFootage, type Limits } from './plan.ts';
import { ProtectedUsage } from './protected-usage.ts';
import { Protections } from './protections.ts';
import { Remover } from './remover.ts';
import type { SpaceMaker } from './free-space.ts';
import { Upkeep } from './upkeep.ts';
import { WriteRate } from './write-rate.ts';

interface RetentionOptions {
  readonly store: SegmentStore;
  /** The file system of `store`, but it makes no space: no footage is removed for what retention itself writes. */
  readonly fs: FileSystem;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry: Registry;
  /** Of the node, and of every camera that is known. */
  readonly limits: () => Limits;
  /** Paths of segments that are not closed. */
  readonly busy: () => ReadonlySet<string>;
  /** Bytes of segments that are not closed, by camera. */
  readonly openBytes: () => ReadonlyMap<string, number>;
}

/** The space of a disk, and how much of it recording needs next. */
interface DiskSpace {
  readonly disk: Disk;
  readonly space: Space;
  readonly headroomBytes: number;
}

const LOOK_MS = 1_000;
/** When less than this many times the headroom is free, the disk may be full before the next check. */
const LOW_SPACE = 4;
const LOW_SPACE_LOOK_MS = 250;
/** Segments removed in one check: removing and recording take turns. */
const MAX_REMOVED_AT_ONCE = 32;
const MAX_REMOVED_FOR_WRITES = 16;
/** Removing pauses when this many times the headroom was removed without effect. */
const FUTILE_HEADROOMS = 4;

export class Retention implements SpaceMaker {
  readonly leases: Leases;
  readonly protections: Protections;
  readonly #options: RetentionOptions;
  readonly #limits: KnownLimits;
  readonly #candidates: Candidates;
  readonly #protectedUsage: ProtectedUsage;
  readonly #remover: Remover;
  readonly #upkeep: Upkeep;
  readonly #alarms: Alarms;
  readonly #metrics: RetentionMetrics;
  readonly #ages: AgeGuard;
  readonly #rate: WriteRate;
  /** One for writes that found the disk full, one for the headroom that prevents this. */
  readonly #forWrites: Futility;
  readonly #forHeadroom: Futility;
  /** Since the last check. */
  #writtenBytes = 0;
  /** `space`: names are known, so that space can be made while recovery is running; `on`: sizes are known, too. */
  #state: 'off' | 'space' | 'on' | 'closed' = 'off';
  /** With several disks, of those that could be read. */
  #spaces: readonly DiskSpace[] = [];
  #bytesPerSecond = 0;
  /** The next tick checks again. */
  #due = true;
  #lookedMs = -Infinity;
  #look: Promise<void> | undefined;
  readonly #making = new Map<Disk, Promise<void>>();
  /** A write waits for space: a check that is under way ends after its present segment. */
  #urgent = false;

  constructor(options: RetentionOptions) {
    const { store, fs, catalogue, clock, log, registry, busy } = options;
    this.#options = options;
    const limitsFile = store.ofState('.kube-nvr/camera-limits.json');
    const limits = (this.#limits = new KnownLimits(fs, limitsFile, options.limits));
    const leases = (this.leases = new Leases(clock, log));
    const file = store.ofState('.kube-nvr/protections.json');
    const protections = (this.protections = new Protections(store.fs, file, () => store.checkDisk()));
    const candidates = (this.#candidates = new Candidates({
      store,
      catalogue,
      leases,
      protections,
      busy,
      vanished: (segment) => {
        catalogue.removed(segment);
        this.#upkeep.refreshSoon();
      },
    }));
    const metrics = (this.#metrics = new RetentionMetrics(registry, () => this.#figures()));
    const protectedUsage = (this.#protectedUsage = new ProtectedUsage({ store, catalogue, protections, busy }));
    const remover = (this.#remover = new Remover({ fs, store, catalogue, candidates, metrics, log }));
    const wallMs = (): number => clock.wallMs();
    const upkeep = { fs, store, catalogue, candidates, remover, busy, wallMs, log };
    this.#upkeep = new Upkeep(upkeep, clock.monotonicMs());
    this.#alarms = new Alarms({ clock, log, limits, protections, protectedUsage, remover });
    this.#ages = new AgeGuard(clock);
    this.#rate = new WriteRate(clock);
    this.#forWrites = new Futility(clock);
    this.#forHeadroom = new Futility(clock);
    leases.released = (cameraId) => this.#changed(cameraId);
    protections.changed = (cameraId) => {
      protectedUsage.changed(cameraId);
      this.#changed(cameraId);
    };
  }

  get removals(): number {
    return this.#remover.removals;
  }

  /** Names are known: from now on space can be made. */
  async prepare(): Promise<void> {
    await this.protections.load().catch((err: unknown) => {
      this.#options.log.error({ err }, 'protected footage is not known: nothing is removed unless the disk is full');
    });
    await this.#limits.load().catch((err: unknown) => {
      this.#options.log.error({ err }, 'the limits of cameras that were recorded before are not known');
    });
    this.#state = 'space';
  }

  /** Restores what the last run knew. Call it after recovery, before anything is recorded. */
  async start(): Promise<void> {
    await this.#upkeep.start();
    for (const cameraId of this.protections.cameras()) this.#protectedUsage.changed(cameraId);
    this.#ages.begin(this.#options.catalogue.newestStartMs());
    this.#candidates.forgetAll();
    this.#state = 'on';
  }

  /** A segment was closed by this process. */
  closed({ segment, endMs }: ClosedSegment): void {
    if (this.#state !== 'on') return;
    this.#protectedUsage.closed(segment.cameraId, segment.startMs, endMs);
    this.#candidates.closed(segment.cameraId);
    this.#due = true;
  }

  wrote(bytes: number): void {
    this.#rate.wrote(bytes);
    this.#forWrites.came(bytes);
    this.#writtenBytes += bytes;
  }

  /** Call it a few times a second. */
  tick(): void {
    if (this.#state !== 'on' || this.#look) return;
    const { clock, log } = this.#options;
    const nowMs = clock.monotonicMs();
    const isLow = this.#spaces.some(({ space, headroomBytes }) => space.freeBytes < LOW_SPACE * headroomBytes);
    if (!this.#due && nowMs - this.#lookedMs < (isLow ? LOW_SPACE_LOOK_MS : LOOK_MS)) return;
    this.#lookedMs = nowMs;
    this.#due = false;
    this.#look = this.#lookOnce(nowMs)
      // The disk has failed: recording reports that, and the next check tries again.
      .catch((err: unknown) => log.debug({ err }, 'the archive could not be scanned'))
      .finally(() => {
        this.#look = undefined;
      });
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await this.#look;
    await Promise.all(this.#making.values());
  }

  async makeSpace(removals: number, path: string): Promise<boolean> {
    if (this.removals > removals) return true;
    if (this.#state === 'off') return false;
    const disk = this.#options.store.disks.under(path);
    let making = this.#making.get(disk);
    if (!making) {
      making = this.#makeSpace(disk)
        .catch((err: unknown) => this.#options.log.debug({ err }, 'no space could be freed'))
        .finally(() => this.#making.delete(disk));
      this.#making.set(disk, making);
    }
    await making;
    return this.removals > removals;
  }

  /** Stores what it knows for the next start. */
  async close(): Promise<void> {
    const wasOn = this.#state === 'on';
    this.#state = 'closed';
    await this.settled();
    if (wasOn) await this.#upkeep.save(this.#options.clock.monotonicMs(), true);
  }

  /** How long footage of a camera should be kept, in milliseconds; undefined: as long as there is space. */
  wantedMs(cameraId: string): number | undefined {
    return wantedAge(this.#limits.node, this.#limits.of(cameraId));
  }

  /** See `outlookOf`. Undefined while the sizes of all files are not known, too. */
  outlookMs(): number | undefined {
    const { measured, used } = this.#figures();
    const space = this.#space;
    if (!measured || !space) return undefined;
    return outlookOf({
      limits: this.#limits.node,
      footageBytes: [...used].reduce((sum, [, bytes]) => sum + bytes, 0),
      space,
      headroomBytes: this.#headroomBytes,
      bytesPerSecond: this.#bytesPerSecond,
    });
  }

  warnings(): RetentionWarning[] {
    return this.#state === 'off' ? [] : this.#alarms.warnings();
  }

  #changed(cameraId: string): void {
    this.#candidates.forget(cameraId);
    this.#due = true;
  }

  async #lookOnce(nowMs: number): Promise<void> {
    const { store, fs } = this.#options;
    const disks = await store.disks.present();
    this.leases.expire();
    await this.#endProtections();
    if (await this.#upkeep.refresh(nowMs)) {
      for (const cameraId of this.protections.cameras()) this.#protectedUsage.changed(cameraId);
      // All directories were read: otherwise `refresh` throws.
      this.#limits.forgetOthers(this.#withFootage());
    }
    await this.#protectedUsage.refresh();
    const before = this.#space;
    const bytesPerSecond = this.#rate.bytesPerSecond();
    this.#spaces = await Promise.all(
      disks.map(async (disk) => {
        const space = await disk.answers(fs.space(disk.root));
        return { disk, space, headroomBytes: headroomFor(bytesPerSecond, space) };
      }),
    );
    const after = this.#space;
    if (before && after) this.#forHeadroom.came(after.freeBytes - before.freeBytes + this.#writtenBytes);
    this.#writtenBytes = 0;
    if (this.#forHeadroom.isPaused || this.#forWrites.isPaused) this.#alarms.futile();
    this.#bytesPerSecond = bytesPerSecond;
    this.#alarms.tell();
    await this.#keepLimits();
    if (this.protections.readable) await this.#removeWhatIsDue();
    if (this.#urgent) return;
    if (await this.#upkeep.measure(nowMs)) this.#due = true;
    await this.#upkeep.save(nowMs);
  }

  /** Of all disks; undefined where nothing is known. */
  get #space(): Space | undefined {
    return spaceOfAll(this.#spaces.map(({ space }) => space));
  }

  /** Not while the clock may be wrong: footage that was protected would be removed at once. */
  async #endProtections(): Promise<void> {
    const { protections } = this;
    if (!protections.readable || this.#ages.isPaused()) return;
    const { clock, log } = this.#options;
    await protections
      .expire(clock.wallMs())
      .catch((err: unknown) => log.debug({ err }, 'protections could not be ended'));
  }

  async #keepLimits(): Promise<void> {
    this.#limits.remember();
    await this.#limits
      .save(this.#withFootage())
      .catch((err: unknown) => this.#options.log.debug({ err }, 'the limits of cameras could not be stored'));
  }

  async #removeWhatIsDue(): Promise<void> {
    const { clock } = this.#options;
    const agePaused = this.#ages.isPaused();
    // Removed bytes count as free at once: some file systems release them a moment later.
    const freedBytes = new Map<Disk, number>();
    for (let count = 0; !this.#urgent && this.#state === 'on'; count++) {
      if (count === MAX_REMOVED_AT_ONCE) {
        this.#due = true;
        return;
      }
      const cameras = await this.#footage();
      const limits = this.#limits.node;
      const input = { nowMs: clock.wallMs(), agePaused, limits, cameras, space: undefined, headroomBytes: 0 };
      const plan = planRemoval(input);
      const found = plan && this.#candidates.get(plan.cameraId);
      const due = found ? { plan, candidate: found, disk: undefined } : await this.#dueForSpace(cameras, freedBytes);
      if (!due) return;
      const { candidate, disk } = due;
      if (disk && this.#forHeadroom.isPaused) return;
      const from = await this.#options.store.disks.diskOf(candidate.path);
      if (!(await this.#remover.remove(candidate, due.plan.rule, 'readers'))) continue;
      freedBytes.set(from, (freedBytes.get(from) ?? 0) + candidate.sizeBytes);
      if (disk) this.#forHeadroom.removed(candidate.sizeBytes, FUTILE_HEADROOMS * this.#headroomBytes);
    }
  }

  /** What is removed from a disk that is short of space. */
  async #dueForSpace(footage: readonly CameraFootage[], freedBytes: ReadonlyMap<Disk, number>) {
    for (const { disk, space, headroomBytes } of this.#spaces) {
      const freeBytes = space.freeBytes + (freedBytes.get(disk) ?? 0);
      const input = { limits: this.#limits.node, space: { ...space, freeBytes }, headroomBytes };
      if (!bySpace({ ...input, cameras: footage })) continue;
      const on = this.#alone(disk);
      const plan = bySpace({ ...input, cameras: await this.#onDisk(footage, on) });
      const candidate = plan && this.#candidates.get(plan.cameraId, on);
      if (candidate) return { plan, candidate, disk };
    }
    return undefined;
  }

  /** Undefined where it is the only one: everything is on it. */
  #alone(disk: Disk): Disk | undefined {
    return this.#options.store.disks.hasOthers ? disk : undefined;
  }

  /** The same cameras, each with its oldest segment on one disk. */
  async #onDisk(footage: readonly CameraFootage[], on: Disk | undefined): Promise<readonly CameraFootage[]> {
    if (!on) return footage;
    await this.#candidates.findAll(
      footage.map(({ cameraId }) => cameraId),
      on,
    );
    return footage.map((camera) => ({ ...camera, oldest: this.#candidates.get(camera.cameraId, on) }));
  }

  get #headroomBytes(): number {
    return this.#spaces.reduce((sum, { headroomBytes }) => sum + headroomBytes, 0);
  }

  /** Every camera with footage and its oldest segment; also the segment's end, if it may be too old. */
  async #footage(): Promise<CameraFootage[]> {
    const { catalogue, openBytes, clock } = this.#options;
    const { node } = this.#limits;
    const open = openBytes();
    const ids = this.#withFootage();
    await this.#candidates.findAll(ids);
    const footage: CameraFootage[] = [];
    for (const cameraId of ids) {
      const own = this.#limits.of(cameraId);
      const oldest = this.#candidates.get(cameraId);
      const maxAgeMs = wantedAge(node, own) ?? Infinity;
      if (oldest && oldest.startMs < clock.wallMs() - maxAgeMs) await this.#candidates.tellEnd(oldest);
      footage.push({
        cameraId,
        bytes: catalogue.usage.bytesOf(cameraId) + (open.get(cameraId) ?? 0),
        protectedBytes: this.#protectedUsage.bytesOf(cameraId),
        limits: own,
        oldest,
      });
    }
    return footage;
  }

  async #makeSpace(disk: Disk): Promise<void> {
    const { fs } = this.#options;
    this.#metrics.waited();
    this.#urgent = true;
    try {
      await this.#look;
      await disk.guard.check();
      const space = await fs.space(disk.root);
      const headroomBytes = headroomFor(this.#rate.bytesPerSecond(), space);
      let freedBytes = 0;
      for (let removed = 0; removed < MAX_REMOVED_FOR_WRITES;) {
        if (this.#forWrites.isPaused) return this.#alarms.futile();
        const oldest = await this.#oldestForSpace(this.#alone(disk));
        if (!oldest) {
          if (removed === 0) this.#alarms.exhausted();
          return;
        }
        if (!(await this.#remover.remove(oldest.candidate, 'full', oldest.respect))) continue;
        removed++;
        freedBytes += oldest.candidate.sizeBytes;
        this.#forWrites.removed(oldest.candidate.sizeBytes, FUTILE_HEADROOMS * headroomBytes);
        if (space.freeBytes + freedBytes >= headroomOf(this.#spaces, disk)) return;
      }
    } finally {
      this.#urgent = false;
    }
  }

  /** The oldest segment that is not being read; if there is none, the oldest of all: new footage is more important. */
  async #oldestForSpace(on: Disk | undefined): Promise<{ candidate: Candidate; respect: Respect } | undefined> {
    const footage = await this.#onDisk(await this.#footage(), on);
    const plan = oldestOfAll(footage, 'full');
    const candidate = plan && this.#candidates.get(plan.cameraId, on);
    if (candidate) return { candidate, respect: 'readers' };
    if (this.leases.count === 0) return undefined;
    let oldest: Candidate | undefined;
    for (const { cameraId } of footage) {
      const found = await this.#candidates.find(cameraId, 'nobody', on);
      if (found && found.startMs < (oldest?.startMs ?? Infinity)) oldest = found;
    }
    return oldest && { candidate: oldest, respect: 'nobody' };
  }

  #withFootage(): ReadonlySet<string> {
    const { catalogue, openBytes } = this.#options;
    return new Set([...catalogue.usage.cameras(), ...openBytes().keys()]);
  }

  #figures(): RetentionFigures {
    const { usage } = this.#options.catalogue;
    const open = this.#options.openBytes();
    const used = Array.from(this.#withFootage(), (id) => [id, usage.bytesOf(id) + (open.get(id) ?? 0)] as const);
    return {
      freeBytes: this.#space?.freeBytes,
      totalBytes: this.#space?.totalBytes,
      exhausted: this.#alarms.isExhausted,
      used,
      protected: Array.from(this.protections.cameras(), (id) => [id, this.#protectedUsage.bytesOf(id)] as const),
      overQuota: this.#alarms.overQuota(),
      measured: this.#state === 'on' && usage.unmeasured === undefined,
    };
  }
}

const headroomOf = (spaces: readonly DiskSpace[], disk: Disk): number =>
  spaces.find((one) => one.disk === disk)?.headroomBytes ?? 0;
