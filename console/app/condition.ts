// The problem of a camera in words. A tile shows only this and the name.

import type { Camera, Reason } from './camera.ts';

/**
 * `fine`: it is recorded. `busy`: something that passes by itself in seconds. `off`: a user has stopped it.
 * `attention`: may need a person. `alarm`: it should be recorded and is not; a person has to do something.
 */
export type Level = 'fine' | 'busy' | 'off' | 'attention' | 'alarm';

interface Condition {
  readonly level: Level;
  /** In a few words, without the time: `Not recorded`. */
  readonly title: string;
  readonly sinceMs: number | undefined;
  /** Why, as far as it is known: begins in lower case. */
  readonly why: string;
}

/** Texts for the most frequent reasons; for all others, the recorder's message is shown. */
const WORDS: Readonly<Record<string, string>> = {
  unreachable: 'camera does not answer',
  'no-answer': 'camera does not answer',
  'refused-login': 'camera refuses user or password',
  'login-downgraded': 'camera wants the password in readable form',
  'stream-silent': 'camera sends no video',
  'closed-by-camera': 'camera ended the connection',
  'not-found': 'camera has no such stream',
  'too-many-streams': 'camera accepts no more viewers',
  'no-key-frame': 'camera sends no key frame',
  'disk-full': 'disk is full',
  'disk-slow': 'disk is too slow',
  'disk-read-only': 'disk is read-only',
  'disk-missing': 'disk is missing',
};

const whyOf = (reason: Reason | null | undefined): string => (reason ? (WORDS[reason.code] ?? reason.message) : '');

const timeOf = (iso: string | null | undefined): number | undefined => {
  const ms = Date.parse(iso ?? '');
  return Number.isNaN(ms) ? undefined : ms;
};

export function conditionOf(camera: Camera): Condition {
  const { state, recording, reason } = camera;
  const stateSinceMs = timeOf(camera.state_since);
  if (state === 'stopped' && reason?.code === 'disabled') {
    return { level: 'off', title: 'Turned off in the configuration', sinceMs: undefined, why: '' };
  }
  // The recorder says who did it: `stopped by anna`.
  if (state === 'stopped') {
    return { level: 'off', title: upper(reason?.message ?? 'stopped'), sinceMs: stateSinceMs, why: '' };
  }
  if (state === 'unassigned') return notRecorded(camera, whyOf(reason) || 'no node records this camera');
  if (state === 'unknown') {
    return { level: 'attention', title: 'Recording unknown', sinceMs: undefined, why: 'its node is away' };
  }
  if (recording.state === 'failed') return notRecorded(camera, whyOf(recording.reason));
  if (camera.silent) return notRecorded(camera, whyOf(reason ?? recording.reason) || 'no video of it is written');
  if (state === 'connecting') return { level: 'busy', title: 'Connecting', sinceMs: undefined, why: whyOf(reason) };
  if (state === 'retrying') return { level: 'busy', title: 'Reconnecting', sinceMs: stateSinceMs, why: whyOf(reason) };
  return { level: 'fine', title: 'Recording', sinceMs: stateSinceMs, why: '' };
}

const notRecorded = (camera: Camera, why: string): Condition => ({
  level: 'alarm',
  title: 'Not recorded',
  sinceMs: timeOf(camera.silent_since) ?? timeOf(camera.recording.last_written),
  why,
});

const upper = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** `Not recorded since 02:11 – camera does not answer`. */
export function wordsOfCondition({ title, sinceMs, why }: Condition, formatTime: (ms: number) => string): string {
  const since = sinceMs === undefined ? '' : ` since ${formatTime(sinceMs)}`;
  return `${title}${since}${why === '' ? '' : ` – ${why}`}`;
}

const ORDER: readonly Level[] = ['alarm', 'attention', 'busy', 'off', 'fine'];

/** Problems first; otherwise in the order of their names. */
export function byUrgency(a: Camera, b: Camera): number {
  const urgency = ORDER.indexOf(conditionOf(a).level) - ORDER.indexOf(conditionOf(b).level);
  return urgency === 0 ? byName(a, b) : urgency;
}

export const byName = (a: Camera, b: Camera): number =>
  a.name.localeCompare(b.name, undefined, { numeric: true }) || (a.id < b.id ? -1 : 1);
