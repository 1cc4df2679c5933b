// The archive for programs that read footage: a call that holds footage returns the function that releases it.

import type { OwnArchive } from '../footage/own-footage.ts';
import type { EngineArchive } from '../model/engine.ts';

export function heldFootage(archive: EngineArchive): OwnArchive {
  let last = 0;
  const held = (hold: (number: number) => void): (() => void) => {
    const number = ++last;
    hold(number);
    return () => archive.release(number);
  };
  return {
    list: (cameraId, query) => archive.list(cameraId, query),
    rootOf: (path) => archive.rootOf(path),
    openEntries: (cameraId) => archive.openEntries(cameraId),
    holdForReading: (path) => held((number) => archive.holdForReading(number, path)),
    holdWindow: (...window) => held((number) => archive.holdWindow(number, ...window)),
  };
}
