// What the front needs from the program around it.

import type { Clock } from '../../base/clock.ts';
import type { PodPlace } from '../../base/kubernetes/pod-place.ts';
import type { LevelSwitch } from '../../base/log-level.ts';
import type { Log } from '../../base/log.ts';

export interface FrontDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  /** Needed for cluster.mode and auth.mode kubernetes. */
  readonly pod?: PodPlace | undefined;
  /** The level of `log`. */
  readonly logLevels: LevelSwitch;
  /** The configuration files; needed to change cameras through the API. */
  readonly configuration?: {
    readonly file: string;
    /** Reads and applies the files; `removed`: cameras that are to be missing. Rejects with ConfigError. */
    readonly reload: (removed: readonly string[]) => Promise<void>;
  };
}
