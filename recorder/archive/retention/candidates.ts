// Finds each camera's oldest segment that may be removed. It is remembered until something changes, so that a check of all
// cameras costs nothing.

import { errorCode } from '../../../base/error.ts';
import type { Catalogue, FoundSegment } from '../catalogue/catalogue.ts';
import { MAX_SEGMENT_MS } from '../catalogue/segment.ts';
import type { Disk } from '../disk/disk-set.ts';
import { formatPath, type SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { Leases } from './leases.ts';
import type { OldestSegment } from './plan.ts';
import type { Protections } from './protections.ts';

export interface Candidate extends OldestSegment {
  readonly segment: SegmentName;
  readonly path: string;
  readonly sizeBytes: number;
  endMs: number | undefined;
  readonly nextStartMs: number | undefined;
}

interface CandidatesDeps {
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly leases: Leases;
  readonly protections: Protections;
  /** Paths of segments that are being written or completed. */
  readonly busy: () => ReadonlySet<string>;
  /** A segment's file is gone, although this process has not removed it. */
  readonly vanished: (segment: SegmentName) => void;
}

/** Whether footage that is being read is kept. Protected footage and open files always are. */
export type Respect = 'readers' | 'nobody';

/** When there are more files that cannot be removed, all of them are tried again. */
const MAX_UNREMOVABLE = 10_000;

export class Candidates {
  readonly #deps: CandidatesDeps;
  readonly #found = new Map<string, Candidate | undefined>();
  /** By camera, and disk: nothing that begins earlier may be removed. A protected year is searched only once. */
  readonly #from = new Map<string, number>();
  readonly #unremovable = new Set<string>();

  constructor(deps: CandidatesDeps) {
    this.#deps = deps;
  }

  /** As of the last `findAll`. */
  get(cameraId: string, on?: Disk): Candidate | undefined {
    return this.#found.get(keyOf(cameraId, on));
  }

  /** Finds the candidates that are not known; `on`: the oldest on a disk. */
  async findAll(cameraIds: Iterable<string>, on?: Disk): Promise<void> {
    for (const cameraId of cameraIds) {
      const key = keyOf(cameraId, on);
      if (this.#found.has(key)) continue;
      const found = await this.find(cameraId, 'readers', on, this.#from.get(key));
      this.#found.set(key, found);
      if (found) this.#from.set(key, found.startMs);
    }
  }

  /** Searches for a camera's oldest segment that may be removed, whatever is remembered. */
  async find(cameraId: string, respect: Respect, on?: Disk, fromMs?: number): Promise<Candidate | undefined> {
    const { catalogue, store } = this.#deps;
    for (const found of catalogue.oldestFirst(cameraId, fromMs)) {
      if (on && (await store.disks.diskOf(formatPath(found.segment))) !== on) continue;
      const candidate = await this.#candidate(found, respect);
      if (candidate) return candidate;
    }
    return undefined;
  }

  /**
   * Whether it may still be removed: since it was found, a reader may have begun to read it, or a user may have
   * protected it.
   */
  isFree({ segment, path, nextStartMs, endMs }: Candidate, respect: Respect): boolean {
    const { protections, leases, busy } = this.#deps;
    const { cameraId, startMs } = segment;
    const latestMs = endMs ?? latestEnd(startMs, nextStartMs);
    if (busy().has(path) || protections.covers(cameraId, startMs, latestMs)) return false;
    return respect === 'nobody' || !leases.isHeld(cameraId, startMs, latestMs);
  }

  /** Reads from the file when the segment ends, unless that is known. */
  async tellEnd(candidate: Candidate): Promise<void> {
    candidate.endMs ??= await this.#endOf(candidate);
  }

  /** It was removed: the next candidate has to be found. */
  removed({ segment }: Candidate): void {
    this.#forgetFound(segment.cameraId);
  }

  /** It cannot be removed now: the next segment takes its place. */
  unremovable({ segment, path }: Candidate): void {
    if (this.#unremovable.size >= MAX_UNREMOVABLE) this.#unremovable.clear();
    this.#unremovable.add(path);
    this.#forgetFound(segment.cameraId);
  }

  closed(cameraId: string): void {
    for (const key of this.#keysOf(cameraId)) if (this.#found.get(key) === undefined) this.#found.delete(key);
  }

  /** Holds or protections have changed: another segment may be the oldest that may be removed. */
  forget(cameraId: string): void {
    for (const key of this.#keysOf(cameraId)) this.#from.delete(key);
    this.#forgetFound(cameraId);
  }

  #forgetFound(cameraId: string): void {
    for (const key of this.#keysOf(cameraId)) this.#found.delete(key);
  }

  /** Those of the whole archive and, with several disks, of each. */
  #keysOf(cameraId: string): readonly string[] {
    const { disks } = this.#deps.store;
    const key = keyOf(cameraId);
    return disks.hasOthers ? [key, ...disks.all.map((disk) => keyOf(cameraId, disk))] : [key];
  }

  /** The directories were read again: every candidate may be a different one. */
  forgetAll(): void {
    this.#found.clear();
    this.#from.clear();
    this.#unremovable.clear();
  }

  async #candidate(found: FoundSegment, respect: Respect): Promise<Candidate | undefined> {
    const { store, protections, busy, vanished } = this.#deps;
    const { segment, nextStartMs } = found;
    const { cameraId, startMs } = segment;
    if (protections.covers(cameraId, startMs, startMs)) return undefined;
    const path = formatPath(segment);
    if (this.#unremovable.has(path) || busy().has(path)) return undefined;
    let sizeBytes: number;
    try {
      const facts = await store.fs.facts(await store.locate(path));
      // A directory with the name of a segment is not footage.
      if (!facts.isFile) return undefined;
      ({ sizeBytes } = facts);
    } catch (err) {
      if (errorCode(err) === 'ENOENT') {
        await store.disks.checkAll();
        vanished(segment);
      }
      return undefined;
    }
    const candidate: Candidate = { segment, path, sizeBytes, startMs, endMs: undefined, nextStartMs };
    // It may reach into a protected window: its file says whether it does.
    if (protections.covers(cameraId, startMs, startMs + MAX_SEGMENT_MS)) await this.tellEnd(candidate);
    return this.isFree(candidate, respect) ? candidate : undefined;
  }

  async #endOf({ segment, nextStartMs }: Candidate): Promise<number | undefined> {
    // A file that cannot be read may still be removed. It is assumed to end where the next one begins.
    return this.#deps.catalogue.endOf({ segment, nextStartMs }).catch(() => latestEnd(segment.startMs, nextStartMs));
  }
}

const keyOf = (cameraId: string, on?: Disk): string => (on ? `${cameraId} ${on.root}` : cameraId);

/** The latest time at which a segment can end, without reading its file. */
const latestEnd = (startMs: number, nextStartMs: number | undefined): number =>
  Math.min(nextStartMs ?? Infinity, startMs + MAX_SEGMENT_MS);
