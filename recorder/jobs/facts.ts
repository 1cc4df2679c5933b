// What a movie contains in; the same for people and for programs out, as it lies in the file beside the pictures.

import type { Part } from '../mp4/box.ts';
import type { FootageGap, JoinFacts, PlacedPart } from '../mp4/join.ts';
import { movieDescription } from '../mp4/movie-description.ts';
import type { JobGap } from './job.ts';

/** What is in a movie, by the wall clock, with the causes of what is missing. */
export interface JobFacts extends JoinFacts {
  readonly gaps: readonly JobGap[];
}

/** More are counted. */
const MAX_LISTED = 1000;

export const isoTime = (ms: number): string => new Date(Math.round(ms)).toISOString();

/** The `udta` box of a movie. `version`: of this program. */
export const describeMovie = (cameraId: string, facts: JobFacts, version: string): Part =>
  movieDescription({
    title: `${cameraId} ${isoTime(facts.window.fromMs)} to ${isoTime(facts.window.toMs)}`,
    date: isoTime(facts.parts[0]?.wallStartMs ?? facts.window.fromMs),
    writer: `kube-nvr ${version}`,
    ...describeFacts(cameraId, facts),
  });

function describeFacts(cameraId: string, facts: JobFacts): { comment: string; details: string } {
  const { window, durationMs, parts, gaps } = facts;
  const silent = parts.filter(({ soundLeftOut }) => soundLeftOut);
  const comment = [
    `Camera ${cameraId}, ${isoTime(window.fromMs)} to ${isoTime(window.toMs)}, ${seconds(durationMs)} s of footage.`,
    gaps.length === 0 ? 'No gaps.' : `${gaps.length} gaps, closed in this movie:`,
    ...gaps.slice(0, MAX_LISTED).map(gapLine),
    ...silent.slice(0, MAX_LISTED).map(soundLine),
  ].join('\n');
  const details = JSON.stringify({
    camera_id: cameraId,
    from: isoTime(window.fromMs),
    to: isoTime(window.toMs),
    duration_seconds: seconds(durationMs),
    gap_count: gaps.length,
    gaps: gaps
      .slice(0, MAX_LISTED)
      .map(({ fromMs, toMs, cause }) => ({ from: isoTime(fromMs), to: isoTime(toMs), ...(cause ? { cause } : {}) })),
    part_count: parts.length,
    parts: parts.slice(0, MAX_LISTED).map((part) => ({
      from: isoTime(part.wallStartMs),
      to: isoTime(part.wallEndMs),
      movie_from_seconds: seconds(part.movieStartMs),
      movie_to_seconds: seconds(part.movieEndMs),
      ...(part.soundLeftOut ? { sound: 'left out' } : {}),
    })),
  });
  return { comment, details };
}

const gapLine = (gap: JobGap): string =>
  `${isoTime(gap.fromMs)} to ${isoTime(gap.toMs)} (${lengthOf(gap)} s${gap.cause ? `, ${gap.cause}` : ''})`;

const soundLine = ({ wallStartMs, wallEndMs }: PlacedPart): string =>
  `Sound of another kind left out: ${isoTime(wallStartMs)} to ${isoTime(wallEndMs)}`;

const seconds = (ms: number): number => Math.round(ms) / 1000;

const lengthOf = ({ fromMs, toMs }: FootageGap): number => seconds(toMs - fromMs);
