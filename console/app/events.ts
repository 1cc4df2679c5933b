// Receives the recorder's events as server-sent events (docs/events.md).

import { effect } from '@preact/signals';
import { heard } from './contact.ts';
import { session } from './session.ts';
import type { EventType } from '../../recorder/contract/event.ts';

/** All that the journal has; the compiler finds a type that is missing here. */
const TYPES: Readonly<Record<EventType, true>> = {
  'recorder.started': true,
  'recorder.stopped': true,
  'camera.state': true,
  'camera.silent': true,
  'camera.heard': true,
  'camera.taken': true,
  'camera.given_up': true,
  'camera.removed': true,
  'camera.event': true,
  'gap.opened': true,
  'gap.closed': true,
  'gap.filled': true,
  'job.queued': true,
  'job.progress': true,
  'job.done': true,
  'job.failed': true,
  'job.removed': true,
  'warning.raised': true,
  'warning.cleared': true,
  'alarm.raised': true,
  'alarm.again': true,
  'alarm.ended': true,
  'alarm.acknowledged': true,
  'alarm.noted': true,
  'webhook.test': true,
  'events.missed': true,
};

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
      for (const type of Object.keys(TYPES) as EventType[])
        source.addEventListener(type, ({ data }) => take(type, data as string));
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
