// Translates system errors into stable codes and messages that say why footage cannot be written or read.

import { CodedError, errorCode } from '../../../base/error.ts';
import { isOutOfFiles, OUT_OF_FILES } from '../../../base/open-files.ts';
import type { Reason } from '../../../base/reason.ts';

/** No system call reports `disk-slow`: it means that the queue of a camera is full. */
export type DiskFaultCode =
  | 'disk-full'
  | 'disk-read-only'
  | 'disk-missing'
  | 'disk-denied'
  | 'disk-error'
  | 'disk-slow'
  | 'no-descriptors'
  | 'file-removed'
  | WrongDiskCode;

/** The record path is not the directory of the archive, or another recorder uses it. */
export type WrongDiskCode = 'archive-missing' | 'archive-foreign' | 'archive-in-use';

export interface DiskFault extends Reason {
  readonly code: DiskFaultCode;
}

/** The archive on the disk cannot be read. A listing fails instead of returning an incomplete result. */
export class ArchiveError extends CodedError<'ARCHIVE_UNREADABLE'> {
  override readonly name = 'ArchiveError';

  constructor(message: string, options?: ErrorOptions) {
    super('ARCHIVE_UNREADABLE', message, options);
  }
}

/** The record path is not the archive of this node: nothing is written there. */
export class WrongDiskError extends CodedError<WrongDiskCode> {
  override readonly name = 'WrongDiskError';
}

export const SLOW_DISK: DiskFault = { code: 'disk-slow', message: 'the disk does not keep up with the camera' };
export const FILE_REMOVED: DiskFault = {
  code: 'file-removed',
  message: 'the file was removed while it was being written',
};

/** The fault that a failed system call means for recording. */
export function diskFault(err: unknown): DiskFault {
  if (err instanceof WrongDiskError) return { code: err.code, message: err.message };
  if (isOutOfFiles(err)) return OUT_OF_FILES;
  const code = errorCode(err);
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return { code: 'disk-full', message: `no space is left on the disk (${code})` };
    case 'EROFS':
      return { code: 'disk-read-only', message: 'the file system is read-only (EROFS)' };
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ESTALE':
      return { code: 'disk-missing', message: `the recordings directory does not exist (${code})` };
    case 'EACCES':
    case 'EPERM':
      return { code: 'disk-denied', message: `the recordings directory may not be written (${code})` };
    case undefined:
      return { code: 'disk-error', message: err instanceof Error ? err.message : 'writing failed' };
    default:
      return { code: 'disk-error', message: `writing to the disk failed (${code})` };
  }
}
