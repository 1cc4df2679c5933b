// What was written of a result: for its manifest, which says more than the job does.

import type { JoinWindow, PlacedPart } from '../mp4/join.ts';
import type { JobErrorCode } from './error.ts';
import type { JobGap, JobOutcome } from './job.ts';

export interface WrittenMovie {
  /** In the archive, or as downloads name it. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Hex. */
  readonly sha256: string;
  /** The part of the window that it is of. */
  readonly window: JoinWindow;
  readonly durationMs: number;
  /** Which time of the movie is which wall time. */
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

/** The same where nothing but the movies' own times change: `speed` times faster, one behind the other. */
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
