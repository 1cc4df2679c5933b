// What was written into a result. The manifest needs more details than the job has.

import type { Interval } from '../../base/interval.ts';
import type { PlacedPart } from '../mp4/join.ts';
import type { Elsewhere } from '../footage/holders.ts';
import type { JobErrorCode } from './error.ts';
import type { JobGap, JobOutcome } from './job.ts';

export interface WrittenMovie {
  /** File name in the ZIP file, or of the download. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Hex. */
  readonly sha256: string;
  /** The part of the window that it covers. */
  readonly window: Interval;
  readonly durationMs: number;
  /** Maps times of the movie to wall time. */
  readonly footage: readonly PlacedPart[];
}

export interface WrittenCamera {
  readonly cameraId: string;
  readonly movies: readonly WrittenMovie[];
  readonly gaps: readonly JobGap[];
  readonly elsewhere?: readonly Elsewhere[];
  /** Why there are no movies. */
  readonly reason?: string;
  readonly reasonCode?: JobErrorCode;
}

/** A file for people in a ZIP file. */
export interface WrittenDocument {
  readonly name: string;
  readonly bytes: Buffer;
  /** Hex. */
  readonly sha256: string;
}

export interface WrittenResult {
  readonly outcome: JobOutcome;
  readonly window: Interval;
  readonly cameras: readonly WrittenCamera[];
  readonly documents?: readonly WrittenDocument[];
}

/**
 * The footage of a time-lapse: the same footage with movie times that are `speed` times shorter, one movie after the other.
 */
export function lapsedFootage(movies: readonly WrittenMovie[], speed: number): PlacedPart[] {
  let elapsedMs = 0;
  return movies.flatMap(({ footage, durationMs }) => {
    const startMs = elapsedMs;
    elapsedMs += durationMs;
    return footage.map((part) => ({
      ...part,
      movieStartMs: (startMs + part.movieStartMs) / speed,
      movieEndMs: (startMs + part.movieEndMs) / speed,
    }));
  });
}

/** The outcome with the SHA-256 of its movies. */
export function withHashes(outcome: JobOutcome, cameras: readonly WrittenCamera[]): JobOutcome {
  const hashes = cameras.flatMap(({ movies }) => movies.map(({ sha256 }) => sha256));
  const { parts } = outcome;
  if (parts) return { ...outcome, parts: parts.map((part, i) => ({ ...part, ...hashOf(hashes[i]) })) };
  return { ...outcome, ...hashOf(hashes[0]) };
}

const hashOf = (sha256: string | undefined): { sha256?: string } => (sha256 === undefined ? {} : { sha256 });
