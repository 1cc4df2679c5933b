// Links to one address for a few minutes, for programs that can send neither a header nor a cookie. A link is sealed for its
// address, and has the rights of the caller who made it, so no node has to remember it, and every node of the cluster accepts it.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { MINUTE_MS } from '../../base/units.ts';
import type { Seal } from './seal.ts';
import { endsOf, Holder, type Session } from './sessions.ts';

export const LINK_PARAMETER = 'access_link';
const LASTS_MS = 5 * MINUTE_MS;

const Sealed = z.strictObject({ id: z.string(), of: Holder, untilMs: z.number() });

/** `id`: of the session that made it; by chance without one. */
interface LinkMade extends Pick<Session, 'id' | 'expiresMs'> {
  readonly holder: Holder;
  /** The node at which that session began; by default, this one. */
  readonly from?: string | undefined;
}

export type Link = LinkMade & Omit<Session, 'isDue'>;

export class Links {
  readonly #seal: Seal;
  readonly #clock: Pick<Clock, 'wallMs'>;

  constructor(seal: Seal, clock: Pick<Clock, 'wallMs'>) {
    this.#seal = seal;
    this.#clock = clock;
  }

  /** Until when a link is valid that is made now. */
  get untilMs(): number {
    return this.#clock.wallMs() + LASTS_MS;
  }

  /** `url` as an address that the link opens. */
  addressOf(url: string, { id, holder, expiresMs, from }: LinkMade): string {
    const bare = withoutLink(url);
    const sealed = this.#seal.close(
      purposeOf(bare),
      JSON.stringify({ id, of: holder, untilMs: expiresMs } satisfies z.output<typeof Sealed>),
      from,
    );
    return `${bare}${bare.includes('?') ? '&' : '?'}${LINK_PARAMETER}=${sealed}`;
  }

  /** The link of a request to read; undefined without one, and for one that has expired or is for another address. */
  of({ url, query, method }: Pick<FastifyRequest, 'url' | 'query' | 'method'>): Link | undefined {
    const sealed = linkIn({ query });
    if (sealed === undefined || (method !== 'GET' && method !== 'HEAD')) return undefined;
    const purpose = purposeOf(withoutLink(url));
    const read = this.#seal.read(purpose, sealed, Sealed);
    if (!read || this.#clock.wallMs() >= read.data.untilMs) return undefined;
    const { from, vouchedBy } = read;
    const { id, of: holder, untilMs: expiresMs } = read.data;
    const isAccepted = (): boolean => this.#seal.open(purpose, sealed) !== undefined;
    const sinceMs = expiresMs - LASTS_MS;
    return { id, endsWith: () => endsOf(id, holder), sinceMs, holder, expiresMs, from, vouchedBy, isAccepted };
  }
}

function linkIn({ query }: Pick<FastifyRequest, 'query'>): string | undefined {
  const sealed = (query as Readonly<Record<string, unknown>> | undefined)?.[LINK_PARAMETER];
  return typeof sealed === 'string' ? sealed : undefined;
}

/** Whether the request has a link, whatever it is worth. */
export const hasLink = (request: Pick<FastifyRequest, 'query'>): boolean => linkIn(request) !== undefined;

/**
 * What a link is sealed for: what an address names, whichever node is asked for it (`/node/{node_id}/…`), and whether the listener
 * for playback or that of the API is (`/playback/…`). The origin is not part of it, because a node does not know its own.
 */
const purposeOf = (url: string): string => `link ${url.replace(ORIGIN, '').replace(PLACE, '')}`;
const ORIGIN = /^https?:\/\/[^/?]*/;
const PLACE = /^(?:\/playback)?(?:\/node\/[^/?]+)?(?:\/playback)?(?=\/)/;

function withoutLink(url: string): string {
  const at = url.indexOf('?');
  if (at < 0) return url;
  const others = url
    .slice(at + 1)
    .split('&')
    .filter((pair) => !pair.startsWith(`${LINK_PARAMETER}=`));
  return others.length === 0 ? url.slice(0, at) : `${url.slice(0, at)}?${others.join('&')}`;
}
