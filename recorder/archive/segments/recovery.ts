// Completes the files that a crash left open. Every step leaves a state that the next start finds again, so recovery itself may be
// killed at any point.

import { assertNever } from '../../../base/assert.ts';
import { concurrently } from '../../../base/concurrently.ts';
import { errorCode } from '../../../base/error.ts';
import type { Log } from '../../../base/log.ts';
import { originOf, type RecordedMeta } from '../../mp4/meta.ts';
import { recover } from '../../mp4/recover.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import { closedSegment, describeSegment, recordedDetails, type DescribedFile } from '../catalogue/segment.ts';
import type { FileFacts, OpenFile } from '../disk/file-system.ts';
import { formatPath, parsePath, type SegmentName } from '../disk/names.ts';
import { copy, type SegmentStore } from '../disk/segment-store.ts';
import { newHistory, unmarkDone, type CameraHistory } from './history.ts';
import type { ArchiveMetrics } from './metrics.ts';

/** What became of a file. `foreign`: not a recording of ours, or too damaged to repair; it is left as it is. */
type Repair =
  | { readonly kind: 'finalized'; readonly meta: RecordedMeta; readonly facts: FileFacts }
  | { readonly kind: 'recovered'; readonly meta: RecordedMeta; readonly facts: FileFacts; readonly cutBytes: number }
  | { readonly kind: 'removed' }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'missing' };

/** A file of which nothing can be read is removed only if it cannot contain more than a first, torn fragment. */
const MAX_EMPTY_BYTES = 16 * 1024 * 1024;
/** Parameter sets take some hundred bytes of a header; those of all cameras are far below this. */
const MAX_HEADER_BYTES = 64 * 1024;
/** The bytes that declare a file finished are among these. */
const HEAD_BYTES = 4096;
/** Length of fragments that end before key frames; others are up to twice as long. */
const SHORTEST_FRAGMENT_MS = 450;
/** A busy disk may take half a minute for a sync, while writing continues. */
const LATE_SYNC_FRAGMENTS = 64;
/** A camera's newest files are checked until this many in a row need no repair. */
const IN_ORDER_IN_A_ROW = 3;
const CONCURRENT_CAMERAS = 4;

interface RepairOptions {
  /** The file has a marker: this program began it, whatever its contents are now. */
  readonly isOurs?: boolean;
  readonly syncIntervalMs?: number;
  /** What follows this position is in another file. */
  readonly cutAt?: number | undefined;
  /** A sync failed, and none has covered what follows this position. Undefined: it is not known that one failed. */
  readonly syncedBytes?: number;
}

/** Cuts a file after its last whole fragment and completes it; does not change a finished or foreign file. */
export async function repairFile(store: SegmentStore, path: string, options: RepairOptions = {}): Promise<Repair> {
  let file: OpenFile;
  try {
    file = await store.fs.open(await store.locate(path), 'read-write');
  } catch (err) {
    if (errorCode(err) === 'ENOENT') return { kind: 'missing' };
    throw err;
  }
  try {
    return await repairOpenFile(store, path, file, options);
  } finally {
    await file.close();
  }
}

async function repairOpenFile(
  store: SegmentStore,
  path: string,
  file: OpenFile,
  { isOurs = false, syncIntervalMs = 0, cutAt = Infinity, syncedBytes }: RepairOptions,
): Promise<Repair> {
  if (cutAt === 0) {
    await store.discard(path);
    return { kind: 'removed' };
  }
  if (cutAt < Infinity && (await file.facts()).sizeBytes > cutAt) await file.truncate(cutAt);
  const before = await file.facts();
  const { sizeBytes } = before;
  const unsyncedFragments = LATE_SYNC_FRAGMENTS + Math.ceil(syncIntervalMs / SHORTEST_FRAGMENT_MS);
  const found = await recover((offset, length) => file.read(offset, length), sizeBytes, { unsyncedFragments });
  switch (found.kind) {
    case 'finalized':
      if (syncedBytes !== undefined) {
        await writeAgain(file, 0, Math.min(HEAD_BYTES, sizeBytes));
        await writeAgain(file, syncedBytes, sizeBytes);
        await file.sync();
      }
      return { ...found, facts: before };
    case 'foreign':
      if (!isOurs || !(await isSpoiltHeader(file, sizeBytes))) return found;
      await store.discard(path);
      return { kind: 'removed' };
    case 'empty':
      if (found.unreadBytes > MAX_EMPTY_BYTES) return { kind: 'foreign' };
      await store.discard(path);
      return { kind: 'removed' };
    case 'recovered': {
      await file.truncate(found.cutAt);
      if (syncedBytes !== undefined) await writeAgain(file, syncedBytes, found.cutAt);
      const end = found.writer.finish();
      const facts = await store.complete(file, found.cutAt, end);
      return { kind: 'recovered', meta: end.meta, facts, cutBytes: sizeBytes - found.cutAt };
    }
    default:
      return assertNever(found);
  }
}

/** Linux may have dropped what a failed sync should have saved, and no later sync tries that again. */
async function writeAgain(file: OpenFile, from: number, to: number): Promise<void> {
  if (to > from) await copy(file, { offset: from, size: to - from }, file, from);
}

/**
 * Whether a file consists only of a header that a power cut has damaged. Fragments are written once the header is safe on the disk,
 * so a file with a fragment was damaged in another way; a person has to look at it.
 */
async function isSpoiltHeader(file: OpenFile, sizeBytes: number): Promise<boolean> {
  return sizeBytes <= MAX_HEADER_BYTES && !(await file.read(0, sizeBytes)).includes('moof');
}

/** Tells the catalogue what became of a file. */
export function noteRepair(catalogue: Catalogue, segment: SegmentName, repair: Repair): void {
  if (repair.kind === 'removed') catalogue.removed(segment);
  else if ('meta' in repair)
    catalogue.closed(closedSegment(segment, recordedDetails(repair.facts, repair.meta), repair.meta));
  else catalogue.forget(segment);
}

export interface RecoveryReport {
  /** Files that were completed or removed, and foreign ones under a marker, by path. */
  readonly repairs: ReadonlyMap<string, Repair>;
  /** Files that could not be read because of the disk; the next start tries again. */
  readonly failed: readonly string[];
  /** What the recording of each camera with footage continues from. */
  readonly histories: Map<string, CameraHistory>;
}

interface RecoveryDeps {
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly metrics: ArchiveMetrics;
  readonly log: Log;
  readonly syncIntervalMs: number;
  /** Paths of files that are being recorded: a disk may come later than the start. */
  readonly busy: () => ReadonlySet<string>;
}

interface Candidates {
  /** Files with a marker, which the crash may have left open. */
  readonly marked: { path: string; marker: string; sequence: number }[];
}

/**
 * Repairs the files that the last process left open: every file with a marker, and the newest files of each camera, also without
 * one. Closed files of the archive are not read. Faults of single files are never thrown.
 */
export async function recoverArchive(deps: RecoveryDeps): Promise<RecoveryReport> {
  const { store, catalogue } = deps;
  const cameras = new Map<string, Candidates>();
  for (const cameraId of catalogue.cameras()) cameras.set(cameraId, { marked: [] });
  for (const { file, sequence, segment } of await store.markers()) {
    const candidates = cameras.get(segment.cameraId) ?? { marked: [] };
    cameras.set(segment.cameraId, candidates);
    candidates.marked.push({ path: formatPath(segment), marker: file, sequence });
  }
  const repairs = new Map<string, Repair>();
  const failed: string[] = [];
  const histories = new Map<string, CameraHistory>();
  await concurrently([...cameras], CONCURRENT_CAMERAS, async ([cameraId, candidates]) => {
    histories.set(cameraId, await new CameraRecovery(cameraId, deps, repairs, failed).run(candidates));
  });
  return { repairs, failed, histories };
}

/** Paths of all files that recovery may work on. */
export async function recoveryPaths(store: SegmentStore, catalogue: Catalogue): Promise<string[]> {
  const paths = (await store.markers()).map(({ segment }) => formatPath(segment));
  for (const cameraId of catalogue.cameras()) {
    let count = 0;
    for (const segment of catalogue.newestFirst(cameraId)) {
      // Those that are complete, and the first that is not: further files are seldom read.
      if (count++ > IN_ORDER_IN_A_ROW) break;
      paths.push(formatPath(segment));
    }
  }
  return paths;
}

class CameraRecovery {
  readonly #cameraId: string;
  readonly #deps: RecoveryDeps;
  /** Of all cameras; this one adds its own. */
  readonly #repairs: Map<string, Repair>;
  readonly #failed: string[];
  readonly #history = newHistory();
  #lastSequence = -1;

  constructor(cameraId: string, deps: RecoveryDeps, repairs: Map<string, Repair>, failed: string[]) {
    this.#cameraId = cameraId;
    this.#deps = deps;
    this.#repairs = repairs;
    this.#failed = failed;
  }

  async run({ marked }: Candidates): Promise<CameraHistory> {
    await this.#repairMarked(marked);
    await this.#checkNewest();
    await unmarkDone(this.#cameraId, this.#history, this.#deps);
    return this.#history;
  }

  async #repairMarked(marked: Candidates['marked']): Promise<void> {
    const history = this.#history;
    for (const { path, marker, sequence } of marked) {
      history.nextSequence = Math.max(history.nextSequence, sequence + 1);
      if (this.#deps.busy().has(path)) continue;
      const done = await this.#repair(path, true);
      // The newest marker stays, to keep the sequence, and so do the markers of files that could not be repaired yet.
      if (!done) continue;
      history.doneMarkers.add(marker);
      history.marker = marker;
    }
  }

  async #checkNewest(): Promise<void> {
    const { store, catalogue } = this.#deps;
    let inOrder = 0;
    for (const segment of catalogue.newestFirst(this.#cameraId)) {
      if (inOrder === IN_ORDER_IN_A_ROW) break;
      const path = formatPath(segment);
      if (this.#repairs.has(path) || this.#deps.busy().has(path)) continue;
      const looked = await lookAt(store, path);
      if (looked?.kind === 'open') {
        inOrder = 0;
        await this.#repair(path, false);
        continue;
      }
      inOrder++;
      if (looked?.kind !== 'closed') continue;
      this.#learn(looked.meta);
      // An observer was notified before the power cut, and may not have had the time to store it.
      catalogue.closed(closedSegment(segment, looked.details, looked.meta));
    }
  }

  /** Undefined if the disk prevents it. */
  async #repair(path: string, isOurs: boolean): Promise<Repair | undefined> {
    const known = this.#repairs.get(path);
    if (known) return known;
    const { store, catalogue, metrics, log, syncIntervalMs } = this.#deps;
    const file = { camera: this.#cameraId, file: path };
    try {
      const done = await repairFile(store, path, { isOurs, syncIntervalMs });
      this.#repairs.set(path, done);
      if ('meta' in done) this.#learn(done.meta);
      if (done.kind !== 'missing') noteRepair(catalogue, parsePath(path) as SegmentName, done);
      if (done.kind === 'finalized' || done.kind === 'missing') return done;
      metrics.recovered(done.kind);
      const cutBytes = done.kind === 'recovered' ? done.cutBytes : undefined;
      log.info({ ...file, outcome: done.kind, cutBytes }, 'file left open by a crash was handled');
      return done;
    } catch (err) {
      this.#failed.push(path);
      metrics.recovered('failed');
      log.warn({ ...file, err }, 'file left open by a crash could not be handled');
      return undefined;
    }
  }

  #learn(meta: RecordedMeta): void {
    const history = this.#history;
    history.nextSequence = Math.max(history.nextSequence, meta.sequence + 1);
    if (meta.sequence < this.#lastSequence || originOf(meta) === 'edge') return;
    this.#lastSequence = meta.sequence;
    history.wallEndMs = meta.wallStartMs + meta.wallDurationMs;
  }
}

/** The description in a file; undefined if it cannot be read. */
async function lookAt(store: SegmentStore, path: string): Promise<DescribedFile | undefined> {
  try {
    const file = await store.fs.open(await store.locate(path), 'read');
    try {
      // Without a marker and empty, it is no recording of ours: the marker is on the disk before the file is created.
      return await describeSegment((offset, length) => file.read(offset, length), await file.facts(), 1);
    } finally {
      await file.close();
    }
  } catch {
    // It is not described, and listed by its name.
    return undefined;
  }
}
