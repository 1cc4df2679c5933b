// Converts errors of the driver to the kinds on which the recorder acts. No message contains a password or the contents of
// a row.

import pg from 'pg';
import { errorCode, firstError, isExpected } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { DatabaseError } from './error.ts';

/** SQLSTATE classes of errors in the values: data exception, integrity constraint violation. */
const VALUE_CLASSES: ReadonlySet<string> = new Set(['22', '23']);

/** SQLSTATE class of errors of tables, columns and rights: syntax error or access rule violation. */
const ACCESS_CLASS = '42';
/** A standby, or a database that was made read-only, answers, and takes no rows. */
const READ_ONLY = '25006';

/**
 * Converts an error of the driver, which throws plain errors where it has no code; undefined for any other error, which is a fault of
 * this program. The original is not kept as the cause, because its fields quote rows and statements.
 */
export function databaseError(err: unknown): DatabaseError | undefined {
  if (err instanceof DatabaseError) return err;
  const isPlain = err instanceof Error && err.constructor === Error;
  if (!isPlain && !isExpected(err, pg.DatabaseError)) return undefined;
  const message = err instanceof Error && err.message !== '' ? (err.message.split('\n')[0] as string) : 'failed';
  const code = codeOf(err);
  const sqlState = code !== undefined && /^[0-9A-Z]{5}$/.test(code);
  const reason = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  const kind = sqlState ? code.slice(0, 2) : '';
  const refused = kind === ACCESS_CLASS || code === READ_ONLY ? 'REFUSED' : 'UNAVAILABLE';
  return new DatabaseError(VALUE_CLASSES.has(kind) ? 'REJECTED' : refused, reason);
}

/** For a failure of a read that is repeated anyway: the connection has logged it, unless it is a fault of this program. */
export const unlessLogged =
  (log: Log) =>
  (err: unknown): void => {
    if (!databaseError(err)) log.bug({ err }, 'the database could not be used, because of an internal error');
  };

/** Whether a kept connection ended meanwhile, which does not show whether the database is reachable now. */
export function isBrokenConnection(err: unknown): boolean {
  const code = codeOf(err);
  if (code === 'ECONNRESET' || code === 'EPIPE' || code === '57P01') return true;
  return code === undefined && err instanceof Error && /^Connection terminated|not queryable/.test(err.message);
}

const codeOf = (err: unknown): string | undefined => errorCode(firstError(err));
