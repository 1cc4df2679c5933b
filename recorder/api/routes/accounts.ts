// `GET /api/accounts`: the users and tokens of this node, for admins.

import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import { problemResponse } from '../../http/problem.ts';
import { TIME } from '../examples.ts';
import { isoTime, timeOrNull } from '../times.ts';

const Account = z.object({
  kind: z.enum(['user', 'token']),
  name: z.string(),
  role: z.enum(['viewer', 'operator', 'admin', 'reporter']),
  may_export: z.boolean().describe('Whether it may export footage.'),
  cameras: z
    .array(z.string())
    .nullable()
    .describe('Ids of its cameras, in which * stands for any characters; null: all.'),
  is_made: z.boolean().describe('A user who was made on the page: PUT and DELETE /api/users/{name} change that user.'),
  is_guessable: z.boolean().describe('A token that was used and is easy to guess.'),
  last_used: z.string().nullable().describe('The last use at this node; null: none since `since`.'),
  last_used_ms: z.number().int().nullable(),
});
const Accounts = z
  .object({
    accounts: z.array(Account),
    since: z.string().describe('When the recorder started.'),
    since_ms: z.number().int(),
    may_add: z.boolean().describe('Whether users can be made with PUT /api/users/{name}.'),
  })
  .meta({ id: 'Accounts', description: 'Users and tokens, without their secrets.' });

const EXAMPLE = {
  accounts: [
    {
      kind: 'user',
      name: 'anna',
      role: 'operator',
      may_export: true,
      cameras: ['gate'],
      is_made: true,
      is_guessable: false,
      last_used: TIME,
      last_used_ms: Date.parse(TIME),
    },
  ],
  since: TIME,
  since_ms: Date.parse(TIME),
  may_add: true,
};

export const accountRoutes: ApiRoutes = async (app, { deps: { auth } }) => {
  app.get(
    '/api/accounts',
    {
      config: { role: 'admin', changesAlways: true, examples: { 200: EXAMPLE } },
      schema: {
        operationId: 'listAccounts',
        summary: 'Users and tokens, and when they were used',
        description:
          'The users and tokens of the configuration, and the users who were created on the page. Tokens of Kubernetes are not listed, and nothing is listed where no token is required.',
        tags: ['session'],
        response: {
          200: Accounts,
          403: problemResponse('This needs the role admin.'),
        },
      },
    },
    async () => {
      const { accounts, sinceMs } = auth.accounts();
      return {
        accounts: accounts.map(({ kind, name, role, mayExport, cameras, isGuessable, isMade, lastUsedMs }) => ({
          kind,
          name,
          role,
          may_export: mayExport,
          cameras: cameras ? [...cameras] : null,
          is_made: isMade,
          is_guessable: isGuessable,
          last_used: timeOrNull(lastUsedMs),
          last_used_ms: lastUsedMs ?? null,
        })),
        since: isoTime(sinceMs),
        since_ms: sinceMs,
        may_add: auth.makesUsers,
      };
    },
  );
};
