// The recorder's use of a Postgres database: writes rows of closed segments, reads cameras, and lists recordings. Everything
// keeps working while the database is unreachable, and catches up afterwards.

import type { Registry } from 'prom-client';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { namesOf, type AskedRemovals } from '../config/changes.ts';
import type { CameraDefaults } from '../config/schema.ts';
import type { Log } from '../../base/log.ts';
import { messageOf, quietly } from '../../base/error.ts';
import type { Warning } from '../../base/reason.ts';
import { ArchiveError } from '../archive/disk/faults.ts';
import { nodeFileSystem, type FileSystem } from '../archive/disk/file-system.ts';
import type { Catalogue } from '../archive/catalogue/catalogue.ts';
import type { ListQuery, SegmentListing } from '../archive/catalogue/listing.ts';
import { formatPath, type SegmentName } from '../archive/disk/names.ts';
import type { SegmentObserver } from '../archive/catalogue/observer.ts';
import type { ClosedSegment, OpenSegment } from '../archive/catalogue/segment.ts';
import type { CameraList } from '../config/camera-list.ts';
import type { CameraRow } from './camera-rows.ts';
import { CameraTable } from './camera-table.ts';
import { Connection } from './connection.ts';
import { unlessLogged } from './driver-error.ts';
import { DatabaseError } from './error.ts';
import { listFromTable } from './listing.ts';
import { DatabaseMetrics } from './metrics.ts';
import { migrate } from './migrations.ts';
import { reconcile, type ReconcileDeps } from './reconcile.ts';
import { rowOf } from './row.ts';
import { RowQueue } from './row-queue.ts';
import { PostgresRows, type RowTable } from './row-table.ts';
import { writeRest, writeRows, type RowWriterDeps } from './row-writer.ts';

interface DatabaseOptions {
  readonly url: string;
  readonly nodeName: string;
  /** Directory of the row queue and the copy of the cameras. */
  readonly workDir: string;
  readonly defaults: () => CameraDefaults;
  /** Listings show the rows of all nodes. */
  readonly listAllNodes: boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry: Registry;
  readonly fs?: FileSystem;
  readonly camerasChanged: (list: CameraList) => void;
}

/** How long a start waits for the database before it continues without. */
const START_WAIT_MS = 3_000;
/** How long a stop waits for the last rows; the rest is written after the next start. */
const STOP_WAIT_MS = 2_000;
/** How long a listing waits for the first comparison of rows and files, before which rows may be missing. */
const COMPARE_WAIT_MS = 5_000;
/** Checks within this time share one result. */
const CHECK_CACHE_MS = 1_000;
/** A listing that takes this long makes us ask whether the database answers, and the answer may take as long. */
const PATIENCE_MS = 750;
const PUSHED_AT_ONCE = 500;
const RETRY = { firstMs: 1_000, maxMs: 15_000 };

/** The part of the archive that is used. */
interface ArchiveView {
  readonly catalogue: Catalogue;
  /** Segments that are being written or completed: of one camera, or of all. */
  openEntries(cameraId?: string): readonly OpenSegment[];
  /** The same with what is complete and not listed yet. */
  inProgress(cameraId: string): OpenSegment[];
}

export class RecorderDatabase implements SegmentObserver {
  readonly #options: DatabaseOptions;
  readonly #connection: Connection;
  readonly #queue: RowQueue;
  readonly #table: CameraTable;
  readonly #rows: RowTable;
  readonly #metrics: DatabaseMetrics;
  readonly #stop = new AbortController();
  #migrated: Promise<void> | undefined;
  #usable = false;
  #isForeign = false;
  /** Why its tables could not be made or checked. */
  #problem = '';
  /** Why rows cannot be written, although it may answer: a standby, for example, takes none. */
  #rowsProblem = '';
  /** Whose segments the table lists; undefined before `start`. */
  #archive: ArchiveView | undefined;
  #following: Promise<unknown> | undefined;
  #checked: { readonly atMs: number; readonly result: Promise<boolean> } | undefined;
  #compared = false;
  #tellCompared = (): void => {};
  readonly #firstComparison = new Promise<void>((resolve) => {
    this.#tellCompared = resolve;
  });

  constructor(options: DatabaseOptions) {
    const { url, nodeName, clock, log, workDir, defaults, registry } = options;
    this.#options = options;
    this.#connection = new Connection({ url, nodeName, log });
    this.#rows = new PostgresRows(this.#connection);
    const fs = options.fs ?? nodeFileSystem;
    this.#queue = new RowQueue({ directory: `${workDir}/database/rows`, fs, clock, log });
    this.#table = new CameraTable({
      url,
      connection: this.#connection,
      nodeName,
      copyFile: `${workDir}/database/cameras.json`,
      isForeign: () => this.#isForeign,
      defaults,
      clock,
      log,
      changed: (list) => options.camerasChanged(list),
    });
    this.#metrics = new DatabaseMetrics(registry, {
      reachable: () => this.#usable && this.#connection.reachable === true,
      waiting: () => this.#queue.length,
      cameras: () => {
        const { cameras, refused } = this.#table.list;
        return { used: cameras.length, refused: refused.length };
      },
    });
  }

  /**
   * Migrates the tables and reads the cameras, or uses their copy if the database is unreachable. Rejects only if a newer
   * recorder has changed the tables.
   */
  async open(): Promise<void> {
    const { clock } = this.#options;
    await this.#queue.open();
    const first = this.#migrateOnce();
    const answer = await Promise.race([
      first
        .then(() => this.#table.read())
        .then(
          () => 'read' as const,
          (err: unknown) => err,
        ),
      clock.sleep(START_WAIT_MS).then(() => 'late' as const),
    ]);
    if (answer instanceof DatabaseError && answer.code === 'SCHEMA_TOO_NEW') throw answer;
    if (answer !== 'read') await this.#table.useCopy();
    // The first attempt has failed: the next one logs why.
    this.#migrated = first.catch(() => this.#migrateAgain());
  }

  /** Applies changed defaults to the cameras, and what somebody asked to remove. */
  reconfigure(asked: AskedRemovals): void {
    this.#table.retake(asked);
  }

  /** Starts to write rows and to follow the cameras. Call it once the archive has recovered. */
  start(archive: ArchiveView): void {
    this.#archive = archive;
    const { signal } = this.#stop;
    this.#following = this.#follow(archive, signal).catch((err: unknown) => {
      this.#options.log.bug({ err }, 'the connection to the database has stopped because of an internal error');
    });
  }

  closed(segment: ClosedSegment): void {
    this.#queue.push({ kind: 'add', row: rowOf(segment) });
  }

  removed(segment: SegmentName): void {
    this.#queue.push({ kind: 'remove', filename: formatPath(segment), cameraId: segment.cameraId });
  }

  /** The cameras of the database as of the last read. */
  get cameras(): CameraList {
    return this.#table.list;
  }

  /** The table `cameras` of a cluster. */
  get rows(): RowTable {
    return this.#rows;
  }

  /** Starts or stops a camera of the table; resolves to whether that changed anything. Throws DatabaseError. */
  async setCameraEnabled(cameraId: string, enabled: boolean): Promise<boolean> {
    if (!this.#usable) throw notReached();
    return this.#table.setEnabled(cameraId, enabled);
  }

  /** A row of the table `cameras`, as of the last read. */
  cameraRow(cameraId: string): CameraRow | undefined {
    return this.#table.row(cameraId);
  }

  /** Like `CameraTable.edit`. Throws DatabaseError. */
  async editCamera(
    cameraId: string,
    change: (row: CameraRow | undefined) => CameraRow | null | undefined,
  ): Promise<{ readonly changed: boolean }> {
    if (!this.#usable) throw notReached();
    return this.#table.edit(cameraId, change);
  }

  /** For the readiness check: whether the database can be used now. */
  check(): Promise<{ configured: boolean; reachable: boolean }> {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    if (!this.#checked || nowMs - this.#checked.atMs >= CHECK_CACHE_MS) {
      const reachable = this.#connection.probe();
      this.#checked = { atMs: nowMs, result: reachable.then((reachable) => reachable && this.#usable) };
    }
    return this.#checked.result.then((reachable) => ({ configured: true, reachable }));
  }

  /** Warnings for people, as of the last statement. */
  warnings(): Warning[] {
    const { lost } = this.#table;
    const refused = `the table cameras no longer has ${namesOf(lost)}, which are recorded as before: send SIGHUP to the recorder if they are to be removed`;
    const refusals: Warning[] =
      lost.length > 0 ? [{ code: 'configuration-refused', message: refused, cameraId: undefined }] : [];
    const problem = this.#usable ? this.#table.problem || this.#rowsProblem : this.#problem;
    const isAway = this.#connection.reachable === false;
    if (!isAway && problem === '') return refusals;
    const why = isAway ? '' : ` (${problem})`;
    const message = `the database at ${this.#connection.location} cannot be used${why}: recording continues, and the rows are written later`;
    const code = isAway ? 'database-unreachable' : 'database-unusable';
    return [...refusals, { code, message, cameraId: undefined }];
  }

  /** Like `Archive.list`, but closed segments come from the table. Throws DatabaseError. */
  async list(cameraId: string, query: ListQuery): Promise<SegmentListing> {
    const archive = this.#archive;
    if (!this.#usable || !archive)
      throw new DatabaseError('UNAVAILABLE', 'the database has not been reached since the start');
    if (!this.#compared && this.#connection.reachable === true) {
      await Promise.race([this.#firstComparison, this.#options.clock.sleep(COMPARE_WAIT_MS)]);
      if (!this.#compared) {
        throw new DatabaseError(
          'UNAVAILABLE',
          'rows for recordings on the disk are still being written to the database',
        );
      }
    }
    const deps = {
      connection: this.#connection,
      ownName: this.#options.nodeName,
      nodeName: this.#options.listAllNodes ? undefined : this.#options.nodeName,
      pending: () => this.#queue.pending(),
      open: (cameraId: string) => archive.inProgress(cameraId),
      clock: this.#options.clock,
    };
    return this.#unlessHung(listFromTable(deps, cameraId, query));
  }

  /** A statement may take long, but not while the database answers nothing: a caller has that told soon. */
  async #unlessHung<T>(work: Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const done = work.then(
      () => true,
      () => true,
    );
    const answers = async (): Promise<boolean> => {
      await clock.sleep(PATIENCE_MS);
      return Promise.race([this.#connection.probe(), clock.sleep(PATIENCE_MS).then(() => false)]);
    };
    if (await Promise.race([done, answers()])) return work;
    throw new DatabaseError('UNAVAILABLE', 'it does not answer');
  }

  /** Writes what can be written quickly and keeps the rest for the next start. Call it after the archive was closed. */
  async close(): Promise<void> {
    const { clock, log } = this.#options;
    this.#stop.abort();
    await Promise.race([this.#following, clock.sleep(STOP_WAIT_MS)]);
    await this.#queue.settled();
    if (this.#usable && this.#connection.reachable === true) {
      const rest = writeRest(this.#writerDeps()).catch(unlessLogged(log));
      await Promise.race([rest, clock.sleep(STOP_WAIT_MS)]);
    }
    await this.#queue.close();
    const waiting = this.#queue.length;
    if (waiting > 0)
      log.info({ rows: waiting }, 'database rows that were not written yet are written after the next start');
    await Promise.race([quietly(this.#connection.close()), clock.sleep(STOP_WAIT_MS)]);
  }

  #writerDeps(): RowWriterDeps {
    const { nodeName, clock, log } = this.#options;
    const told = (problem: string): void => void (this.#rowsProblem = problem);
    return { connection: this.#connection, queue: this.#queue, nodeName, clock, log, metrics: this.#metrics, told };
  }

  async #migrateOnce(): Promise<void> {
    const { from, to, isForeign } = await migrate(this.#connection);
    this.#usable = true;
    this.#isForeign = isForeign;
    const database = this.#connection.location;
    if (from !== to) this.#options.log.info({ database, from, to }, 'the database tables were migrated');
  }

  /** Repeats until it works. Tables that are too new do not stop a recording: they may be downgraded again. */
  async #migrateAgain(): Promise<void> {
    const { clock, log } = this.#options;
    const backoff = new Backoff(RETRY);
    while (!this.#stop.signal.aborted && !this.#usable) {
      await clock.sleep(backoff.next(), this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      await this.#migrateOnce().catch((err: unknown) => {
        if (!(err instanceof DatabaseError)) throw err;
        const reason = messageOf(err);
        if (reason !== this.#problem) log.warn({ reason }, 'the database cannot be used yet');
        this.#problem = reason;
      });
    }
  }

  async #follow(archive: ArchiveView, signal: AbortSignal): Promise<void> {
    await Promise.race([this.#migrated, aborted(signal)]);
    if (signal.aborted) return;
    await Promise.all([
      writeRows(this.#writerDeps(), signal),
      this.#table.follow(signal),
      this.#reconcile(archive, signal),
    ]);
  }

  /** Compares rows and files once, to repair what a crash left. */
  async #reconcile(archive: ArchiveView, signal: AbortSignal): Promise<void> {
    const { clock, log, nodeName } = this.#options;
    const backoff = new Backoff(RETRY);
    let applied = 0;
    const deps: ReconcileDeps = {
      connection: this.#connection,
      nodeName,
      catalogue: archive.catalogue,
      open: () => new Set(archive.openEntries().map((entry) => entry.path)),
      apply: async (change) => {
        this.#queue.push(change);
        // With a new database and an old archive these are hundreds of thousands; do not exceed the speed of the disk.
        if (++applied % PUSHED_AT_ONCE === 0) await this.#queue.settled();
      },
    };
    while (!signal.aborted) {
      try {
        // A row is missing if it is neither in the table nor among the rows that wait to be written.
        await this.#queueEmpty(signal);
        const report = await reconcile(deps, signal);
        const { kept, ...numbers } = report;
        if (kept > 0) {
          const hint = 'is the right disk mounted? If so, run the recorder with --reindex';
          log.error({ ...report, hint }, 'most recordings in the database are not on the disk: their rows are kept');
        } else log.info(numbers, 'the database rows were compared with the files');
        // Missing rows are in the queue now, where a listing sees them.
        this.#setCompared();
        return;
      } catch (err) {
        // Rows can be listed even if the disk cannot be read.
        if (err instanceof ArchiveError) this.#setCompared();
        const reason = messageOf(err);
        log.debug({ reason }, 'the database rows could not be compared with the files yet');
        await clock.sleep(backoff.next(), signal);
      }
    }
  }

  #setCompared(): void {
    this.#compared = true;
    this.#tellCompared();
  }

  async #queueEmpty(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#queue.length > 0) await this.#options.clock.sleep(200, signal);
  }
}

const notReached = (): DatabaseError => new DatabaseError('UNAVAILABLE', 'it has not been reached since the start');

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
