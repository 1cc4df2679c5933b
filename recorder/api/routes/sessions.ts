// `/api/sessions`: who is signed in, and an end to it. Callers see and end their own sessions, admins all.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { printable } from '../../../base/printable.ts';
import { UnlistedNodes } from '../../footage/elsewhere-item.ts';
import { callerOf } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { requireRole } from '../../http/auth.ts';
import { hasRole, lookingRole, type Caller } from '../../http/caller.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { isRelayed } from '../../http/relayed.ts';
import { ACCOUNT_KINDS, isSameAccount, type SeenSession } from '../../http/seen-sessions.ts';
import type { ApiRoutes } from '../deps.ts';
import { TIME } from '../examples.ts';
import { askOthers, asItself } from '../pass-on.ts';
import { Scope } from '../scope.ts';
import { isoTime } from '../times.ts';

const MAX_BROWSER = 200;
const UNKNOWN = 'no node that answers has seen such a session, or it is of another account';

const Kind = z.enum(ACCOUNT_KINDS, `expected one of ${ACCOUNT_KINDS.join(', ')}`);

const OpenSession = z.object({
  id: z.string().describe('Names the session, and opens nothing.'),
  kind: Kind.describe('Whose it is: of a user, a token, a person of an issuer, or a user of Kubernetes.'),
  name: z.string().describe('Of the user or the token; of a person, issuer and name, as plant/anna.'),
  role: z.enum(['viewer', 'operator', 'admin']),
  is_current: z.boolean().describe('Whether this request has the session.'),
  since: z.string().describe('When the password was entered.'),
  since_ms: z.number().int(),
  last_used: z.string().describe('The last request, or the start of a stream.'),
  last_used_ms: z.number().int(),
  expires: z.string().describe('When it ends unless it is used.'),
  expires_ms: z.number().int(),
  address: z.string().describe('Address of the client at the last use.'),
  browser: z.string().nullable().describe('How the client called itself at the last use (User-Agent).'),
  node_id: z.string().describe('The node that signed the session: where the password was entered.'),
});
type OpenSession = z.output<typeof OpenSession>;

const SessionList = z
  .object({
    sessions: z.array(OpenSession).describe('The one that was used last first.'),
    since: z
      .string()
      .describe('Each open session that was used after this time is listed: the last start of a node that answers.'),
    since_ms: z.number().int(),
    ...UnlistedNodes.shape,
  })
  .meta({ id: 'SessionList', description: 'Sessions of browsers.' });

const EXAMPLE = {
  sessions: [
    {
      id: '0b0e7b0e-2f3c-4f0e-9a59-2d0a6a1f2c11',
      kind: 'person',
      name: 'plant/anna',
      role: 'operator',
      is_current: true,
      since: TIME,
      since_ms: Date.parse(TIME),
      last_used: TIME,
      last_used_ms: Date.parse(TIME),
      expires: TIME,
      expires_ms: Date.parse(TIME),
      address: '10.0.0.7',
      browser: 'Mozilla/5.0',
      node_id: 'rack-1',
    },
  ],
  since: TIME,
  since_ms: Date.parse(TIME),
};

const problems = {
  401: problemResponse('Not signed in, and no token or a wrong one.'),
};

export const sessionListRoutes: ApiRoutes = async (app, { deps }) => {
  const { auth } = deps;

  /** Of this node, those that the caller may see. */
  function ownList(caller: Caller): z.output<typeof SessionList> {
    const { sessions, sinceMs } = auth.sessions();
    const account = auth.accountOf(caller);
    const seen = sessions.filter((one) => maySeeAll(caller) || isSameAccount(one.account, account));
    return { sessions: seen.map(toItem), since: isoTime(sinceMs), since_ms: sinceMs };
  }

  /** Of all nodes of a cluster that answer. */
  async function wholeList(request: FastifyRequest): Promise<z.output<typeof SessionList>> {
    const own = ownList(callerOf(request));
    const path = '/api/sessions?scope=node';
    const { answers, unlisted } = await askOthers(request, deps, path, SessionList, asItself(request, auth));
    const lists = [own, ...answers];
    const byUse = lists.flatMap(({ sessions }) => sessions).sort((a, b) => b.last_used_ms - a.last_used_ms);
    // A session may have been used at several nodes: the last use counts.
    const sessions = [...new Map(byUse.toReversed().map((one) => [one.id, one])).values()].reverse();
    const sinceMs = Math.max(...lists.map(({ since_ms }) => since_ms));
    return { sessions, since: isoTime(sinceMs), since_ms: sinceMs, ...unlisted };
  }

  app.get(
    '/api/sessions',
    {
      config: { role: 'viewer', cameras: 'none', changesAlways: true, examples: { 200: EXAMPLE } },
      schema: {
        operationId: 'listSessions',
        summary: 'Who is signed in: for admins everybody, for others their own sessions',
        description:
          'A session is a cookie of a browser, so a node knows those that began there or were used there since it started. One that was not used since then may be valid and is not listed; ending all of its account ends it, too. Callers with a token or a link are signed in only with each request, and are not listed.',
        tags: ['session'],
        querystring: z.object({
          scope: Scope.optional().describe(
            'node, the default: sessions that this node has seen. cluster: those that any node has seen.',
          ),
        }),
        response: {
          200: SessionList,
          400: problemResponse('A parameter is wrong; the detail names it.'),
          ...problems,
        },
      },
    },
    async (request) => {
      const list = request.query.scope === 'cluster' ? await wholeList(request) : ownList(callerOf(request));
      const current = callerOf(request).session?.id;
      return { ...list, sessions: list.sessions.map((one) => ({ ...one, is_current: one.id === current })) };
    },
  );

  app.delete(
    '/api/sessions/:id',
    {
      config: { role: 'viewer', cameras: 'none', audit: 'end-session' },
      schema: {
        operationId: 'endSession',
        summary: 'End a session; of another account, for admins',
        description:
          'Its cookie, links and streams end at this node at once, and at the other nodes of a cluster when they read the RecorderNode of this one, which takes a second, in pools of more than a hundred nodes minutes.',
        tags: ['session'],
        params: z.object({ id: z.uuid('expected the id of a session').describe('As the list has it.') }),
        response: {
          204: z.null().describe('The session has ended.'),
          400: problemResponse('This is no id of a session.'),
          404: problemResponse('No node that answers has seen such a session, or it is of another account.'),
          ...problems,
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const find = ({ sessions }: z.output<typeof SessionList>) => sessions.find((one) => one.id === id);
      const here = find(ownList(callerOf(request)));
      const found = here ?? (isRelayed(request.raw) ? undefined : find(await wholeList(request)));
      if (!found) throw new ApiError(404, 'not-found', UNKNOWN);
      tell(request, { session: id, kind: found.kind, of: found.name });
      auth.endSessions([id], found.since_ms);
      return reply.code(204).send(null);
    },
  );

  app.delete(
    '/api/sessions',
    {
      config: { role: 'viewer', cameras: 'none', audit: 'end-session' },
      schema: {
        operationId: 'endSessionsOfAccount',
        summary: 'End all sessions of an account; of another one than the own, for admins',
        description:
          'Also those that no node has seen, with their links and streams, and the one of this request. The password or the token begins another session: change or remove it in the configuration, or the person at the issuer.',
        tags: ['session'],
        querystring: z.object({
          kind: Kind,
          name: z.string().min(1).describe('As the list has it.'),
        }),
        response: {
          204: z.null().describe('They have ended.'),
          403: problemResponse('This needs the role admin, and all cameras.'),
          404: problemResponse('There is no such user or token.'),
          ...problems,
        },
      },
    },
    async (request, reply) => {
      const { kind, name } = request.query;
      const caller = callerOf(request);
      if (!isSameAccount({ kind, name }, auth.accountOf(caller)) && !maySeeAll(caller)) {
        requireRole(caller, 'admin');
        throw new ApiError(403, 'forbidden', 'this concerns the whole node, and the token is for some cameras only');
      }
      // No list of this node has the people of issuers, and the users of Kubernetes.
      const isListed = kind === 'user' || kind === 'token';
      if (isListed && !auth.accounts().accounts.some((one) => isSameAccount(one, { kind, name }))) {
        throw new ApiError(404, 'not-found', `name: there is no ${kind} ${printable(name)}`);
      }
      tell(request, { kind, of: printable(name) });
      auth.endAllOf({ kind, name });
      return reply.code(204).send(null);
    },
  );
};

const maySeeAll = (caller: Caller): boolean => hasRole(caller, 'admin') && caller.seesAll;

function toItem({ account, caller, session, lastUsedMs, address, browser }: SeenSession): OpenSession {
  const { id, sinceMs, expiresMs, from } = session;
  return {
    id,
    ...account,
    role: lookingRole(caller),
    is_current: false,
    since: isoTime(sinceMs),
    since_ms: sinceMs,
    last_used: isoTime(lastUsedMs),
    last_used_ms: lastUsedMs,
    expires: isoTime(expiresMs),
    expires_ms: expiresMs,
    address,
    browser: browser === undefined ? null : printable(browser, MAX_BROWSER),
    node_id: from,
  };
}
