// `/api/ptz/…`: moves cameras that turn and zoom.

import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { visibleCamera } from '../../http/access.ts';
import { ApiError, issueDetail, problemResponse, unknownCamera } from '../../http/problem.ts';
import type { PtzCommand } from '../../onvif/camera-ptz.ts';
import { OnvifError } from '../../onvif/error.ts';
import type { ApiRoutes } from '../deps.ts';
import { Done } from '../done.ts';

const CameraId = z.string().describe('The camera.');
/** Values out of range are refused rather than clamped: they are mistakes. */
const Axis = z.number().min(-1, 'expected a number from -1 to 1').max(1, 'expected a number from -1 to 1');
const Speed = z
  .number()
  .optional()
  .describe('Share of the full speed of the camera, 0 to 1; larger values count as 1. Without it, full speed.');

const Move = z.object({
  camera_id: CameraId,
  pan: Axis.describe('-1 (left) to 1 (right).'),
  tilt: Axis.describe('-1 (down) to 1 (up).'),
  zoom: Axis.describe('-1 (out) to 1 (in).'),
  speed: Speed,
});

const Stop = z.object({ camera_id: CameraId });

const GoTo = z.object({
  camera_id: CameraId,
  preset: z.string().min(1).max(256).describe('Token of a preset, as in the list of presets.'),
  speed: Speed,
});

const Preset = z
  .object({ token: z.string(), name: z.string() })
  .meta({ id: 'Preset', description: 'A stored position of a camera.' });

const Presets = z
  .object({
    presets: z.array(Preset).describe('In the order in which the camera lists them.'),
  })
  .meta({ id: 'PresetList', description: 'The stored positions of a camera.' });

const problems = {
  400: problemResponse('The body or the camera is missing, or of the wrong type.'),
  403: problemResponse('The camera may not be moved (its `ptz` is not true), or the role does not allow it.'),
  404: problemResponse('The node does not know this camera.'),
  502: problemResponse('The camera did not carry out the command; `detail` has its own explanation, if it gave one.'),
};
const INVALID = { 422: problemResponse('A value is not a number, or out of range.') };

/** An invalid movement is answered with 422, any other invalid field with 400. */
function movementProblem(error: FastifyError, _request: FastifyRequest, _reply: FastifyReply): never {
  if (hasZodFastifySchemaValidationErrors(error)) {
    const issue = error.validation.find(({ instancePath }) => /^\/(?:pan|tilt|zoom|speed)$/.test(instancePath));
    const other = error.validation.some((one) => one !== issue && one.instancePath.startsWith('/camera_id'));
    if (issue && !other) {
      throw new ApiError(422, 'invalid-movement', issueDetail(issue));
    }
  }
  throw error;
}

const clamp = (value: number): number => Math.min(1, Math.max(0, value));

const MESSAGES: Readonly<Record<PtzCommand['kind'], string>> = {
  move: 'the camera moves',
  stop: 'the camera stands still',
  goto: 'the camera goes to the preset',
};

/** A movement at speed 0 on every axis stops the camera. */
const isStill = (command: PtzCommand): boolean =>
  command.kind === 'move' && Object.values(command.movement).every((share) => share === 0);

/** Examples for the OpenAPI document. */
const DONE = { status: 'ok', message: 'the camera moves' };

export const ptzRoutes: ApiRoutes = async (app, { deps: { cameras, ptz } }) => {
  function requireMovable(cameraId: string): void {
    const camera = cameras.get(cameraId);
    if (!camera) throw unknownCamera();
    if (!camera.ptz) throw new ApiError(403, 'ptz-disabled', 'this camera may not be moved: its ptz is not true');
  }

  async function run(cameraId: string, command: PtzCommand): Promise<z.output<typeof Done>> {
    requireMovable(cameraId);
    const outcome = await answered(ptz.move(cameraId, command));
    if (outcome !== 'done')
      return { status: 'ok', message: 'a later command has replaced this one before it was sent' };
    return { status: 'ok', message: MESSAGES[isStill(command) ? 'stop' : command.kind] };
  }

  app.post(
    '/api/ptz/move',
    {
      config: {
        role: 'operator',
        cameras: { body: 'camera_id' },
        follows: { body: 'camera_id' },
        audit: 'move-camera',
        examples: { body: { camera_id: 'gate', pan: 0.5, tilt: 0, zoom: 0, speed: 1 }, 200: DONE },
      },
      errorHandler: movementProblem,
      schema: {
        operationId: 'moveCamera',
        summary: 'Turn and zoom a camera until it is stopped',
        description:
          'The camera stops by itself when neither a stop nor another move follows in time (`ptz.moveTimeout`, 10 s). If several commands wait for a slow camera, only the latest is sent.',
        tags: ['ptz'],
        body: Move,
        response: { 200: Done, ...problems, ...INVALID },
      },
    },
    ({ body: { camera_id, pan, tilt, zoom, speed = 1 } }) => {
      const share = clamp(speed);
      return run(camera_id, { kind: 'move', movement: { pan: pan * share, tilt: tilt * share, zoom: zoom * share } });
    },
  );

  app.post(
    '/api/ptz/stop',
    {
      config: {
        role: 'operator',
        cameras: { body: 'camera_id' },
        follows: { body: 'camera_id' },
        audit: 'move-camera',
        examples: { body: { camera_id: 'gate' }, 200: { ...DONE, message: 'the camera stands still' } },
      },
      schema: {
        operationId: 'stopMoving',
        summary: 'Stop a camera',
        tags: ['ptz'],
        body: Stop,
        response: { 200: Done, ...problems },
      },
    },
    ({ body: { camera_id } }) => run(camera_id, { kind: 'stop' }),
  );

  app.get(
    '/api/ptz/presets',
    {
      config: {
        role: 'operator',
        cameras: 'filtered',
        follows: { query: 'camera_id' },
        examples: { 200: { presets: [{ token: '1', name: 'Gate' }] } },
      },
      schema: {
        operationId: 'listPresets',
        summary: 'The presets of a camera',
        tags: ['ptz'],
        querystring: z.object({ camera_id: CameraId }),
        response: { 200: Presets, ...problems },
      },
    },
    async (request) => {
      const cameraId = visibleCamera(request, request.query.camera_id);
      requireMovable(cameraId);
      return { presets: [...(await answered(ptz.presets(cameraId)))] };
    },
  );

  app.post(
    '/api/ptz/goto',
    {
      config: {
        role: 'operator',
        cameras: { body: 'camera_id' },
        follows: { body: 'camera_id' },
        audit: 'move-camera',
        examples: {
          body: { camera_id: 'gate', preset: '1' },
          200: { ...DONE, message: 'the camera goes to the preset' },
        },
      },
      errorHandler: movementProblem,
      schema: {
        operationId: 'goToPreset',
        summary: 'Move a camera to a preset',
        tags: ['ptz'],
        body: GoTo,
        response: { 200: Done, ...problems, ...INVALID },
      },
    },
    ({ body: { camera_id, preset, speed } }) =>
      run(camera_id, { kind: 'goto', preset, speed: speed === undefined ? undefined : clamp(speed) }),
  );
};

/** An error of the camera is answered with 502 and a code such as `camera-timeout` or `camera-fault`. */
async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (err) {
    if (!(err instanceof OnvifError)) throw err;
    throw new ApiError(502, `camera-${err.code}`, err.message, { cause: err });
  }
}
