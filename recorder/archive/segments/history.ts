// What one camera's recording goes on from: found at start, kept while the camera is gone.

export interface CameraHistory {
  nextSequence: number;
  /** Wall time at which its last segment ended. */
  wallEndMs: number | undefined;
  /** The marker that stays on the disk to keep `nextSequence`. */
  marker: string | undefined;
  /** Markers of files that are not complete. */
  readonly openMarkers: Set<string>;
}

export const newHistory = (): CameraHistory => ({
  nextSequence: 0,
  wallEndMs: undefined,
  marker: undefined,
  openMarkers: new Set(),
});
