// Sign-ins that wait for their issuer: a cookie, sealed, that the browser brings back from there. So no node has to remember them, and
// any node of a cluster may take the answer. It also shows that the answer comes to the browser that has asked (RFC 9700 §2.1).

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { cookieIn, setCookie } from './cookies.ts';
import type { Seal } from './seal.ts';

const NAME = 'kube_nvr_sign_in';
/** The issuer sends the browser back, and a cookie that is Strict would not come along. */
const SAME_SITE = 'Lax';
/** How long a person may take at the issuer. */
const LASTS_MS = 10 * MINUTE_MS;

/** `state`, `nonce` and `verifier` are those of RFC 6749, OpenID Connect and PKCE (RFC 7636); `to`: the view to show afterwards. */
const Pending = z.strictObject({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  to: z.string(),
  untilMs: z.number(),
});
type Pending = Omit<z.output<typeof Pending>, 'untilMs'>;

const purposeOf = (issuer: string): string => `sign-in ${issuer}`;

export class SignIns {
  readonly #seal: Seal;
  readonly #clock: Pick<Clock, 'wallMs'>;

  constructor(seal: Seal, clock: Pick<Clock, 'wallMs'>) {
    this.#seal = seal;
    this.#clock = clock;
  }

  /** `Set-Cookie` for the browser that goes to the issuer. */
  begin(request: Pick<FastifyRequest, 'protocol'>, issuer: string, pending: Pending): string {
    const untilMs = this.#clock.wallMs() + LASTS_MS;
    const sealed = this.#seal.close(purposeOf(issuer), JSON.stringify({ ...pending, untilMs }));
    return setCookie(NAME, sealed, LASTS_MS, request, SAME_SITE);
  }

  /** The sign-in that this browser has begun at this issuer; undefined without one that is recent. */
  of(request: Pick<FastifyRequest, 'headers' | 'protocol'>, issuer: string): Pending | undefined {
    const data = this.#seal.read(purposeOf(issuer), cookieIn(request, NAME), Pending)?.data;
    return data && this.#clock.wallMs() < data.untilMs ? data : undefined;
  }

  /** `Set-Cookie` that makes the browser forget it. */
  end(request: Pick<FastifyRequest, 'protocol'>): string {
    return setCookie(NAME, '', 0, request, SAME_SITE);
  }
}
