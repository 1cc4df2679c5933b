// What is recorded of a camera, as `GET /api/archive/timeline` says it, and what that means at one moment.

import type { TimelineCamera } from '../app/answers.ts';
import { nextWithin, spanAt, subtractSpans, type Span } from './spans.ts';

export interface GapSpan extends Span {
  readonly cause: string;
  /** Whether it still lasts. */
  readonly isOpen: boolean;
  /** Why it could not be filled from the memory of the camera; undefined if that was not tried. */
  readonly notFilled: { readonly means: string; readonly isTriedAgain: boolean } | undefined;
  /** Who stopped the camera and why; undefined if nobody did, or that is not known. */
  readonly detail?: string | undefined;
  /** Over 1: several gaps that are too close together to be told apart at this resolution. */
  readonly count: number;
  /** What is missing: less than the time from start to end if there are several. */
  readonly missingMs: number;
}

/** A gap that was filled from the memory of the camera. */
export interface FilledSpan extends Span {
  readonly cause: string;
  readonly atMs: number;
  /** How its place was found. */
  readonly seam: 'bytes' | 'time' | 'unknown';
}

interface ProtectedSpan extends Span {
  readonly id: string;
  readonly note: string | null;
}

/** Something that the camera, another system or a person told. */
export interface EventSpan extends Span {
  readonly id: string;
  readonly type: string;
  /** Undefined: it is no bookmark. */
  readonly bookmark?: { readonly name: string; readonly note: string; readonly by: string } | undefined;
  /** It goes on, or its end was not told: then it ends where it begins. */
  readonly isOpen: boolean;
}

/** What the key frames show. Time without one was not looked at. */
interface ActivitySpan extends Span {
  readonly kind: 'active' | 'quiet' | 'unclear';
}

/** Footage on another node of the cluster. */
interface ElsewhereSpan extends Span {
  readonly nodeId: string;
  readonly isOnline: boolean;
  readonly refusal?: { readonly http_status: number; readonly problem: string } | undefined;
}

export interface CameraFootage {
  readonly cameraId: string;
  /** Footage before this time was removed; undefined if nothing has been removed. */
  readonly keptFromMs: number | undefined;
  /** Recorded time without the gaps, in order. */
  readonly footage: readonly Span[];
  readonly gaps: readonly GapSpan[];
  /** Parts of the footage that were fetched from the memory of the camera. */
  readonly filled: readonly FilledSpan[];
  /** Recorded time of its preview, on any node that answers, in order. */
  readonly preview: readonly Span[];
  readonly protections: readonly ProtectedSpan[];
  /** Undefined if nobody asked for them. */
  readonly events?: readonly EventSpan[] | undefined;
  readonly activity?: readonly ActivitySpan[] | undefined;
  readonly elsewhere: readonly ElsewhereSpan[];
}

const spanOf = ({ start_ms, end_ms }: { readonly start_ms: number; readonly end_ms: number }): Span => ({
  startMs: start_ms,
  endMs: end_ms,
});

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The id under which the footage of a camera's preview is kept. */
export const previewId = (cameraId: string): string => `${cameraId}~preview`;

export function toFootage(item: TimelineCamera): CameraFootage {
  const gaps = item.gaps.map((gap) => ({
    ...spanOf(gap),
    cause: gap.cause,
    isOpen: gap.is_open,
    notFilled: gap.not_filled && { means: gap.not_filled.means, isTriedAgain: gap.not_filled.is_tried_again },
    detail: gap.detail,
    count: gap.count ?? 1,
    missingMs: gap.missing_ms ?? gap.end_ms - gap.start_ms,
  }));
  return {
    cameraId: item.camera_id,
    keptFromMs: item.kept_from_ms ?? undefined,
    footage: subtractSpans(item.spans.map(spanOf), gaps),
    gaps,
    filled: (item.filled ?? []).map((part) => ({
      ...spanOf(part),
      cause: part.cause,
      atMs: part.at_ms,
      seam: part.seam ?? 'unknown',
    })),
    preview: (item.preview ?? []).map(spanOf),
    protections: item.protections.map((one) => ({ ...spanOf(one), id: one.id, note: one.note })),
    events: item.events?.map(({ id, source, type, start_ms: startMs, end_ms: endMs, reported_by: by, data }) => ({
      id,
      type,
      bookmark: source === 'person' ? { name: textOf(data?.['name']), note: textOf(data?.['note']), by } : undefined,
      startMs,
      endMs: endMs ?? startMs,
      isOpen: endMs === null,
    })),
    activity: item.bands?.map((band) => ({ ...spanOf(band), kind: band.kind })),
    elsewhere: item.elsewhere.map((one) => ({
      ...spanOf(one),
      nodeId: one.node_id,
      isOnline: one.online,
      refusal: one.refusal,
    })),
  };
}

/** What a camera has at one moment: footage, that of its preview, a gap, or nothing. */
export type Moment =
  | { readonly kind: 'footage' }
  /** Only the preview has it. */
  | { readonly kind: 'preview' }
  | { readonly kind: 'gap'; readonly gap: GapSpan }
  | { readonly kind: 'elsewhere'; readonly span: ElsewhereSpan }
  /** Retention has removed it. */
  | { readonly kind: 'not-kept'; readonly keptFromMs: number }
  | { readonly kind: 'future' }
  /** Neither footage nor a gap: the camera was not configured. */
  | { readonly kind: 'nothing' };

export function momentOf(camera: CameraFootage, atMs: number, nowMs: number): Moment {
  if (spanAt(camera.footage, atMs)) return { kind: 'footage' };
  const span = spanAt(camera.elsewhere, atMs);
  if (!span?.isOnline && spanAt(camera.preview, atMs)) return { kind: 'preview' };
  if (span) return { kind: 'elsewhere', span };
  const gap = spanAt(camera.gaps, atMs);
  if (gap) return { kind: 'gap', gap };
  if (atMs >= nowMs) return { kind: 'future' };
  if (camera.keptFromMs !== undefined && atMs < camera.keptFromMs) {
    return { kind: 'not-kept', keptFromMs: camera.keptFromMs };
  }
  return { kind: 'nothing' };
}

/** Why footage on another node cannot be played now. */
export const noAnswerWords = ({ nodeId, refusal }: ElsewhereSpan): string =>
  refusal ? `${nodeId}, which answers with ${refusal.http_status}: ${refusal.problem}` : `${nodeId}, which is away`;

/** Whether a player can show this moment. */
export const isPlayable = (moment: Moment | undefined): boolean =>
  moment?.kind === 'footage' || moment?.kind === 'preview' || (moment?.kind === 'elsewhere' && moment.span.isOnline);

/** The next moment from `atMs` on at which one of the cameras has something to play. */
export const nextFootage = (cameras: readonly CameraFootage[], atMs: number): number | undefined =>
  nextWithin(cameras.flatMap(playableOf), atMs);

/** When a player can show something of a camera. */
export const playableOf = ({ footage, preview, elsewhere }: CameraFootage): readonly Span[] => [
  ...footage,
  ...preview,
  ...elsewhere.filter(({ isOnline }) => isOnline),
];

/** Who or what a gap is due to: a colour and a pattern of the timeline. */
export type GapGroup = 'camera' | 'disk' | 'recorder' | 'wanted';

interface Cause {
  readonly words: string;
  readonly group: GapGroup;
}

const camera = (words: string): Cause => ({ words, group: 'camera' });
const disk = (words: string): Cause => ({ words, group: 'disk' });
const recorder = (words: string): Cause => ({ words, group: 'recorder' });
const wanted = (words: string): Cause => ({ words, group: 'wanted' });

/** Why nothing was recorded. The codes are those of docs/gaps.md; later versions may have more. */
const CAUSES: Readonly<Record<string, Cause>> = {
  'camera-unreachable': camera('camera does not answer'),
  'refused-login': camera('camera refuses user and password'),
  'stream-silent': camera('camera sent no video'),
  'connection-lost': camera('camera ended the connection'),
  'camera-error': camera('camera offers nothing that can be recorded'),
  'no-key-frame': camera('camera sent no key frame'),
  'not-decodable': camera('no picture could be made of what the camera sent'),
  'bitrate-exceeded': camera('camera sent more than its bit rate allows'),
  'machine-dropped': recorder('machine dropped what the camera sent'),
  'packets-lost': camera('packets were lost'),
  'camera-stalled': camera('camera made no pictures'),
  'disk-full': disk('disk was full'),
  'disk-slow': disk('disk was too slow'),
  'disk-error': disk('disk failed'),
  'no-descriptors': recorder('recorder could open no more files'),
  'clock-step': recorder('clock was set'),
  'machine-frozen': recorder('machine stood still'),
  'process-down': recorder('recorder was not running'),
  'node-down': recorder('machine was not running'),
  starting: recorder('recorder was starting'),
  stopped: wanted('recording was stopped by a user'),
  moved: recorder('camera moved to another node'),
  unlicensed: wanted('licence does not allow it'),
  'on-other-node': recorder('another node has it'),
  'on-disk-away': disk('disk is away'),
  'on-node-away': recorder('a node that is away may have it'),
  unknown: camera('cause is not known'),
};

export const causeWords = (cause: string): string => CAUSES[cause]?.words ?? cause;

/** `camera` also if the cause is not known: a gap without another explanation needs the same attention. */
export const gapGroup = (cause: string): GapGroup => CAUSES[cause]?.group ?? 'camera';
