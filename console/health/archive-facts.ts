// What was recorded of cameras: a strip of the last day, and seconds missing in a week by their cause. From the same answer
// that draws the timeline of playback.

import type { TimelineCamera } from '../app/answers.ts';
import type { Camera } from '../app/camera.ts';

type Stretch = Pick<TimelineCamera['spans'][number], 'start_ms' | 'end_ms'>;

interface Times {
  readonly spans: readonly Stretch[];
  readonly gaps: readonly (Stretch & { readonly cause: string })[];
  /** In a cluster: footage of other nodes, and of which they may have some while they do not answer. */
  readonly elsewhere: readonly (Stretch & Pick<TimelineCamera['elsewhere'][number], 'online'>)[];
}

interface StripPart {
  readonly kind: 'footage' | 'gap';
  /** Shares of the strip, 0 to 1. */
  readonly from: number;
  readonly width: number;
}

/** Gaps are drawn at least this wide, so that short ones are visible. */
const MIN_SHARE = 0.004;
/** A shorter gap is not shown as a loss. */
const MIN_SECONDS = 1;

/** Footage and gaps of an interval as parts of a strip. */
export function stripOf({ spans, gaps, elsewhere }: Times, fromMs: number, toMs: number): readonly StripPart[] {
  const part = (kind: StripPart['kind'], least: number) => (one: { start_ms: number; end_ms: number }) => {
    const start = Math.max(fromMs, one.start_ms);
    const end = Math.min(toMs, one.end_ms);
    if (end <= start || (kind === 'gap' && end - start < MIN_SECONDS * 1000)) return [];
    const width = Math.max(least, (end - start) / (toMs - fromMs));
    return [{ kind, from: Math.min(1 - width, (start - fromMs) / (toMs - fromMs)), width }];
  };
  const footage = [...spans, ...elsewhere.filter(({ online }) => online)];
  return [...footage.flatMap(part('footage', 0)), ...gaps.flatMap(part('gap', MIN_SHARE))];
}

/** Causes that need no attention, because a user stopped the recording on purpose. */
const WANTED: ReadonlySet<string> = new Set(['stopped', 'unlicensed']);

/** Seconds missing by cause, longest first, without those causes. */
export function missingByCause(
  { gaps }: Pick<Times, 'gaps'>,
  fromMs: number,
  toMs: number,
): readonly (readonly [cause: string, seconds: number])[] {
  const seconds = new Map<string, number>();
  for (const { cause, start_ms, end_ms } of gaps) {
    const lost = Math.min(toMs, end_ms) - Math.max(fromMs, start_ms);
    if (lost > 0 && !WANTED.has(cause)) seconds.set(cause, (seconds.get(cause) ?? 0) + lost / 1000);
  }
  return [...seconds].filter(([, sum]) => sum >= MIN_SECONDS).sort((a, b) => b[1] - a[1]);
}

/** A camera with less than this share of its usual pictures is reported. */
const USUAL_SHARE = 0.8;

export const isFrameRateLow = ({
  frame_rate: rate,
  usual_frame_rate: usual,
}: Pick<Camera, 'frame_rate' | 'usual_frame_rate'>): boolean =>
  rate !== undefined && typeof usual === 'number' && rate < usual * USUAL_SHARE;
