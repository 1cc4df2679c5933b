// Makes a case: one ZIP file with the movies of several cameras in one window, and a signed manifest of all of them.

import type { Interval } from '../../base/interval.ts';
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { JobError } from './error.ts';
import { estimateExport, untilUnchanged, writingResult } from './export.ts';
import { knownTimeOf, nobodyHas, planExport, type PlannerDeps } from './export-plan.ts';
import { isoTime } from './facts.ts';
import { upToKnown, withCauses } from './gap-causes.ts';
import type { CameraOutcome, JobPart } from './job.ts';
import { MANIFEST_NAME, SIGNATURE_NAME, type SignedManifest } from './manifest.ts';
import type { WriteOptions } from './write-movie.ts';
import { elsewhereOf, endOf, partsOf, requireSpace, writeDirectory, writeMovies, writingFile } from './write-result.ts';
import type { WrittenResult, WrittenCamera, WrittenDocument } from './written.ts';
import { localHeader, localHeaderBytes, type ZipEntry } from './zip.ts';

export interface CaseRequest extends Interval {
  readonly cameraIds: readonly string[];
  readonly isOfAllNodes?: boolean | undefined;
}

export interface CaseDeps extends PlannerDeps, WriteOptions {
  readonly sign: (written: Omit<WrittenResult, 'outcome'>) => SignedManifest;
  /** The report for people. */
  readonly report?: (written: Pick<WrittenResult, 'window' | 'cameras'>) => WrittenDocument;
}

export interface WrittenCase extends WrittenResult {
  /** The manifest in the ZIP file. */
  readonly manifest: SignedManifest;
}

/** A camera in the ZIP file. */
interface InZip {
  readonly written: WrittenCamera;
  readonly parts: readonly JobPart[];
  readonly entries: readonly ZipEntry[];
}

/**
 * Writes the ZIP file to `path`, which appears when it is complete. A camera without footage in the window is in the
 * manifest, with its gaps. Throws JobError, also when no camera has footage, and the signal's reason.
 */
export function exportCase(
  request: CaseRequest,
  path: string,
  deps: CaseDeps,
  signal: AbortSignal,
): Promise<WrittenCase> {
  const { cameraIds, ...about } = request;
  const window = { fromMs: about.fromMs, toMs: about.toMs };
  const releases = cameraIds.map((cameraId) => deps.archive.holdWindow(cameraId, window.fromMs, window.toMs));
  return writingResult(
    path,
    async (temporary) => {
      // Only one plan is in memory at a time, so the total size is computed first.
      let movieBytes = 0;
      for (const cameraId of cameraIds) {
        signal.throwIfAborted();
        movieBytes += (await footageOf(cameraId, () => estimateExport({ cameraId, ...about }, deps)))?.sizeBytes ?? 0;
      }
      if (movieBytes === 0) {
        const [from, to] = [isoTime(window.fromMs), isoTime(window.toMs)];
        throw new JobError('no-footage', `${nobodyHas(request)} footage of any of the cameras from ${from} to ${to}`);
      }
      await requireSpace(deps, movieBytes);
      return writingFile(temporary, (target) => writeCase(request, target, movieBytes, deps, signal), signal);
    },
    signal,
  ).finally(() => {
    for (const release of releases) release();
  });
}

/** Undefined for a camera without footage. The message of any other failure names the camera. */
async function footageOf<T>(cameraId: string, plan: () => Promise<T>): Promise<T | undefined> {
  try {
    return await plan();
  } catch (err) {
    if (!(err instanceof JobError)) throw err;
    if (err.code === 'no-footage') return undefined;
    const retry = { withoutCamera: cameraId };
    throw new JobError(err.code, `camera ${cameraId}: ${err.message}`, { cause: err, retry });
  }
}

async function writeCase(
  { cameraIds, ...about }: CaseRequest,
  target: FileHandle,
  movieBytes: number,
  deps: CaseDeps,
  signal: AbortSignal,
): Promise<WrittenCase> {
  const window = { fromMs: about.fromMs, toMs: about.toMs };
  const cameras: InZip[] = [];
  let end = 0;
  for (const cameraId of cameraIds) {
    const offset = end;
    const camera = await untilUnchanged(() => writeCamera(cameraId, offset));
    end = endOf(camera.parts) || end;
    cameras.push(camera);
  }
  const contents = { window, cameras: cameras.map(({ written }) => written) };
  const documents = deps.report && [deps.report(contents)];
  const written = { ...contents, ...(documents && { documents }) };
  const manifest = deps.sign(written);
  const entries = cameras.flatMap(({ entries }) => entries);
  for (const [name, bytes] of [
    ...(documents ?? []).map((document) => [document.name, document.bytes] as const),
    [MANIFEST_NAME, manifest.text],
    [SIGNATURE_NAME, manifest.signature],
  ] as const) {
    const entry = { name, size: bytes.length, crc32: crc32(bytes), offset: end, modified: new Date(manifest.madeMs) };
    entries.push(entry);
    await target.write(Buffer.concat([localHeader(entry), bytes]), 0, undefined, end);
    end += localHeaderBytes(name) + bytes.length;
  }
  const sizeBytes = await writeDirectory(target, entries, end);
  // If files were removed meanwhile, an earlier attempt may have written more.
  await target.truncate(sizeBytes);
  const durationMs = cameras.reduce((sum, camera) => sum + lengthOf(camera.parts), 0);
  const parts = cameras.flatMap((camera) => camera.parts);
  return { ...written, manifest, outcome: { sizeBytes, durationMs, gaps: [], parts, cameras: cameras.map(toOutcome) } };

  async function writeCamera(cameraId: string, offset: number): Promise<InZip> {
    const movies = await footageOf(cameraId, () => planExport({ cameraId, ...about }, deps, signal));
    if (!movies) return { written: await missing(cameraId), parts: [], entries: [] };
    const parts = partsOf(movies, offset).map((part) => ({ ...part, cameraId }));
    const resultBytes = Math.max(movieBytes, endOf(parts));
    const written = await writeMovies(movies, target, { parts, resultBytes }, deps, signal);
    const gaps = movies.flatMap((movie) => movie.gaps);
    const elsewhere = elsewhereOf(movies);
    return { written: { cameraId, movies: written.movies, gaps, ...elsewhere }, parts, entries: written.entries };
  }

  async function missing(cameraId: string): Promise<WrittenCamera> {
    const known = await knownTimeOf({ cameraId, ...about }, deps);
    const { gaps } = upToKnown({ window, gaps: [window] }, known.untilMs);
    const reason = `${nobodyHas(about)} footage of this camera in the window`;
    return {
      cameraId,
      movies: [],
      gaps: withCauses(gaps, known.gaps, known.elsewhere),
      ...(known.elsewhere?.length && { elsewhere: known.elsewhere }),
      reason,
      reasonCode: 'no-footage',
    };
  }
}

const toOutcome = ({ written, parts }: InZip): CameraOutcome => {
  const { movies: _, ...about } = written;
  return { ...about, durationMs: lengthOf(parts) };
};

const lengthOf = (parts: readonly JobPart[]): number => parts.reduce((sum, { durationMs }) => sum + durationMs, 0);
