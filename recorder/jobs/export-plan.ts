// A camera and a window in, the plan of its export out: read from the archive file by file, so that memory holds the
// index of one at a time.

import { join } from 'node:path';
import { ArchiveError } from '../archive/faults.ts';
import type { ListQuery, SegmentListing } from '../archive/index.ts';
import { readSetsInForce } from '../mp4/in-band-sets.ts';
import { IndexMemory } from '../mp4/index-memory.ts';
import { JoinError } from '../mp4/join-error.ts';
import { JoinPlanner, type JoinPlan, type JoinWindow } from '../mp4/join.ts';
import { readRefreshes } from '../mp4/refresh.ts';
import { JobError } from './error.ts';
import { describeMovie, isoTime } from './facts.ts';
import { withCauses, type KnownGap } from './gap-causes.ts';
import { looksOf } from './ffmpeg.ts';
import type { JobGap } from './job.ts';
import { PartFile, readIndex } from './recorded-part.ts';

/** The archive on this node's disk. */
export interface JobArchive {
  /** Throws ArchiveError when the archive cannot be read. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing>;
  /** Keeps what lies in [fromMs, toMs) from retention until the returned function is called. */
  holdWindow(cameraId: string, fromMs: number, toMs: number): () => void;
}

export interface ExportRequest extends JoinWindow {
  readonly cameraId: string;
  /** Of pictures only, those that a time-lapse of this speed shows. */
  readonly lapseSpeed?: number | undefined;
}

export interface PlannerDeps {
  /** Absolute. */
  readonly recordPath: string;
  readonly archive: JobArchive;
  readonly wallMs: () => number;
  /** As it is named in the result. */
  readonly version: string;
  /** Time of a camera without footage, and why; without it, gaps have no causes. */
  readonly knownGaps?: (cameraId: string, fromMs: number, toMs: number) => Promise<readonly KnownGap[]>;
}

/** A file of the archive that the plan refers to. */
export interface PartRef {
  /** Absolute. */
  readonly path: string;
  readonly identity: string;
}

export interface ExportPlan extends JoinPlan {
  readonly gaps: readonly JobGap[];
  /** By the numbers of parts in `contents`. */
  readonly files: readonly PartRef[];
}

/** Throws JobError when there is nothing to export, or it cannot be one movie. */
export async function planExport(request: ExportRequest, deps: PlannerDeps, signal?: AbortSignal): Promise<ExportPlan> {
  const { cameraId, fromMs, toMs } = request;
  if (fromMs >= deps.wallMs()) {
    throw new JobError('no-footage', `the window begins in the future: ${isoTime(fromMs)}`);
  }
  const paths = await listPaths(request, deps);
  try {
    return (await plan(false)) ?? (await plan(true)) ?? fail();
  } catch (err) {
    throw err instanceof JoinError ? explained(err, request) : err;
  }

  /** Undefined when it takes parameter sets at key frames after all. */
  async function plan(setsAtKeyFrames: boolean): Promise<ExportPlan | undefined> {
    const looksEvery = looksOf(request.lapseSpeed);
    const planner = new JoinPlanner({ fromMs, toMs }, { setsAtKeyFrames, looksEvery });
    const files: PartRef[] = [];
    const memory = new IndexMemory();
    for (const path of paths) {
      signal?.throwIfAborted();
      memory.clear();
      const identity = await addPart(planner, path, memory, looksEvery !== undefined);
      if (identity !== undefined) files.push({ path, identity });
      if (planner.parametersDiffer && !setsAtKeyFrames) return undefined;
    }
    const known = (await deps.knownGaps?.(cameraId, fromMs, toMs)) ?? [];
    let gaps: readonly JobGap[] = [];
    const joined = planner.finish((facts) => {
      gaps = withCauses(facts.gaps, known);
      return describeMovie(cameraId, { ...facts, gaps }, deps.version);
    });
    return { ...joined, gaps, files };
  }

  function fail(): never {
    throw new JobError('footage-changed', 'the archive changes while it is read');
  }
}

async function listPaths({ cameraId, fromMs, toMs }: ExportRequest, deps: PlannerDeps): Promise<string[]> {
  try {
    const { segments } = await deps.archive.list(cameraId, { fromMs, toMs, tzOffsetMinutes: 0 });
    return segments.map(({ path }) => join(deps.recordPath, path));
  } catch (err) {
    if (err instanceof ArchiveError) throw new JobError('archive-unreadable', err.message, { cause: err });
    throw err;
  }
}

/** Returns what identifies the file; undefined when it is gone or cannot be read. */
async function addPart(
  planner: JoinPlanner,
  path: string,
  memory: IndexMemory,
  isLapse: boolean,
): Promise<string | undefined> {
  const file = await PartFile.open(path);
  if (!file) return undefined;
  try {
    const index = await readIndex(file, memory);
    const video = index?.tracks.find(({ header }) => header.kind === 'video');
    if (!index || !video) return undefined;
    const setsAt = await readSetsInForce(file.read, video);
    if (!isLapse) planner.add({ index, setsAt });
    else
      planner.add({ index: { ...index, tracks: [video] }, setsAt, refreshes: await readRefreshes(file.read, video) });
    return file.identity;
  } finally {
    await file.close();
  }
}

function explained(err: JoinError, { fromMs, toMs, cameraId }: ExportRequest): JobError {
  if (err.code === 'CODEC_CHANGED') {
    return new JobError(
      'codec-changed',
      `the camera changed its video codec at ${isoTime(err.wallMs)}: ask for what is before and what is behind that time separately`,
      { cause: err },
    );
  }
  return new JobError(
    'no-footage',
    `this node has no footage of camera ${cameraId} from ${isoTime(fromMs)} to ${isoTime(toMs)}: the window lies wholly in a gap`,
    { cause: err },
  );
}
