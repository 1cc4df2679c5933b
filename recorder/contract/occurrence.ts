// Something that a camera saw, as it tells of it.

export interface Occurrence {
  /** Unique for the camera. */
  readonly id: string;
  readonly type: string;
  readonly startMs: number;
  /** Null: it goes on, and is told again with its end. */
  readonly endMs: number | null;
  readonly data: Readonly<Record<string, string>>;
}
