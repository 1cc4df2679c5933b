// How cameras answered logins, for everything that connects to them: which ones took something better than a password in clear
// text (kept across restarts), and which logins were refused and rest.

import type { Clock } from '../../base/clock.ts';
import type { Warning } from '../../base/reason.ts';
import { MINUTE_MS } from '../../base/units.ts';
import type { LoginMemory } from '../rtsp/login.ts';
import { plainHost } from '../rtsp/origin.ts';
import type { Credentials } from '../rtsp/url.ts';

/** `rtsp`: RTSP itself; `tunnel`: the HTTP around it; `still`, `onvif`: HTTP. A camera may treat logins differently in each. */
interface LoginPlace {
  readonly kind: 'rtsp' | 'tunnel' | 'still' | 'onvif';
  readonly host: string;
  readonly port: number;
  /** What is asked for there: a user may have a right to one channel of a device and not to another. */
  readonly path?: string;
  /** The camera to name in a warning. */
  readonly cameraId?: string | undefined;
}

export interface BetterLogin {
  readonly took: 'Digest' | 'TLS';
  readonly sinceMs: number;
}

/** By place, such as `rtsp 10.0.0.9:554`. */
export type BetterLogins = ReadonlyMap<string, BetterLogin>;

/** Beyond this number, the oldest places and logins are forgotten first; they belong to cameras that were removed long ago. */
const MAX_KNOWN = 10_000;

/**
 * How long a login rests after each refusal in a row. Cameras lock the accounts of clients that repeat a wrong one, but they also refuse a
 * right one: while they start, and while somebody else has locked the account.
 */
const RESTS_MS = [1, 5, 15, 30].map((minutes) => minutes * MINUTE_MS);

interface Refusal {
  readonly place: LoginPlace;
  /** How often in a row. */
  readonly times: number;
  untilMs: number;
}

/** The results of one login at one host: the places that accepted and refused it. */
interface Outcomes {
  readonly accepted: Set<string>;
  readonly refused: Map<string, Refusal>;
}

type LoginClock = Pick<Clock, 'wallMs' | 'monotonicMs'>;

export class CameraLogins {
  readonly #better: Map<string, BetterLogin>;
  readonly #outcomes = new Map<string, Outcomes>();
  readonly #clock: LoginClock;
  readonly #changed: (better: BetterLogins) => void;

  /** `changed` is called with what has to be stored. */
  constructor(deps: {
    readonly clock: LoginClock;
    readonly kept?: BetterLogins;
    readonly changed?: (better: BetterLogins) => void;
  }) {
    this.#clock = deps.clock;
    this.#better = new Map(deps.kept);
    this.#changed = deps.changed ?? (() => {});
  }

  at(at: LoginPlace, credentials: Credentials | undefined): LoginMemory {
    const { kind, host, port, path = '' } = at;
    const plain = plainHost(host);
    const place = `${kind} ${plain}:${port}`;
    const which = `${place} ${path}`;
    const nowMs = (): number => this.#clock.monotonicMs();
    const outcomes = (): Outcomes =>
      this.#outcomesOf(JSON.stringify([plain, credentials?.username, credentials?.password]));
    const better = this.#better;
    return {
      get better() {
        return better.get(place)?.took;
      },
      get mayTry() {
        const { accepted, refused } = outcomes();
        const own = refused.get(which);
        if (own) return nowMs() >= own.untilMs;
        // A login that this camera accepts elsewhere may be accepted here too.
        return accepted.size > 0 || [...refused.values()].every(({ untilMs }) => nowMs() >= untilMs);
      },
      accepted: (took) => {
        if (took) this.#took(place, took);
        const { accepted, refused } = outcomes();
        // Newly accepted here: the other places may try it once more.
        if (!accepted.has(which)) refused.clear();
        refused.delete(which);
        accepted.add(which);
      },
      refused: () => {
        const { accepted, refused } = outcomes();
        accepted.delete(which);
        const times = (refused.get(which)?.times ?? 0) + 1;
        const restMs = RESTS_MS[Math.min(times, RESTS_MS.length) - 1] as number;
        refused.set(which, { place: at, times, untilMs: nowMs() + restMs });
      },
      ledToTls: () => this.#took(place, 'TLS'),
    };
  }

  /** Logins that rest now. What a stream is refused is the state of its camera. */
  warnings(): Warning[] {
    const nowMs = this.#clock.monotonicMs();
    return this.#resting().flatMap(({ place: { kind, cameraId }, times, untilMs }): Warning[] => {
      if (cameraId === undefined || kind === 'rtsp' || kind === 'tunnel') return [];
      const what = kind === 'still' ? 'still images' : 'ONVIF';
      const minutes = Math.ceil((untilMs - nowMs) / MINUTE_MS);
      const message = `it refused user and password for ${what} (${times} times in a row): tried again in ${minutes} min`;
      return [{ code: 'login-rests', message, cameraId }];
    });
  }

  /** Ends what rests of a camera: the next request tries the login. After another refusal the rest is the next longer one. */
  tryAgain(cameraId: string): number {
    const own = this.#resting().filter(({ place }) => place.cameraId === cameraId);
    for (const refusal of own) refusal.untilMs = this.#clock.monotonicMs();
    return own.length;
  }

  #resting(): Refusal[] {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#outcomes.values()]
      .flatMap(({ refused }) => [...refused.values()])
      .filter(({ untilMs }) => nowMs < untilMs);
  }

  #took(place: string, took: BetterLogin['took']): void {
    if (this.#better.has(place)) return;
    put(this.#better, place, { took, sinceMs: this.#clock.wallMs() });
    this.#changed(this.#better);
  }

  #outcomesOf(key: string): Outcomes {
    const known = this.#outcomes.get(key) ?? { accepted: new Set(), refused: new Map() };
    put(this.#outcomes, key, known);
    return known;
  }
}

function put<V>(map: Map<string, V>, key: string, value: V): void {
  map.set(key, value);
  if (map.size > MAX_KNOWN) map.delete(map.keys().next().value as string);
}
