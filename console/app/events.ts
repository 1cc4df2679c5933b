// Receives the recorder's events as server-sent events (docs/events.md).

import { effect } from '@preact/signals';
import { heard } from './contact.ts';
import { session } from './session.ts';

const TYPES = [
  'recorder.started',
  'recorder.stopped',
  'camera.state',
  'camera.silent',
  'camera.heard',
  'camera.taken',
  'camera.given_up',
  'gap.opened',
  'gap.closed',
  'job.queued',
  'job.progress',
  'job.done',
  'job.failed',
  'job.removed',
  'warning.raised',
  'warning.cleared',
  'events.missed',
] as const;
export type EventType = (typeof TYPES)[number];

interface RecorderEvent {
  readonly type: EventType;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly data: Readonly<Record<string, unknown>>;
}

type Listener = (event: RecorderEvent) => void;
const listeners = new Set<Listener>();

/** Calls `listener` for every event, until the returned function is called. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

const RETRY_MS = 5_000;

/** Follows the recorder's events while a user is signed in. */
export function watchEvents(): void {
  effect(() => {
    if (!session.value) return undefined;
    let source: EventSource | undefined;
    let retry: ReturnType<typeof setTimeout> | undefined;
    const open = (): void => {
      source = new EventSource('/api/events');
      source.onopen = heard;
      // Browsers reconnect after a lost connection, but not after an answer that is not an event stream.
      source.onerror = () => {
        if (source?.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS);
      };
      for (const type of TYPES) source.addEventListener(type, ({ data }) => take(type, data as string));
    };
    open();
    return () => {
      clearTimeout(retry);
      source?.close();
    };
  });
}

function take(type: EventType, text: string): void {
  heard();
  const { time, data } = JSON.parse(text) as { time: string; data: Record<string, unknown> };
  for (const listener of listeners) listener({ type, timeMs: Date.parse(time), data });
}
