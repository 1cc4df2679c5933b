// How cameras answered logins, for everything that connects to them: which ones took something better than a password in clear
// text (kept across restarts), and which logins were refused (kept as long as the process).

import type { Clock } from '../../base/clock.ts';
import type { LoginMemory } from '../rtsp/login.ts';
import { plainHost } from '../rtsp/origin.ts';
import type { Credentials } from '../rtsp/url.ts';

/** `rtsp`: RTSP itself; `tunnel`: the HTTP around it; `still`, `onvif`: HTTP. A camera may treat logins differently in each. */
interface LoginPlace {
  readonly kind: 'rtsp' | 'tunnel' | 'still' | 'onvif';
  readonly host: string;
  readonly port: number;
}

export interface BetterLogin {
  readonly took: 'Digest' | 'TLS';
  readonly sinceMs: number;
}

/** By place, such as `rtsp 10.0.0.9:554`. */
export type BetterLogins = ReadonlyMap<string, BetterLogin>;

/** Beyond this number, the oldest places and logins are forgotten first; they belong to cameras that were removed long ago. */
const MAX_KNOWN = 10_000;

/** The results of one login at one host: the places that accepted and refused it. */
interface Outcomes {
  readonly accepted: Set<string>;
  readonly refused: Set<string>;
}

export class CameraLogins {
  readonly #better: Map<string, BetterLogin>;
  readonly #outcomes = new Map<string, Outcomes>();
  readonly #clock: Pick<Clock, 'wallMs'>;
  readonly #changed: (better: BetterLogins) => void;

  /** `changed` is called with what has to be stored. */
  constructor(deps: {
    readonly clock: Pick<Clock, 'wallMs'>;
    readonly kept?: BetterLogins;
    readonly changed?: (better: BetterLogins) => void;
  }) {
    this.#clock = deps.clock;
    this.#better = new Map(deps.kept);
    this.#changed = deps.changed ?? (() => {});
  }

  at({ kind, host, port }: LoginPlace, credentials: Credentials | undefined): LoginMemory {
    const plain = plainHost(host);
    const place = `${kind} ${plain}:${port}`;
    const outcomes = (): Outcomes =>
      this.#outcomesOf(JSON.stringify([plain, credentials?.username, credentials?.password]));
    const better = this.#better;
    return {
      get better() {
        return better.get(place)?.took;
      },
      get mayTry() {
        const { accepted, refused } = outcomes();
        // A login that this camera accepts elsewhere may be accepted here too.
        return !refused.has(place) && (refused.size === 0 || accepted.size > 0);
      },
      accepted: (took) => {
        if (took) this.#took(place, took);
        const { accepted, refused } = outcomes();
        // Newly accepted here: the other places may try it once more.
        if (!accepted.has(place)) refused.clear();
        accepted.add(place);
      },
      refused: () => {
        const { accepted, refused } = outcomes();
        accepted.delete(place);
        refused.add(place);
      },
      ledToTls: () => this.#took(place, 'TLS'),
    };
  }

  #took(place: string, took: BetterLogin['took']): void {
    if (this.#better.has(place)) return;
    put(this.#better, place, { took, sinceMs: this.#clock.wallMs() });
    this.#changed(this.#better);
  }

  #outcomesOf(key: string): Outcomes {
    const known = this.#outcomes.get(key) ?? { accepted: new Set(), refused: new Set() };
    put(this.#outcomes, key, known);
    return known;
  }
}

function put<V>(map: Map<string, V>, key: string, value: V): void {
  map.set(key, value);
  if (map.size > MAX_KNOWN) map.delete(map.keys().next().value as string);
}
