// `/cameras/start` and `/cameras/stop`: start and stop the recording of a camera, until the next such request.

import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import { SwitchError } from '../../contract/camera-switch.ts';
import { CAMERA_ID } from '../../../base/camera-id.ts';
import { printable } from '../../../base/printable.ts';
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

const REASON = 'expected 1 to 200 characters without control characters';
/** By code points, as NO_CONTROLS is. */
// oxlint-disable-next-line no-control-regex
const REASON_PATTERN = /^[^\x00-\x1f\x7f-\x9f]{1,200}$/u;
const Stop = Which.extend({
  reason: z
    .string(REASON)
    .regex(REASON_PATTERN, REASON)
    .optional()
    .describe(
      'Why: shown with the name of the caller as the reason of the camera, and kept in the audit, as one line. ' +
        'Invisible characters are replaced by spaces.',
    )
    .meta({ examples: ['works at the gate'] }),
});

const Ok = z.literal('ok');
const count = (what: string) => z.number().int().min(0).max(1).describe(what);

const Started = z
  .object({ status: Ok, started: count('0: it was already started.') })
  .meta({ id: 'Started', description: 'The camera is recorded.' });
const Stopped = z
  .object({ status: Ok, stopped: count('0: it was already stopped.') })
  .meta({ id: 'Stopped', description: 'The camera is not recorded.' });

const refusals = {
  400: problemResponse('The body is not a JSON object, or its id is missing or not the id of a camera.'),
  403: problemResponse('This needs the role operator.'),
  503: problemResponse('The change cannot be stored at the moment: nothing has changed.'),
};

async function changed(change: Promise<number>): Promise<number> {
  try {
    return await change;
  } catch (err) {
    if (!(err instanceof SwitchError)) throw err;
    if (err.code === 'unknown-camera') throw unknownCamera();
    throw new ApiError(err.code === 'switch-not-kept' ? 503 : 409, err.code, err.message, { cause: err });
  }
}

export const cameraControlRoutes: ApiRoutes = async (app, { deps: { cameraSwitch } }) => {
  app.post(
    '/cameras/start',
    {
      config: {
        role: 'operator',
        cameras: { body: 'id' },
        follows: { body: 'id' },
        audit: 'start-camera',
        examples: { body: { id: 'gate' }, 200: { status: 'ok', started: 1 } },
      },
      schema: {
        operationId: 'startCamera',
        summary: 'Start recording a camera',
        description: 'Kept across restarts.',
        tags: ['cameras'],
        body: Which,
        response: {
          200: Started,
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
      config: {
        role: 'operator',
        cameras: { body: 'id' },
        follows: { body: 'id' },
        audit: 'stop-camera',
        examples: { body: { id: 'gate', reason: 'works at the gate' }, 200: { status: 'ok', stopped: 1 } },
      },
      schema: {
        operationId: 'stopCamera',
        summary: 'Stop recording a camera',
        description: 'Kept across restarts. Existing footage stays; the gap that begins has the cause "stopped".',
        tags: ['cameras'],
        body: Stop,
        response: {
          200: Stopped,
          ...refusals,
        },
      },
    },
    async (request) => {
      const { id, reason: given } = request.body;
      const { name } = callerOf(request);
      const reason = printable(given ?? '');
      if (reason !== '') request.told = { ...request.told, reason };
      const stopped = await changed(cameraSwitch.stop(id, reason === '' ? name : `${name}: ${reason}`));
      return { status: 'ok' as const, stopped };
    },
  );
};
