// What the health screen says about a node: whether it is ready, what needs attention on it, and how many days its free
// space lasts.

import type { NodeLoad } from '../app/answers.ts';
import type { Camera } from '../app/camera.ts';
import { formatDuration } from '../parts/format.ts';

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

/** Nodes of older versions, and those with one disk and without targets, say nothing of them. */
interface Places extends Pick<NodeLoad, 'uncopied_cameras'> {
  readonly disks?: readonly NonNullable<NodeLoad['disks']>[number][] | undefined;
  readonly targets?: readonly NonNullable<NodeLoad['targets']>[number][] | undefined;
}

interface PlaceLine {
  readonly name: string;
  readonly text: string;
  readonly isWeak: boolean;
}

const counted = (count: number, one: string, more: string): string => (count === 1 ? `1 ${one}` : `${count} ${more}`);

/** Each disk and each target in a line, and what has one copy only. Empty for one disk without copies. */
export function placesOf({ disks = [], targets = [], uncopied_cameras: uncopied = 0 }: Places): readonly PlaceLine[] {
  return [
    ...disks.map(({ path, state, problem, free_gb: free, total_gb: total }) => ({
      name: path,
      text:
        problem ?? `${free} of ${total} GiB free${state === 'leaving' ? ', its files move to the other disks' : ''}`,
      isWeak: problem !== undefined,
    })),
    ...targets.map(({ name, problem, lacking_files: files, lag_seconds: lag, keeps_days: days }) => {
      const alone = files === 0 ? '' : `, ${counted(files, 'file is', 'files are')} on this node alone`;
      const waits = lag > 0 ? `, the oldest has waited for ${formatDuration(lag)}` : '';
      const kept = days === null ? 'keeps all copies' : `keeps copies for ${days} d`;
      return {
        name,
        text: `${problem === undefined ? '' : `${problem}; `}${kept}${alone}${waits}`,
        isWeak: problem !== undefined,
      };
    }),
    ...(uncopied > 0 ? [{ name: 'Without copies', text: counted(uncopied, 'camera', 'cameras'), isWeak: false }] : []),
  ];
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
