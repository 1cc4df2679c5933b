// What to do for the reason of a state, and for a warning: from the tables that docs/operations/reasons.md is printed from.

import type { Reason } from '../../base/reason.ts';
import { NODE_WARNINGS, RECORDING_REASONS, type ReasonTable } from '../../crds/reason-table.ts';

const ROWS: ReasonTable = { ...RECORDING_REASONS, ...NODE_WARNINGS };

/** As plain text; undefined for codes without a row, and if there is nothing to do. */
export const todoOf = (code: string): string | undefined =>
  code === 'file-removed' || !Object.hasOwn(ROWS, code) ? undefined : ROWS[code]?.todo.replaceAll('`', '');

/** A reason as answers show it; null without one. */
export function toReason(reason: Reason | null | undefined): (Reason & { todo?: string }) | null {
  if (!reason) return null;
  const todo = todoOf(reason.code);
  return { code: reason.code, message: reason.message, ...(todo === undefined ? {} : { todo }) };
}
