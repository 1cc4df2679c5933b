// What was written into a result. The manifest needs more details than the job has.

import type { JoinWindow, PlacedPart } from '../mp4/join.ts';
import type { JobErrorCode } from './error.ts';
import type { JobGap, JobOutcome } from './job.ts';

export interface WrittenMovie {
  /** File name in the ZIP file, or of the download. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Hex. */
  readonly sha256: string;
  /** The part of the window that it covers. */
  readonly window: JoinWindow;
  readonly durationMs: number;
  /** Maps times of the movie to wall time. */
  readonly footage: readonly PlacedPart[];
}

export interface WrittenCamera {
  readonly cameraId: string;
  readonly movies: readonly WrittenMovie[];
  readonly gaps: readonly JobGap[];
  /** Why there are no movies. */
  readonly reason?: string;
  readonly reasonCode?: JobErrorCode;
}

export interface Written {
  readonly outcome: JobOutcome;
  readonly window: JoinWindow;
  readonly cameras: readonly WrittenCamera[];
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
