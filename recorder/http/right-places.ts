// Remembers for a day which token was valid from which network: there it is accepted even while others are held off, and connections
// from there are closed after those of strangers.

import type { Clock } from '../../base/clock.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';

const REMEMBERED_MS = DAY_MS;
/** A note younger than this is not renewed. */
const RENEWED_MS = HOUR_MS;
/** Beyond this, the note that was renewed longest ago is removed. About 200 bytes each. */
const MAX_PLACES = 10_000;

export class RightPlaces {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #maxPlaces: number;
  /** Time of the note by `network key`, oldest first. */
  readonly #notes = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonicMs'>, maxPlaces = MAX_PLACES) {
    this.#clock = clock;
    this.#maxPlaces = maxPlaces;
  }

  get size(): number {
    return this.#notes.size;
  }

  /** `key` identifies the token, for example by its digest; or it is the same for all of them. */
  note(network: string, key: string): void {
    const place = `${network} ${key}`;
    const nowMs = this.#clock.monotonicMs();
    const notedMs = this.#notes.get(place);
    if (notedMs !== undefined && nowMs - notedMs < RENEWED_MS) return;
    this.#notes.delete(place);
    this.#notes.set(place, nowMs);
    const [oldest] = this.#notes.keys();
    if (this.#notes.size > this.#maxPlaces) this.#notes.delete(oldest as string);
  }

  has(network: string, key: string): boolean {
    const notedMs = this.#notes.get(`${network} ${key}`);
    return notedMs !== undefined && this.#clock.monotonicMs() - notedMs < REMEMBERED_MS;
  }
}
