// Asks one device over ONVIF: each question has a time limit, and a login that was refused is not sent again.

import type { Clock } from '../../base/clock.ts';
import type { Reach } from '../reach/reach.ts';
import { NO_MEMORY, type LoginMemory } from '../rtsp/login.ts';
import { OnvifClient } from './client.ts';
import { OnvifError } from './error.ts';
import type { OnvifTarget } from './target.ts';
import { withLogin } from './with-login.ts';

const ANSWER_TIMEOUT_MS = 10_000;

type Question<T> = (client: OnvifClient, signal: AbortSignal) => Promise<T>;

export class OnvifDialogue {
  readonly #client: OnvifClient;
  readonly #clock: Clock;
  readonly #login: LoginMemory;

  constructor(
    target: OnvifTarget,
    { clock, reach, cameraId }: { readonly clock: Clock; readonly reach: Reach; readonly cameraId?: string },
  ) {
    const { host, port, credentials } = target;
    const place = { kind: 'onvif', host, port, ...(cameraId === undefined ? {} : { cameraId }) } as const;
    this.#client = new OnvifClient(target, { clock, reach });
    this.#clock = clock;
    this.#login = credentials ? reach.logins.at(place, credentials) : NO_MEMORY;
  }

  /** The next question sets up a new connection. */
  forget(): void {
    this.#client.forget();
  }

  /** Rejects with `OnvifError`, or with the reason of `signal`. */
  async ask<T>(question: Question<T>, signal: AbortSignal, limitMs = ANSWER_TIMEOUT_MS): Promise<T> {
    const mayBeClock = this.#client.connected;
    try {
      return await this.within(limitMs, signal, (limited) =>
        withLogin(this.#login, () => question(this.#client, limited), { mayBeClock }),
      );
    } catch (err) {
      if (!(err instanceof OnvifError && err.code === 'fault')) this.#client.forget();
      throw err;
    }
  }

  /** Undefined if the device refuses the operation. */
  async tolerant<T>(question: Question<T>, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await this.ask(question, signal);
    } catch (err) {
      if (err instanceof OnvifError && err.code === 'fault') return undefined;
      throw err;
    }
  }

  async within<T>(limitMs: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const late = new AbortController();
    const timer = this.#clock.after(limitMs, () => {
      late.abort(new OnvifError('timeout', `the camera did not answer within ${limitMs / 1000} seconds`));
    });
    try {
      return await work(AbortSignal.any([signal, late.signal]));
    } finally {
      timer.cancel();
    }
  }
}
