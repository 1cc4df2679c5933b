// Decides what is removed next: from sizes, limits, free space and each camera's oldest segment it returns a camera,
// whose oldest segment is removed, and the rule that requires it, or nothing. Pure: the caller removes that segment and
// calls again.

import type { Space } from '../disk/file-system.ts';
import { bytesOf, type SpaceAmount } from '../disk/space.ts';

/** Limits of how much footage is kept; undefined means no limit. */
export interface RetentionLimits {
  readonly maxAgeMs?: number | undefined;
  readonly maxSizeBytes?: number | undefined;
  readonly minFree?: SpaceAmount | undefined;
}

/** The limits of the node, and of each camera that is known: configured here, or in the cluster. */
export interface Limits {
  readonly node: RetentionLimits;
  readonly cameras: ReadonlyMap<string, RetentionLimits>;
}

/** `headroom`: not a limit of the user, but the space that recording needs next. `full`: a write found the disk full. */
export type RetentionRule = 'max-age' | 'max-size' | 'min-free' | 'headroom' | 'full';

/** The oldest segment of a camera that may be removed: closed, not protected, and not being read. */
export interface OldestSegment {
  readonly startMs: number;
  /** Undefined while its file has not been read: then it is not too old yet. */
  readonly endMs: number | undefined;
}

export interface CameraFootage {
  readonly cameraId: string;
  /** Of closed and open segments. */
  readonly bytes: number;
  readonly protectedBytes: number;
  /** The camera's own limits, in addition to those of the node. */
  readonly limits: RetentionLimits | undefined;
  readonly oldest: OldestSegment | undefined;
}

interface PlanInput {
  readonly nowMs: number;
  /** The clock has jumped: nothing is too old for now. */
  readonly agePaused: boolean;
  /** Of all cameras together. */
  readonly limits: RetentionLimits;
  readonly cameras: readonly CameraFootage[];
  /** Undefined if the disk does not report it. */
  readonly space: Space | undefined;
  readonly headroomBytes: number;
}

interface PlannedRemoval {
  readonly cameraId: string;
  readonly rule: RetentionRule;
  /** Whose limit it is. */
  readonly scope: 'node' | 'camera';
}

/** When protected footage alone exceeds `maxSize`, this share of it remains for other footage: the newest is kept. */
const UNPROTECTED_SHARE = 0.1;

/** The next removal; undefined when every limit is kept, or when no removal would help. */
export function planRemoval(input: PlanInput): PlannedRemoval | undefined {
  return byAge(input) ?? byCameraSize(input) ?? byNodeSize(input) ?? bySpace(input);
}

/** Whether protected footage alone is larger than the limit: that limit cannot be kept. */
export const isOverQuota = (protectedBytes: number, { maxSizeBytes }: RetentionLimits): boolean =>
  maxSizeBytes !== undefined && protectedBytes > maxSizeBytes;

/** The size that footage may have when this much of it is protected; undefined when there is no limit. */
export function effectiveMaxSize(protectedBytes: number, limits: RetentionLimits): number | undefined {
  const { maxSizeBytes } = limits;
  if (maxSizeBytes === undefined || !isOverQuota(protectedBytes, limits)) return maxSizeBytes;
  return protectedBytes + maxSizeBytes * UNPROTECTED_SHARE;
}

function byAge({ nowMs, agePaused, limits, cameras }: PlanInput): PlannedRemoval | undefined {
  if (agePaused) return undefined;
  for (const { cameraId, oldest, limits: own } of cameras) {
    if (oldest?.endMs === undefined) continue;
    const ageMs = nowMs - oldest.endMs;
    if (ageMs > (own?.maxAgeMs ?? Infinity)) return { cameraId, rule: 'max-age', scope: 'camera' };
    if (ageMs > (limits.maxAgeMs ?? Infinity)) return { cameraId, rule: 'max-age', scope: 'node' };
  }
  return undefined;
}

function byCameraSize({ cameras }: PlanInput): PlannedRemoval | undefined {
  for (const { cameraId, oldest, bytes, protectedBytes, limits } of cameras) {
    if (!oldest || !limits) continue;
    if (bytes > (effectiveMaxSize(protectedBytes, limits) ?? Infinity)) {
      return { cameraId, rule: 'max-size', scope: 'camera' };
    }
  }
  return undefined;
}

function byNodeSize({ cameras, limits }: PlanInput): PlannedRemoval | undefined {
  if (limits.maxSizeBytes === undefined) return undefined;
  let bytes = 0;
  let protectedBytes = 0;
  for (const camera of cameras) {
    bytes += camera.bytes;
    protectedBytes += camera.protectedBytes;
  }
  if (bytes <= (effectiveMaxSize(protectedBytes, limits) ?? Infinity)) return undefined;
  return oldestOfAll(cameras, 'max-size');
}

/** What is removed next because a disk is short of space; `cameras`: with the oldest segment of each on this disk. */
export function bySpace({
  cameras,
  limits,
  space,
  headroomBytes,
}: Pick<PlanInput, 'cameras' | 'limits' | 'space' | 'headroomBytes'>): PlannedRemoval | undefined {
  if (!space) return undefined;
  for (const { cameraId, oldest, limits: own } of cameras) {
    if (!oldest || !own?.minFree) continue;
    if (space.freeBytes < bytesOf(own.minFree, space)) return { cameraId, rule: 'min-free', scope: 'camera' };
  }
  if (limits.minFree && space.freeBytes < bytesOf(limits.minFree, space)) return oldestOfAll(cameras, 'min-free');
  return space.freeBytes < headroomBytes ? oldestOfAll(cameras, 'headroom') : undefined;
}

/** The camera with the oldest segment of all. */
export function oldestOfAll(cameras: readonly CameraFootage[], rule: RetentionRule): PlannedRemoval | undefined {
  let found: CameraFootage | undefined;
  for (const camera of cameras) {
    if (camera.oldest && camera.oldest.startMs < (found?.oldest?.startMs ?? Infinity)) found = camera;
  }
  return found && { cameraId: found.cameraId, rule, scope: 'node' };
}
