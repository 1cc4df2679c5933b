// Why a job fails, for the person who asked for it.

import { CodedError, errorCode } from '../../base/error.ts';

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

/** The message is the job's `reason`. */
export class JobError extends CodedError<JobErrorCode> {
  override readonly name = 'JobError';
}

/** Of a time-lapse. */
export const noPictures = (): JobError =>
  new JobError('no-pictures', 'a time-lapse is made of pictures, and the window has footage that is only sound');

/** What a failed system call on the result's file means; undefined for what is no system error. */
export function diskError(err: unknown): JobError | undefined {
  const code = errorCode(err);
  if (code === undefined) return undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new JobError('disk-full', `no space is left for the result (${code})`, { cause: err });
  }
  return new JobError('disk-error', `the result cannot be written (${code})`, { cause: err });
}
