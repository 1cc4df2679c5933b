// The types of events of a recorder, and the envelope of an event (CloudEvents 1.0.2, JSON format).

import { parseJson } from '../../base/parse-json.ts';

export const EVENT_TYPES = [
  'recorder.started',
  'recorder.stopped',
  'camera.state',
  'camera.silent',
  'camera.heard',
  'camera.taken',
  'camera.given_up',
  'camera.removed',
  'camera.event',
  'gap.opened',
  'gap.closed',
  'gap.filled',
  'job.queued',
  'job.progress',
  'job.done',
  'job.failed',
  'job.removed',
  'warning.raised',
  'warning.cleared',
  'alarm.raised',
  'alarm.again',
  'alarm.ended',
  'alarm.acknowledged',
  'alarm.noted',
  'webhook.test',
  'events.missed',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Patterns: `camera.state` for one type, `camera.*` for all of one kind, `*` for all. */
export const matchesType = (patterns: readonly string[], type: EventType): boolean =>
  patterns.some((pattern) => pattern === '*' || pattern === type || pattern === `${type.split('.', 1)[0]}.*`);

/** An event as it is reported. */
export interface EventReport {
  readonly type: EventType;
  /** Undefined: it concerns the node. */
  readonly cameraId?: string | undefined;
  /** For an event of several cameras: all of them, `cameraId` first. */
  readonly cameras?: readonly string[] | undefined;
  /** Plain JSON with the names of the API; contains no password and no URL with a user part. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** An event in the journal. */
export interface NodeEvent {
  /** Increasing and unique on its node, also across restarts. */
  readonly id: number;
  readonly type: EventType;
  /** The event is sent only to callers that may see all of these cameras. Empty: it concerns the node. */
  readonly cameraIds: readonly string[];
  readonly timeMs: number;
  /** The envelope. */
  readonly json: string;
}

/** Reverse DNS name, as CloudEvents requires (§3.1.1 `type`). */
const TYPE_PREFIX = 'dev.kube-nvr.';

export function makeEvent(id: number, told: EventReport, timeMs: number, node: string): NodeEvent {
  const { type, cameraId, cameras, data } = told;
  const json = JSON.stringify({
    specversion: '1.0',
    id: String(id),
    source: `/nodes/${encodeURIComponent(node)}`,
    type: TYPE_PREFIX + type,
    ...(cameraId === undefined ? {} : { subject: cameraId }),
    time: new Date(timeMs).toISOString(),
    datacontenttype: 'application/json',
    data: cameraId === undefined ? data : { camera_id: cameraId, ...(cameras ? { cameras } : {}), ...data },
  });
  return { id, type, cameraIds: cameraIdsOf(cameraId, cameras), timeMs, json };
}

const cameraIdsOf = (subject: unknown, cameras: unknown): readonly string[] =>
  typeof subject === 'string' ? [subject, ...(Array.isArray(cameras) ? cameras.map(String) : [])] : [];

/** Parses an envelope that `makeEvent` wrote; undefined for anything else. */
export function parseEvent(json: string): NodeEvent | undefined {
  const { id, type, subject, time, data } = (parseJson(json) ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof id !== 'string' || typeof type !== 'string' || typeof time !== 'string') return undefined;
  const number = parseEventId(id);
  const kind = EVENT_TYPES.find((known) => TYPE_PREFIX + known === type);
  const timeMs = Date.parse(time);
  if (number === undefined || kind === undefined || Number.isNaN(timeMs)) return undefined;
  const { cameras } = (data ?? {}) as { readonly cameras?: unknown };
  return { id: number, type: kind, cameraIds: cameraIdsOf(subject, cameras), timeMs, json };
}

/** Undefined if the text is not an event id; 0 is before the first event. */
export function parseEventId(text: string): number | undefined {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  return Number.isSafeInteger(id) ? id : undefined;
}
