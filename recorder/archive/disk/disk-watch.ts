// Whether the disk of the archive is there, at the start and afterwards: without it nothing is recorded, and when it
// comes, what a crash left on it is repaired before anything new begins.

import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import { WrongDiskError } from './faults.ts';
import type { ArchiveIdentity } from './identity.ts';

export interface DiskWatchDeps {
  readonly identity: ArchiveIdentity;
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Repairs the archive. Throws WrongDiskError while its disk is not there. */
  readonly recover: () => Promise<unknown>;
  /** Nothing new may be created because of this; undefined: it may. */
  readonly refuse: (fault: WrongDiskError | undefined) => void;
}

const LOOK_MS = 1_000;

export class DiskWatch {
  readonly #deps: DiskWatchDeps;
  #fault: WrongDiskError | undefined;
  #mustRecover = false;
  #lookedMs = -Infinity;
  #look: Promise<void> | undefined;

  constructor(deps: DiskWatchDeps) {
    this.#deps = deps;
  }

  /** Why the record path is not our archive, as of the last look. */
  get fault(): WrongDiskError | undefined {
    return this.#fault;
  }

  /** The archive could not be recovered at the start: it will be when its disk is there. */
  waitFor(fault: WrongDiskError): void {
    this.#mustRecover = true;
    this.#deps.refuse(fault);
    this.#tell(fault);
  }

  /** Call it a few times a second. */
  tick(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#look || nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    this.#look = this.#lookOnce()
      .catch((err: unknown) => this.#deps.log.debug({ err }, 'the disk of the archive cannot be looked at'))
      .finally(() => {
        this.#look = undefined;
      });
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await this.#look;
  }

  async #lookOnce(): Promise<void> {
    const { identity, recover, refuse } = this.#deps;
    try {
      // Recovery looks for itself, and begins a new archive where the node knows of none (any more), as at the start.
      await (this.#mustRecover ? recover() : identity.check());
    } catch (err) {
      if (!(err instanceof WrongDiskError)) throw err;
      if (this.#mustRecover) refuse(err);
      this.#tell(err);
      return;
    }
    if (this.#mustRecover) refuse(undefined);
    this.#mustRecover = false;
    this.#tell(undefined);
  }

  /** One line a change. */
  #tell(fault: WrongDiskError | undefined): void {
    const before = this.#fault;
    this.#fault = fault;
    if (fault?.code === before?.code) return;
    const { log, root: path } = this.#deps;
    if (fault) log.error({ path, code: fault.code, reason: fault.message }, 'this is not the disk of the archive');
    else log.info({ path }, 'the disk of the archive is there again');
  }
}
