// Writes planned movies into one file: a single movie as it is, several as a ZIP file without compression.

import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { JobError, diskError } from './error.ts';
import type { ExportPlan } from './export-plan.ts';
import { startMs } from './facts.ts';
import type { JobOutcome, JobPart } from './job.ts';
import { SourceChanged } from './source.ts';
import { writeMovie, type WriteOptions } from './write-movie.ts';
import type { WrittenCamera, WrittenMovie } from './written.ts';
import { centralDirectory, localHeader, localHeaderBytes, type ZipEntry } from './zip.ts';

/** The outcome of these movies, computed before they are written. */
export function outcomeOf(movies: readonly ExportPlan[]): JobOutcome {
  const durationMs = movies.reduce((sum, movie) => sum + movie.durationMs, 0);
  const gaps = movies.flatMap((movie) => movie.gaps);
  const [only] = movies;
  const elsewhere = elsewhereOf(movies);
  if (only && movies.length === 1) return { sizeBytes: only.sizeBytes, durationMs, gaps, ...elsewhere };
  const parts = partsOf(movies, 0);
  const end = endOf(parts);
  const directory = centralDirectory(
    parts.map((part) => entryOf(part, 0)),
    end,
  );
  return { sizeBytes: end + directory.length, durationMs, gaps, parts, ...elsewhere };
}

/** Footage on other nodes, if there is any. */
export function elsewhereOf(movies: readonly ExportPlan[]): Pick<JobOutcome, 'elsewhere'> {
  const elsewhere = movies.flatMap((movie) => movie.elsewhere ?? []);
  return elsewhere.length === 0 ? {} : { elsewhere };
}

/** The positions of movies of one camera in a ZIP file, after `offset` bytes. */
export function partsOf(movies: readonly ExportPlan[], offset: number): JobPart[] {
  let end = offset;
  return movies.map((movie) => {
    const { name, window, durationMs, sizeBytes, codec, width, height } = movie;
    const offset = end + localHeaderBytes(name);
    end = offset + sizeBytes;
    const [fromMs, toMs] = [startMs(window.fromMs), startMs(window.toMs)];
    return { fromMs, toMs, name, offset, sizeBytes, durationMs, codec, width, height };
  });
}

/** The position in the ZIP file after these parts. */
export const endOf = (parts: readonly JobPart[]): number =>
  parts.reduce((_, { offset, sizeBytes }) => offset + sizeBytes, 0);

/**
 * Creates a file, or empties an existing one, lets `write` fill it, and syncs it. Rejects with JobError when the disk
 * fails.
 */
export async function writingFile<T>(
  path: string,
  write: (target: FileHandle) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const target = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, 0o640);
  try {
    const written = await write(target);
    await target.sync();
    return written;
  } catch (err) {
    throw err instanceof JobError || err instanceof SourceChanged || signal.aborted ? err : (diskError(err) ?? err);
  } finally {
    await target.close();
  }
}

/**
 * Writes a new file at `path` and syncs it. Rejects with JobError when the free space is not enough, with SourceChanged,
 * and with the signal's reason; the caller then removes the file.
 */
export async function writeResult(
  cameraId: string,
  movies: readonly ExportPlan[],
  path: string,
  options: WriteOptions,
  signal: AbortSignal,
): Promise<{ readonly outcome: JobOutcome; readonly camera: WrittenCamera }> {
  const outcome = outcomeOf(movies);
  const { sizeBytes, parts, gaps } = outcome;
  await requireSpace(options, sizeBytes);
  return writingFile(
    path,
    async (target) => {
      const written = await writeMovies(movies, target, { parts, resultBytes: sizeBytes }, options, signal);
      if (parts) await writeDirectory(target, written.entries, endOf(parts));
      return { outcome, camera: { cameraId, movies: written.movies, gaps } };
    },
    signal,
  );
}

export async function requireSpace({ spareBytes }: WriteOptions, sizeBytes: number): Promise<void> {
  if ((await spareBytes()) >= sizeBytes) return;
  throw new JobError('disk-full', `the result needs ${sizeBytes} bytes, but the free space is reserved for recording`);
}

/** Without `parts`, the file is a single movie. */
export async function writeMovies(
  movies: readonly ExportPlan[],
  target: FileHandle,
  { parts, resultBytes }: { readonly parts: readonly JobPart[] | undefined; readonly resultBytes: number },
  options: WriteOptions,
  signal: AbortSignal,
): Promise<{ readonly entries: readonly ZipEntry[]; readonly movies: readonly WrittenMovie[] }> {
  const entries: ZipEntry[] = [];
  const written: WrittenMovie[] = [];
  for (const [i, movie] of movies.entries()) {
    const part = parts?.[i];
    const place = { offset: part?.offset ?? 0, resultBytes, checksum: part !== undefined };
    const { crc32, sha256 } = await writeMovie(movie, target, place, options, signal);
    const { name, window, sizeBytes, durationMs } = movie;
    written.push({ name, sizeBytes, sha256, window, durationMs, footage: movie.parts });
    if (!part) continue;
    const entry = entryOf(part, crc32);
    entries.push(entry);
    const header = localHeader(entry);
    await target.write(header, 0, header.length, entry.offset);
  }
  return { entries, movies: written };
}

export async function writeDirectory(target: FileHandle, entries: readonly ZipEntry[], end: number): Promise<number> {
  const directory = centralDirectory(entries, end);
  await target.write(directory, 0, directory.length, end);
  return end + directory.length;
}

const entryOf = ({ name, offset, sizeBytes, fromMs }: JobPart, crc32: number): ZipEntry => ({
  name,
  size: sizeBytes,
  crc32,
  offset: offset - localHeaderBytes(name),
  modified: new Date(fromMs),
});
