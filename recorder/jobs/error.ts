// Why a job fails, for the person who asked for it.

import { errorCode } from '../archive/file-system.ts';

export type JobErrorCode =
  | 'no-footage'
  | 'codec-changed'
  | 'footage-changed'
  | 'archive-unreadable'
  | 'disk-full'
  | 'disk-error'
  | 'ffmpeg-missing'
  | 'ffmpeg-failed'
  | 'peer-failed'
  | 'interrupted'
  | 'cancelled';

/** The message is the job's `reason`. */
export class JobError extends Error {
  readonly code: JobErrorCode;

  constructor(code: JobErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'JobError';
    this.code = code;
  }
}

/** What a failed system call on the result's file means; undefined for what is no system error. */
export function diskError(err: unknown): JobError | undefined {
  const code = errorCode(err);
  if (code === undefined) return undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new JobError('disk-full', `no space is left for the result (${code})`, { cause: err });
  }
  return new JobError('disk-error', `the result cannot be written (${code})`, { cause: err });
}
