// What a recorder needs from the program around it.

import type { Log } from '../../base/log.ts';
import type { FrontDeps } from '../front/deps.ts';

export interface RecorderDeps extends FrontDeps {
  /** Also receives each line of the audit. */
  readonly audit?: Pick<Log, 'info'>;
  /** Called before cameras are connected: from now on a stop must close files. */
  readonly recording?: () => void;
}
