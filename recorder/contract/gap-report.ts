// The time account of a camera as it is told: what is missing, and why (docs/design/gaps.md).

import type { Interval } from '../../base/interval.ts';
import type { Degraded } from './degraded.ts';
import type { GapCause, LedgerState } from './gap-cause.ts';
import type { Filled, NotFilled } from './gap-fill.ts';

export interface Gap extends Interval {
  readonly cause: GapCause;
  /** It has not ended yet. */
  readonly isOpen: boolean;
  /** Its cause may still change. */
  readonly isProvisional: boolean;
  /** Why it could not be filled from the memory of the camera, and when that was found; undefined: not tried. */
  readonly notFilled?: Pick<NotFilled, 'reason' | 'atMs'> | undefined;
  /** Of a gap with the cause `stopped`: who stopped the camera and why; undefined if that is not known. */
  readonly detail?: string | undefined;
}

/** Footage and gaps of an interval. They do not overlap, and together they cover the time that should have been recorded. */
export interface GapReport {
  readonly fromMs: number;
  readonly toMs: number;
  /** Oldest first. */
  readonly gaps: readonly Gap[];
  /** Later time is still being written or not explained yet; at most `toMs` and the current time. */
  readonly knownUntilMs: number;
  /** Time up to `knownUntilMs` in which the camera should have been recorded, and the part of it with footage. */
  readonly wantedMs: number;
  readonly recordedMs: number;
  /** Time up to `toMs` with footage, also with footage that retention has removed; oldest first, without overlap. */
  readonly recorded: readonly Interval[];
  /** Footage in which pictures are missing; oldest first, not cut to the interval. */
  readonly degraded: readonly Degraded[];
  /** Former gaps that have footage from the memory of the camera now; oldest first, without overlap. */
  readonly filled: readonly Filled[];
}

export interface GapReporter {
  /** Footage and gaps of [fromMs, toMs). `files`: footage that is known from files. */
  report(cameraId: string, fromMs: number, toMs: number, files: readonly Interval[]): Promise<GapReport>;
}

/** Since when and why a camera is silent. */
export interface CameraSilence {
  /** Wall time of the last written picture, or since when there should have been one. */
  readonly sinceMs: number;
  /** The cause, as far as it is known. */
  readonly cause: LedgerState;
}
