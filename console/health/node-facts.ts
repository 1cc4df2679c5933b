// What the health screen says about a node: whether it is ready, what needs attention on it, and how many days its free
// space lasts.

import type { Camera } from '../app/camera.ts';

/** The answer of `GET /api/health/ready`. */
export interface Readiness {
  readonly status: 'ready' | 'not_ready';
  readonly version?: string;
  readonly failed?: readonly string[];
  readonly checks?: { readonly license?: { readonly reason?: { readonly message: string } } };
  readonly warnings?: readonly {
    readonly code: string;
    readonly detail: string;
    readonly todo?: string;
    readonly camera_id?: string;
  }[];
}

const FAILED: Readonly<Record<string, string>> = {
  storage: 'the database does not answer',
  cluster_store: 'the cluster does not accept its renewals',
  recordings_dir: 'its disk takes no footage',
  license: 'the licence is not valid',
};

/** The checks that fail, as text; empty if the node is ready. */
export function failedChecks({ status, failed = [], checks }: Readiness): readonly string[] {
  if (status === 'ready') return [];
  const words = (check: string): string =>
    (check === 'license' ? checks?.license?.reason?.message : undefined) ?? FAILED[check] ?? check;
  return failed.length === 0 ? ['not ready'] : failed.map(words);
}

/** A node that can keep footage for less than this share of the wanted time is reported. */
const ENOUGH = 0.98;

/** The longest time for which footage of these cameras should be kept, in days; undefined if none has a limit. */
export function wantedDays(cameras: readonly Pick<Camera, 'max_age_seconds'>[]): number | undefined {
  const seconds = cameras.flatMap(({ max_age_seconds: limit }) => limit ?? []);
  return seconds.length > 0 ? Math.max(...seconds) / DAY_SECONDS : undefined;
}

/** Whether footage must be removed before its time, because there is not enough space. */
export const isSpaceShort = (spaceForDays: number, wanted: number | undefined): boolean =>
  wanted !== undefined && spaceForDays < wanted * ENOUGH;

const GIB_BITS = 2 ** 33;
const DAY_SECONDS = 86_400;

/**
 * Days of new footage for which the free space suffices at the present bit rates; afterwards old footage is removed.
 * Undefined while nothing is recorded.
 */
export function freeDays(
  freeGib: number,
  cameras: readonly Pick<Camera, 'state' | 'bitrate' | 'preview'>[],
): number | undefined {
  const bits = cameras
    .filter(({ state }) => state === 'recording')
    .reduce((sum, { bitrate, preview }) => sum + bitrate + (preview?.recording ? (preview.bitrate ?? 0) : 0), 0);
  return bits > 0 ? (freeGib * GIB_BITS) / bits / DAY_SECONDS : undefined;
}
