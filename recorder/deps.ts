// What a recorder takes from the program around it.

import type { Clock } from '../base/clock.ts';
import type { LevelSwitch } from '../base/log-level.ts';
import type { Log } from '../base/log.ts';
import type { PodPlace } from '../base/kubernetes/pod-place.ts';

export interface RecorderDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  /** Needed for cluster.mode and auth.mode kubernetes. */
  readonly pod?: PodPlace | undefined;
  /** What `log` follows, where it can be changed. */
  readonly logLevels?: LevelSwitch;
  /** Takes each line of the audit as well. */
  readonly audit?: Pick<Log, 'info'>;
  /** Where cameras are configured, so that they can be changed by the API. */
  readonly configuration?: {
    readonly file: string;
    /** Reads the files and takes them up, as for SIGHUP. Rejects with ConfigError. */
    readonly reload: () => Promise<void>;
  };
  /** Called when cameras are about to be asked: from now on a stop has files to close. */
  readonly recording?: () => void;
}
