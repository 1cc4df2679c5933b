// One export: a camera and a window in; a progressive MP4 in the directory of results, and what it contains, out.

import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { JobError, diskError } from './error.ts';
import { planExport, type ExportPlan, type ExportRequest, type PlannerDeps } from './export-plan.ts';
import type { JobGap } from './job.ts';
import { SourceChanged, writeMovie, type WriteOptions } from './write-movie.ts';

export interface ExportResult {
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** Wall time of the window without footage; closed in the movie. */
  readonly gaps: readonly JobGap[];
}

/** A full disk, or a person, may take a file away between planning and copying; the next plan is without it. */
const MAX_PLANS = 4;

/**
 * Writes the movie to `path`. It appears there whole, or not at all. Throws JobError with a reason, and the signal's
 * reason when it aborts.
 */
export async function exportWindow(
  request: ExportRequest,
  path: string,
  deps: PlannerDeps & WriteOptions,
  signal: AbortSignal,
): Promise<ExportResult> {
  const temporary = temporaryName(path);
  const release = deps.archive.holdWindow(request.cameraId, request.fromMs, request.toMs);
  try {
    await mkdir(dirname(path), { recursive: true });
    const plan = await writePlanned(request, temporary, deps, signal);
    await rename(temporary, path);
    await syncDirectory(dirname(path));
    return resultOf(plan);
  } catch (err) {
    await rm(temporary, { force: true });
    throw err instanceof JobError || signal.aborted ? err : (diskError(err) ?? err);
  } finally {
    release();
  }
}

/** How long, how large and with which gaps, without making it. */
export async function estimateExport(request: ExportRequest, deps: PlannerDeps): Promise<ExportResult> {
  return resultOf(await planExport(request, deps));
}

/** What is left of these after a crash belongs to nobody. */
export const TEMPORARY_SUFFIX = '.part';

export const temporaryName = (path: string): string => `${path}${TEMPORARY_SUFFIX}`;

async function writePlanned(
  request: ExportRequest,
  path: string,
  deps: PlannerDeps & WriteOptions,
  signal: AbortSignal,
): Promise<ExportPlan> {
  for (let plans = 1; ; plans++) {
    const plan = await planExport(request, deps, signal);
    try {
      await writeMovie(plan, path, deps, signal);
      return plan;
    } catch (err) {
      if (!(err instanceof SourceChanged)) throw err;
      if (plans === MAX_PLANS) throw new JobError('footage-changed', 'the footage is being deleted while it is copied');
    }
  }
}

const resultOf = ({ sizeBytes, durationMs, gaps }: ExportPlan): ExportResult => ({ sizeBytes, durationMs, gaps });

/** Makes the new name outlive a power cut. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
