// Conditions that must always hold, whatever a camera, a network or a disk does: footage of a camera must not overlap or be
// captured after it was written, and all time is either recorded or accounted for as a gap.

import assert from 'node:assert/strict';
import type { ClosedFile, Interval } from './closed-footage.ts';

/** The checked fields of `GET /api/archive/{camera_id}/gaps`. */
export interface GapsAnswer {
  readonly known_until_ms: number;
  readonly gaps: readonly {
    readonly start_ms: number;
    readonly end_ms: number;
    readonly seconds: number;
    readonly cause: string;
    readonly is_open: boolean;
    readonly filled_from?: string;
    readonly seam?: string;
    readonly not_filled?: { readonly reason: string };
  }[];
  readonly wanted_seconds: number;
  readonly recorded_seconds: number;
  readonly missing_seconds: number;
  readonly filled_seconds: number;
  readonly seconds_by_cause: Readonly<Record<string, number>>;
  readonly degraded: readonly { readonly lost_frames: number; readonly expected_frames: number }[];
}

/** How much footage and gaps may deviate from the wanted time. */
export const ACCOUNT_TOLERANCE_MS = 100;
/** Files of one run join exactly; two runs use the same clock. */
const OVERLAP_TOLERANCE_MS = 1;
/** Nothing is dated later than this after its arrival, and what arrived is written before its file ends. */
export const FUTURE_TOLERANCE_MS = 1_000;

/** No two files of one camera cover the same time. */
export function assertApart(files: readonly ClosedFile[]): void {
  const lastOf = new Map<string, ClosedFile>();
  for (const file of files) {
    const before = lastOf.get(file.cameraId);
    const overlapMs = before ? before.toMs - file.fromMs : 0;
    assert.ok(
      overlapMs <= OVERLAP_TOLERANCE_MS,
      `${file.path} begins ${(overlapMs / 1000).toFixed(3)} s before ${before?.path} ends`,
    );
    if (!before || file.toMs > before.toMs) lastOf.set(file.cameraId, file);
  }
}

/** Of the files that begin within a minute, so many may be shorter than a second: a camera that connects again and again ends files, too. */
const MAX_SHORT_FILES = 6;
const SHORT_MS = 900;
const MINUTE_MS = 60_000;

/** A camera does not fill its directory with files of fractions of a second, and no file has no time at all. */
export function assertFewShort(files: readonly ClosedFile[]): void {
  const shortOf = new Map<string, ClosedFile[]>();
  for (const file of files) {
    const lengthMs = file.toMs - file.fromMs;
    assert.ok(lengthMs > 0, `${file.path} is ${lengthMs} ms long`);
    if (lengthMs >= SHORT_MS) continue;
    const short = shortOf.get(file.cameraId) ?? [];
    shortOf.set(file.cameraId, short);
    short.push(file);
    const first = short.at(-1 - MAX_SHORT_FILES);
    if (first)
      assert.ok(file.fromMs - first.fromMs >= MINUTE_MS, `${first.path} to ${file.path}: ${short.length} short files`);
  }
}

/** No file ends after the time at which it was written; for recorders that use the machine's clock. */
export function assertNotAhead(files: readonly ClosedFile[]): void {
  for (const { path, toMs, modifiedMs } of files) {
    const aheadMs = toMs - modifiedMs;
    assert.ok(aheadMs <= FUTURE_TOLERANCE_MS, `${path} ends ${(aheadMs / 1000).toFixed(3)} s behind its last byte`);
  }
}

/** A picture reaches its file within this time; until then an open gap may still be filled. */
const UNWRITTEN_MS = 3_000;

/** Gaps are ordered, have a cause, add up, and never overlap with footage. The answer may be older than the footage. */
export function assertGaps(answer: GapsAnswer, footage: readonly Interval[], story: string): void {
  const told = `${JSON.stringify({ answer, footage })} ${story}`;
  let lastMs = -Infinity;
  for (const { start_ms, end_ms, cause, filled_from: filled } of answer.gaps) {
    assert.ok(start_ms >= lastMs && end_ms > start_ms, `gaps overlap. ${told}`);
    assert.notEqual(cause, 'unknown', `a gap has no cause. ${told}`);
    lastMs = end_ms;
    if (filled !== undefined) continue;
    for (const { fromMs, toMs } of footage) {
      const sharedMs = Math.min(toMs, end_ms, answer.known_until_ms - UNWRITTEN_MS) - Math.max(fromMs, start_ms);
      assert.ok(sharedMs <= ACCOUNT_TOLERANCE_MS, `${sharedMs.toFixed(0)} ms are footage and gap. ${told}`);
    }
  }
  const secondsOf = (gaps: GapsAnswer['gaps']): number =>
    gaps.reduce((sum, { start_ms, end_ms }) => sum + end_ms - start_ms, 0) / 1000;
  const missing = secondsOf(missingIn(answer));
  assert.ok(Math.abs(missing - answer.missing_seconds) < 0.001, `missing_seconds is off. ${told}`);
  const filled = secondsOf(answer.gaps) - missing;
  assert.ok(Math.abs(filled - answer.filled_seconds) < 0.001, `filled_seconds is off. ${told}`);
  const wanted = answer.recorded_seconds + answer.missing_seconds;
  assert.ok(Math.abs(wanted - answer.wanted_seconds) < 0.001, `wanted_seconds is off. ${told}`);
}

/** Gaps that have no footage from the memory of the camera. */
const missingIn = ({ gaps }: GapsAnswer): GapsAnswer['gaps'] => gaps.filter((gap) => gap.filled_from === undefined);

/** Footage and gaps together cover all time up to `known_until_ms`, without overlap. */
export function assertAccount(answer: GapsAnswer, footage: readonly Interval[], story: string): void {
  const known = answer.known_until_ms;
  const recorded = footage
    .map(({ fromMs, toMs }) => ({ fromMs, toMs: Math.min(toMs, known) }))
    .filter(({ fromMs, toMs }) => toMs > fromMs);
  const gaps = missingIn(answer).map(({ start_ms, end_ms }) => ({ fromMs: start_ms, toMs: end_ms }));
  const all = [...recorded, ...gaps].sort((a, b) => a.fromMs - b.fromMs);
  const first = all[0];
  const last = all.at(-1);
  if (!first || !last) return;
  const told = `${story}: ${JSON.stringify({ known, gaps: answer.gaps, recorded })}`;
  const close = (a: number, b: number, what: string): void =>
    assert.ok(Math.abs(a - b) <= ACCOUNT_TOLERANCE_MS, `${what} is off by ${(a - b).toFixed(0)} ms. ${told}`);
  for (const [i, { fromMs }] of all.entries()) {
    const before = all[i - 1];
    if (before) close(before.toMs, fromMs, 'what follows');
  }
  close(last.toMs, known, 'the end');
  const wantedMs = known - first.fromMs;
  close(sum(all), wantedMs, 'the sum');
  close(answer.wanted_seconds * 1000, wantedMs, 'wanted_seconds');
  close(answer.recorded_seconds * 1000, sum(recorded), 'recorded_seconds');
  assert.ok(Math.abs(answer.missing_seconds * 1000 - sum(gaps)) <= 1, told);
  const byCause = Object.values(answer.seconds_by_cause).reduce((all, seconds) => all + seconds, 0);
  assert.ok(Math.abs(byCause - answer.missing_seconds) < 0.001, told);
}

const sum = (intervals: readonly Interval[]): number =>
  intervals.reduce((all, { fromMs, toMs }) => all + toMs - fromMs, 0);
