// Makes an assembly: fetches results of other recorders in parallel, and joins them in the order of their ordinals into one
// result of this node, as exports join files of the archive.

import type { Interval } from '../../base/interval.ts';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { concurrently } from '../../base/concurrently.ts';
import { Mp4Error } from '../mp4/error.ts';
import { readSetsInForce } from '../mp4/in-band-sets.ts';
import { JoinError } from '../mp4/join-error.ts';
import { gapsIn, type JoinFacts, type PlacedPart } from '../mp4/join.ts';
import { MoviesPlanner } from '../mp4/join-movies.ts';
import type { RecordedMeta } from '../mp4/meta.ts';
import { readRefreshes } from '../mp4/refresh.ts';
import { readMovieIndex, type MovieIndex } from '../mp4/sample-index.ts';
import { TICKS_PER_MS } from '../mp4/sample.ts';
import { JobError, noPictures } from './error.ts';
import { writingResult } from './export.ts';
import { nameInResult, type ExportPlan, type PartRef } from './export-plan.ts';
import { describeMovie, type JobFacts } from './facts.ts';
import { looksOf } from './ffmpeg.ts';
import { withCauses, type KnownGap } from './gap-causes.ts';
import type { JobReport, JobRequest } from './job.ts';
import { PeerPart, readNote, writeNote, type AssemblyPart, type DonePart, type PartDeps } from './peer-part.ts';
import { PartFile } from './recorded-part.ts';
import { writeResult } from './write-result.ts';
import type { WrittenResult } from './written.ts';

export interface AssembleDeps extends PartDeps {
  readonly version: string;
  readonly report: JobReport;
}

/** A part that was fetched. */
interface Fetched {
  readonly path: string;
  readonly job: DonePart;
}

/** Parts of one assembly that are downloaded at the same time. */
const CONCURRENT_DOWNLOADS = 4;
/** Share of fetching in the progress of the job. */
const FETCHING_SHARE = 0.8;

/** The movies of an assembly before they are written. */
interface PlannedAssembly {
  readonly movies: readonly ExportPlan[];
  readonly window: Interval;
}

/**
 * Writes the movie to `path`. `directory` holds the parts until then. `credential` is that of the caller, and undefined
 * after a restart. Throws JobError with a reason that names peer and part, and the signal's reason.
 */
export const assemble = (
  request: JobRequest,
  credential: string | undefined,
  directory: string,
  path: string,
  deps: AssembleDeps,
  signal: AbortSignal,
): Promise<WrittenResult> =>
  writingResult(
    path,
    async (temporary) => {
      const { movies, window } = await fetchAssembly(request, credential, directory, deps, signal);
      const progress = (share: number): void => deps.report.progress(FETCHING_SHARE + share * (1 - FETCHING_SHARE));
      const options = { spareBytes: deps.spareBytes, progress };
      const { outcome, camera } = await writeResult(request.cameraId, movies, temporary, options, signal);
      return { outcome, window, cameras: [camera] };
    },
    signal,
  );

/** Fetches the parts that are not in `directory` yet. Throws as `assemble`. */
async function fetchAssembly(
  request: JobRequest,
  credential: string | undefined,
  directory: string,
  deps: AssembleDeps,
  signal: AbortSignal,
): Promise<PlannedAssembly> {
  const { parts = [], withCredential = false } = request.assembly ?? {};
  await mkdir(directory, { recursive: true, mode: 0o750 });
  const kept = await Promise.all(parts.map((_, ordinal) => readNote(partPath(directory, ordinal))));
  if (withCredential && credential === undefined && kept.includes(undefined)) {
    throw new JobError(
      'interrupted',
      'the recorder was restarted before all parts were fetched, and it does not store the credential for the other recorders: request the assembly again',
    );
  }
  const fetched = await fetchAll(request, credential, kept, directory, deps, signal);
  const movies = await planAssembly(request, fetched, deps.version, signal);
  return { movies, window: windowOf(fetched.map(({ job }) => job)) };
}

const partPath = (directory: string, ordinal: number): string => join(directory, `${ordinal}.mp4`);

async function fetchAll(
  request: JobRequest,
  credential: string | undefined,
  kept: readonly (DonePart | undefined)[],
  directory: string,
  deps: AssembleDeps,
  signal: AbortSignal,
): Promise<Fetched[]> {
  const parts = request.assembly?.parts ?? [];
  // If one part fails, the others are cancelled.
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const peers = parts.map((part, ordinal) => new PeerPart(part, ordinal, deps, credential, either));
  const jobs = await untilOneFails(failed, peers, peers.length, async (peer, ordinal) => {
    const job = kept[ordinal] ?? (await peer.finished());
    checkPart(job, request, ordinal);
    return job;
  });
  const { fromMs, toMs } = windowOf(jobs);
  await deps.report.window(fromMs, toMs);
  const total = jobs.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  const received = jobs.map((job, i) => (kept[i] ? job.size_bytes : 0));
  const receivedTotal = (): number => received.reduce((sum, size) => sum + size, 0);
  // For the parts and for the movie that is made from them.
  const needed = 2 * total - receivedTotal();
  if ((await deps.spareBytes()) < needed) {
    throw new JobError(
      'disk-full',
      `parts and result need ${needed} bytes, but the free space is reserved for recording`,
    );
  }
  return untilOneFails(failed, peers, CONCURRENT_DOWNLOADS, async (peer, ordinal) => {
    const job = jobs[ordinal] as DonePart;
    const path = partPath(directory, ordinal);
    if (kept[ordinal]) return { path, job };
    await writeNote(path, job);
    await peer.download(job, path, (bytes) => {
      received[ordinal] = bytes;
      deps.report.progress((FETCHING_SHARE * receivedTotal()) / total);
    });
    return { path, job };
  });
}

function checkPart(job: DonePart, { cameraId, assembly }: JobRequest, ordinal: number): void {
  const named = nameOf(assembly?.parts ?? [], ordinal);
  if (job.cameras) throw new JobError('peer-failed', `${named}: its job is a case of several cameras`);
  if (job.kind !== 'export') throw new JobError('peer-failed', `${named}: its job is a time-lapse, not an export`);
  if (job.camera_id !== cameraId) {
    throw new JobError('peer-failed', `${named}: its job is of camera ${job.camera_id}, not ${cameraId}`);
  }
}

const nameOf = (parts: readonly AssemblyPart[], ordinal: number): string =>
  `part ${ordinal} from ${parts[ordinal]?.peerAddress}`;

const windowOf = (jobs: readonly DonePart[]): Interval => ({
  fromMs: Math.min(...jobs.map(({ from_ms }) => from_ms)),
  toMs: Math.max(...jobs.map(({ to_ms }) => to_ms)),
});

/**
 * Like `concurrently`, but starts nothing new after a failure, and waits for what is running. Throws the reason of
 * `failed`.
 */
async function untilOneFails<T, R>(
  failed: AbortController,
  items: readonly T[],
  atOnce: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results = await concurrently(items, atOnce, async (item, index) => {
    if (failed.signal.aborted) return [];
    try {
      return [await work(item, index)];
    } catch (err) {
      failed.abort(err);
      return [];
    }
  });
  failed.signal.throwIfAborted();
  return results.flat(1);
}

/** One movie of a part. */
interface Source {
  readonly path: string;
  readonly ordinal: number;
  /** Its position in the file; without it, the file is the movie. */
  readonly range?: { readonly start: number; readonly size: number };
  readonly window: Interval;
  /** The gaps of the job on the other recorder. */
  readonly gaps: readonly KnownGap[];
}

function sourcesOf(fetched: readonly Fetched[]): Source[] {
  return fetched.flatMap(({ path, job }, ordinal): Source[] => {
    const gaps = gapsOf(job);
    const { parts = [] } = job;
    if (parts.length === 0) return [{ path, ordinal, window: { fromMs: job.from_ms, toMs: job.to_ms }, gaps }];
    return parts.map(({ offset, size_bytes, from_ms, to_ms }) => ({
      path,
      ordinal,
      range: { start: offset, size: size_bytes },
      window: { fromMs: from_ms, toMs: to_ms },
      gaps: gaps.filter(({ fromMs, toMs }) => fromMs < to_ms && toMs > from_ms),
    }));
  });
}

async function planAssembly(
  request: JobRequest,
  fetched: readonly Fetched[],
  version: string,
  signal: AbortSignal,
): Promise<ExportPlan[]> {
  const peers = request.assembly?.parts ?? [];
  const sources = sourcesOf(fetched);
  const window = windowOf(fetched.map(({ job }) => job));
  return (await plan(false)) ?? (await plan(true)) ?? fail();

  /** Undefined if the movies turn out to need parameter sets at key frames. */
  async function plan(setsAtKeyFrames: boolean): Promise<ExportPlan[] | undefined> {
    const planner = new MoviesPlanner(window, { setsAtKeyFrames, looksEvery: looksOf(request.speed) });
    const files: PartRef[] = [];
    for (const source of sources) {
      signal.throwIfAborted();
      try {
        const identity = await addMovie(planner, source, files.length, request);
        files.push({ open: () => PartFile.open(source.path), identity, start: source.range?.start ?? 0 });
      } catch (err) {
        throw explained(err, nameOf(peers, source.ordinal));
      }
      if (planner.parametersDiffer && !setsAtKeyFrames) return undefined;
    }
    const facts = new Map<number, JobFacts>();
    const asOne = request.speed !== undefined;
    const movies = planner.finish((placed, firstPart) => {
      const known = factsOf(placed, sources.slice(firstPart), asOne ? window : undefined);
      facts.set(firstPart, known);
      return describeMovie(request.cameraId, known, { version }, request.speed);
    }, asOne);
    // The wall times of parts are those that their recorders report.
    const plans = movies.map((movie, i) => {
      // A time-lapse is one movie: the first entry has the facts of all parts.
      const none = { gaps: [], window: movie.window, parts: [] };
      const { gaps, window, parts } = facts.get(movie.firstPart) ?? none;
      const next = facts.get(movies[i + 1]?.firstPart ?? -1)?.window;
      const between = next ? gapsIn({ fromMs: window.toMs, toMs: next.fromMs }, []) : [];
      const all = [...gaps, ...withCauses(between, [])];
      return { ...movie, gaps: all, window, parts, files: files.slice(movie.firstPart) };
    });
    return plans.map((plan, i) => ({ ...plan, name: nameInResult(request.cameraId, plans, i) }));
  }

  function fail(): never {
    throw new JobError('footage-changed', 'the parts change while they are read');
  }
}

/** Returns the identity of the file. */
async function addMovie(
  planner: MoviesPlanner,
  { path, range }: Source,
  number: number,
  request: JobRequest,
): Promise<string> {
  const file = await PartFile.open(path, range);
  if (!file) throw new Mp4Error('TRUNCATED', 'the file is gone');
  try {
    const movie = await readMovieIndex(file.read, file.sizeBytes);
    const video = movie.tracks.filter(({ header }) => header.kind === 'video');
    const [pictures] = video;
    const setsAt = pictures && (await readSetsInForce(file.read, pictures));
    const meta = metaOf(movie, number);
    const wanted = { from: 0, to: movie.duration };
    if (request.kind === 'export') planner.add({ index: { meta, tracks: movie.tracks }, setsAt, wanted });
    else {
      if (!pictures) throw noPictures();
      const refreshes = await readRefreshes(file.read, pictures);
      planner.add({ index: { meta, tracks: video }, setsAt, wanted, refreshes });
    }
    return file.identity;
  } finally {
    await file.close();
  }
}

/** For a movie without wall times: each is a run of its own. */
const metaOf = ({ duration }: MovieIndex, number: number): RecordedMeta => ({
  cameraId: '',
  runId: String(number).padStart(16, '0'),
  sequence: 0,
  wallStartMs: 0,
  wallDurationMs: duration / TICKS_PER_MS,
  mediaDurationMs: duration / TICKS_PER_MS,
  clock: 'unknown',
  gapBeforeMs: 0,
  lostPackets: 0,
  tracks: [],
});

function explained(err: unknown, named: string): unknown {
  if (err instanceof Mp4Error) {
    return new JobError('peer-failed', `${named}: its result is not a movie that can be joined`, { cause: err });
  }
  if (err instanceof JoinError && err.code === 'CODEC_CHANGED') {
    return new JobError('codec-changed', `${named}: the codec changes too often`, { cause: err });
  }
  return err;
}

/** The contents of the movie in wall time, by the clocks of the nodes that recorded it. */
function factsOf({ durationMs, parts }: JoinFacts, sources: readonly Source[], whole?: Interval): JobFacts {
  const used = parts.map(({ part }) => sources[part] as Source);
  const window = whole ?? {
    fromMs: Math.min(...used.map(({ window }) => window.fromMs)),
    toMs: Math.max(...used.map(({ window }) => window.toMs)),
  };
  const footage = parts.flatMap((part) => footageOf(part, sources[part.part] as Source));
  const inOrder = footage.toSorted((a, b) => a.wallStartMs - b.wallStartMs);
  const known = sources.flatMap(({ gaps }) => gaps);
  return { window, durationMs, parts: footage, gaps: withCauses(gapsIn(window, inOrder), known) };
}

/** The intervals of a part between its gaps; in the movie they follow one another without the gaps. */
function footageOf(part: PlacedPart, { window, gaps }: Source): PlacedPart[] {
  const stretches: { fromMs: number; toMs: number }[] = [];
  let atMs = window.fromMs;
  for (const { fromMs, toMs } of [...gaps, { fromMs: window.toMs, toMs: window.toMs }]) {
    if (fromMs > atMs) stretches.push({ fromMs: atMs, toMs: fromMs });
    atMs = Math.max(atMs, toMs);
  }
  const wallMs = stretches.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
  const pace = wallMs > 0 ? (part.movieEndMs - part.movieStartMs) / wallMs : 0;
  let movieMs = part.movieStartMs;
  return stretches.map(({ fromMs, toMs }) => {
    const movieStartMs = movieMs;
    movieMs += (toMs - fromMs) * pace;
    return { ...part, wallStartMs: fromMs, wallEndMs: toMs, movieStartMs, movieEndMs: movieMs };
  });
}

const gapsOf = ({ gaps = [] }: DonePart): KnownGap[] =>
  gaps.map(({ start, end, cause }) => ({ fromMs: Date.parse(start), toMs: Date.parse(end), cause }));
