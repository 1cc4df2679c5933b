// The progress of the nodes of a pool that are being drained: how many cameras must still leave each, and whether none
// could leave for too long.

import type { Clock } from '../../base/clock.ts';
import { camerasThatCanLeave } from '../plan/guards.ts';
import type { Snapshot } from '../plan/snapshot.ts';

/** A node that is being drained. */
interface Drain {
  /** Cameras that have to move to another node. */
  readonly cameras: number;
  /** When the last one left it, or the drain was first seen; monotonic ms of this process. */
  readonly sinceMs: number;
  /** It made no progress until the deadline. Stays until the drain ends, so that `kubectl drain` does not wait again. */
  readonly isGivenUp: boolean;
}

export interface DrainProgress {
  /** By the name of the node. */
  readonly drains: ReadonlyMap<string, Drain>;
  /** Nodes that were given up just now. */
  readonly givenUp: readonly string[];
  /** Cameras of each node that others could record. */
  readonly leaving: ReadonlyMap<string, number>;
  /** When the next one may be given up. */
  readonly recheckMs: number | undefined;
}

export class Drains {
  readonly #clock: Clock;
  readonly #known = new Map<string, ReadonlyMap<string, Drain>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  forget(key: string): void {
    this.#known.delete(key);
  }

  /** `snapshot`: of the leader's last plan. */
  follow(key: string, snapshot: Snapshot, deadlineMs: number): DrainProgress {
    const leaving = camerasThatCanLeave(snapshot);
    const nowMs = this.#clock.monotonicMs();
    const before = this.#known.get(key);
    const names = snapshot.nodes.filter(({ drain }) => drain).map(({ name }) => name);
    const drains = new Map(
      names.map((name) => [name, progressed(before?.get(name), leaving.get(name) ?? 0, nowMs, deadlineMs)]),
    );
    this.#known.set(key, drains);
    const waits = [...drains.values()].filter(({ cameras, isGivenUp }) => cameras > 0 && !isGivenUp);
    const recheckMs = Math.min(...waits.map(({ sinceMs }) => sinceMs + deadlineMs - nowMs));
    return {
      drains,
      givenUp: names.filter((name) => drains.get(name)?.isGivenUp && before?.get(name)?.isGivenUp !== true),
      leaving,
      recheckMs: Number.isFinite(recheckMs) ? Math.max(0, recheckMs) : undefined,
    };
  }
}

function progressed(before: Drain | undefined, cameras: number, nowMs: number, deadlineMs: number): Drain {
  if (!before || cameras < before.cameras) return { cameras, sinceMs: nowMs, isGivenUp: before?.isGivenUp ?? false };
  const isGivenUp = before.isGivenUp || (cameras > 0 && nowMs - before.sinceMs >= deadlineMs);
  return { cameras, sinceMs: before.sinceMs, isGivenUp };
}
