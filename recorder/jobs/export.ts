// Makes an export: a progressive MP4 file of a window of a camera in the directory of results, or a ZIP file of several
// movies if the codec changes.

import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { JobError, diskError } from './error.ts';
import { planExport, type ExportPlan, type ExportRequest, type PlannerDeps } from './export-plan.ts';
import type { JobOutcome } from './job.ts';
import { SourceChanged } from './source.ts';
import type { WriteOptions } from './write-movie.ts';
import { outcomeOf, writeResult } from './write-result.ts';
import type { WrittenResult } from './written.ts';

/** Retention or a user may remove a file between planning and copying; the next plan is without it. */
const MAX_PLANS = 4;

/**
 * Writes the result to `path`, which appears when it is complete. Throws JobError with a reason, and the signal's reason
 * when it aborts.
 */
export function exportWindow(
  request: ExportRequest,
  path: string,
  deps: PlannerDeps & WriteOptions,
  signal: AbortSignal,
): Promise<WrittenResult> {
  const { cameraId, fromMs, toMs } = request;
  const release = deps.archive.holdWindow(cameraId, fromMs, toMs);
  return writingResult(
    path,
    (temporary) =>
      untilUnchanged(async () => {
        const movies = await planExport(request, deps, signal);
        const { outcome, camera } = await writeResult(cameraId, movies, temporary, deps, signal);
        const window = { fromMs, toMs: endOf(movies, toMs) };
        return { outcome: { ...outcome, ...untilOf(movies, toMs) }, window, cameras: [camera] };
      }),
    signal,
  ).finally(release);
}

/** `write` creates a file with the temporary name that it is given; the file is then renamed to `path`. */
export async function writingResult<T>(
  path: string,
  write: (temporary: string) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const temporary = temporaryName(path);
  try {
    await mkdir(dirname(path), { recursive: true });
    const written = await write(temporary);
    await rename(temporary, path);
    await syncDirectory(dirname(path));
    return written;
  } catch (err) {
    await rm(temporary, { force: true });
    throw err instanceof JobError || signal.aborted ? err : (diskError(err) ?? err);
  }
}

/** The duration, size and gaps of an export, without making it. */
export async function estimateExport(request: ExportRequest, deps: PlannerDeps): Promise<JobOutcome> {
  const movies = await planExport(request, deps, new AbortController().signal);
  return { ...outcomeOf(movies), ...untilOf(movies, request.toMs) };
}

const endOf = (movies: readonly ExportPlan[], toMs: number): number => movies.at(-1)?.window.toMs ?? toMs;

function untilOf(movies: readonly ExportPlan[], toMs: number): Pick<JobOutcome, 'untilMs'> {
  const untilMs = endOf(movies, toMs);
  return untilMs < toMs ? { untilMs: Math.round(untilMs) } : {};
}

/** Files with this suffix are leftovers of a crash when the recorder starts. */
export const TEMPORARY_SUFFIX = '.part';

export const temporaryName = (path: string): string => `${path}${TEMPORARY_SUFFIX}`;

/** Plans and writes again when a file of the plan is gone. */
export async function untilUnchanged<T>(planAndWrite: () => Promise<T>): Promise<T> {
  for (let plans = 1; ; plans++) {
    try {
      return await planAndWrite();
    } catch (err) {
      if (!(err instanceof SourceChanged)) throw err;
      if (plans === MAX_PLANS) throw new JobError('footage-changed', 'the footage is being deleted while it is copied');
    }
  }
}

/** Makes the new name survive a power failure. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
