// Why something is as it is: a code for programs and a sentence for people.

/** The code is stable and in kebab case. Neither contains a password or a URL with a user part. */
export interface Reason {
  readonly code: string;
  readonly message: string;
}

/** A problem that needs attention, although the node works. */
export interface Warning extends Reason {
  /** Undefined for a warning about the node. */
  readonly cameraId: string | undefined;
}
