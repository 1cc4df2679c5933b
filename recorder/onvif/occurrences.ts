// Makes occurrences with a begin and an end of the notifications of one camera. It never tells more than a day of events has space for,
// whatever the camera sends.

import type { Occurrence } from '../contract/occurrence.ts';
import type { Notification } from './notification.ts';

/** Cameras switch to and fro while one thing moves: that is one occurrence. */
const QUIET_MS = 5_000;
/** If nothing is said of a state for so long, the camera is asked for it ... */
const UNSURE_MS = 60_000;
/** ... and its end was lost if it says nothing. */
const LOST_MS = 180_000;
const MAX_AT_ONCE = 64;
/** Half of the events that a day of a camera may have stay for other sources. */
const MAX_BURST = 60;
const ONE_MORE_MS = 20_000;

interface OpenOccurrence {
  readonly begun: Occurrence;
  /** When the camera spoke of it last: by the monotonic clock, and as a time of the wall clock. */
  heardMs: number;
  heardWallMs: number;
  /** Wall time at which it was over; undefined while it goes on. */
  overWallMs: number | undefined;
}

/** The moment at which something is said. */
interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export class Occurrences {
  readonly #open = new Map<string, OpenOccurrence>();
  #count = 0;
  #allowance = MAX_BURST;
  #allowanceMs = -Infinity;
  #dropped = 0;

  /** Begins that were not told because there were too many. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Whether something goes on of which the camera said nothing for a minute. */
  isUnsure({ monotonicMs }: Moment): boolean {
    return [...this.#open.values()].some(
      ({ overWallMs, heardMs }) => overWallMs === undefined && monotonicMs - heardMs >= UNSURE_MS,
    );
  }

  /** `startMs`: when it was so, by our wall clock. Returns what is new. */
  take({ key, type, isActive, data }: Notification, startMs: number, now: Moment): readonly Occurrence[] {
    let open = this.#open.get(key);
    const told: Occurrence[] = [];
    // The first end counts.
    if (isActive === false && open?.overWallMs !== undefined) return [];
    if (!open) {
      if (isActive === false) return [];
      if (this.#open.size >= MAX_AT_ONCE || !this.#mayTell(now)) {
        this.#dropped++;
        return [];
      }
      const id = `${type}-${startMs}-${this.#count++}`;
      const begun: Occurrence = { id, type, startMs, endMs: null, data };
      open = { begun, heardMs: 0, heardWallMs: 0, overWallMs: undefined };
      this.#open.set(key, open);
      told.push(begun);
    }
    open.heardMs = now.monotonicMs;
    open.heardWallMs = Math.max(open.begun.startMs, startMs);
    open.overWallMs = isActive === true ? undefined : open.heardWallMs;
    return told;
  }

  /** Returns what has ended. */
  tick(now: Moment): readonly Occurrence[] {
    const told: Occurrence[] = [];
    for (const [key, { begun, overWallMs, heardMs, heardWallMs }] of this.#open) {
      if (now.monotonicMs - heardMs < (overWallMs === undefined ? LOST_MS : QUIET_MS)) continue;
      this.#open.delete(key);
      told.push(ended(begun, overWallMs, heardWallMs));
    }
    return told;
  }

  /** Ends everything. */
  end(): readonly Occurrence[] {
    const told = Array.from(this.#open.values(), ({ begun, overWallMs, heardWallMs }) =>
      ended(begun, overWallMs, heardWallMs),
    );
    this.#open.clear();
    return told;
  }

  #mayTell({ monotonicMs }: Moment): boolean {
    if (this.#allowanceMs === -Infinity) this.#allowanceMs = monotonicMs;
    const more = Math.floor((monotonicMs - this.#allowanceMs) / ONE_MORE_MS);
    this.#allowance = Math.min(MAX_BURST, this.#allowance + more);
    this.#allowanceMs += more * ONE_MORE_MS;
    if (this.#allowance === 0) return false;
    this.#allowance--;
    return true;
  }
}

/** The camera may not have told the end: then it is when the camera was heard last. */
const ended = (begun: Occurrence, overWallMs: number | undefined, heardWallMs: number): Occurrence =>
  overWallMs === undefined
    ? { ...begun, endMs: heardWallMs, data: { ...begun.data, end: 'not told' } }
    : { ...begun, endMs: overWallMs };
