// Keeps the archive within its limits, and space on the disk. It checks about once a second and removes the oldest closed
// segments one by one; when a write finds the disk full, it does so at once.

import type { Registry } from 'prom-client';
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { ClosedSegment } from '../catalogue/segment.ts';
import type { FileSystem, Space } from '../disk/file-system.ts';
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
import { oldestOfAll, planRemoval, type CameraFootage, type Limits } from './plan.ts';
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
  #space: Space | undefined;
  #headroomBytes = 0;
  #bytesPerSecond = 0;
  /** The next tick checks again. */
  #due = true;
  #lookedMs = -Infinity;
  #look: Promise<void> | undefined;
  #making: Promise<void> | undefined;
  /** A write waits for space: a check that is under way ends after its present segment. */
  #urgent = false;

  constructor(options: RetentionOptions) {
    const { store, fs, catalogue, clock, log, registry, busy } = options;
    this.#options = options;
    const limitsFile = store.absolute('.kube-nvr/camera-limits.json');
    const limits = (this.#limits = new KnownLimits(fs, limitsFile, options.limits));
    const leases = (this.leases = new Leases(clock, log));
    const file = store.absolute('.kube-nvr/protections.json');
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
    const isLow = this.#space !== undefined && this.#space.freeBytes < LOW_SPACE * this.#headroomBytes;
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
    await this.#making;
  }

  async makeSpace(removals: number): Promise<boolean> {
    if (this.removals > removals) return true;
    if (this.#state === 'off') return false;
    this.#making ??= this.#makeSpace()
      .catch((err: unknown) => this.#options.log.debug({ err }, 'no space could be freed'))
      .finally(() => (this.#making = undefined));
    await this.#making;
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
    if (!measured || !this.#space) return undefined;
    return outlookOf({
      limits: this.#limits.node,
      footageBytes: [...used].reduce((sum, [, bytes]) => sum + bytes, 0),
      space: this.#space,
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
    await store.checkDisk();
    this.leases.expire();
    await this.#endProtections();
    if (await this.#upkeep.refresh(nowMs)) {
      for (const cameraId of this.protections.cameras()) this.#protectedUsage.changed(cameraId);
      // All directories were read: otherwise `refresh` throws.
      this.#limits.forgetOthers(this.#withFootage());
    }
    await this.#protectedUsage.refresh();
    const before = this.#space;
    this.#space = await fs.space(store.root);
    if (before) this.#forHeadroom.came(this.#space.freeBytes - before.freeBytes + this.#writtenBytes);
    this.#writtenBytes = 0;
    if (this.#forHeadroom.isPaused || this.#forWrites.isPaused) this.#alarms.futile();
    this.#bytesPerSecond = this.#rate.bytesPerSecond();
    this.#headroomBytes = headroomFor(this.#bytesPerSecond, this.#space);
    this.#alarms.tell();
    await this.#keepLimits();
    if (this.protections.readable) await this.#removeWhatIsDue();
    if (this.#urgent) return;
    if (await this.#upkeep.measure(nowMs)) this.#due = true;
    await this.#upkeep.save(nowMs);
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
    let freedBytes = 0;
    for (let count = 0; !this.#urgent && this.#state === 'on'; count++) {
      if (count === MAX_REMOVED_AT_ONCE) {
        this.#due = true;
        return;
      }
      const cameras = await this.#footage();
      const space = this.#space && { ...this.#space, freeBytes: this.#space.freeBytes + freedBytes };
      const nowMs = clock.wallMs();
      const headroomBytes = this.#headroomBytes;
      const plan = planRemoval({ nowMs, agePaused, limits: this.#limits.node, cameras, space, headroomBytes });
      const candidate = plan && this.#candidates.get(plan.cameraId);
      if (!candidate) return;
      const isForSpace = plan.rule === 'headroom' || plan.rule === 'min-free';
      if (isForSpace && this.#forHeadroom.isPaused) return;
      if (!(await this.#remover.remove(candidate, plan.rule, 'readers'))) continue;
      freedBytes += candidate.sizeBytes;
      if (isForSpace) this.#forHeadroom.removed(candidate.sizeBytes, FUTILE_HEADROOMS * headroomBytes);
    }
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

  async #makeSpace(): Promise<void> {
    const { store, fs } = this.#options;
    this.#metrics.waited();
    this.#urgent = true;
    try {
      await this.#look;
      await store.checkDisk();
      const space = await fs.space(store.root);
      const headroomBytes = headroomFor(this.#rate.bytesPerSecond(), space);
      let freedBytes = 0;
      for (let removed = 0; removed < MAX_REMOVED_FOR_WRITES;) {
        if (this.#forWrites.isPaused) return this.#alarms.futile();
        const oldest = await this.#oldestForSpace();
        if (!oldest) {
          if (removed === 0) this.#alarms.exhausted();
          return;
        }
        if (!(await this.#remover.remove(oldest.candidate, 'full', oldest.respect))) continue;
        removed++;
        freedBytes += oldest.candidate.sizeBytes;
        this.#forWrites.removed(oldest.candidate.sizeBytes, FUTILE_HEADROOMS * headroomBytes);
        if (space.freeBytes + freedBytes >= this.#headroomBytes) return;
      }
    } finally {
      this.#urgent = false;
    }
  }

  /** The oldest segment that is not being read; if there is none, the oldest of all: new footage is more important. */
  async #oldestForSpace(): Promise<{ candidate: Candidate; respect: Respect } | undefined> {
    const footage = await this.#footage();
    const plan = oldestOfAll(footage, 'full');
    const candidate = plan && this.#candidates.get(plan.cameraId);
    if (candidate) return { candidate, respect: 'readers' };
    if (this.leases.count === 0) return undefined;
    let oldest: Candidate | undefined;
    for (const { cameraId } of footage) {
      const found = await this.#candidates.find(cameraId, 'nobody');
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
