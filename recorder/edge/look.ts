// Says for `recorder probe` whether a camera has a memory that ONVIF can reach.

import { messageOf } from '../../base/error.ts';
import { EdgeError } from './memory.ts';
import { openEdgeMemory, type EdgeCamera } from './open.ts';
import type { ReplayDeps } from './replay-session.ts';

interface MemoryLook {
  /** `unknown`: the camera could not be asked. */
  readonly answer: 'yes' | 'no' | 'unknown';
  /** What it has, or why not. */
  readonly message: string;
}

/** Never fails, except with the signal's reason when it aborts. */
export async function lookForMemory(camera: EdgeCamera, deps: ReplayDeps, signal: AbortSignal): Promise<MemoryLook> {
  try {
    const memory = openEdgeMemory(camera, { kind: 'onvif', recording: undefined }, deps);
    const recordings = (await memory.recordings(signal)) ?? [];
    const oldestMs = Math.min(...recordings.map(({ fromMs }) => fromMs));
    const since = Number.isFinite(oldestMs) ? `footage since ${new Date(oldestMs).toISOString()}` : 'no footage';
    return { answer: 'yes', message: `ONVIF search and replay (Profile G), ${since} by its clock` };
  } catch (err) {
    signal.throwIfAborted();
    if (err instanceof EdgeError && err.code === 'not-supported') return { answer: 'no', message: err.message };
    return { answer: 'unknown', message: messageOf(err) };
  }
}
