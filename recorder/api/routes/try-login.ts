// `/api/cameras/{id}/try-login`: a login that a camera refused is tried again by the next request, instead of resting on.

import { z } from 'zod';
import { unknownCamera } from '../../http/problem.ts';
import type { ApiRoutes } from '../deps.ts';

const Tried = z
  .object({
    status: z.literal('ok'),
    ended: z.int().min(0).describe('How many rests ended: a login rests for still images and for ONVIF by itself.'),
  })
  .meta({ id: 'LoginTried', description: 'No login of the camera rests.' });

export const tryLoginRoutes: ApiRoutes = async (app, { deps }) => {
  app.post(
    '/api/cameras/:id/try-login',
    {
      config: {
        role: 'operator',
        cameras: { param: 'id' },
        follows: { param: 'id' },
        audit: 'try-login',
        examples: { 200: { status: 'ok', ended: 1 } },
      },
      schema: {
        operationId: 'tryLogin',
        summary: 'Try a refused login again',
        description:
          'A login that the camera refused for still images or ONVIF rests for 1 to 30 minutes (the warning `login-rests`). This ends the rest: the next request to the camera tries the login. Cameras lock accounts after several refusals.',
        tags: ['cameras'],
        params: z.object({ id: z.string().meta({ examples: ['gate'] }) }),
        response: { 200: Tried },
      },
    },
    async ({ params: { id } }) => {
      if (!deps.cameras.get(id)) throw unknownCamera();
      return { status: 'ok' as const, ended: await deps.tryLogins(id) };
    },
  );
};
