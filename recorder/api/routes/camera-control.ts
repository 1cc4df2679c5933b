// `/cameras/start` and `/cameras/stop`: which cameras are recorded from now on, until somebody says otherwise.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { SwitchError, type CameraSwitch } from '../../camera/switch.ts';
import { CAMERA_ID } from '../../config/schema.ts';
import { callerOf } from '../../http/access.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';

const Which = z.object(
  {
    id: z
      .string({ error: 'expected the id of a camera' })
      .regex(CAMERA_ID, 'expected the id of a camera')
      .describe('The camera.')
      .meta({ examples: ['gate'] }),
  },
  { error: 'id: expected a JSON object with the id of a camera' },
);

const Ok = z.literal('ok');
const count = (what: string) => z.number().int().min(0).max(1).describe(what);

const refusals = {
  400: problemResponse('The body is no JSON object, or its id is missing or no id of a camera.'),
  401: problemResponse('No token, or a wrong one.'),
  403: problemResponse('This needs the role operator.'),
  404: problemResponse('The node does not know this camera.'),
  503: problemResponse('The change cannot be kept across restarts now: nothing has changed.'),
};

const STATUS = { 'unknown-camera': 404, 'license-exceeded': 409, 'switch-not-kept': 503 } as const;

async function changed(change: Promise<number>): Promise<number> {
  try {
    return await change;
  } catch (err) {
    if (!(err instanceof SwitchError)) throw err;
    if (err.code === 'unknown-camera') throw unknownCamera();
    throw new ApiError(STATUS[err.code], err.code, err.message, { cause: err });
  }
}

export const cameraControlRoutes: FastifyPluginAsyncZod<{ cameraSwitch: CameraSwitch }> = async (
  app,
  { cameraSwitch },
) => {
  app.post(
    '/cameras/start',
    {
      config: { role: 'operator', cameras: { body: 'id' }, follows: { body: 'id' } },
      schema: {
        summary: 'Record a camera',
        description: 'Kept across restarts.',
        tags: ['cameras'],
        body: Which,
        response: {
          200: z.object({ status: Ok, started: count('0: it was started already.') }),
          409: problemResponse('The licence does not allow one more camera.'),
          ...refusals,
        },
      },
    },
    async (request) => {
      const started = await changed(cameraSwitch.start(request.body.id, callerOf(request).name));
      return { status: 'ok' as const, started };
    },
  );

  app.post(
    '/cameras/stop',
    {
      config: { role: 'operator', cameras: { body: 'id' }, follows: { body: 'id' } },
      schema: {
        summary: 'Do not record a camera any more',
        description: 'Kept across restarts. What was recorded stays; the gap that begins has the cause "stopped".',
        tags: ['cameras'],
        body: Which,
        response: {
          200: z.object({ status: Ok, stopped: count('0: it was stopped already.') }),
          ...refusals,
        },
      },
    },
    async (request) => {
      const stopped = await changed(cameraSwitch.stop(request.body.id, callerOf(request).name));
      return { status: 'ok' as const, stopped };
    },
  );
};
