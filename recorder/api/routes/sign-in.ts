// `/api/sign-in`: people sign in at an issuer (OpenID Connect). The browser goes there and comes back with a code, and the session that
// begins then is one like any other.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { printable } from '../../../base/printable.ts';
import { tell } from '../../http/audit.ts';
import { endedBy } from '../../http/issuer-rules.ts';
import { ApiError } from '../../http/problem.ts';
import { busy } from '../../http/refusals.ts';
import { isRelayed, relayedBy } from '../../http/relayed.ts';
import { IssuerError } from '../../identity/issuer-error.ts';
import type { ApiRoutes } from '../deps.ts';
import { SignInWays, type SignInProblem } from '../sign-in-item.ts';

/** Requests that wait for an issuer. Anybody can make them. */
const MAX_WAITING = 16;

const IssuerParams = z.object({ issuer: z.string().max(32).describe('Name of the issuer in the configuration.') });

export const signInRoutes: ApiRoutes = async (app, { deps: { issuers, log, auth } }) => {
  let waiting = 0;

  async function oneOf<T>(work: () => Promise<T>): Promise<T> {
    if (waiting >= MAX_WAITING) throw busy();
    waiting++;
    try {
      return await work();
    } finally {
      waiting--;
    }
  }

  function issuerOf({ params, raw }: FastifyRequest) {
    if (relayedBy(raw) || isRelayed(raw))
      throw new ApiError(404, 'not-found', 'sign in at the node that your browser asks');
    const found = issuers.find((params as z.output<typeof IssuerParams>).issuer);
    if (!found) throw new ApiError(404, 'not-found', 'the configuration has no such issuer');
    return found;
  }

  /** To the sign-in page, which says what was wrong. */
  function back(reply: FastifyReply, issuer: string, problem: SignInProblem, to: string): FastifyReply {
    const query = new URLSearchParams({ problem, issuer, ...(to === '' ? {} : { to }) });
    return reply.redirect(`/#/login?${query.toString().replaceAll('+', '%20')}`, 303);
  }

  app.get(
    '/api/sign-in',
    {
      config: { examples: { 200: { issuers: [{ name: 'plant', label: 'Plant account' }] } } },
      schema: {
        operationId: 'listSignInWays',
        summary: 'The issuers at which people can sign in',
        tags: ['session'],
        response: { 200: SignInWays },
      },
    },
    async () => ({ issuers: issuers.list.map(({ name, label }) => ({ name, label })) }),
  );

  // The following are for browsers and issuers, as the standards of OpenID Connect have them: no part of the document of the API.
  app.get(
    '/api/sign-in/:issuer',
    {
      schema: {
        hide: true,
        params: IssuerParams,
        querystring: z.object({
          to: z
            .string()
            .max(1000)
            .regex(/^#\//, 'expected a view of the console, such as #/live')
            .optional()
            .describe('The view of the console to show afterwards.'),
        }),
      },
    },
    async (request, reply) => {
      const { config, issuer } = issuerOf(request);
      const { to = '' } = request.query;
      try {
        const { url, asked } = await oneOf(async () => (await issuer()).begin(callbackOf(request, config.name)));
        reply.header('set-cookie', auth.signIns.begin(request, config.name, { ...asked, to }));
        return await reply.redirect(url, 303);
      } catch (err) {
        if (!(err instanceof IssuerError)) throw err;
        log.warn({ issuer: config.name, problem: err.message }, 'an issuer cannot be asked who a person is');
        return back(reply, config.name, err.code, to);
      }
    },
  );

  // The redirect URI. An issuer may add parameters of its own.
  app.get(
    '/api/sign-in/:issuer/callback',
    {
      config: { audit: 'sign-in' },
      schema: {
        hide: true,
        params: IssuerParams,
      },
    },
    async (request, reply) => {
      const { config, issuer } = issuerOf(request);
      const { name } = config;
      const pending = auth.signIns.of(request, name);
      reply.header('set-cookie', auth.signIns.end(request));
      const refuse = (problem: SignInProblem, detail: string, facts: object = {}): FastifyReply => {
        tell(request, { issuer: name, outcome: 'denied', problem, ...facts });
        log.warn(
          { issuer: name, problem, detail, ...facts, address: request.ip },
          'a sign-in at an issuer was refused',
        );
        return back(reply, name, problem, pending?.to ?? '');
      };
      if (!pending) return refuse('expired', 'this browser has begun no sign-in in the last minutes');
      try {
        const answer = new URL(callbackOf(request, name));
        answer.search = request.url.slice(request.url.indexOf('?') + 1);
        const claims = await oneOf(async () => (await issuer()).finish(answer, pending));
        const facts = { subject: printable(claims.sub) };
        const signedIn = auth.signInPerson(request, name, claims);
        if (!signedIn) return refuse('no-role', 'no rule gives this person a role', facts);
        const { caller, cookies } = signedIn;
        request.caller = caller;
        app.connections.identify(request.raw.socket, caller);
        tell(request, { issuer: name, ...facts, outcome: 'done' });
        reply.header('set-cookie', cookies);
        return await reply.redirect(`/${pending.to}`, 303);
      } catch (err) {
        if (!(err instanceof IssuerError)) throw err;
        return refuse(err.code, err.message);
      }
    },
  );

  // OpenID Connect Back-Channel Logout 1.0 §2.5: the token comes as a form does.
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, Object.fromEntries(new URLSearchParams(String(body)))),
  );
  app.post(
    '/api/sign-in/:issuer/logout',
    {
      config: { audit: 'sign-out' },
      schema: {
        hide: true,
        params: IssuerParams,
        body: z.object({ logout_token: z.string().min(1) }),
      },
    },
    async (request, reply) => {
      const { config, issuer } = issuerOf(request);
      tell(request, { issuer: config.name });
      try {
        const whose = await oneOf(async () => (await issuer()).loggedOut(request.body.logout_token));
        tell(request, whose.sub === undefined ? {} : { subject: printable(whose.sub) });
        auth.endSessions([endedBy(config, whose)]);
        return await reply.header('cache-control', 'no-store').send(null);
      } catch (err) {
        if (!(err instanceof IssuerError)) throw err;
        if (err.code !== 'away')
          throw new ApiError(400, 'invalid-parameter', `logout_token: ${err.message}`, { cause: err });
        throw new ApiError(503, 'auth-unavailable', err.message, { headers: { 'retry-after': '5' }, isExpected: true });
      }
    },
  );
};

/** At the address by which the browser knows this recorder, or the proxy before it. */
const callbackOf = ({ protocol, host }: FastifyRequest, issuer: string): string =>
  `${protocol}://${host}/api/sign-in/${issuer}/callback`;
