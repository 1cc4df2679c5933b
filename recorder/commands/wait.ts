// The command `recorder wait`: waits until it is ended. Pods run it that only have to exist, and so do containers that
// have done their work.

import { existsSync } from 'node:fs';

/** In the image; see build/image/pause.c. */
const PAUSE = '/usr/local/bin/pause';

export const usage = 'Usage: recorder wait\n';

export function run(): number {
  waitUntilEnded();
  return 0;
}

export function waitUntilEnded(): void {
  // The pause program needs one megabyte of memory, Node forty.
  if (existsSync(PAUSE)) process.execve?.(PAUSE, ['pause'], {});
  else setInterval(() => {}, 2 ** 30);
}
