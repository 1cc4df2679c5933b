// What was learnt from the connections to one camera, for the next one: how to keep a session alive, how long the
// camera takes, and whether asking for audio makes it hang. Kept as long as the process.

import { newKeepaliveMemory } from '../rtsp/keepalive.ts';
import { Patience } from './patience.ts';
import { HOUR_MS } from '../../base/units.ts';

/** For this long, a camera that hung on audio is asked for video only. */
const WITHOUT_SOUND_MS = HOUR_MS;

export class Lessons {
  readonly keepalive = newKeepaliveMemory();
  /** Battery cameras wake up, bridges and transcoders start: 12 s for DESCRIBE and 30 s for the first packet have been seen. */
  readonly answers = new Patience({ firstMs: 30_000, leastMs: 10_000, mostMs: 120_000 });
  /** Time from PLAY to the first packet. */
  readonly start = new Patience({ firstMs: 45_000, leastMs: 10_000, mostMs: 120_000 });
  #soundHungMs: number | undefined;

  /** The camera hung when it was asked for audio, so it is asked for video only. */
  isWithoutSound(nowMs: number): boolean {
    return this.#soundHungMs !== undefined && nowMs - this.#soundHungMs < WITHOUT_SOUND_MS;
  }

  /** Call when SETUP of the audio got no response. */
  soundHung(nowMs: number): void {
    this.#soundHungMs = nowMs;
  }

  /** Call when the connection ended before it played: audio may be the cause, if it was asked for. */
  neverPlayed(soundAsked: boolean, nowMs: number): void {
    if (this.isWithoutSound(nowMs)) this.#soundHungMs = undefined;
    else if (soundAsked) this.#soundHungMs = nowMs;
  }
}
