// A recorder on a virtual clock and a site of scripted cameras on real sockets, for days in minutes: time goes on when
// everything that was sent has been taken.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import { GapLedger } from '../../recorder/archive/gaps/ledger.ts';
import type { GapReport } from '../../recorder/contract/gap-report.ts';
import { allOf, type SegmentObserver } from '../../recorder/archive/catalogue/observer.ts';
import { CameraSet, type WantedCamera } from '../../recorder/cameras/camera-set.ts';
import { ReadPacer } from '../../recorder/camera/read-pacer.ts';
import { SlabPool } from '../../recorder/codec/slab.ts';
import type { Connection, Run } from '../../recorder/database/connection.ts';
import { DatabaseError } from '../../recorder/database/error.ts';
import { DatabaseMetrics } from '../../recorder/database/metrics.ts';
import { rowOf } from '../../recorder/database/row.ts';
import { RowQueue } from '../../recorder/database/row-queue.ts';
import { writeRest, writeRows } from '../../recorder/database/row-writer.ts';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import { openFootage } from '../../recorder/footage/open.ts';
import { Authenticator } from '../../recorder/http/auth.ts';
import { exportWindow } from '../../recorder/jobs/export.ts';
import type { LiveFeed } from '../../recorder/contract/live-feed.ts';
import type { LiveHub } from '../../recorder/live/hub.ts';
import { LiveLimits } from '../../recorder/live/limits.ts';
import { SourceLimits } from '../../recorder/live/source-limits.ts';
import { hubOf } from '../../recorder/live/test-support.ts';
import { buildPlayback } from '../../recorder/playback/app.ts';
import { SoakDisk } from './disk.ts';
import type { SiteCamera } from './site-camera.ts';
import { anywhere } from '../../recorder/reach/reach.ts';

/** Turns of the event loop in which sockets of this process deliver what was sent. */
const TURNS = 2;
/** Dialogues take turns, too; a camera that does not answer must not stop the clock. */
const MAX_TALKING_TURNS = 12;

interface SiteOptions {
  readonly directory: string;
  readonly cameras: readonly SiteCamera[];
  readonly stepMs: number;
  /** All footage together. */
  readonly maxSizeBytes: number;
  readonly startMs: number;
}

/** Rows of recordings, and a Postgres that comes and goes. */
class Table implements SegmentObserver {
  readonly rows: Set<string>;
  isAway = false;
  readonly #queue: RowQueue;
  readonly #stop = new AbortController();
  readonly #writing: Promise<void>;
  readonly #deps: Parameters<typeof writeRest>[0];

  constructor(rows: Set<string>, directory: string, clock: VirtualClock, disk: SoakDisk) {
    this.rows = rows;
    this.#queue = new RowQueue({ directory, fs: disk, clock, log: silentLog });
    const connection = {
      transaction: async (work: (run: Run) => Promise<void>) => {
        if (this.isAway) throw new DatabaseError('UNAVAILABLE', 'away');
        await work(async (sql, [, ...values] = []) => {
          if (sql.startsWith('DELETE')) for (const name of values[0] as string[]) this.rows.delete(name);
          else for (const name of values[1] as string[]) this.rows.add(name);
          return [];
        });
      },
    } as unknown as Connection;
    const metrics = new DatabaseMetrics(new Registry(), {
      reachable: () => !this.isAway,
      waiting: () => this.#queue.length,
      cameras: () => ({ used: 0, refused: 0 }),
    });
    this.#deps = { queue: this.#queue, connection, nodeName: 'n', clock, log: silentLog, metrics };
    this.#writing = this.#queue.open().then(() => writeRows(this.#deps, this.#stop.signal));
  }

  closed: SegmentObserver['closed'] = (segment) => this.#queue.push({ kind: 'add', row: rowOf(segment) });
  removed: SegmentObserver['removed'] = (segment) =>
    this.#queue.push({ kind: 'remove', filename: formatPath(segment), cameraId: segment.cameraId });

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#writing;
    this.isAway = false;
    // What waits on the disk only is read when what is in memory was applied.
    for (; this.#queue.length > 0; await this.#queue.settled()) await writeRest(this.#deps);
    await this.#queue.close();
  }
}

/** What a recorder is made of. */
interface SoakRecorder {
  readonly table: Table;
  readonly gaps: GapLedger;
  readonly archive: Archive;
  readonly cameras: CameraSet;
  /** Undefined for a camera that is not recorded. */
  readonly viewersOf: (cameraId: string) => LiveHub | undefined;
  readonly playback: Awaited<ReturnType<typeof buildPlayback>>;
  readonly pool: SlabPool;
}

export class Site {
  readonly clock: VirtualClock;
  readonly disk = new SoakDisk();
  readonly cameras: readonly SiteCamera[];
  readonly root: string;
  readonly #o: SiteOptions;
  /** A database outlives recorders. */
  readonly #rows = new Set<string>();
  #recorder: SoakRecorder | undefined;
  #segmentDurationMs = 300_000;

  constructor(options: SiteOptions) {
    this.#o = options;
    this.root = join(options.directory, 'recordings');
    this.clock = new VirtualClock(options.startMs);
    this.cameras = options.cameras;
  }

  get recorder(): SoakRecorder {
    if (!this.#recorder) throw new Error('the recorder does not run');
    return this.#recorder;
  }

  async open(): Promise<void> {
    this.#recorder = await this.#open();
    await this.apply();
  }

  async close(): Promise<void> {
    const { cameras, archive, gaps, table, playback } = this.recorder;
    await this.untilDone(
      (async () => {
        await cameras.close();
        await playback.close();
        await archive.close();
        await gaps.close();
        await table.close();
      })(),
    );
    this.#recorder = undefined;
  }

  /** Waits for something that takes virtual time. */
  async untilDone<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const settled = work.finally(() => (state.isDone = true));
    settled.catch(() => {});
    for (let turn = 0; !state.isDone; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (turn > 50) this.clock.advance(10);
    }
    return settled;
  }

  /** All cameras of the site, but those that are left out, recorded with files of `segmentDurationMs`. */
  async apply(leftOut: readonly string[] = [], segmentDurationMs = this.#segmentDurationMs): Promise<void> {
    this.#segmentDurationMs = segmentDurationMs;
    const wanted = this.cameras.filter(({ id }) => !leftOut.includes(id)).map((camera) => this.#wanted(camera));
    await this.untilDone(this.recorder.cameras.apply(wanted));
  }

  /** So much time goes by; `each` is called at each step. */
  async pass(ms: number, each: () => void = () => {}): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += this.#o.stepMs) {
      this.clock.advance(this.#o.stepMs);
      for (const camera of this.cameras) camera.send();
      each();
      for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
      for (let turn = 0; turn < MAX_TALKING_TURNS && this.cameras.some(({ isTalking }) => isTalking); turn++) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      this.recorder.cameras.tick();
      this.recorder.archive.tick();
    }
  }

  async report(cameraId: string, fromMs: number, toMs: number): Promise<GapReport> {
    const { gaps, archive } = this.recorder;
    return gaps.report(cameraId, fromMs, toMs, await archive.recorded(cameraId, fromMs, toMs));
  }

  /** Milliseconds of a movie of the window, which is removed at once. */
  async export(cameraId: string, fromMs: number, toMs: number): Promise<number> {
    const path = join(this.#o.directory, 'export.mp4');
    const { archive } = this.recorder;
    const deps = { recordPath: this.root, archive, wallMs: () => this.clock.wallMs(), version: '1' };
    const made = exportWindow(
      { cameraId, fromMs, toMs },
      path,
      { ...deps, spareBytes: async () => Infinity },
      new AbortController().signal,
    );
    const { outcome } = await this.untilDone(made);
    rmSync(path);
    return outcome.durationMs;
  }

  async #open(): Promise<SoakRecorder> {
    const { clock, disk, root } = this;
    const { directory, maxSizeBytes } = this.#o;
    const table = new Table(this.#rows, join(directory, 'rows'), clock, disk);
    const registry = new Registry();
    const gaps: GapLedger = new GapLedger({ root, clock, log: silentLog, bootId: 'boot', fs: disk, registry });
    const archive = new Archive({
      root,
      clock,
      log: silentLog,
      fs: disk,
      syncIntervalMs: 5_000,
      registry,
      observer: allOf([gaps, table]),
      limits: () => ({
        node: { maxAgeMs: undefined, maxSizeBytes, minFree: undefined },
        cameras: new Map(),
      }),
    });
    await this.untilDone(gaps.load());
    await this.untilDone(archive.recover());
    const pool = new SlabPool();
    const liveLimits = new LiveLimits();
    const cameras = new CameraSet({
      clock,
      log: silentLog,
      archive,
      gaps,
      pool,
      pacer: new ReadPacer({ rest: () => {} }),
      reach: anywhere(),
      receiveBuffer: Buffer.allocUnsafeSlow(64 * 1024),
      liveLimits: new SourceLimits(),
    });
    const hubs = new WeakMap<LiveFeed, LiveHub>();
    const viewersOf = (cameraId: string): LiveHub | undefined => {
      const feed = cameras.feed(cameraId, 'main');
      const hub = feed && (hubs.get(feed) ?? hubOf(feed, liveLimits, clock));
      if (feed && hub) hubs.set(feed, hub);
      return hub;
    };
    const auth = new Authenticator({ mode: 'none', tokens: [] }, { clock });
    const footage = openFootage({ recordPath: root, archive, clock, log: silentLog });
    const playback = await buildPlayback({ version: '1', footage, auth, clock, log: silentLog });
    return { table, gaps, archive, cameras, viewersOf, playback, pool };
  }

  #wanted({ id, url }: SiteCamera): WantedCamera {
    return {
      id,
      name: id,
      source: url,
      transport: 'tcp',
      maxBitrate: 1e8,
      tls: { verify: false },
      allowPlaintextLogin: false,
      preview: undefined,
      edge: undefined,
      snapshot: undefined,
      onvif: undefined,
      events: 'auto',
      activity: false,
      ptz: false,
      enabled: true,
      record: {
        format: 'fmp4',
        segmentDurationMs: this.#segmentDurationMs,
        retention: { maxAgeMs: undefined, maxSizeBytes: undefined, minFree: undefined },
      },
    };
  }
}
