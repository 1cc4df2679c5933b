// The content of an audit line: who did what to which camera, and which footage was fetched. docs/audit.md describes the
// format of the files.

/** Actions of a caller, or done to the node. */
export const ACTIONS = [
  'acknowledge-alarm',
  'add-camera',
  'add-node',
  'add-user',
  'apply-object',
  'assemble',
  'bookmark',
  'cameras',
  'capture',
  'case',
  'change-camera',
  'change-password',
  'change-user',
  'change-voters',
  'delete-object',
  'discover',
  'download',
  'end-session',
  'estimate',
  'expel-node',
  'export',
  'failed-logins',
  'heartbeat',
  'invite-node',
  'join-cluster',
  'renew-certificate',
  'rotate-key',
  'leave-cluster',
  'link',
  'live',
  'log-level',
  'move-camera',
  'over-budget',
  'playback',
  'probe',
  'protect',
  'read-audit',
  'read-camera',
  'relay',
  'remove-bookmark',
  'remove-camera',
  'remove-job',
  'remove-node',
  'report-event',
  'remove-user',
  'sign-in',
  'sign-out',
  'start-camera',
  'still',
  'stop-camera',
  'test-camera',
  'test-mail',
  'timelapse',
  'try-login',
  'unprotect',
  'window',
  'write-note',
] as const;

export type Action = (typeof ACTIONS)[number];

/** Visits, which have one line at the start and one at the end. */
const LASTING = ['download', 'live', 'playback', 'still', 'window'] as const;
export type Visit = (typeof LASTING)[number];
export const VISITS: ReadonlySet<Action> = new Set(LASTING);

/** What these did is kept elsewhere with who did it: only what was refused or failed has a line. */
export const KEPT_ELSEWHERE: ReadonlySet<Action> = new Set(['report-event']);

/** The facts of one line besides those that every line has. They contain no token, no password and no request body. */
export interface AuditEntry {
  readonly what: Action;
  /** Name of the user or the token; null for a caller without a valid one. */
  readonly caller?: string | null;
  readonly [fact: string]: unknown;
}

export interface AuditSink {
  /** Returns at once and never throws. */
  write(entry: AuditEntry): void;
}

export const noAudit: AuditSink = { write() {} };

/** The limits of the footage in a line, as far as it has any; milliseconds since 1970. */
export function footageOf({
  fromMs = -Infinity,
  toMs = Infinity,
}: {
  fromMs?: number | undefined;
  toMs?: number | undefined;
}) {
  const time = (ms: number): string | undefined => (Number.isFinite(ms) ? new Date(ms).toISOString() : undefined);
  return { from: time(fromMs), to: time(toMs) };
}
