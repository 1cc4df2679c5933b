// What one camera's recording continues from. It is found at the start of the process and kept while the camera is not configured.

import type { Catalogue } from '../catalogue/catalogue.ts';
import type { SegmentStore } from '../disk/segment-store.ts';

export interface CameraHistory {
  nextSequence: number;
  /** Wall time at which its last segment ended, in milliseconds since 1970. */
  wallEndMs: number | undefined;
  /** The marker that stays on the disk to keep `nextSequence`. */
  marker: string | undefined;
  /** Markers of files that are not complete. */
  readonly openMarkers: Set<string>;
  /** Markers of complete files, until observers have saved what they were told of these files. */
  readonly doneMarkers: Set<string>;
}

/**
 * Removes the markers of complete files. A start announces the newest files of a camera again, and those with a marker: before an
 * observer has saved what it was told of a file, only the marker remembers that after a power cut.
 */
export async function unmarkDone(
  cameraId: string,
  { marker: newest, doneMarkers }: CameraHistory,
  { store, catalogue }: { readonly store: SegmentStore; readonly catalogue: Catalogue },
): Promise<void> {
  const markers = [...doneMarkers].filter((marker) => marker !== newest);
  if (markers.length === 0 || !(await catalogue.saved(cameraId))) return;
  for (const marker of markers) if (doneMarkers.delete(marker)) await store.unmark(marker);
}

/**
 * For files that are written beside those of the live stream: they share numbers and markers with it, but have an end of their own.
 * No file begins before `wallEndMs`.
 */
export function besideLive(live: CameraHistory, wallEndMs: number | undefined): CameraHistory {
  return {
    get nextSequence() {
      return live.nextSequence;
    },
    set nextSequence(sequence) {
      live.nextSequence = sequence;
    },
    wallEndMs,
    get marker() {
      return live.marker;
    },
    set marker(marker) {
      live.marker = marker;
    },
    openMarkers: live.openMarkers,
    doneMarkers: live.doneMarkers,
  };
}

export const newHistory = (): CameraHistory => ({
  nextSequence: 0,
  wallEndMs: undefined,
  marker: undefined,
  openMarkers: new Set(),
  doneMarkers: new Set(),
});
