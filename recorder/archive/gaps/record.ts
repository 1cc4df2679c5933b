// One line of a gap journal and back. Times are whole milliseconds since 1970; a line that is torn or damaged is none.

import { assertNever } from '../../../base/assert.ts';
import { isGapCause, isLedgerState, type GapCause, type LedgerState } from './cause.ts';
import type { Degraded } from './degraded.ts';

/** What a journal tells of its camera, in the order in which it happened. */
export type LedgerRecord =
  | {
      readonly kind: 'state';
      readonly state: LedgerState;
      /** From here on. */
      readonly atMs: number;
      /** Where the state before ended, when that was not here: the process stood still, or the clock was set. */
      readonly untilMs?: number;
      /** Why there is nothing between the two. */
      readonly because?: GapCause;
    }
  /** What becomes known only afterwards. */
  | { readonly kind: 'missed'; readonly fromMs: number; readonly toMs: number; readonly cause: GapCause }
  /** A segment that was closed: it counts as recorded also when retention has removed it. */
  | { readonly kind: 'recorded'; readonly fromMs: number; readonly toMs: number }
  /** Footage that lacks pictures. */
  | ({ readonly kind: 'degraded' } & Degraded);

/** Ends with a line feed. */
export function formatRecord(record: LedgerRecord): string {
  switch (record.kind) {
    case 'state':
      return line({ at: record.atMs, state: record.state, until: record.untilMs, because: record.because });
    case 'missed':
      return line({ missed: [record.fromMs, record.toMs], cause: record.cause });
    case 'recorded':
      return line({ recorded: [record.fromMs, record.toMs] });
    case 'degraded':
      return line({ degraded: [record.fromMs, record.toMs], lost: record.lost, expected: record.expected });
    default:
      return assertNever(record);
  }
}

const line = (fields: Readonly<Record<string, unknown>>): string => `${JSON.stringify(fields)}\n`;

/** Undefined for everything that `formatRecord` does not write. */
export function parseRecord(text: string): LedgerRecord | undefined {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof fields !== 'object' || fields === null) return undefined;
  const { at, state, until, because, missed, cause, recorded, degraded, lost, expected } = fields as Record<
    string,
    unknown
  >;
  if (recorded !== undefined) return interval(recorded, (fromMs, toMs) => ({ kind: 'recorded', fromMs, toMs }));
  if (missed !== undefined)
    return interval(missed, (fromMs, toMs) => ({ kind: 'missed', fromMs, toMs, cause: gapCause(cause) ?? 'unknown' }));
  if (degraded !== undefined) {
    if (!isCount(lost) || !isCount(expected) || lost > expected) return undefined;
    return interval(degraded, (fromMs, toMs) => ({ kind: 'degraded', fromMs, toMs, lost, expected }));
  }
  if (!isTime(at) || typeof state !== 'string') return undefined;
  if (until !== undefined && !isTime(until)) return undefined;
  const why = gapCause(because);
  return {
    kind: 'state',
    atMs: at,
    // One of a newer version.
    state: isLedgerState(state) ? state : 'unknown',
    ...(until === undefined ? {} : { untilMs: until }),
    ...(why === undefined ? {} : { because: why }),
  };
}

/** The records of a journal, whatever has become of some of its lines. */
export function parseJournal(text: string): LedgerRecord[] {
  return text
    .split('\n')
    .map((line) => parseRecord(line))
    .filter((record) => record !== undefined);
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value);

const isCount = (value: unknown): value is number => isTime(value) && value > 0;

function gapCause(value: unknown): GapCause | undefined {
  if (typeof value !== 'string') return undefined;
  return isGapCause(value) ? value : 'unknown';
}

function interval(
  value: unknown,
  make: (fromMs: number, toMs: number) => LedgerRecord | undefined,
): LedgerRecord | undefined {
  if (!Array.isArray(value) || value.length !== 2) return undefined;
  const [fromMs, toMs] = value as unknown[];
  return isTime(fromMs) && isTime(toMs) && fromMs < toMs ? make(fromMs, toMs) : undefined;
}
