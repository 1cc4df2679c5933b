// Describes the contents of a movie inside its file, for people and for programs.

import type { Interval } from '../../base/interval.ts';
import type { Part } from '../mp4/box.ts';
import type { JoinFacts, PlacedPart } from '../mp4/join.ts';
import { movieDescription } from '../mp4/movie-description.ts';
import { lapseDurationMs } from './ffmpeg.ts';
import type { JobGap } from './job.ts';
import { cameraTitle, localTime, type LocalNames } from './movie-name.ts';

/** The contents of a movie in wall time, with its gaps and their causes. */
export interface JobFacts extends JoinFacts {
  readonly gaps: readonly JobGap[];
}

/** Further entries are only counted. */
const MAX_LISTED = 1000;

export const isoTime = (ms: number): string => new Date(Math.round(ms)).toISOString();

/** The start of footage in whole milliseconds, as its file name and the list of gaps have it. */
export const startMs = (ms: number): number => Math.floor(ms + 1e-6);
export const startTime = (ms: number): string => isoTime(startMs(ms));

/**
 * The start of a part of a movie. If the window cuts the part, it starts with the window, although ticks of the movie are
 * finer than a millisecond.
 */
export const partStart = ({ wallStartMs }: Pick<PlacedPart, 'wallStartMs'>, { fromMs }: Interval): string =>
  isoTime(Math.max(startMs(wallStartMs), startMs(fromMs)));

/** The `udta` box of a movie. `version`: of this program; `speed`: of a time-lapse, which is shorter by that factor. */
export const describeMovie = (
  cameraId: string,
  facts: JobFacts,
  { version, local }: { readonly version: string; readonly local?: LocalNames | undefined },
  speed?: number,
): Part =>
  movieDescription({
    title: local
      ? localTitle(cameraId, facts, local)
      : `${cameraId} ${startTime(facts.window.fromMs)} to ${startTime(facts.window.toMs)}`,
    date: facts.parts[0] ? partStart(facts.parts[0], facts.window) : startTime(facts.window.fromMs),
    writer: `kube-nvr ${version}`,
    ...describeFacts(cameraId, facts, local, speed),
  });

function localTitle(cameraId: string, { window }: JobFacts, local: LocalNames): string {
  const times = `${localTime(window.fromMs, local)} to ${localTime(window.toMs, local)}`;
  return [local.site, cameraTitle(cameraId, local), times].filter((word) => word !== '').join(', ');
}

function describeFacts(
  cameraId: string,
  facts: JobFacts,
  local: LocalNames | undefined,
  speed?: number,
): { comment: string; details: string } {
  const { window, durationMs, parts, gaps } = facts;
  const inMovie = (ms: number): number => seconds(ms / (speed ?? 1));
  const silent = speed === undefined ? parts.filter(({ soundLeftOut }) => soundLeftOut) : [];
  const comment = [
    ...(local ? [`${localTitle(cameraId, facts, local)}.`] : []),
    `Camera ${cameraId}, ${startTime(window.fromMs)} to ${startTime(window.toMs)}, ${seconds(durationMs)} s of footage${speed === undefined ? '' : `, ${speed} times faster`}.`,
    gaps.length === 0 ? 'No gaps.' : `${gaps.length} ${gaps.length === 1 ? 'gap' : 'gaps'}, closed in this movie:`,
    ...gaps.slice(0, MAX_LISTED).map(gapLine),
    ...silent.slice(0, MAX_LISTED).map((part) => soundLine(part, window)),
  ].join('\n');
  const details = JSON.stringify({
    camera_id: cameraId,
    ...(local && {
      name: local.nameOf(cameraId),
      site: local.site || undefined,
      local_from: localTime(window.fromMs, local),
      local_to: localTime(window.toMs, local),
    }),
    from: startTime(window.fromMs),
    to: startTime(window.toMs),
    ...(speed === undefined ? {} : { speed }),
    duration_seconds: seconds(speed === undefined ? durationMs : lapseDurationMs(durationMs, speed)),
    gap_count: gaps.length,
    gaps: gaps
      .slice(0, MAX_LISTED)
      .map(({ fromMs, toMs, cause }) => ({ from: isoTime(fromMs), to: isoTime(toMs), ...(cause ? { cause } : {}) })),
    part_count: parts.length,
    parts: parts.slice(0, MAX_LISTED).map((part) => ({
      from: partStart(part, window),
      to: isoTime(part.wallEndMs),
      movie_from_seconds: inMovie(part.movieStartMs),
      movie_to_seconds: inMovie(part.movieEndMs),
      ...(part.soundLeftOut ? { sound: 'left out' } : {}),
    })),
  });
  return { comment, details };
}

const gapLine = (gap: JobGap): string =>
  `${isoTime(gap.fromMs)} to ${isoTime(gap.toMs)} (${lengthOf(gap)} s${gap.cause ? `, ${gap.cause}` : ''})`;

const soundLine = (part: PlacedPart, window: Interval): string =>
  `Sound in another format is left out: ${partStart(part, window)} to ${isoTime(part.wallEndMs)}`;

export const seconds = (ms: number): number => Math.round(ms) / 1000;

const lengthOf = ({ fromMs, toMs }: Interval): number => seconds(toMs - fromMs);
