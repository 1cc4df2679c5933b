// How many files and connections this process may have open at once (RLIMIT_NOFILE). Node raises the limit to what it may be.

import { readFileSync } from 'node:fs';
import { errorCode } from './error.ts';

/** Infinity where the system does not tell. */
export function openFileLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    // A system without /proc.
    return Infinity;
  }
}

/** Whether a call failed because this process, or its machine, can open no more. */
export const isOutOfFiles = (err: unknown): boolean => ['EMFILE', 'ENFILE'].includes(errorCode(err) ?? '');

export const OUT_OF_FILES = {
  code: 'no-descriptors',
  message: 'this process can open no more files and connections: raise its limit (LimitNOFILE, ulimit -n)',
} as const;
