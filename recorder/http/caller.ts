// The caller of a request, and its rights.

import type { Role } from '../config/schema.ts';

/** Makes requests, with the rights of a token. */
export interface Caller {
  /** Of the token, for logs and audit; never the token. */
  readonly name: string;
  /** Undefined: a known user who may do nothing here. */
  readonly role: Role | undefined;
  /** False for a token with a list of cameras. */
  readonly seesAll: boolean;
  /** Whether the camera is in the caller's scope. One that is not must be treated as if it did not exist. */
  readonly sees: (cameraId: string) => boolean;
  /** For tokens of the API server: all cameras in its scope, unless it sees all. */
  readonly cameras?: ReadonlySet<string> | undefined;
}
