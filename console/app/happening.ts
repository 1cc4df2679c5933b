// What happens at cameras now, as far as the recorder that serves the page is told.

import { signal } from '@preact/signals';
import { now, tick } from './clock.ts';
import { onEvent } from './events.ts';

interface HappeningNow {
  readonly id: string;
  readonly type: string;
  readonly startMs: number;
  /** Undefined while it goes on. */
  readonly endMs: number | undefined;
}

/** After its end, an event is shown for so long: most are shorter than a look. */
const SHOWN_MS = 15_000;
/** The end of an event may never be told. */
const MOST_MS = 600_000;

/** The last event of each camera. */
const last = signal<ReadonlyMap<string, HappeningNow>>(new Map());

/** Undefined if nothing happens at the camera. */
export function happeningAt(cameraId: string): HappeningNow | undefined {
  const event = last.value.get(cameraId);
  if (!event) return undefined;
  // Read only with an event, so that a quiet wall is not drawn each second.
  void tick.value;
  return now() < (event.endMs === undefined ? event.startMs + MOST_MS : event.endMs + SHOWN_MS) ? event : undefined;
}

/** Follows the events of cameras until the returned function is called. */
export const watchHappenings = (): (() => void) =>
  onEvent(({ type: kind, data }) => {
    const { camera_id: cameraId, id, type, start_ms: startMs, end_ms: endMs } = data;
    if (kind !== 'camera.event' || typeof cameraId !== 'string' || typeof startMs !== 'number') return;
    const known = last.peek().get(cameraId);
    // An older event that has ended does not hide the newer one.
    if (known && known.startMs > startMs) return;
    const event = { id: String(id), type: String(type), startMs, endMs: typeof endMs === 'number' ? endMs : undefined };
    last.value = new Map([...last.peek(), [cameraId, event]]);
  });
