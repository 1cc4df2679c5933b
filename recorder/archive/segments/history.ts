// What one camera's recording continues from. It is found at the start of the process and kept while the camera is not configured.

export interface CameraHistory {
  nextSequence: number;
  /** Wall time at which its last segment ended, in milliseconds since 1970. */
  wallEndMs: number | undefined;
  /** The marker that stays on the disk to keep `nextSequence`. */
  marker: string | undefined;
  /** Markers of files that are not complete. */
  readonly openMarkers: Set<string>;
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
  };
}

export const newHistory = (): CameraHistory => ({
  nextSequence: 0,
  wallEndMs: undefined,
  marker: undefined,
  openMarkers: new Set(),
});
