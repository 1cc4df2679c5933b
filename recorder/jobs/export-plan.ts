// Plans the export of a window of a camera. It reads footage file by file, so that only some indexes are in memory.

import type { Interval } from '../../base/interval.ts';
import { indexInTurn } from '../footage/turn-end.ts';
import type { Elsewhere } from '../footage/holders.ts';
import { VIDEO_TRACK_ID } from '../mp4/fragment.ts';
import { readSetsInForce } from '../mp4/in-band-sets.ts';
import { IndexMemory } from '../mp4/index-memory.ts';
import { JoinError } from '../mp4/join-error.ts';
import type { JoinPart } from '../mp4/join.ts';
import { MoviesPlanner, type PlannedMovie } from '../mp4/join-movies.ts';
import { readRefreshes } from '../mp4/refresh.ts';
import { JobError, noPictures } from './error.ts';
import { describeMovie, isoTime } from './facts.ts';
import { upToKnown, withCauses, type KnownTime } from './gap-causes.ts';
import { looksOf } from './ffmpeg.ts';
import type { JobGap } from './job.ts';
import { movieName, type LocalNames } from './movie-name.ts';
import { readIndex } from './recorded-part.ts';
import { readable, sourcesOf, type Source, type SourceDeps } from './source.ts';

/** Files whose indexes are in memory at the same time: those of other nodes take a while. */
const FILES_AHEAD = 3;
/** Files of an earlier time do not grow, at nodes whose clocks differ by less. */
const GROWING_MS = 60_000;

export interface ExportRequest extends Interval {
  readonly cameraId: string;
  /** The footage of all nodes of the cluster; otherwise that of this node. */
  readonly isOfAllNodes?: boolean | undefined;
  /** If set, only the pictures that a time-lapse of this speed shows, without sound. */
  readonly lapseSpeed?: number | undefined;
}

export interface PlannerDeps extends SourceDeps {
  readonly wallMs: () => number;
  /** The version that the result names. */
  readonly version: string;
  /** For names and times in the result; without it, ids and UTC. */
  readonly local?: LocalNames | undefined;
  /** The gaps of a camera and their causes; without it, gaps have no causes. */
  readonly knownTime?: (cameraId: string, fromMs: number, toMs: number, isOfAllNodes: boolean) => Promise<KnownTime>;
}

/** A file that the plan refers to. */
export interface PartRef extends Pick<Source, 'open'> {
  readonly identity: string;
  /** Offset of the movie in the file; 0 by default. */
  readonly start?: number;
}

export interface ExportPlan extends PlannedMovie {
  /** File name in a ZIP file, or of the download. */
  readonly name: string;
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
  signal: AbortSignal,
): Promise<ExportPlan[]> {
  const { cameraId, fromMs, toMs, lapseSpeed } = request;
  if (fromMs >= deps.wallMs()) {
    throw new JobError('no-footage', `the window begins in the future: ${isoTime(fromMs)}`);
  }
  // Gaps are read before files that may still grow: footage that is missing from the files and lies before `untilMs` is really missing.
  const asked = knownTimeOf(request, deps);
  if (toMs > deps.wallMs() - GROWING_MS) await asked;
  const [known, sources] = await Promise.all([asked, sourcesOf(request, deps, signal)]);
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
    for await (const { source, part } of readAhead(sources, looksEvery !== undefined, signal)) {
      if (!part) continue;
      planner.add(part);
      files.push({ open: source.open, identity: part.identity });
      if (planner.parametersDiffer && !setsAtKeyFrames) return undefined;
    }
    const movies = planner.finish(
      (facts) => describeMovie(cameraId, settled(facts), deps, lapseSpeed),
      lapseSpeed !== undefined,
    );
    return movies.map((movie, i) => ({
      ...settled(movie),
      name: nameInResult(cameraId, movies, i, deps.local),
      ...(i === 0 && known.elsewhere?.length && { elsewhere: known.elsewhere }),
      files: files.slice(movie.firstPart),
    }));
  }

  function settled<T extends { readonly window: Interval; readonly gaps: readonly Interval[] }>(movie: T) {
    const over = movie.window.toMs < toMs ? movie : upToKnown(movie, known.untilMs);
    return { ...over, gaps: withCauses(over.gaps, known.gaps, known.elsewhere) };
  }

  function fail(): never {
    throw new JobError('footage-changed', 'the archive changes while it is read');
  }
}

/** Of one of the movies of a result. */
export function nameInResult(
  cameraId: string,
  movies: readonly Pick<PlannedMovie, 'window' | 'codec'>[],
  i: number,
  local?: LocalNames,
): string {
  const { window, codec } = movies[i] as (typeof movies)[number];
  return movieName(cameraId, window.fromMs, { local, ...(movies.length === 1 ? {} : { number: i + 1, codec }) });
}

/** Without a record of gaps, all past time counts as known. */
export const knownTimeOf = async (
  { cameraId, fromMs, toMs, isOfAllNodes = false }: ExportRequest,
  { knownTime, wallMs }: Pick<PlannerDeps, 'knownTime' | 'wallMs'>,
): Promise<KnownTime> =>
  knownTime
    ? readable(knownTime(cameraId, fromMs, toMs, isOfAllNodes))
    : { gaps: [], untilMs: Math.min(toMs, wallMs()) };

/** What the plan needs of a file. */
interface ReadPart extends JoinPart {
  readonly identity: string;
}

/** The index of each file; undefined for one that is gone, cannot be read as a recording, or does not count. */
async function* readAhead(
  sources: readonly Source[],
  isLapse: boolean,
  signal: AbortSignal,
): AsyncGenerator<{ readonly source: Source; readonly part: ReadPart | undefined }> {
  const reading: {
    readonly source: Source;
    readonly part: Promise<ReadPart | undefined>;
    readonly memory: IndexMemory;
  }[] = [];
  const free = Array.from({ length: FILES_AHEAD }, () => new IndexMemory());
  const left = sources.values();
  for (;;) {
    for (let memory; (memory = free.pop());) {
      const { value: source } = left.next();
      if (!source) break;
      memory.clear();
      const part = readPart(source, memory, isLapse);
      part.catch(() => {}); // thrown when it is its turn
      reading.push({ source, part, memory });
    }
    const next = reading.shift();
    if (!next) return;
    signal.throwIfAborted();
    yield { source: next.source, part: await next.part };
    free.push(next.memory);
  }
}

async function readPart(source: Source, memory: IndexMemory, isLapse: boolean): Promise<ReadPart | undefined> {
  const file = await source.open();
  if (!file) return undefined;
  try {
    const whole = await readIndex(file, memory);
    const index = whole && source.footage ? await indexInTurn(whole, source.footage) : whole;
    const [video, wholeVideo] = [index, whole].map((of) =>
      of?.tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID),
    );
    if (!index || !video || !wholeVideo) return undefined;
    if (isLapse && video.header.kind === 'audio') throw noPictures();
    const sets = index.meta.setsInEntry ? undefined : await readSetsInForce(file.read, wholeVideo);
    const first = wholeVideo.offsets.indexOf(video.offsets[0] as number);
    const setsAt = sets && ((sample: number) => sets(sample + first));
    const { identity } = file;
    if (!isLapse) return { identity, index, setsAt };
    const refreshes = await readRefreshes(file.read, video);
    return { identity, index: { ...index, tracks: [video] }, setsAt, refreshes };
  } finally {
    await file.close();
  }
}

/** The beginning of a message that there is no footage. */
export const nobodyHas = ({ isOfAllNodes }: Pick<ExportRequest, 'isOfAllNodes'>): string =>
  isOfAllNodes ? 'no node that answers has' : 'this node has no';

function explained(err: JoinError, request: ExportRequest, { elsewhere = [] }: KnownTime): JobError {
  const { fromMs, toMs, cameraId, lapseSpeed, isOfAllNodes } = request;
  if (err.code === 'CODEC_CHANGED') {
    const splitAtMs = Math.round(err.wallMs);
    const canBeSplit = lapseSpeed === undefined && splitAtMs > fromMs && splitAtMs < toMs;
    return new JobError(
      'codec-changed',
      `the camera changes its codec too often: request the footage before and after ${isoTime(err.wallMs)} separately`,
      { cause: err, retry: canBeSplit ? { splitAtMs } : undefined },
    );
  }
  const nodes = [...new Set(elsewhere.map(({ nodeId }) => nodeId))].join(', ');
  const there = isOfAllNodes
    ? `${nodes} may have some and does not answer`
    : `it is on ${nodes}, request it there or with scope=cluster`;
  const where = nodes === '' ? 'the whole window is a gap' : there;
  return new JobError(
    'no-footage',
    `${nobodyHas(request)} footage of camera ${cameraId} from ${isoTime(fromMs)} to ${isoTime(toMs)}: ${where}`,
    { cause: err },
  );
}
