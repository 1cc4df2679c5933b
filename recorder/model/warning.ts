/** Something that somebody should look at, although the node works. */
export interface Warning {
  /** Stable, in kebab case. */
  readonly code: string;
  readonly message: string;
  /** Undefined: of the node. */
  readonly cameraId: string | undefined;
}
