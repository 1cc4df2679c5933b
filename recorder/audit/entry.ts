// The content of a line of the audit: who did what to which camera, and what was taken. The format of the files: docs/audit.md.

/** What a caller did, or what was done to the node. */
export const ACTIONS = [
  'add-camera',
  'add-node',
  'assemble',
  'cameras',
  'capture',
  'case',
  'change-camera',
  'change-voters',
  'download',
  'estimate',
  'export',
  'failed-logins',
  'leave-cluster',
  'live',
  'log-level',
  'move-camera',
  'playback',
  'probe',
  'protect',
  'read-audit',
  'read-camera',
  'remove-camera',
  'remove-job',
  'remove-node',
  'start-camera',
  'still',
  'stop-camera',
  'test-camera',
  'timelapse',
  'unprotect',
  'window',
] as const;

export type Action = (typeof ACTIONS)[number];

/** Visits, with a line for the start and one for the end. */
const LASTING = ['download', 'live', 'playback', 'still', 'window'] as const;
export type Visit = (typeof LASTING)[number];
export const VISITS: ReadonlySet<Action> = new Set(LASTING);

/** Facts of one line, beside those that every line has. They hold no token, no password and no body. */
export interface AuditEntry {
  readonly what: Action;
  /** Name of the token; null for a caller without a valid one. */
  readonly caller?: string | null;
  readonly [fact: string]: unknown;
}

export interface AuditSink {
  /** Never waits, and never throws. */
  write(entry: AuditEntry): void;
}

export const noAudit: AuditSink = { write() {} };

/** The window of footage in a line, as far as it has bounds; milliseconds since 1970. */
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
