// The kinds of errors of the database on which the recorder acts. Every recorder knows them: the driver is not loaded for them.

import { CodedError } from '../../base/error.ts';

/**
 * `UNAVAILABLE`: the database cannot be used now, and a retry may help. `REJECTED`: the database works but refuses these values,
 * so a retry does not help. `REFUSED`: the database works but lacks what a statement needs, a column or a right. `SCHEMA_TOO_NEW`: a
 * newer recorder has changed its tables.
 */
type DatabaseErrorCode = 'UNAVAILABLE' | 'REJECTED' | 'REFUSED' | 'SCHEMA_TOO_NEW';

export class DatabaseError extends CodedError<DatabaseErrorCode> {
  override readonly name = 'DatabaseError';
}

export const isRejected = (err: unknown): boolean => err instanceof DatabaseError && err.code === 'REJECTED';
export const isUnavailable = (err: unknown): boolean =>
  err instanceof DatabaseError && (err.code === 'UNAVAILABLE' || err.code === 'REFUSED');
