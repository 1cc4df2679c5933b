// Finds contradictions in a manifest: footage and gaps of each camera must cover the window, and the footage of a movie
// must cover its duration.

import type { Interval } from '../../base/interval.ts';
import type { Manifest, ManifestCamera, ManifestFile } from './manifest.ts';

/** Adjacent recordings are at most this far apart (mp4/join.ts), and each end is rounded to a millisecond. */
const MAX_HOLE_MS = 100;
/** Error of a sum of seconds that were rounded to milliseconds. */
const ROUNDING_SECONDS = 0.0015;
/** A time-lapse has whole pictures, 30 a second. */
const PICTURE_SECONDS = 1 / 30;

const stretchOf = ({ from, to }: { readonly from: string; readonly to: string }): Interval => ({
  fromMs: Date.parse(from),
  toMs: Date.parse(to),
});
const named = ({ fromMs, toMs }: Interval): string =>
  `${new Date(fromMs).toISOString()} to ${new Date(toMs).toISOString()}`;

/** One sentence for each contradiction. */
export function contradictionsOf(manifest: Manifest): string[] {
  const window = stretchOf(manifest);
  if (window.fromMs >= window.toMs) return [`the window ends before it begins: ${named(window)}`];
  const names = manifest.cameras.flatMap(({ files }) => files.map(({ name }) => name));
  const twice = names.filter((name, i) => names.indexOf(name) !== i);
  return [
    ...twice.map((name) => `${name} is listed twice`),
    ...manifest.cameras.flatMap((camera) => ofCamera(camera, window, manifest.speed !== undefined)),
  ];
}

function ofCamera({ camera_id, files, gaps }: ManifestCamera, window: Interval, isLapse: boolean): string[] {
  const problems: string[] = [];
  const missing = gaps.map(stretchOf);
  const recorded = files.flatMap(({ footage }) => footage.map(stretchOf));
  for (const stretch of [...missing, ...recorded, ...files.map(stretchOf)]) {
    if (stretch.fromMs > stretch.toMs) problems.push(`${camera_id}: ${named(stretch)} ends before it begins`);
    if (stretch.fromMs < window.fromMs || stretch.toMs > window.toMs) {
      problems.push(`${camera_id}: ${named(stretch)} is not within the window`);
    }
  }
  for (const gap of missing) {
    const both = recorded.find(({ fromMs, toMs }) => fromMs < gap.toMs && toMs > gap.fromMs);
    if (both) problems.push(`${camera_id}: ${named(gap)} is a gap, but has footage from ${named(both)}`);
  }
  let coveredMs = window.fromMs;
  const cover = ({ fromMs, toMs }: Interval): void => {
    if (fromMs - coveredMs > MAX_HOLE_MS) {
      problems.push(`${camera_id}: ${named({ fromMs: coveredMs, toMs: fromMs })} is neither footage nor a gap`);
    }
    coveredMs = Math.max(coveredMs, toMs);
  };
  for (const stretch of [...missing, ...recorded].toSorted((a, b) => a.fromMs - b.fromMs)) cover(stretch);
  cover({ fromMs: window.toMs, toMs: window.toMs });
  return [...problems, ...files.flatMap((file) => ofFile(file, isLapse))];
}

function ofFile({ name, footage, duration_seconds }: ManifestFile, isLapse: boolean): string[] {
  const problems: string[] = [];
  let atSeconds = 0;
  for (const { movie_from_seconds, movie_to_seconds } of footage) {
    if (Math.abs(movie_from_seconds - atSeconds) > ROUNDING_SECONDS || movie_to_seconds < movie_from_seconds) {
      problems.push(`${name}: footage at ${movie_from_seconds} s does not follow what ends at ${atSeconds} s`);
    }
    atSeconds = movie_to_seconds;
  }
  const tolerance = isLapse ? PICTURE_SECONDS + ROUNDING_SECONDS : ROUNDING_SECONDS;
  if (Math.abs(atSeconds - duration_seconds) > tolerance) {
    problems.push(`${name}: its footage ends at ${atSeconds} s of ${duration_seconds} s`);
  }
  return problems;
}
