// Plans the export of a window of a camera. It reads the archive file by file, so that only one index is in memory.

import { join } from 'node:path';
import { ArchiveError } from '../archive/disk/faults.ts';
import type { ListQuery, SegmentListing } from '../archive/catalogue/listing.ts';
import { VIDEO_TRACK_ID } from '../mp4/fragment.ts';
import { readSetsInForce } from '../mp4/in-band-sets.ts';
import { IndexMemory } from '../mp4/index-memory.ts';
import { JoinError } from '../mp4/join-error.ts';
import type { FootageGap, JoinWindow } from '../mp4/join.ts';
import { MoviesPlanner, type PlannedMovie } from '../mp4/join-movies.ts';
import { readRefreshes } from '../mp4/refresh.ts';
import type { Elsewhere } from '../footage/holders.ts';
import { JobError, noPictures } from './error.ts';
import { describeMovie, isoTime } from './facts.ts';
import { upToKnown, withCauses, type KnownTime } from './gap-causes.ts';
import { looksOf } from './ffmpeg.ts';
import type { JobGap } from './job.ts';
import { PartFile, readIndex } from './recorded-part.ts';

/** The archive on this node's disk. */
export interface JobArchive {
  /** Throws ArchiveError when the archive cannot be read. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing>;
  /** Keeps the footage in [fromMs, toMs) from retention until the returned function is called. */
  holdWindow(cameraId: string, fromMs: number, toMs: number): () => void;
}

export interface ExportRequest extends JoinWindow {
  readonly cameraId: string;
  /** If set, only the pictures that a time-lapse of this speed shows, without sound. */
  readonly lapseSpeed?: number | undefined;
}

export interface PlannerDeps {
  /** Absolute. */
  readonly recordPath: string;
  readonly archive: JobArchive;
  readonly wallMs: () => number;
  /** The version that the result names. */
  readonly version: string;
  /** The gaps of a camera and their causes; without it, gaps have no causes. */
  readonly knownTime?: (cameraId: string, fromMs: number, toMs: number) => Promise<KnownTime>;
}

/** A file of the archive that the plan refers to. */
export interface PartRef {
  /** Absolute. */
  readonly path: string;
  readonly identity: string;
  /** Offset of the movie in the file; 0 by default. */
  readonly start?: number;
}

export interface ExportPlan extends PlannedMovie {
  readonly gaps: readonly JobGap[];
  /** Footage of the window on other nodes; with the first movie. */
  readonly elsewhere?: readonly Elsewhere[];
  /** Indexed by the numbers of parts in `contents`. */
  readonly files: readonly PartRef[];
}

/** One movie for each interval with the same codec. Throws JobError when there is nothing to export. */
export async function planExport(
  request: ExportRequest,
  deps: PlannerDeps,
  signal?: AbortSignal,
): Promise<ExportPlan[]> {
  const { cameraId, fromMs, toMs, lapseSpeed } = request;
  if (fromMs >= deps.wallMs()) {
    throw new JobError('no-footage', `the window begins in the future: ${isoTime(fromMs)}`);
  }
  // Gaps are read before the files, which may still grow: footage that is missing from the files and lies before `untilMs`
  // is really missing.
  const known = await knownTimeOf(request, deps);
  const paths = await listPaths(request, deps);
  try {
    return (await plan(false)) ?? (await plan(true)) ?? fail();
  } catch (err) {
    throw err instanceof JoinError ? explained(err, request, known) : err;
  }

  /** Undefined if the movies turn out to need parameter sets at key frames. */
  async function plan(setsAtKeyFrames: boolean): Promise<ExportPlan[] | undefined> {
    const looksEvery = looksOf(request.lapseSpeed);
    const planner = new MoviesPlanner({ fromMs, toMs }, { setsAtKeyFrames, looksEvery });
    const files: PartRef[] = [];
    const memory = new IndexMemory();
    for (const path of paths) {
      signal?.throwIfAborted();
      memory.clear();
      const identity = await addPart(planner, path, memory, looksEvery !== undefined);
      if (identity !== undefined) files.push({ path, identity });
      if (planner.parametersDiffer && !setsAtKeyFrames) return undefined;
    }
    const movies = planner.finish(
      (facts) => describeMovie(cameraId, settled(facts), deps.version, lapseSpeed),
      lapseSpeed !== undefined,
    );
    return movies.map((movie, i) => ({
      ...settled(movie),
      ...(i === 0 && known.elsewhere?.length && { elsewhere: known.elsewhere }),
      files: files.slice(movie.firstPart),
    }));
  }

  function settled<T extends { readonly window: JoinWindow; readonly gaps: readonly FootageGap[] }>(movie: T) {
    const over = movie.window.toMs < toMs ? movie : upToKnown(movie, known.untilMs);
    return { ...over, gaps: withCauses(over.gaps, known.gaps, known.elsewhere) };
  }

  function fail(): never {
    throw new JobError('footage-changed', 'the archive changes while it is read');
  }
}

/** Without a record of gaps, all past time counts as known. */
export const knownTimeOf = async (
  { cameraId, fromMs, toMs }: ExportRequest,
  { knownTime, wallMs }: Pick<PlannerDeps, 'knownTime' | 'wallMs'>,
): Promise<KnownTime> => (await knownTime?.(cameraId, fromMs, toMs)) ?? { gaps: [], untilMs: Math.min(toMs, wallMs()) };

async function listPaths({ cameraId, fromMs, toMs }: ExportRequest, deps: PlannerDeps): Promise<string[]> {
  try {
    const { segments } = await deps.archive.list(cameraId, { fromMs, toMs, tzOffsetMinutes: 0 });
    return segments.map(({ path }) => join(deps.recordPath, path));
  } catch (err) {
    if (err instanceof ArchiveError) throw new JobError('archive-unreadable', err.message, { cause: err });
    throw err;
  }
}

/** Returns the identity of the file; undefined when it is gone or cannot be read. */
async function addPart(
  planner: MoviesPlanner,
  path: string,
  memory: IndexMemory,
  isLapse: boolean,
): Promise<string | undefined> {
  const file = await PartFile.open(path);
  if (!file) return undefined;
  try {
    const index = await readIndex(file, memory);
    const video = index?.tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID);
    if (!index || !video) return undefined;
    if (isLapse && video.header.kind === 'audio') throw noPictures();
    const setsAt = await readSetsInForce(file.read, video);
    if (!isLapse) planner.add({ index, setsAt });
    else
      planner.add({ index: { ...index, tracks: [video] }, setsAt, refreshes: await readRefreshes(file.read, video) });
    return file.identity;
  } finally {
    await file.close();
  }
}

function explained(err: JoinError, request: ExportRequest, { elsewhere = [] }: KnownTime): JobError {
  const { fromMs, toMs, cameraId, lapseSpeed } = request;
  if (err.code === 'CODEC_CHANGED') {
    const splitAtMs = Math.round(err.wallMs);
    const canBeSplit = lapseSpeed === undefined && splitAtMs > fromMs && splitAtMs < toMs;
    return new JobError(
      'codec-changed',
      `the camera changes its codec too often: request the footage before and after ${isoTime(err.wallMs)} separately`,
      { cause: err, retry: canBeSplit ? { splitAtMs } : undefined },
    );
  }
  const nodes = [...new Set(elsewhere.map(({ nodeId }) => nodeId))];
  const where =
    nodes.length === 0
      ? 'the whole window is a gap'
      : `it is on ${nodes.join(', ')}, request it there or with scope=cluster`;
  return new JobError(
    'no-footage',
    `this node has no footage of camera ${cameraId} from ${isoTime(fromMs)} to ${isoTime(toMs)}: ${where}`,
    { cause: err },
  );
}
