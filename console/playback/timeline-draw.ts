// Draws the timeline. Colours are those of the style sheet; what has no footage here differs by pattern as well as by colour.

import { causeWords, gapGroup, type GapGroup } from './footage.ts';
import { eventGroup, type EventGroup } from '../parts/event-words.ts';
import { AXIS_HEIGHT, type Row, type Shape, type TimelineModel } from './timeline-model.ts';

const COLOURS = [
  'ink',
  'soft',
  'grid',
  'empty',
  'footage',
  'filled',
  'preview',
  'gap',
  'gap-back',
  'gap-disk',
  'gap-recorder',
  'gap-wanted',
  'elsewhere',
  'not-kept',
  'protected',
  'event-motion',
  'event-person',
  'event-vehicle',
  'event-bookmark',
  'event-other',
  'activity',
  'selection',
  'playhead',
  'focus',
] as const;
export type Colours = Readonly<Record<(typeof COLOURS)[number], string>>;

/** Of the height of a row. Groups differ by it, too. */
const EVENT_SHARE: Readonly<Record<EventGroup, number>> = {
  motion: 0.25,
  other: 0.4,
  vehicle: 0.55,
  person: 0.7,
  bookmark: 1,
};
const ACTIVITY_HEIGHT = 6;
const FONT_SIZE = '12px';
const HATCH_PIXELS = 6;

type Pattern = 'diagonal' | 'backward' | 'crossed' | 'upright' | 'level';

/** Groups differ by pattern as well, because not everybody sees all colours. */
const GAPS: Readonly<Record<GapGroup, { readonly colour: keyof Colours; readonly pattern: Pattern }>> = {
  camera: { colour: 'gap', pattern: 'diagonal' },
  disk: { colour: 'gap-disk', pattern: 'backward' },
  recorder: { colour: 'gap-recorder', pattern: 'crossed' },
  wanted: { colour: 'gap-wanted', pattern: 'level' },
};

/** Colours as the canvas needs them: without functions of CSS. */
export function coloursOf(element: HTMLElement): Colours {
  const before = element.style.color;
  const entries = COLOURS.map((name) => {
    element.style.color = `var(--tl-${name})`;
    return [name, getComputedStyle(element).color] as const;
  });
  element.style.color = before;
  return Object.fromEntries(entries) as Colours;
}

export function drawTimeline(
  canvas: HTMLCanvasElement,
  model: TimelineModel,
  colours: Colours,
  focused: string | undefined,
): void {
  const ratio = (window.devicePixelRatio || 1) * model.scale;
  const [width, height] = [Math.round(model.width * ratio), Math.round(model.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
    canvas.style.height = `${model.height * model.scale}px`;
  }
  const context = canvas.getContext('2d');
  if (!context) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, model.width, model.height);
  context.font = `${FONT_SIZE} ${getComputedStyle(canvas).fontFamily}`;
  context.textBaseline = 'middle';
  drawAxis(context, model, colours);
  for (const row of model.rows)
    drawRow(context, model, row, colours, row.cameraId !== undefined && row.cameraId === focused);
  drawMarks(context, model, colours);
}

function drawAxis(
  context: CanvasRenderingContext2D,
  { ticks, width, height, left }: TimelineModel,
  colours: Colours,
): void {
  for (const { x, label, isDay } of ticks) {
    context.fillStyle = colours.grid;
    context.fillRect(Math.round(x), isDay ? 2 : AXIS_HEIGHT - 4, 1, height - AXIS_HEIGHT);
    const end = x + 4 + context.measureText(label).width;
    if (end > width || x < left) continue;
    context.fillStyle = isDay ? colours.ink : colours.soft;
    context.fillText(label, x + 4, AXIS_HEIGHT / 2);
  }
}

function drawRow(
  context: CanvasRenderingContext2D,
  model: TimelineModel,
  row: Row,
  colours: Colours,
  isFocused: boolean,
): void {
  const { left, width } = model;
  context.fillStyle = colours.empty;
  context.fillRect(left, row.y, width - left, row.height);
  for (const shape of row.shapes) drawShape(context, row, shape, colours);
  if (isFocused) {
    context.fillStyle = colours.focus;
    context.fillRect(left, row.y + row.height, width - left, 2);
  }
  if (left > 0) {
    context.fillStyle = isFocused ? colours.ink : colours.soft;
    context.fillText(shorten(context, row.label, left - 12), 2, row.y + row.height / 2);
  } else if (row.cameraId !== undefined) {
    const label = shorten(context, row.label, 120);
    // The line of what is not kept would strike it through.
    context.globalAlpha = 0.75;
    context.fillStyle = colours.empty;
    context.fillRect(0, row.y, context.measureText(label).width + 8, row.height);
    context.globalAlpha = 1;
    context.fillStyle = colours.ink;
    context.fillText(label, 4, row.y + row.height / 2);
  }
}

function drawShape(context: CanvasRenderingContext2D, { y, height }: Row, shape: Shape, colours: Colours): void {
  const { kind, x, width } = shape;
  switch (kind) {
    case 'footage':
      context.fillStyle = colours.footage;
      context.fillRect(x, y, width, height);
      break;
    case 'filled':
      stripes(context, shape, y, height, colours.filled, 'diagonal');
      break;
    case 'preview':
      // Half as high, so that the gap or the line above it is seen, and it differs by more than its tone.
      context.fillStyle = colours.preview;
      context.fillRect(x, y + height / 2, width, height / 2);
      break;
    case 'gap': {
      const { colour, pattern } = GAPS[gapGroup(shape.detail ?? '')];
      context.fillStyle = colours['gap-back'];
      context.fillRect(x, y, width, height);
      stripes(context, shape, y, height, colours[colour], pattern);
      if (shape.detail !== undefined) drawCause(context, shape, y, height, colours, causeWords(shape.detail));
      break;
    }
    case 'elsewhere':
      context.fillStyle = colours.elsewhere;
      context.fillRect(x, y + height / 4, width, height / 2);
      stripes(context, shape, y, height, colours.elsewhere, 'upright');
      break;
    case 'away':
      stripes(context, shape, y, height, colours['not-kept'], 'upright');
      break;
    case 'not-kept':
      context.fillStyle = colours['not-kept'];
      context.fillRect(x, y + height / 2 - 1, width, 2);
      break;
    case 'protected':
      context.fillStyle = colours.protected;
      context.fillRect(x, y - 3, Math.max(2, width), 3);
      break;
    case 'activity':
      // At the upper edge: events are at the lower one.
      context.fillStyle = colours.empty;
      if (shape.detail === 'active') context.fillRect(x - 1, y, width + 2, ACTIVITY_HEIGHT + 1);
      context.fillStyle = colours.activity;
      if (shape.detail === 'unclear') stripes(context, shape, y, ACTIVITY_HEIGHT, colours.activity, 'upright');
      else context.fillRect(x, y, width, shape.detail === 'active' ? ACTIVITY_HEIGHT : 1);
      break;
    case 'event': {
      const group = eventGroup(shape.detail ?? '');
      const high = height * EVENT_SHARE[group];
      // Seen on footage of any brightness.
      context.fillStyle = colours.empty;
      context.fillRect(x - 1, y + height - high - 1, width + 2, high + 1);
      context.fillStyle = colours[`event-${group}`];
      context.fillRect(x, y + height - high, width, high);
      break;
    }
  }
}

/** The cause, in the middle of the gap, if it fits. */
function drawCause(
  context: CanvasRenderingContext2D,
  { x, width }: Shape,
  y: number,
  height: number,
  colours: Colours,
  text: string,
): void {
  const long = context.measureText(text).width;
  if (long + 4 * HATCH_PIXELS > width) return;
  const from = x + (width - long) / 2;
  context.fillStyle = colours['gap-back'];
  context.fillRect(from - HATCH_PIXELS, y + 1, long + 2 * HATCH_PIXELS, height - 2);
  context.fillStyle = colours.ink;
  context.fillText(text, from, y + height / 2);
}

/** Lines at fixed places, so that they do not crawl while the timeline moves by less than a line. */
function stripes(
  context: CanvasRenderingContext2D,
  { x, width }: Shape,
  y: number,
  height: number,
  colour: string,
  pattern: Pattern,
): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  const lines = (leanBelow: number, leanAbove: number): void => {
    for (let at = Math.floor((x - height) / HATCH_PIXELS) * HATCH_PIXELS; at < x + width; at += HATCH_PIXELS) {
      context.moveTo(at + leanBelow, y + height);
      context.lineTo(at + leanAbove, y);
    }
  };
  if (pattern === 'upright') lines(0, 0);
  if (pattern === 'diagonal' || pattern === 'crossed') lines(0, height);
  if (pattern === 'backward' || pattern === 'crossed') lines(height, 0);
  if (pattern === 'level') {
    for (let at = y + HATCH_PIXELS / 2; at < y + height; at += HATCH_PIXELS) {
      context.moveTo(x, at);
      context.lineTo(x + width, at);
    }
  }
  context.stroke();
  context.restore();
}

/** Each mark where the row below it has that moment. */
function drawMarks(context: CanvasRenderingContext2D, model: TimelineModel, colours: Colours): void {
  const { overview, height, width, nowX, playheadX } = model;
  for (const [marks, top, bottom] of [
    [model, AXIS_HEIGHT, overview.y - 2],
    [overview, overview.y, height],
  ] as const) {
    if (marks.nowX !== undefined) {
      context.fillStyle = colours.soft;
      for (let y = top; y < bottom; y += 6) context.fillRect(Math.round(marks.nowX), y, 1, 3);
    }
    if (marks.selection) {
      const { x, width: wide } = marks.selection;
      context.globalAlpha = 0.28;
      context.fillStyle = colours.selection;
      context.fillRect(x, top, wide, bottom - top);
      context.globalAlpha = 1;
      context.fillRect(x, top, 2, bottom - top);
      context.fillRect(x + wide - 2, top, 2, bottom - top);
    }
    if (marks.playheadX !== undefined) {
      context.fillStyle = colours.playhead;
      context.fillRect(Math.round(marks.playheadX) - 1, top, 2, bottom - top);
    }
  }
  if (nowX !== undefined) {
    const end = nowX + 4 + context.measureText('now').width;
    context.fillStyle = colours.soft;
    if (end < width) context.fillText('now', nowX + 4, overview.y - 8);
  }
  if (playheadX !== undefined) {
    const x = Math.round(playheadX);
    context.fillStyle = colours.playhead;
    context.beginPath();
    context.moveTo(x - 6, AXIS_HEIGHT - 10);
    context.lineTo(x + 6, AXIS_HEIGHT - 10);
    context.lineTo(x, AXIS_HEIGHT - 2);
    context.fill();
  }
}

function shorten(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = text.length - 1;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}
