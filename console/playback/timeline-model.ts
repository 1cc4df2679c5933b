// What the timeline shows and where, as rectangles: the canvas draws them, the pointer is looked up in them, and tests read them.

import { momentOf, noAnswerWords, type CameraFootage, type Moment } from './footage.ts';
import { timeAt, xOf, type Range } from './scale.ts';
import { clipSpans, mergeSpans, subtractSpans, type Span } from './spans.ts';
import { ticksOf } from './ticks.ts';
import type { Zone } from './zone.ts';

type ShapeKind =
  'footage' | 'filled' | 'preview' | 'gap' | 'elsewhere' | 'away' | 'not-kept' | 'protected' | 'event' | 'activity';

export interface Shape extends Span {
  readonly kind: ShapeKind;
  readonly x: number;
  readonly width: number;
  /** The cause of a gap, why only the preview has it, the node of footage elsewhere, the note of a protection, the type of an event, what activity is. */
  readonly detail?: string | undefined;
  /** Of a bookmark. */
  readonly name?: string | undefined;
}

export interface Row {
  /** Undefined: the overview of the day. */
  readonly cameraId: string | undefined;
  readonly label: string;
  readonly y: number;
  readonly height: number;
  /** The time that the row shows: the overview shows another one than the rows of cameras. */
  readonly range: Range;
  readonly shapes: readonly Shape[];
}

/** Where moments are on the scale of a range; undefined outside of it. */
interface Marks {
  readonly playheadX: number | undefined;
  readonly nowX: number | undefined;
  readonly selection: { readonly x: number; readonly width: number } | undefined;
}

/** Lengths are in units of `scale` pixels of the page. The marks are those of the rows of cameras. */
export interface TimelineModel extends Marks {
  readonly scale: number;
  readonly width: number;
  readonly height: number;
  /** Where the scale begins; names are to the left of it. */
  readonly left: number;
  readonly range: Range;
  readonly ticks: readonly { readonly x: number; readonly label: string; readonly isDay: boolean }[];
  readonly rows: readonly Row[];
  /** The row of the day, below the others, shows another time than they do. */
  readonly overview: Marks & { readonly y: number };
}

interface Shown {
  readonly cameraId: string;
  readonly name: string;
  /** Undefined until it is known. */
  readonly footage: CameraFootage | undefined;
  /** Of the day of the overview. */
  readonly day: CameraFootage | undefined;
}

interface View {
  /** How many pixels of the page a unit of length has; default: 1. */
  readonly scale?: number;
  readonly width: number;
  readonly range: Range;
  /** The day of the overview row. */
  readonly day: Range;
  readonly cameras: readonly Shown[];
  readonly atMs: number;
  readonly nowMs: number;
  readonly selection: Span | undefined;
  readonly zone: Zone;
}

export const AXIS_HEIGHT = 20;
const OVERVIEW_HEIGHT = 12;
const ROW_HEIGHT = 20;
const ROW_GAP = 5;
const LABEL_WIDTH = 132;
/** A narrower timeline has no column for names. */
const NARROW = 700;
/** Gaps are drawn at least this wide, so that short ones are visible. */
const LEAST_GAP = 2;
const LEAST_EVENT = 3;

export function timelineModel(view: View): TimelineModel {
  const { range, day, zone, cameras, atMs, nowMs, selection } = view;
  const left = view.width < NARROW ? 0 : LABEL_WIDTH;
  const width = Math.max(1, view.width - left);
  const marksOf = (shown: Range): Marks => {
    const place = (ms: number): number => left + xOf(shown, ms, width);
    const within = (x: number): number | undefined => (x >= left && x <= view.width ? x : undefined);
    const marked = selection && clipSpans([selection], { startMs: shown.fromMs, endMs: shown.toMs })[0];
    return {
      playheadX: within(place(atMs)),
      nowX: within(place(nowMs)),
      selection: marked && { x: place(marked.startMs), width: place(marked.endMs) - place(marked.startMs) },
    };
  };
  const rows: Row[] = cameras.map(({ cameraId, name, footage }, i) => ({
    cameraId,
    label: name,
    y: AXIS_HEIGHT + ROW_GAP + i * (ROW_HEIGHT + ROW_GAP),
    height: ROW_HEIGHT,
    range,
    shapes: footage ? shapesOf(footage, range, left, width, nowMs) : [],
  }));
  const overviewY = AXIS_HEIGHT + ROW_GAP + cameras.length * (ROW_HEIGHT + ROW_GAP);
  rows.push({
    cameraId: undefined,
    label: zone.date(day.fromMs, false),
    y: overviewY,
    height: OVERVIEW_HEIGHT,
    range: day,
    shapes: overviewOf(cameras, day, left, width, nowMs),
  });
  return {
    scale: view.scale ?? 1,
    width: view.width,
    height: overviewY + OVERVIEW_HEIGHT + ROW_GAP,
    left,
    range,
    ticks: ticksOf(range, width, zone).map(({ atMs, label, isDay }) => ({
      x: left + xOf(range, atMs, width),
      label,
      isDay,
    })),
    rows,
    ...marksOf(range),
    overview: { y: overviewY, ...marksOf(day) },
  };
}

function shapesOf(camera: CameraFootage, range: Range, left: number, width: number, nowMs: number): Shape[] {
  const window = { startMs: range.fromMs, endMs: range.toMs };
  const shape = (kind: ShapeKind, span: Span, detail?: string, least = 1, name?: string): Shape[] =>
    clipSpans([span], window).map((clipped) => {
      const x = left + xOf(range, clipped.startMs, width);
      const long = Math.max(least, left + xOf(range, clipped.endMs, width) - x);
      return { kind, startMs: span.startMs, endMs: span.endMs, x, width: long, detail, name };
    });
  const { keptFromMs } = camera;
  const onlyPreview = subtractSpans(camera.preview, camera.footage);
  return [
    ...(keptFromMs === undefined
      ? []
      : shape('not-kept', { startMs: Math.min(range.fromMs, keptFromMs), endMs: keptFromMs })),
    ...camera.footage.flatMap((span) => shape('footage', span)),
    ...camera.filled.flatMap((span) => shape('filled', span)),
    ...camera.elsewhere.flatMap((span) =>
      shape(span.isOnline ? 'elsewhere' : 'away', span, span.isOnline ? span.nodeId : noAnswerWords(span)),
    ),
    ...camera.gaps.flatMap((gap) =>
      shape('gap', gap.isOpen ? { ...gap, endMs: Math.max(gap.endMs, nowMs) } : gap, gap.cause, LEAST_GAP),
    ),
    ...subtractSpans(onlyPreview, camera.gaps).flatMap((span) => shape('preview', span)),
    ...camera.gaps.flatMap((gap) => clipSpans(onlyPreview, gap).flatMap((span) => shape('preview', span, gap.cause))),
    ...camera.protections.flatMap((span) => shape('protected', span, span.note ?? undefined)),
    ...(camera.activity ?? [])
      .toSorted((a, b) => Number(a.kind === 'active') - Number(b.kind === 'active'))
      .flatMap((span) => shape('activity', span, span.kind, span.kind === 'active' ? LEAST_EVENT : 1)),
    ...(camera.events ?? []).flatMap((event) =>
      shape(
        'event',
        { startMs: event.startMs, endMs: Math.max(event.endMs, event.startMs + 1) },
        event.type,
        LEAST_EVENT,
        event.bookmark?.name,
      ),
    ),
  ];
}

/** A day of all cameras: recorded where one is, a gap where one has a gap. */
function overviewOf(cameras: readonly Shown[], day: Range, left: number, width: number, nowMs: number): Shape[] {
  const known = cameras.flatMap((camera) => (camera.day ? [camera.day] : []));
  if (known.length === 0) return [];
  // Spans a pixel apart look joined anyway.
  const pixelMs = (day.toMs - day.fromMs) / width;
  const all: CameraFootage = {
    cameraId: '',
    keptFromMs: undefined,
    footage: mergeSpans(
      known.flatMap(({ footage }) => footage),
      pixelMs,
    ),
    gaps: mergeSpans(known.flatMap(({ gaps }) => gaps)).map((span) => ({
      ...span,
      cause: '',
      isOpen: false,
      notFilled: undefined,
      count: 1,
      missingMs: span.endMs - span.startMs,
    })),
    filled: [],
    preview: mergeSpans(
      known.flatMap(({ preview }) => preview),
      pixelMs,
    ),
    protections: [],
    events: known.flatMap(({ events = [] }) => events),
    elsewhere: known.flatMap(({ elsewhere }) => elsewhere),
  };
  return shapesOf(all, day, left, width, nowMs);
}

export interface Hit {
  readonly atMs: number;
  readonly row: Row | undefined;
  /** The topmost rectangle of footage or of what is missing. */
  readonly shape: Shape | undefined;
  readonly event: Shape | undefined;
  readonly activity: Shape | undefined;
}

export function hitTest(model: TimelineModel, x: number, y: number): Hit {
  const row = model.rows.find((one) => y >= one.y - ROW_GAP / 2 && y < one.y + one.height + ROW_GAP / 2);
  const atMs = timeAt(row?.range ?? model.range, x - model.left, model.width - model.left);
  const here = row?.shapes.filter((one) => x >= one.x && x < one.x + one.width) ?? [];
  return {
    atMs,
    row,
    shape: here.findLast(({ kind }) => kind !== 'protected' && kind !== 'event' && kind !== 'activity'),
    event: here.findLast(({ kind }) => kind === 'event'),
    activity: here.findLast(({ kind }) => kind === 'activity'),
  };
}

/** What screen readers say of a moment. */
function momentText(moment: Moment | undefined, words: (cause: string) => string): string {
  switch (moment?.kind) {
    case undefined:
      return 'loading';
    case 'footage':
      return 'recorded';
    case 'preview':
      return 'recorded, preview only';
    case 'gap':
      return `no recording: ${words(moment.gap.cause)}`;
    case 'elsewhere':
      return moment.span.isOnline ? `recorded on ${moment.span.nodeId}` : `on ${noAnswerWords(moment.span)}`;
    case 'not-kept':
      return 'no longer kept';
    case 'future':
      return 'in the future';
    default:
      return 'no recording';
  }
}

/** Of several cameras: recorded, or what is missing of how many. */
export function momentsText(
  cameras: readonly (CameraFootage | undefined)[],
  atMs: number,
  nowMs: number,
  words: (cause: string) => string,
): string {
  const texts = cameras.map((camera) => momentText(camera && momentOf(camera, atMs, nowMs), words));
  const [first] = texts;
  if (first === undefined) return 'no camera selected';
  if (texts.every((text) => text === first)) return first;
  const recorded = texts.filter((text) => text.startsWith('recorded')).length;
  return `${recorded} of ${texts.length} cameras recorded`;
}
