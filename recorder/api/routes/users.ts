// `/api/users`: admins make, change and remove the users of the page, and users change their own passwords. Users of the
// configuration are changed there.

import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import { MAX_PASSWORD_LENGTH } from '../../../base/password-hash.ts';
import { UserFile } from '../../config/schema.ts';
import { callerOf } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { relayedBy } from '../../http/relayed.ts';
import { Done } from '../done.ts';
import { requireName } from './session.ts';

const Password = z.string().min(1).max(MAX_PASSWORD_LENGTH);
const Params = z.object({ name: z.string() });
const Wanted = UserFile.pick({ role: true, cameras: true, export: true }).extend({
  password: Password.optional().describe('Needed for a new user; without it, the password stays.'),
});
const OwnPassword = z.strictObject({
  password: Password.describe('The present one.'),
  new_password: Password,
});

const refusals = {
  400: problemResponse('A field is wrong, or the change would shut out the caller; the detail says why.'),
  409: problemResponse('The user is in the configuration, or users cannot be made on this recorder.'),
  503: problemResponse('The change cannot be stored: nothing has changed.'),
};
const forAdmins = { ...refusals, 403: problemResponse('This needs the role admin, for all cameras.') };

const EXAMPLE = { status: 'ok', message: 'guard can sign in' } as const;

export const userRoutes: ApiRoutes = async (app, { deps: { auth } }) => {
  app.put(
    '/api/users/:name',
    {
      config: {
        role: 'admin',
        audit: 'change-user',
        examples: { body: { role: 'viewer', cameras: ['gate', 'dock-*'], password: 'correct horse' }, 200: EXAMPLE },
      },
      schema: {
        operationId: 'putUser',
        summary: 'Make a user, or change one',
        description:
          'Replaces role, cameras and right to export. A change ends the sessions of the user. Users of the configuration, and of a pool on Kubernetes, are changed there. In a cluster of servers, the user is one of all servers.',
        tags: ['session'],
        params: Params,
        body: Wanted,
        response: { 200: Done, ...forAdmins },
      },
    },
    async (request) => {
      const { name } = request.params;
      const { role } = request.body;
      requireName(name);
      tell(request, { user: name, role });
      requireOwn(request.raw);
      const isNew = await auth.putUser(callerOf(request), { name, ...request.body });
      if (isNew) tell(request, { what: 'add-user' });
      return { status: 'ok' as const, message: `${name} can sign in` };
    },
  );

  app.delete(
    '/api/users/:name',
    {
      config: {
        role: 'admin',
        audit: 'remove-user',
        examples: { 200: { status: 'ok', message: 'guard cannot sign in any more' } },
      },
      schema: {
        operationId: 'removeUser',
        summary: 'Remove a user',
        description: 'The sessions, links and streams of the user end.',
        tags: ['session'],
        params: Params,
        response: { 200: Done, ...forAdmins, 404: problemResponse('There is no such user.') },
      },
    },
    async (request) => {
      const { name } = request.params;
      tell(request, { user: name });
      requireOwn(request.raw);
      await auth.removeUser(callerOf(request), name);
      return { status: 'ok' as const, message: `${name} cannot sign in any more` };
    },
  );

  app.put(
    '/api/users/me/password',
    {
      config: {
        role: 'viewer',
        cameras: 'none',
        audit: 'change-password',
        examples: {
          body: { password: 'correct horse', new_password: 'battery staple' },
          200: { status: 'ok', message: 'the password is changed' },
        },
      },
      schema: {
        operationId: 'changePassword',
        summary: 'Change the own password',
        description:
          'For users who were made on the page, in a session. All other sessions of the user end; the answer sets the cookie of this one.',
        tags: ['session'],
        body: OwnPassword,
        response: {
          200: Done,
          ...refusals,
          403: problemResponse('The caller is not a user with a password.'),
          429: problemResponse('Too many wrong attempts; Retry-After has the time to wait.'),
        },
      },
    },
    async (request, reply) => {
      requireOwn(request.raw);
      const { password, new_password: next } = request.body;
      const { caller, cookies } = await auth.changePassword(request, callerOf(request), { password, next });
      request.caller = caller;
      reply.header('set-cookie', [...cookies]);
      return { status: 'ok' as const, message: 'the password is changed' };
    },
  );
};

/** A node may state any caller, and must not make users that outlast it. */
function requireOwn(request: Parameters<typeof relayedBy>[0]): void {
  if (relayedBy(request)) throw new ApiError(404, 'not-found', 'change users at the node that your browser asks');
}
