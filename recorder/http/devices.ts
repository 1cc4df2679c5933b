// Browsers with which a user has signed in before ("device cookies", OWASP): guesses of others, also from the same address, neither
// hold them off nor let them wait. Such a cookie signs nobody in.

import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { DAY_MS } from '../../base/units.ts';
import { cookieIn, setCookie } from './cookies.ts';
import type { Seal } from './seal.ts';

const DEVICE_COOKIE = 'kube_nvr_device';
/** After the last sign-in. */
const LASTS_MS = 180 * DAY_MS;
/** Guards share a browser. Beyond this, the user who signed in longest ago counts as new there. */
const MAX_USERS = 8;
const PURPOSE = 'device';

/** `users`: names, the one who signed in last at the end. */
const Sealed = z.strictObject({ id: z.string(), users: z.array(z.string()), issuedMs: z.number() });
type Sealed = z.output<typeof Sealed>;

type CookieRequest = Pick<FastifyRequest, 'headers' | 'protocol'>;

export class Devices {
  readonly #seal: Seal;
  readonly #clock: Pick<Clock, 'wallMs'>;

  constructor(seal: Seal, clock: Pick<Clock, 'wallMs'>) {
    this.#seal = seal;
    this.#clock = clock;
  }

  /** The id of the browser, if the user has signed in with it. A user's own browser helps with no other name. */
  of(request: CookieRequest, user: string): string | undefined {
    const device = this.#opened(request);
    return device?.users.includes(user) ? device.id : undefined;
  }

  /** `Set-Cookie` for a browser with which the user has just signed in. */
  note(request: CookieRequest, user: string): string {
    const { id = randomUUID(), users = [] } = this.#opened(request) ?? {};
    const sealed: Sealed = {
      id,
      users: [...users.filter((name) => name !== user), user].slice(-MAX_USERS),
      issuedMs: this.#clock.wallMs(),
    };
    return setCookie(DEVICE_COOKIE, this.#seal.close(PURPOSE, JSON.stringify(sealed)), LASTS_MS, request);
  }

  #opened(request: CookieRequest): Sealed | undefined {
    const data = this.#seal.read(PURPOSE, cookieIn(request, DEVICE_COOKIE), Sealed)?.data;
    return data && this.#clock.wallMs() - data.issuedMs < LASTS_MS ? data : undefined;
  }
}
