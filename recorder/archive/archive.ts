// The archive of one node: samples in by camera, files under the record path, lists out. Composes what the other files
// of this room do; cameras share nothing here but the index.

import { Registry } from 'prom-client';
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import {
  CameraArchive,
  type CameraArchiveCallbacks,
  type CameraArchiveOptions,
  type CameraArchiveOwner,
} from './camera-archive.ts';
import { ThreadedDetailsReader, type DetailsReader } from './details-reader.ts';
import { ArchiveError, diskFault, type DiskFaultCode } from './faults.ts';
import { nodeFileSystem, type FileSystem } from './file-system.ts';
import { newHistory, type CameraHistory } from './history.ts';
import { ArchiveIndex, type ListQuery, type OpenEntry, type SegmentListing } from './index.ts';
import type { Inventory } from './inventory.ts';
import { ArchiveMetrics } from './metrics.ts';
import { isCameraId } from './names.ts';
import type { SegmentObserver } from './observer.ts';
import { recoverArchive, type RecoveryReport } from './recovery.ts';
import { SegmentStore } from './segment-store.ts';

export interface ArchiveOptions {
  /** The record path, absolute. */
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  /** A power cut loses at most this much. */
  readonly syncIntervalMs: number;
  readonly registry?: Registry;
  readonly fs?: FileSystem;
  /** Keeps a list of closed segments elsewhere. */
  readonly observer?: SegmentObserver;
}

/** One camera's place in the archive, for those who know the archive only. */
export type CameraRecording = CameraArchive;

export class Archive {
  readonly #o: ArchiveOptions;
  readonly #store: SegmentStore;
  readonly #reader: DetailsReader | undefined;
  readonly #index: ArchiveIndex;
  readonly #metrics: ArchiveMetrics;
  #histories = new Map<string, CameraHistory>();
  readonly #cameras = new Map<string, CameraArchive>();
  #unwritable: DiskFaultCode | undefined;
  /** Cameras whose last files are being completed: one that comes back does not wait for that, but `close` does. */
  readonly #ending = new Set<CameraArchive>();
  readonly #owner: CameraArchiveOwner = {
    closing: (camera) => {
      this.#cameras.delete(camera.cameraId);
      this.#ending.add(camera);
    },
    closed: (camera) => this.#ending.delete(camera),
  };

  constructor(options: ArchiveOptions) {
    this.#o = options;
    const root = options.root.replace(/(?<=.)\/+$/, '');
    this.#store = new SegmentStore(root, options.fs ?? nodeFileSystem);
    // Another file system than that of the machine is no thread's to read.
    this.#reader = options.fs ? undefined : new ThreadedDetailsReader();
    this.#index = new ArchiveIndex(this.#store, options.clock, this.#reader, options.observer);
    this.#metrics = new ArchiveMetrics(options.registry ?? new Registry());
  }

  /**
   * Makes the record path and repairs what a crash left. Call it once, before any `sinkFor`. It throws when the record
   * path cannot be made or written to; old footage that cannot be read is logged, and does not keep new from being made.
   */
  async recover(): Promise<RecoveryReport> {
    const { log } = this.#o;
    await this.#store.prepare();
    await this.#index.load().catch((err: unknown) => {
      if (!(err instanceof ArchiveError)) throw err;
      log.error({ err, path: this.#store.root }, 'parts of the archive cannot be read');
    });
    const report = await recoverArchive({
      store: this.#store,
      index: this.#index,
      metrics: this.#metrics,
      log,
    });
    this.#histories = report.histories;
    return report;
  }

  /** A camera's place in the archive. At most one at a time for a camera; its `close` makes room for the next. */
  sinkFor(options: CameraArchiveOptions, callbacks: CameraArchiveCallbacks): CameraArchive {
    const { cameraId } = options;
    assert(isCameraId(cameraId), 'camera id is not in the alphabet of file names');
    assert(!this.#cameras.has(cameraId), 'two recordings of one camera');
    const history = this.#histories.get(cameraId) ?? newHistory();
    this.#histories.set(cameraId, history);
    const { clock, log, syncIntervalMs } = this.#o;
    const camera = new CameraArchive(
      options,
      {
        store: this.#store,
        clock,
        log,
        index: this.#index,
        metrics: this.#metrics,
        history,
        owner: this.#owner,
        syncIntervalMs,
      },
      callbacks,
    );
    this.#cameras.set(cameraId, camera);
    return camera;
  }

  /** Segments that overlap the interval, and all days with footage of the camera. Throws ArchiveError. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing> {
    return this.#index.list(cameraId, query, () => this.openEntries(cameraId));
  }

  /** Segments that are being written or completed: of one camera, or of all. */
  openEntries(cameraId?: string): OpenEntry[] {
    const writing = [...this.#cameras.values(), ...this.#ending];
    const wanted = cameraId === undefined ? writing : writing.filter((camera) => camera.cameraId === cameraId);
    return wanted.flatMap((camera) => camera.openEntries());
  }

  /** The files themselves, to compare them with a list kept elsewhere. */
  get inventory(): Inventory {
    return this.#index.inventory;
  }

  /** The recording in progress; undefined when there is none that can be played. */
  async current(cameraId: string): Promise<OpenEntry | undefined> {
    return this.#cameras.get(cameraId)?.current();
  }

  /** Whether recording could create and write a file now. What keeps it from that is logged when it changes. */
  async checkWritable(): Promise<boolean> {
    const { log } = this.#o;
    const fault = await this.#store.probe().then(
      () => undefined,
      (err: unknown) => diskFault(err),
    );
    if (fault?.code !== this.#unwritable) {
      const path = this.#store.root;
      if (fault) log.warn({ path, code: fault.code, reason: fault.message }, 'recordings directory is not writable');
      else log.info({ path }, 'recordings directory is writable again');
    }
    this.#unwritable = fault?.code;
    return fault === undefined;
  }

  /** Ends every recording and completes its files. */
  async close(): Promise<void> {
    await Promise.all([...this.#cameras.values(), ...this.#ending].map((camera) => camera.close()));
    await this.#reader?.close();
  }
}
