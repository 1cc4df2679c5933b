// An alarm: what a person has to know about, when it began and ended, and who has taken note of it. It is told in lines, each a
// fact that is never changed, and is what its lines say together.

import type { Happening } from '../happenings/happening.ts';

export interface Alarm {
  /** The event with which it began. */
  readonly id: string;
  /** Undefined: it concerns the node. */
  readonly cameraId: string | undefined;
  /** The cause of a gap, or the code of a warning. */
  readonly code: string;
  /** The words of the warning. */
  readonly message: string | undefined;
  readonly startMs: number;
  /** Undefined: it lasts. */
  readonly endMs: number | undefined;
  /** How often it came: again within ten minutes of its end is the same alarm. */
  readonly count: number;
  readonly acknowledged: Acknowledgement | undefined;
  /** Who gets mails was told of it; who gets them if nobody acknowledges it was told, too. */
  readonly isMailed: boolean;
  readonly isEscalated: boolean;
}

interface Acknowledgement {
  readonly by: string;
  readonly atMs: number;
  readonly note: string | undefined;
}

/** An entry of the shift's log. */
export interface Note extends Acknowledgement {
  readonly id: string;
  readonly note: string;
}

const LINE_TYPES = ['raised', 'again', 'ended', 'acknowledged', 'noted', 'mailed', 'escalated'] as const;

/** What is kept of a fact. */
export interface Line extends Happening {
  readonly type: (typeof LINE_TYPES)[number];
  readonly data: {
    readonly alarm?: string;
    readonly code?: string;
    readonly message?: string;
    readonly note?: string;
  };
}

/** The id of a camera that no camera may have: what concerns the node is kept under it. */
export const OF_NODE = 'jobs';

export const isLine = (event: Happening): event is Line =>
  (LINE_TYPES as readonly string[]).includes(event.type) && typeof event.data === 'object';

/** An alarm after one more of its lines; undefined if the line tells of an alarm that is not known. */
export function withLine(alarm: Alarm | undefined, line: Line): Alarm | undefined {
  const { type, start_ms: atMs, data } = line;
  if (type === 'raised') {
    return {
      id: line.id,
      cameraId: line.camera_id === OF_NODE ? undefined : line.camera_id,
      code: data.code ?? 'unknown',
      message: data.message,
      startMs: atMs,
      endMs: undefined,
      count: 1,
      acknowledged: undefined,
      isMailed: false,
      isEscalated: false,
    };
  }
  if (!alarm) return undefined;
  if (type === 'again') return { ...alarm, endMs: undefined, count: alarm.count + 1 };
  if (type === 'ended') return { ...alarm, endMs: atMs };
  if (type === 'acknowledged') return { ...alarm, acknowledged: { by: line.reported_by, atMs, note: data.note } };
  if (type === 'mailed') return { ...alarm, isMailed: true };
  if (type === 'escalated') return { ...alarm, isEscalated: true };
  return alarm;
}
