// The archive of one node: records each camera's samples to files under the record path, and lists them. It combines
// the rooms below it. Cameras share only the catalogue here.

import { Registry } from 'prom-client';
import { isFootageId } from '../../base/camera-id.ts';
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import type { Interval } from '../../base/interval.ts';
import type { Log } from '../../base/log.ts';
import type { Reason } from '../../base/reason.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { Catalogue } from './catalogue/catalogue.ts';
import { ThreadedDetailsReader, type DetailsReader } from './catalogue/details-reader.ts';
import type { ListQuery, SegmentListing } from './catalogue/listing.ts';
import { noObserver, type SegmentObserver } from './catalogue/observer.ts';
import type { ClosedSegment, OpenSegment } from './catalogue/segment.ts';
import { takingTurns } from './disk/disk-turns.ts';
import { Disk, DiskSet } from './disk/disk-set.ts';
import { DiskWatch } from './disk/disk-watch.ts';
import { diskWithRoom, Drain } from './disk/drain.ts';
import { ArchiveError, diskFault, WrongDiskError, type DiskFault } from './disk/faults.ts';
import { nodeFileSystem, spaceOfAll, type FileSystem, type OpenFile, type Space } from './disk/file-system.ts';
import { ArchiveIdentity, type IdentityOptions } from './disk/identity.ts';
import { formatPath, parsePath, type SegmentName } from './disk/names.ts';
import { SegmentStore } from './disk/segment-store.ts';
import { StateCopies } from './disk/state-copies.ts';
import type { RetentionWarning } from './retention/alarms.ts';
import type { Limits } from './retention/plan.ts';
import type { Protections } from './retention/protections.ts';
import { Retention } from './retention/retention.ts';
import { spaceMaking } from './retention/free-space.ts';
import {
  CameraArchive,
  type CameraArchiveCallbacks,
  type CameraArchiveOptions,
  type CameraArchiveOwner,
} from './segments/camera-archive.ts';
import { extendSegment, type Continuation } from './segments/extend.ts';
import { firstPictures, lastPictures, type FileEnd } from './segments/file-ends.ts';
import { besideLive, newHistory, type CameraHistory } from './segments/history.ts';
import { ArchiveMetrics } from './segments/metrics.ts';
import { recoverArchive, recoveryPaths, type RecoveryReport } from './segments/recovery.ts';

/** A further disk of the archive. */
export interface DiskSettings {
  readonly path: string;
  readonly weight: number;
}

export interface ArchiveOptions {
  /** The record path, absolute. */
  readonly root: string;
  /** The further disks, as they are configured now. With `workDir`. */
  readonly disks?: () => readonly DiskSettings[];
  /** The disk with the newest state (`newestState`); undefined: the record path. */
  readonly stateRoot?: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** A power cut loses at most this much. */
  readonly syncIntervalMs: number;
  readonly registry?: Registry;
  readonly fs?: FileSystem;
  /** Keeps a list of closed segments elsewhere. */
  readonly observer?: SegmentObserver;
  /**
   * The directory of the node's own state, which contains the id of its archive; without it, every directory is
   * accepted.
   */
  readonly workDir?: string;
  /** A member of a cluster records only to its own archive, never to that of another node. */
  readonly node?: string | undefined;
  /** Nor to that of another pool; `namespace/name`. */
  readonly pool?: string | undefined;
  /** Takes a directory for this process alone (`directory-lock.ts`). With `workDir`. */
  readonly take?: IdentityOptions['take'];
  /** How much footage is kept; without it, nothing is ever removed, and a full disk stops recording. */
  readonly limits?: () => Limits;
  /** For what waits for the disk, of all cameras. */
  readonly memory?: MemoryAccount;
  /** For what a disk may not have yet, of all cameras, with several disks; `shed` gives it up. */
  readonly unsynced?: (shed: () => void) => MemoryAccount;
  /** The epoch under which this node records a camera now; undefined outside of a cluster. */
  readonly epochOf?: (cameraId: string) => number | undefined;
}

/** A disk of the archive, as it is now. */
interface DiskState {
  readonly path: string;
  readonly weight: number;
  readonly isLeaving: boolean;
  /** Why it is not written to. */
  readonly fault: DiskFault | WrongDiskError | undefined;
}

/** A problem of the archive that needs attention. */
interface ArchiveWarning {
  readonly code:
    | RetentionWarning['code']
    | WrongDiskError['code']
    | typeof UNREADABLE
    | typeof FAILING
    | typeof NOT_WRITTEN
    | typeof SHREDDED;
  readonly message: string;
  /** Undefined: of the node. */
  readonly cameraId: string | undefined;
}

/**
 * What a player reaches while it plays one segment: some segments of usual length, even if there are gaps between them.
 */
const PLAYED_NEXT_MS = 10 * MINUTE_MS;
const ENDS_AT_ONCE = 16;
/** Fragments of video and sound that a camera has just completed. */
const USUALLY_WAITING = 2;
const UNREADABLE = 'archive-unreadable';
const FAILING = 'disk-failing';
const NOT_WRITTEN = 'writes-failing';
const SHREDDED = 'files-short';
const SHORT_FILES = 'many of its files of the last minute are shorter than a second';

export class Archive {
  readonly #options: ArchiveOptions;
  readonly #fs: FileSystem;
  /** With `workDir`: of each disk. */
  readonly #identities = new Map<Disk, ArchiveIdentity>();
  readonly #watches = new Map<Disk, DiskWatch>();
  readonly #disks: DiskSet;
  readonly #unsynced: MemoryAccount | undefined;
  readonly #drain: Drain;
  readonly #stateCopies: StateCopies;
  #recovered = false;
  /** One disk at a time. */
  #joining: Promise<unknown> = Promise.resolve();
  readonly #retention: Retention | undefined;
  readonly #store: SegmentStore;
  readonly #reader: DetailsReader | undefined;
  readonly catalogue: Catalogue;
  readonly #metrics: ArchiveMetrics;
  readonly #histories = new Map<string, CameraHistory>();
  readonly #cameras = new Map<string, CameraArchive>();
  /** What fills gaps now. */
  readonly #filling = new Set<CameraArchive>();
  /** Start of the newest segment of each camera whose end was read, or could not be. */
  readonly #askedEnds = new Map<string, number>();
  #unwritable: DiskFault | undefined;
  /** Paths of files that recovery may be working on. */
  #inRecovery: ReadonlySet<string> = new Set();
  /** Cameras whose last files are being completed: one that comes back does not wait for that, but `close` does. */
  readonly #ending = new Set<CameraArchive>();
  readonly #owner: CameraArchiveOwner = {
    closing: (camera) => {
      this.#cameras.delete(camera.cameraId);
      this.#ending.add(camera);
    },
    closed: (camera) => this.#ending.delete(camera),
  };
  readonly #fillingOwner: CameraArchiveOwner = {
    closing() {},
    closed: (camera) => {
      this.#filling.delete(camera);
      this.#cameras.get(camera.cameraId)?.adopt(camera);
    },
  };

  constructor(options: ArchiveOptions) {
    this.#options = options;
    const { clock, log, limits, observer = noObserver, registry = new Registry() } = options;
    const root = withoutTrailingSlash(options.root);
    const fs = (this.#fs = takingTurns(options.fs ?? nodeFileSystem, {
      count: () => this.#disks.all.length,
      of: (path) => this.#disks.under(path).root,
    }));
    const first = this.#newDisk(root, undefined);
    const { stateRoot } = options;
    this.#disks = new DiskSet(first, {
      fs,
      clock,
      log,
      stateRoot,
      probed: (disk, ms) => this.#metrics.probed(disk, ms),
    });
    for (const { path, weight } of options.disks?.() ?? []) this.#addDisk(path, weight);
    this.#disks.failing = (failing, fault) => {
      for (const camera of this.#writing()) camera.leave(failing, fault);
    };
    this.#unsynced = options.unsynced?.(() => {
      for (const camera of this.#writing()) camera.shedKept();
    });
    const disk = limits ? spaceMaking(fs, () => this.#retention as Retention) : fs;
    this.#store = new SegmentStore(root, disk, undefined, this.#disks);
    const isBehind = (): boolean => this.isBehind;
    this.#drain = new Drain({ store: this.#store, clock, log, busy: () => this.#unfinishedPaths(), isBehind });
    this.#stateCopies = new StateCopies({ fs, disks: this.#disks, clock, log, isBehind });
    // A thread can read only the machine's own file system.
    this.#reader = options.fs ? undefined : new ThreadedDetailsReader();
    const observers = {
      closed: (segment: ClosedSegment): void => {
        this.#retention?.closed(segment);
        observer.closed(segment);
      },
      removed: (segment: SegmentName): void => observer.removed(segment),
      saved: async (cameraId: string): Promise<boolean> => (await observer.saved?.(cameraId)) ?? true,
    };
    this.catalogue = new Catalogue(this.#store, clock, this.#reader, observers);
    this.#metrics = new ArchiveMetrics(registry, {
      wrongDisk: () => this.fault?.code,
      disks: () => this.disks(),
      oldest: () => this.extents(),
    });
    if (!limits) return;
    this.#retention = new Retention({
      store: this.#store,
      fs,
      catalogue: this.catalogue,
      clock,
      log,
      registry,
      limits,
      busy: () => this.#unfinishedPaths(),
      openBytes: () => this.#openBytes(),
    });
  }

  /**
   * Creates the record path and repairs what a crash left. Call it once, before any `sinkFor`. Throws when the record
   * path cannot be created or written to. Old footage that cannot be read is logged and does not prevent recording.
   * While the disk of the archive is missing, nothing is repaired and nothing recorded.
   */
  async recover(): Promise<RecoveryReport> {
    for (const disk of this.#disks.all) {
      await this.#prepare(disk).catch((err: unknown) => {
        const isWrong = err instanceof WrongDiskError;
        if (!isWrong && disk === this.#disks.first) throw err;
        const path = disk.root;
        const fault = isWrong
          ? err
          : new WrongDiskError('archive-missing', `${path} cannot be used: ${messageOf(err)}`);
        this.#watches.get(disk)?.waitFor(fault);
      });
    }
    if (this.#disks.refused) return { repairs: new Map(), failed: [], histories: new Map() };
    return this.#recover();
  }

  /** Looks whether a disk is ours and makes it ready; a directory without an archive becomes a disk of this one. */
  async #prepare(disk: Disk): Promise<void> {
    const identity = this.#identities.get(disk);
    const isNew = (await identity?.look()) === 'new';
    // What cannot be read is not there.
    const facts = await this.#fs.facts(disk.root).catch(() => undefined);
    if (isNew && disk !== this.#disks.first && !facts?.isDirectory) {
      throw new WrongDiskError('archive-missing', `${disk.root} does not exist; is its disk mounted?`);
    }
    await this.#store.prepare(disk);
    if (isNew) await identity?.create();
    if (disk === this.#disks.state) await identity?.keepState(this.#disks.hasOthers);
    const device = identity?.device;
    const twin = this.#disks.all.find((other) => other !== disk && this.#identities.get(other)?.device === device);
    if (device !== undefined && twin) {
      const paths = [twin.root, disk.root];
      this.#options.log.warn({ paths }, 'two disks of the archive are on one file system: both are lost with it');
    }
  }

  #newDisk(root: string, first: Disk | undefined): Disk {
    const { workDir, node, pool, take, clock, log } = this.#options;
    if (workDir === undefined) return new Disk(root, { check: async () => {}, device: undefined });
    const of = first && this.#identities.get(first);
    const identity = new ArchiveIdentity({ root, workDir, node, pool, take, first: of, fs: this.#fs, log });
    const disk = new Disk(root, identity);
    const recover = (): Promise<unknown> =>
      // The watch of the other disk has the error.
      (this.#joining = this.#joining.catch(() => {}).then(() => this.#join(disk)));
    const refuse = (fault: WrongDiskError | undefined): void => void (disk.refused = fault);
    this.#identities.set(disk, identity);
    this.#watches.set(disk, new DiskWatch({ identity, root, clock, log, recover, refuse }));
    return disk;
  }

  #addDisk(path: string, weight: number): Disk {
    const disk = this.#newDisk(withoutTrailingSlash(path), this.#disks.first);
    disk.weight = weight;
    this.#disks.add(disk);
    return disk;
  }

  /** A disk has come that was not there at the start. */
  async #join(disk: Disk): Promise<void> {
    await this.#prepare(disk);
    disk.refused = undefined;
    this.catalogue.readAgain();
    await this.#recover();
  }

  /** Takes up a changed list of disks. One that is no longer listed is forgotten when nothing is being written to it. */
  #configureDisks(): void {
    const { disks, workDir } = this.#options;
    const configured = disks?.() ?? [];
    if (workDir === undefined || (configured.length === 0 && !this.#disks.hasOthers)) return;
    const wanted = new Map(configured.map(({ path, weight }) => [withoutTrailingSlash(path), weight]));
    for (const disk of this.#disks.all.slice(1)) {
      const weight = wanted.get(disk.root);
      wanted.delete(disk.root);
      disk.isRemoved = weight === undefined;
      disk.weight = weight ?? disk.weight;
      if (
        !disk.isRemoved ||
        disk === this.#disks.state ||
        Array.from(this.#writing()).some((camera) => camera.isOn(disk))
      )
        continue;
      this.#disks.remove(disk);
      this.#watches.delete(disk);
      void this.#identities.get(disk)?.release();
      this.#identities.delete(disk);
      this.catalogue.readAgain();
      this.#options.log.info({ path: disk.root }, 'a disk of the archive is no longer used');
    }
    for (const [path, weight] of wanted) {
      this.#watches.get(this.#addDisk(path, weight))?.expect();
    }
  }

  async #recover(): Promise<RecoveryReport> {
    const { log, syncIntervalMs } = this.#options;
    await this.catalogue.refresh().catch((err: unknown) => {
      if (!(err instanceof ArchiveError)) throw err;
      log.error({ err, path: this.#store.root }, 'parts of the archive cannot be read');
    });
    const store = this.#store;
    const { catalogue } = this;
    const busy = this.#unfinishedPaths();
    this.#inRecovery = new Set((await recoveryPaths(store, catalogue)).filter((path) => !busy.has(path)));
    await this.#retention?.prepare();
    const deps = { store, catalogue, metrics: this.#metrics, log, syncIntervalMs };
    const report = await recoverArchive({ ...deps, busy: () => this.#unfinishedPaths(false) });
    this.#inRecovery = new Set();
    for (const [cameraId, history] of report.histories) {
      const known = this.#histories.get(cameraId);
      if (!known) this.#histories.set(cameraId, history);
      // Another disk has come: what is being recorded goes on.
      else if (this.#recovered) known.nextSequence = Math.max(known.nextSequence, history.nextSequence);
      // A camera that waits for its disk keeps the samples that it has.
      else Object.assign(known, history);
    }
    this.#recovered = true;
    await this.#retention?.start();
    return report;
  }

  /** Call it about four times a second. It removes footage that exceeds the limits, and notices a disk that is back. */
  tick(): void {
    this.#configureDisks();
    for (const watch of this.#watches.values()) watch.tick();
    this.#drain.tick();
    this.#stateCopies.tick();
    this.#disks.tick((disk) => this.#store.probeDisk(disk));
    this.#retention?.tick();
  }

  /** Resolves when what `tick` has begun is done. */
  async settled(): Promise<void> {
    for (const watch of this.#watches.values()) await watch.settled();
    await this.#drain.settled();
    await this.#stateCopies.settled();
    await this.#retention?.settled();
  }

  /** The root of the disk that has the state of the archive. */
  get stateRoot(): string {
    return this.#disks.state.root;
  }

  /** Throws WrongDiskError when that disk is not one of this archive now: nothing may be written there. */
  async checkDisk(): Promise<void> {
    await this.#identities.get(this.#disks.state)?.check();
  }

  /** The space of all disks that can be written to; undefined if it cannot be found out. */
  async space(): Promise<Space | undefined> {
    const disks = this.#disks.all.filter(({ refused, fault, hangs }) => !refused && !fault && !hangs);
    const spaces = await Promise.all(
      disks.map((disk) =>
        disk
          .answers(this.#fs.space(disk.root))
          // It adds nothing to the sum.
          .catch(() => undefined),
      ),
    );
    return spaceOfAll(spaces.filter((space) => space !== undefined));
  }

  /** Takes a complete segment that `write` writes; false if no disk has the space. Rejects with what `write` rejects with, too. */
  async receive(segment: SegmentName, sizeBytes: number, write: (file: OpenFile) => Promise<void>): Promise<boolean> {
    const disk = await diskWithRoom(this.#store, sizeBytes);
    if (!disk) return false;
    await this.#store.receive(segment, disk, write);
    // Directories that this process changes are not read back.
    this.catalogue.opened(segment);
    return true;
  }

  /** The root of the disk that has a file, by the path of the file. */
  async rootOf(path: string): Promise<string> {
    return (await this.#disks.diskOf(path)).root;
  }

  disks(): DiskState[] {
    return this.#disks.all.map((disk) => {
      const fault = this.#watches.get(disk)?.fault ?? disk.fault;
      return { path: disk.root, weight: disk.weight, isLeaving: disk.isLeaving, fault };
    });
  }

  get #firstIdentity(): ArchiveIdentity | undefined {
    return this.#identities.get(this.#disks.first);
  }

  /**
   * Footage that is being played, by the path of its segment: until the returned function is called it stays, and so
   * does what is played next. That is enough for a player, because retention removes an hour of footage in an hour.
   */
  holdForReading(path: string): () => void {
    const segment = parsePath(path);
    if (!segment || !this.#retention) return () => {};
    const { cameraId, startMs } = segment;
    const [found] = this.catalogue.oldestFirst(cameraId, startMs);
    const nextMs = found?.nextStartMs ?? startMs;
    return this.holdWindow(cameraId, startMs, Math.max(startMs + PLAYED_NEXT_MS, nextMs + 1));
  }

  /**
   * The same for all that lies in [fromMs, toMs): an open file stays readable, and the files that are opened next are
   * held.
   */
  holdWindow(cameraId: string, fromMs: number, toMs: number): () => void {
    return this.#retention?.leases.hold(cameraId, fromMs, toMs) ?? (() => {});
  }

  /** Windows that retention leaves alone; undefined where nothing is ever removed. */
  get protections(): Protections | undefined {
    return this.#retention?.protections;
  }

  /** The id in the marker of the record path, once that was found to be ours. */
  get id(): string | undefined {
    return this.#firstIdentity?.id;
  }

  /** Why nothing can be written at all. */
  get fault(): WrongDiskError | undefined {
    const faults = this.#disks.all.map((disk) => this.#watches.get(disk)?.fault);
    return faults.every((fault) => fault) ? faults[0] : undefined;
  }

  /**
   * Where the footage of each camera begins and ends, as of the last look at the directories. A segment whose end is not known, because it
   * is being written or was not read yet (`learnEnds`), counts up to its start.
   */
  extents(): { readonly camera: string; readonly oldestMs: number; readonly newestMs: number }[] {
    return Array.from(this.catalogue.cameras()).flatMap((camera) => {
      const [oldest] = this.catalogue.oldestFirst(camera, -Infinity);
      const newest = this.catalogue.newest(camera);
      if (!oldest || !newest) return [];
      return [{ camera, oldestMs: oldest.segment.startMs, newestMs: newest.endMs ?? newest.segment.startMs }];
    });
  }

  /** Reads ends that `extents` lacks: a few at a time, and each once. Never rejects. */
  async learnEnds(): Promise<void> {
    const unknown: SegmentName[] = [];
    for (const camera of this.catalogue.cameras()) {
      const newest = this.catalogue.newest(camera);
      if (!newest || newest.endMs !== undefined || this.#askedEnds.get(camera) === newest.segment.startMs) continue;
      const path = formatPath(newest.segment);
      if (this.inProgress(camera).some((open) => open.path === path)) continue;
      unknown.push(newest.segment);
      if (unknown.length === ENDS_AT_ONCE) break;
    }
    for (const segment of unknown) this.#askedEnds.set(segment.cameraId, segment.startMs);
    await Promise.allSettled(unknown.map((segment) => this.catalogue.learnEnd(segment)));
  }

  /** How long footage should be kept, and can be; undefined where nothing is ever removed. */
  get keeping(): Pick<Retention, 'wantedMs' | 'outlookMs'> | undefined {
    return this.#retention;
  }

  /** Problems that need attention. */
  /** Since when footage of a camera may be missing because its disk is away; undefined: every disk is there. */
  lackingFromMs(cameraId: string): number | undefined {
    const { lackingFromMs } = this.catalogue;
    const wantedMs = this.keeping?.wantedMs(cameraId) ?? Infinity;
    return lackingFromMs === undefined ? undefined : Math.max(lackingFromMs, this.#options.clock.wallMs() - wantedMs);
  }

  warnings(): readonly ArchiveWarning[] {
    const { fault } = this;
    if (fault) return [{ code: fault.code, message: fault.message, cameraId: undefined }];
    const { problem: message } = this.catalogue;
    const unreadable: ArchiveWarning[] =
      message === undefined ? [] : [{ code: UNREADABLE, message, cameraId: undefined }];
    const shredded = [...this.#cameras.values()].filter(({ isShredded }) => isShredded);
    const short = shredded.map(({ cameraId }): ArchiveWarning => ({ code: SHREDDED, message: SHORT_FILES, cameraId }));
    return [
      ...this.#diskWarnings(),
      ...this.#writeWarnings(),
      ...unreadable,
      ...(this.#retention?.warnings() ?? []),
      ...short,
    ];
  }

  /** What became of the writes of recordings lately: a probe may pass where they fail. */
  #writes(): { readonly cameras: number; readonly troubles: readonly Reason[] } {
    const tried = [...this.#cameras.values()].filter(({ isTried }) => isTried);
    return { cameras: tried.length, troubles: tried.flatMap(({ trouble }) => trouble ?? []) };
  }

  #writeWarnings(): ArchiveWarning[] {
    const { cameras, troubles } = this.#writes();
    // Retention says itself that the disk is full.
    const first = troubles.find(({ code }) => code !== 'disk-full' || !this.#retention);
    if (!first) return [];
    const message = `pictures of ${troubles.length} of ${cameras} cameras are not written: ${first.message}`;
    return [{ code: NOT_WRITTEN, message, cameraId: undefined }];
  }

  #diskWarnings(): ArchiveWarning[] {
    return this.#disks.all.flatMap((disk): ArchiveWarning[] => {
      const wrong = this.#watches.get(disk)?.fault;
      if (wrong) return [{ code: wrong.code, message: wrong.message, cameraId: undefined }];
      if (!disk.fault) return [];
      const message = `${disk.root} fails, so that its cameras record to the other disks: ${disk.fault.message}`;
      return [{ code: FAILING, message, cameraId: undefined }];
    });
  }

  /** Segments of which a part lies in the interval, as far as their names tell. */
  countSegments(cameraId: string, fromMs: number, toMs: number): number {
    return this.catalogue.count(cameraId, fromMs, toMs);
  }

  /** A camera's place in the archive. At most one at a time for a camera; its `close` makes space for the next. */
  sinkFor(options: CameraArchiveOptions, callbacks: CameraArchiveCallbacks): CameraArchive {
    const { cameraId } = options;
    assert(isFootageId(cameraId), 'camera id is not in the alphabet of file names');
    assert(!this.#cameras.has(cameraId), 'two recordings of one camera');
    const camera = this.#open(options, this.#historyOf(cameraId), this.#owner, callbacks);
    this.#cameras.set(cameraId, camera);
    return camera;
  }

  /**
   * Takes what fills a gap of a camera that may be recorded at the same time. No file begins before `fromMs`, if it is given. Its files are listed
   * when they are complete. Call `tick` of it, and `close` at its end.
   */
  fillerFor(options: CameraArchiveOptions & { readonly edge: object }, fromMs: number | undefined): CameraArchive {
    const history = besideLive(this.#historyOf(options.cameraId), fromMs);
    const filler = this.#open(options, history, this.#fillingOwner, { needKeyFrame() {} });
    this.#filling.add(filler);
    return filler;
  }

  /**
   * Adds pictures after the last one of a complete segment; false if it cannot be extended. Rejects with the error of
   * the system.
   */
  async extend(path: string, continuation: Continuation): Promise<boolean> {
    const segment = parsePath(path);
    assert(segment, 'the path of a segment');
    const release = this.holdForReading(path);
    try {
      await this.#store.checkDisk();
      const extended = await extendSegment(this.#store, segment, continuation);
      if (extended) this.catalogue.closed(extended);
      return extended !== undefined;
    } finally {
      release();
    }
  }

  /** The first or the last pictures of a segment; the last only of a complete one. Rejects with the error of the system. */
  picturesAt(end: 'start' | 'end', path: string, count: number): Promise<FileEnd | undefined> {
    return end === 'start' ? firstPictures(this.#store, path, count) : lastPictures(this.#store, path, count);
  }

  #historyOf(cameraId: string): CameraHistory {
    const history = this.#histories.get(cameraId) ?? newHistory();
    this.#histories.set(cameraId, history);
    return history;
  }

  #open(
    options: CameraArchiveOptions,
    history: CameraHistory,
    owner: CameraArchiveOwner,
    callbacks: CameraArchiveCallbacks,
  ): CameraArchive {
    const { clock, log, syncIntervalMs, memory, epochOf } = this.#options;
    const [store, catalogue, metrics] = [this.#store, this.catalogue, this.#metrics];
    const shared = { store, clock, log, catalogue, metrics, syncIntervalMs, memory, epochOf };
    const deps = { ...shared, history, owner, unsynced: this.#unsynced };
    return new CameraArchive(options, deps, callbacks);
  }

  *#writing(): Generator<CameraArchive> {
    yield* this.#cameras.values();
    yield* this.#ending;
    yield* this.#filling;
  }

  /** Segments that overlap the interval, and all days with footage of the camera. Throws ArchiveError. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing> {
    return this.catalogue.list(cameraId, query, () => this.inProgress(cameraId));
  }

  /** Files of a camera, absolute, from the newest on, as of the last look at the directories; also those that are open. */
  async newestFiles(cameraId: string, count: number): Promise<readonly string[]> {
    const files: Promise<string>[] = [];
    for (const segment of this.catalogue.newestFirst(cameraId)) {
      if (files.length === count) break;
      files.push(this.#store.locate(formatPath(segment)));
    }
    return Promise.all(files);
  }

  /** When the closed segments that overlap the interval were recorded, as their files say. Throws ArchiveError. */
  async recorded(cameraId: string, fromMs: number, toMs: number): Promise<Interval[]> {
    const { segments } = await this.list(cameraId, { fromMs, toMs });
    return segments.flatMap(({ startMs, endMs }) =>
      endMs === undefined ? [] : [{ fromMs: startMs, toMs: Math.round(endMs) }],
    );
  }

  /**
   * Segments that are being written or completed, and one that is complete and shown until the next one has a picture.
   */
  inProgress(cameraId: string): OpenSegment[] {
    const complete = this.#cameras.get(cameraId)?.standIn();
    return complete ? [...this.openEntries(cameraId), complete] : this.openEntries(cameraId);
  }

  /** Segments that are being written or completed: of one camera, or of all. */
  openEntries(cameraId?: string): OpenSegment[] {
    const writing = [...this.#writing()];
    const wanted = cameraId === undefined ? writing : writing.filter((camera) => camera.cameraId === cameraId);
    return wanted.flatMap((camera) => camera.openEntries());
  }

  /** Whether footage waits for the disk: work that can wait gives way. */
  get isBehind(): boolean {
    return [...this.#writing()].some(({ waiting }) => waiting > USUALLY_WAITING);
  }

  #unfinishedPaths(withRecovery = true): ReadonlySet<string> {
    const paths = new Set(withRecovery ? this.#inRecovery : []);
    for (const camera of this.#writing()) for (const path of camera.unfinishedPaths()) paths.add(path);
    return paths;
  }

  #openBytes(): Map<string, number> {
    const bytes = new Map<string, number>();
    for (const camera of this.#writing()) {
      for (const { sizeBytes } of camera.openEntries()) {
        bytes.set(camera.cameraId, (bytes.get(camera.cameraId) ?? 0) + sizeBytes);
      }
    }
    return bytes;
  }

  /** The recording in progress; undefined when there is none that can be played. */
  async current(cameraId: string): Promise<OpenSegment | undefined> {
    return this.#cameras.get(cameraId)?.current();
  }

  /** What kept recording from creating and writing a file, when that was checked last. */
  get unwritable(): DiskFault | undefined {
    return this.#unwritable;
  }

  /**
   * Whether recording could create and write a file now, and could lately, for most cameras. What keeps a probe from that is logged when it
   * changes; recordings log their own faults.
   */
  async checkWritable(): Promise<boolean> {
    const { log } = this.#options;
    const fault = await this.#store.probe().then(
      () => undefined,
      (err: unknown) => diskFault(err),
    );
    if (fault?.code !== this.#unwritable?.code) {
      const path = this.#store.root;
      if (fault) log.warn({ path, code: fault.code, reason: fault.message }, 'recordings directory is not writable');
      else log.info({ path }, 'recordings directory is writable again');
    }
    this.#unwritable = fault;
    const { cameras, troubles } = this.#writes();
    return fault === undefined && (cameras === 0 || troubles.length < cameras / 2);
  }

  /** Ends every recording and completes its files. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#writing(), (camera) => camera.close()));
    for (const watch of this.#watches.values()) await watch.settled();
    await this.#drain.close();
    await this.#stateCopies.settled();
    await this.#retention?.close();
    await this.#reader?.close();
    for (const identity of this.#identities.values()) await identity.release();
  }
}
