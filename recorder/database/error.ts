// What goes wrong with the database: errors of the driver in, three kinds that the recorder acts on out. No message
// holds a password or a row's contents.

import { CodedError } from '../../base/error.ts';

/**
 * `UNAVAILABLE`: nothing can be had from the database now, trying again may help. `REJECTED`: the database works and
 * refuses these values, trying again does not help. `SCHEMA_TOO_NEW`: a newer recorder has changed its tables.
 */
export type DatabaseErrorCode = 'UNAVAILABLE' | 'REJECTED' | 'SCHEMA_TOO_NEW';

export class DatabaseError extends CodedError<DatabaseErrorCode> {
  override readonly name = 'DatabaseError';
}

export const isRejected = (err: unknown): boolean => err instanceof DatabaseError && err.code === 'REJECTED';

/** SQLSTATE classes that blame the values: data exception, integrity constraint violation. */
const VALUE_CLASSES: ReadonlySet<string> = new Set(['22', '23']);

/** Names what the driver threw. The driver's own error is not kept as cause: its fields quote rows and statements. */
export function databaseError(err: unknown): DatabaseError {
  if (err instanceof DatabaseError) return err;
  const message = err instanceof Error && err.message !== '' ? (err.message.split('\n')[0] as string) : 'failed';
  const code = codeOf(err);
  const sqlState = code !== undefined && /^[0-9A-Z]{5}$/.test(code);
  const reason = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  const rejected = sqlState && VALUE_CLASSES.has(code.slice(0, 2));
  return new DatabaseError(rejected ? 'REJECTED' : 'UNAVAILABLE', reason);
}

/** A connection that was kept and has ended meanwhile says nothing about the database now. */
export function isBrokenConnection(err: unknown): boolean {
  const code = codeOf(err);
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === '57P01') return true;
  return code === undefined && err instanceof Error && /^Connection terminated|not queryable/.test(err.message);
}

function codeOf(err: unknown): string | undefined {
  // A host with several addresses, none of which answers, fails with all their errors at once.
  const one: unknown = err instanceof AggregateError ? err.errors[0] : err;
  return one instanceof Error && 'code' in one && typeof one.code === 'string' ? one.code : undefined;
}
