// Formats and parses the lines of a gap journal. Times are whole milliseconds since 1970; damaged lines are ignored.

import { assertNever } from '../../../base/assert.ts';
import { parseJson } from '../../../base/parse-json.ts';
import { isGapCause, isLedgerState, type GapCause, type LedgerState } from '../../contract/gap-cause.ts';
import type { Degraded } from '../../contract/degraded.ts';
import { isNotFilledReason, type Filled, type NotFilled } from '../../contract/gap-fill.ts';
import type { Stop } from './stops.ts';

/** A record of a gap journal; records are in the order in which they happened. */
export type LedgerRecord =
  | {
      readonly kind: 'state';
      readonly state: LedgerState;
      /** Start of the state. */
      readonly atMs: number;
      /** End of the previous state, if it differs: the process was suspended, or the clock was set. */
      readonly untilMs?: number;
      /** Why there is no footage between the two. */
      readonly because?: GapCause;
    }
  /** A gap that becomes known only afterwards. */
  | { readonly kind: 'missed'; readonly fromMs: number; readonly toMs: number; readonly cause: GapCause }
  /** A closed segment: it counts as recorded even after retention has removed it. */
  | { readonly kind: 'recorded'; readonly fromMs: number; readonly toMs: number }
  /** Footage in which pictures are missing. */
  | ({ readonly kind: 'degraded' } & Degraded)
  /** A part of a gap has footage from the memory of the camera; the footage has a record of its own. */
  | ({ readonly kind: 'filled' } & Filled)
  | ({ readonly kind: 'not-filled' } & NotFilled)
  /** The camera was stopped; the state has a record of its own. */
  | ({ readonly kind: 'stop' } & Stop);

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
      return line({
        degraded: [record.fromMs, record.toMs],
        lost: record.lost,
        undecodable: record.undecodable,
        expected: record.expected,
      });
    case 'filled':
      return line({ filled: [record.fromMs, record.toMs], cause: record.cause, at: record.atMs, seam: record.seam });
    case 'not-filled':
      return line({ 'not-filled': [record.fromMs, record.toMs], reason: record.reason, at: record.atMs });
    case 'stop':
      return line({ stop: record.atMs, detail: record.detail });
    default:
      return assertNever(record);
  }
}

const line = (fields: Readonly<Record<string, unknown>>): string => `${JSON.stringify(fields)}\n`;

/** Undefined for text that `formatRecord` does not write. */
export function parseRecord(text: string): LedgerRecord | undefined {
  const fields = parseJson(text);
  if (typeof fields !== 'object' || fields === null) return undefined;
  const told = fields as Record<string, unknown>;
  const { at, state, until, because, missed, cause, recorded, degraded, lost, undecodable, expected } = told;
  if (isTime(told.stop)) {
    return { kind: 'stop', atMs: told.stop, detail: typeof told.detail === 'string' ? told.detail : '' };
  }
  if (told.filled !== undefined || told['not-filled'] !== undefined) return parseFill(told);
  if (recorded !== undefined) return interval(recorded, (fromMs, toMs) => ({ kind: 'recorded', fromMs, toMs }));
  if (missed !== undefined)
    return interval(missed, (fromMs, toMs) => ({ kind: 'missed', fromMs, toMs, cause: gapCause(cause) ?? 'unknown' }));
  if (degraded !== undefined) {
    const refer = isCount(undecodable) ? { undecodable } : {};
    if (!isCount(lost) && !(lost === 0 && isCount(undecodable))) return undefined;
    if (!isCount(expected) || lost > expected) return undefined;
    return interval(degraded, (fromMs, toMs) => ({ kind: 'degraded', fromMs, toMs, lost, ...refer, expected }));
  }
  if (!isTime(at) || typeof state !== 'string') return undefined;
  if (until !== undefined && !isTime(until)) return undefined;
  const why = gapCause(because);
  return {
    kind: 'state',
    atMs: at,
    // A state of a newer version.
    state: isLedgerState(state) ? state : 'unknown',
    ...(until === undefined ? {} : { untilMs: until }),
    ...(why === undefined ? {} : { because: why }),
  };
}

function parseFill({ filled, 'not-filled': notFilled, at, cause, seam, reason }: Record<string, unknown>) {
  if (!isTime(at)) return undefined;
  if (filled !== undefined) {
    if (seam !== 'bytes' && seam !== 'time') return undefined;
    const why = gapCause(cause) ?? 'unknown';
    return interval(filled, (fromMs, toMs) => ({ kind: 'filled', fromMs, toMs, cause: why, atMs: at, seam }));
  }
  if (!isNotFilledReason(reason)) return undefined;
  return interval(notFilled, (fromMs, toMs) => ({ kind: 'not-filled', fromMs, toMs, reason, atMs: at }));
}

/** The records of a journal, without its damaged lines. */
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
