// Watches whether the disk of the archive is present, at the start and afterwards. Without it nothing is recorded; when it
// returns, the leftovers of a crash are repaired before anything new is recorded.

import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import { WrongDiskError } from './faults.ts';
import type { ArchiveIdentity } from './identity.ts';

interface DiskWatchDeps {
  readonly identity: ArchiveIdentity;
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Repairs the archive. Rejects with WrongDiskError while its disk is missing. */
  readonly recover: () => Promise<unknown>;
  /** Prevents new files because of this fault; undefined: allows them. */
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

  /** Why the record path is not the archive of this node, at the last check. */
  get fault(): WrongDiskError | undefined {
    return this.#fault;
  }

  /** The archive could not be recovered at the start: recovery runs when its disk is present. */
  waitFor(fault: WrongDiskError): void {
    this.#mustRecover = true;
    this.#deps.refuse(fault);
    this.#tell(fault);
  }

  /** The same for a disk that was not looked at yet. */
  expect(): void {
    this.#mustRecover = true;
    this.#deps.refuse(new WrongDiskError('archive-missing', `${this.#deps.root} was not looked at yet`));
  }

  /** To be called a few times a second. */
  tick(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#look || nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    this.#look = this.#lookOnce()
      .catch((err: unknown) => this.#deps.log.debug({ err }, 'the disk of the archive cannot be checked'))
      .finally(() => {
        this.#look = undefined;
      });
  }

  /** Resolves when no check is running. */
  async settled(): Promise<void> {
    await this.#look;
  }

  async #lookOnce(): Promise<void> {
    const { identity, recover, refuse } = this.#deps;
    try {
      // Recovery checks the disk itself, and creates a new archive if the node knows none, as at the start.
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

  /** Logs one line for each change. */
  #tell(fault: WrongDiskError | undefined): void {
    const before = this.#fault;
    this.#fault = fault;
    if (fault?.code === before?.code) return;
    const { log, root: path } = this.#deps;
    if (fault)
      log.error({ path, code: fault.code, reason: fault.message }, 'the record path is not on the disk of the archive');
    else log.info({ path }, 'the disk of the archive is available again');
  }
}
