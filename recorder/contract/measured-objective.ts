// What was measured of a recording objective in the time up to now. Milliseconds, of all its cameras together.

export interface MeasuredObjective {
  readonly name: string;
  readonly atMs: number;
  readonly cameras: number;
  /** Percent; null if nothing should have been recorded. */
  readonly achieved: number | null;
  readonly missingMs: number;
  readonly budgetMs: number;
  /** Below zero: the objective is not met. */
  readonly budgetLeftMs: number;
  /** Most missing first. */
  readonly worst: readonly { readonly cameraId: string; readonly missingMs: number }[];
}
