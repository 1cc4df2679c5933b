// The reason why a job fails, for the user who requested it.

import { CodedError, errorCode, isExpected } from '../../base/error.ts';

export const JOB_ERROR_CODES = [
  'no-footage',
  'no-pictures',
  'codec-changed',
  'footage-changed',
  'archive-unreadable',
  'disk-full',
  'disk-error',
  'ffmpeg-missing',
  'ffmpeg-failed',
  'no-signing-key',
  'peer-failed',
  'interrupted',
  'internal-error',
  'cancelled',
] as const;
export type JobErrorCode = (typeof JOB_ERROR_CODES)[number];

/**
 * How a failed job can be requested again: a case without one of its cameras, or an export before and after a moment.
 */
export type JobRetry = { readonly withoutCamera: string } | { readonly splitAtMs: number };

/** The message is the `reason` of the job. */
export class JobError extends CodedError<JobErrorCode> {
  override readonly name = 'JobError';
  readonly retry: JobRetry | undefined;

  constructor(
    code: JobErrorCode,
    message: string,
    options: ErrorOptions & { readonly retry?: JobRetry | undefined } = {},
  ) {
    super(code, message, options);
    this.retry = options.retry;
  }
}

/** For a time-lapse. */
export const noPictures = (): JobError =>
  new JobError('no-pictures', 'the footage in the window has sound only: a time-lapse needs pictures');

/** The error for a failed system call on the file of the result; undefined if `err` is not a system error. */
export function diskError(err: unknown): JobError | undefined {
  const code = errorCode(err);
  if (code === undefined || !isExpected(err)) return undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new JobError('disk-full', `no space is left for the result (${code})`, { cause: err });
  }
  return new JobError('disk-error', `the result cannot be written (${code})`, { cause: err });
}
