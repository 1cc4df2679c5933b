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

export const newHistory = (): CameraHistory => ({
  nextSequence: 0,
  wallEndMs: undefined,
  marker: undefined,
  openMarkers: new Set(),
});
