// What the connections to one camera taught, for the next one: what it goes by to keep a session, how long it takes, and
// whether its sound is in the way. It lasts as long as the process.

import { newKeepaliveMemory } from '../rtsp/keepalive.ts';
import { Patience } from './patience.ts';
import { HOUR_MS } from '../../base/units.ts';

/** For so long a camera that hung on its sound is not asked for it. */
const WITHOUT_SOUND_MS = HOUR_MS;

export class Lessons {
  readonly keepalive = newKeepaliveMemory();
  /** Battery cameras wake up, bridges and transcoders start: 12 s for DESCRIBE and 30 s for the first packet were seen. */
  readonly answers = new Patience({ firstMs: 30_000, leastMs: 10_000, mostMs: 120_000 });
  /** From PLAY to the first packet. */
  readonly start = new Patience({ firstMs: 45_000, leastMs: 10_000, mostMs: 120_000 });
  #soundHungMs: number | undefined;

  /** The camera hung when it was asked for its sound: it is asked for its video alone. */
  isWithoutSound(nowMs: number): boolean {
    return this.#soundHungMs !== undefined && nowMs - this.#soundHungMs < WITHOUT_SOUND_MS;
  }

  /** SETUP of the sound was not answered. */
  soundHung(nowMs: number): void {
    this.#soundHungMs = nowMs;
  }

  /** The connection ended before it played: it may have been the sound, unless it was not asked for. */
  neverPlayed(soundAsked: boolean, nowMs: number): void {
    if (this.isWithoutSound(nowMs)) this.#soundHungMs = undefined;
    else if (soundAsked) this.#soundHungMs = nowMs;
  }
}
