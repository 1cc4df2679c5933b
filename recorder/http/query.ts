// Parameters of queries: numbers, flags, and the refusal of misspelt names.

import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { nearName } from '../../base/near-name.ts';
import { ApiError } from './problem.ts';

/** A decimal number in a query or a path. A repeated, empty or otherwise written value is not a number. */
export const queryNumber = <T extends z.ZodNumber>(number: T) =>
  z.preprocess((text) => (typeof text === 'string' && DECIMAL.test(text) ? Number(text) : text), number);
const DECIMAL = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i;

const NO_TIME = 'not a time: expected seconds since 1970';
/** Years 2 to 9998: they have four digits, also one day earlier and later. */
export const EpochNumber = z
  .number('expected a number of seconds since 1970')
  .min(-62_104_060_800, NO_TIME)
  .lt(253_370_764_800, NO_TIME);

export const EpochSeconds = queryNumber(EpochNumber);

/** A token in the address: an element of a page cannot send headers. Not a parameter in the OpenAPI document. */
export const TokenQuery = z.object({ access_token: z.string().optional() });

/** Also a link (`POST /api/links`). */
export const LinkQuery = TokenQuery.extend({ access_link: z.string().optional() });

const FLAG = ['0', '1', 'false', 'true'] as const;

/** `0` or `false`, `1` or `true`. */
export const flag = () =>
  z.enum(FLAG, { error: 'expected 0, 1, false or true' }).transform((value) => value === '1' || value === 'true');

const MAX_CAMERAS = 64;
const CAMERAS = `expected 1 to ${MAX_CAMERAS} cameras`;

/** Ids of cameras, the parameter once for each. */
export const CameraIds = z
  .preprocess(
    (one) => (typeof one === 'string' ? [one] : one),
    z.array(z.string()).min(1, CAMERAS).max(MAX_CAMERAS, CAMERAS),
  )
  .describe('Id of a camera; once for each.');

/**
 * Unknown parameters are ignored, because caches and programs add their own. One that looks like a misspelt parameter of the
 * route is refused: without it, the answer would look right but be wrong.
 */
export function refuseMisspelt(app: FastifyInstance): void {
  app.addHook('preValidation', (request, _reply, done) => {
    const given = Object.keys(request.query as object);
    // Fastify makes an object of all options of the route whenever it is asked for them.
    if (given.length > 0) requireSpelt(given, request.routeOptions.schema?.querystring);
    done();
  });
}

function requireSpelt(names: readonly string[], querystring: unknown): void {
  if (!(querystring instanceof z.ZodObject)) return;
  const known = Object.keys(querystring.shape);
  for (const given of names) {
    if (known.includes(given)) continue;
    const bracket = given.endsWith(']') ? given.indexOf('[') : -1;
    const name = bracket < 0 ? given : given.slice(0, bracket);
    // In a name of two letters, one wrong letter is half of the name.
    const meant = nearName(
      name,
      known.filter((other) => other.length > 2 || other === name.toLowerCase()),
    );
    if (meant === undefined) continue;
    throw new ApiError(400, 'invalid-parameter', `${given}: no such parameter, did you mean ${meant}?`);
  }
}
