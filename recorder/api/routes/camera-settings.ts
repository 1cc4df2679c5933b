// `POST /api/cameras`, and reading, replacing and removing the settings of one camera.

import type { FastifyRequest } from 'fastify';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import { EditError, type EditErrorCode, type MayChange } from '../../config/editor.ts';
import { CAMERA_ID } from '../../../base/camera-id.ts';
import { CameraFile } from '../../config/schema.ts';
import { tell } from '../../http/audit.ts';
import { evaluate } from '../../http/conditions.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { Done } from '../done.ts';

/** The schema of a camera in a file. It only documents the body: the editor checks the settings, as it checks files. */
const { $schema: _, ...documented } = z.toJSONSchema(CameraFile, { io: 'input', unrepresentable: 'any' });
const settings = (required: readonly string[]) => z.looseObject({}).meta({ ...documented, required: [...required] });

const Shown = settings(['id', 'source']).meta({
  id: 'CameraSettings',
  description:
    'The settings as they are written in the configuration. Addresses include their users, but not their passwords.',
});
const Params = z.object({ id: z.string() });

const refusals = {
  403: problemResponse('This needs the role admin.'),
  409: problemResponse(
    'The camera cannot be changed through the API: its file was written by hand, the cluster manages it, or the configuration has an error.',
  ),
};
const changing = {
  400: problemResponse('A setting is missing or wrong; the detail names each of them.'),
  ...refusals,
  503: problemResponse('The change cannot be stored: nothing has changed.'),
};
const conditional = {
  ...changing,
  412: problemResponse('If-Match does not name the current settings.'),
};

const STATUS: Readonly<Record<Exclude<EditErrorCode, 'unknown-camera'>, number>> = {
  'invalid-parameter': 400,
  'id-taken': 409,
  'camera-in-file': 409,
  'managed-by-cluster': 409,
  'configuration-refused': 409,
  'precondition-failed': 412,
  'camera-not-kept': 503,
};

export async function edited<T>(change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (err) {
    if (!(err instanceof EditError)) throw err;
    if (err.code === 'unknown-camera') throw unknownCamera();
    const errors = err.mistakes.map(({ key, problem }) => ({ field: key, detail: problem }));
    throw new ApiError(STATUS[err.code], err.code, err.message, { cause: err, ...(errors.length > 0 && { errors }) });
  }
}

/** Without `If-Match` the last writer wins. */
const condition =
  ({ headers }: FastifyRequest): MayChange =>
  (tag) =>
    evaluate({ 'if-match': headers['if-match'] }, { etag: `"${tag}"`, modifiedMs: 0 }) !== 'failed';

/** Examples for the OpenAPI document. */
const SETTINGS = {
  id: 'gate',
  name: 'Gate',
  source: 'rtsp://admin@10.0.0.9/stream1',
  record: { retention: { maxAge: '30d' } },
};

export const cameraSettingsRoutes: ApiRoutes = async (app, { deps: { cameraEditor } }) => {
  if (!cameraEditor) return;
  app.post(
    '/api/cameras',
    {
      config: {
        role: 'admin',
        audit: 'add-camera',
        examples: { body: { ...SETTINGS, source: 'rtsp://admin:secret@10.0.0.9/stream1' }, 201: SETTINGS },
      },
      schema: {
        operationId: 'addCamera',
        summary: 'Add a camera',
        description:
          'Stored in a file of conf.d, or in the database where the node has one. The answer comes when the recorder uses the new settings.',
        tags: ['cameras'],
        body: settings(['id', 'source']),
        response: { 201: Shown, ...changing },
      },
    },
    async (request, reply) => {
      const { id } = request.body;
      if (typeof id === 'string' && CAMERA_ID.test(id)) tell(request, { camera: id });
      const { settings, tag } = await edited(cameraEditor.add(request.body));
      const location = `/api/cameras/${settings['id'] as string}`;
      return reply
        .code(201)
        .headers({ location, etag: `"${tag}"` })
        .send(settings);
    },
  );

  app.get(
    '/api/cameras/:id/settings',
    {
      config: {
        role: 'admin',
        cameras: { param: 'id' },
        follows: { param: 'id' },
        audit: 'read-camera',
        examples: { 200: SETTINGS },
      },
      schema: {
        operationId: 'getCameraSettings',
        summary: 'The settings of a camera',
        description:
          'The body that PUT expects. Send the entity tag as If-Match with PUT or DELETE. Content-Location names the file of a camera that people wrote: such a camera is changed there, and PUT and DELETE are refused.',
        tags: ['cameras'],
        params: Params,
        response: { 200: Shown, ...refusals },
      },
    },
    async (request, reply) => {
      const { settings, tag, heldIn } = await edited(cameraEditor.read(request.params.id));
      if (heldIn !== undefined) reply.header('content-location', pathToFileURL(heldIn).href);
      return reply.header('etag', `"${tag}"`).send(settings);
    },
  );

  app.put(
    '/api/cameras/:id',
    {
      config: {
        role: 'admin',
        cameras: { param: 'id' },
        follows: { param: 'id' },
        audit: 'change-camera',
        examples: { body: SETTINGS, 200: SETTINGS },
      },
      schema: {
        operationId: 'changeCamera',
        summary: 'Change a camera',
        description:
          'Replaces all settings: a setting that is left out gets its default. An address without a password keeps its stored password if host and port stay the same. With If-Match, the settings are changed only if they have this entity tag; without it, the last writer wins.',
        tags: ['cameras'],
        params: Params,
        body: settings(['source']),
        response: { 200: Shown, ...conditional },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const { settings, tag } = await edited(cameraEditor.change(id, request.body, condition(request)));
      return reply.header('etag', `"${tag}"`).send(settings);
    },
  );

  app.delete(
    '/api/cameras/:id',
    {
      config: {
        role: 'admin',
        cameras: { param: 'id' },
        follows: { param: 'id' },
        audit: 'remove-camera',
        examples: {
          200: {
            status: 'ok',
            message: 'gate is not recorded any more; its recordings stay until archive.retention removes them',
          },
        },
      },
      schema: {
        operationId: 'removeCamera',
        summary: 'Remove a camera',
        description:
          'Its recordings stay until the retention limits of the node remove them. If-Match works as for PUT.',
        tags: ['cameras'],
        params: Params,
        response: { 200: Done, ...conditional },
      },
    },
    async (request) => {
      const { id } = request.params;
      await edited(cameraEditor.remove(id, condition(request)));
      const message = `${id} is not recorded any more; its recordings stay until archive.retention removes them`;
      return { status: 'ok' as const, message };
    },
  );
};
