// `/api/archive/{camera_id}/protect` and `/api/archive/protections`: footage that retention leaves alone.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { diskFault } from '../../archive/faults.ts';
import { ProtectionError } from '../../archive/retention/protections.ts';
import { callerOf, visibleCamera } from '../../http/access.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { isKnownCamera, type ApiDeps, type ProtectedWindow, type ProtectionKeeper } from '../deps.ts';
import { EpochSeconds } from '../interval.ts';
import { isoTime } from '../times.ts';

const MAX_NOTE = 200;

const Window = z.object({
  from: EpochSeconds.describe('Start of the window, seconds since 1970.'),
  to: EpochSeconds.describe('End of the window, seconds since 1970; it may lie in the future.'),
  note: z
    .string()
    .max(MAX_NOTE, `expected at most ${MAX_NOTE} characters`)
    .optional()
    .describe('Why, for whoever reads the list.'),
});

const Protection = z.object({
  id: z.string(),
  camera_id: z.string(),
  from: z.iso.datetime({ offset: true }),
  to: z.iso.datetime({ offset: true }),
  created: z.iso.datetime({ offset: true }),
  note: z.string().nullable(),
  segments: z.number().int().describe('Segments of which a part lies in the window now.'),
});

const Protections = z.object({ protections: z.array(Protection).describe('By camera and start.') });

const CameraParams = z.object({ camera_id: z.string() });
const IdParams = z.object({ id: z.string() });

const problems = {
  401: problemResponse('No token, or a wrong one.'),
  403: problemResponse('The role does not allow this.'),
  503: problemResponse('The disk does not take the change: nothing has changed.'),
};

type Deps = Pick<ApiDeps, 'cameras' | 'clock'> & { readonly protections: ProtectionKeeper };

export const protectionRoutes: FastifyPluginAsyncZod<{ deps: Deps }> = async (app, { deps }) => {
  const { clock, protections } = deps;

  const toProtection = ({ id, cameraId, fromMs, toMs, createdMs, note }: ProtectedWindow) => ({
    id,
    camera_id: cameraId,
    from: isoTime(fromMs),
    to: isoTime(toMs),
    created: isoTime(createdMs),
    note: note ?? null,
    segments: protections.countSegments(cameraId, fromMs, toMs),
  });

  app.post(
    '/api/archive/:camera_id/protect',
    {
      config: { role: 'operator', cameras: { param: 'camera_id' } },
      schema: {
        summary: 'Keep footage of a camera, whatever its age and the room it takes',
        description:
          'Every segment of which a part lies in the window is kept until the protection is removed. It still counts in maxSize.',
        tags: ['archive'],
        params: CameraParams,
        querystring: Window,
        response: {
          201: Protection,
          400: problemResponse('A boundary is missing or no number, or from is not before to.'),
          404: problemResponse('There is no such camera, and no footage of it.'),
          409: problemResponse('Too many windows are protected.'),
          ...problems,
        },
      },
    },
    async ({ params, query }, reply) => {
      const cameraId = params.camera_id;
      const { from, to, note } = query;
      if (!isKnownCamera(deps, cameraId)) throw unknownCamera();
      if (from >= to) throw new ApiError(400, 'invalid-interval', 'from: expected a time before to');
      const window = { cameraId, fromMs: Math.floor(from * 1000), toMs: Math.ceil(to * 1000), note };
      const added = await kept(protections.add(window, clock.wallMs()));
      return reply.code(201).send(toProtection(added));
    },
  );

  app.get(
    '/api/archive/protections',
    {
      config: { role: 'viewer', cameras: 'filtered' },
      schema: {
        summary: 'All protected footage',
        tags: ['archive'],
        response: { 200: Protections, 401: problems[401] },
      },
    },
    async (request) => {
      const { sees } = callerOf(request);
      const seen = protections.list().filter(({ cameraId }) => sees(cameraId));
      return { protections: seen.map(toProtection) };
    },
  );

  app.get(
    '/api/archive/:camera_id/protections',
    {
      config: { role: 'viewer', cameras: 'filtered' },
      schema: {
        summary: 'Protected footage of a camera',
        tags: ['archive'],
        params: CameraParams,
        response: { 200: Protections, 401: problems[401] },
      },
    },
    async (request) => {
      const cameraId = visibleCamera(request, request.params.camera_id);
      return { protections: protections.list(cameraId).map(toProtection) };
    },
  );

  app.delete(
    '/api/archive/protections/:id',
    {
      config: { role: 'operator', cameras: 'filtered' },
      schema: {
        summary: 'Leave footage to retention again',
        tags: ['archive'],
        params: IdParams,
        response: {
          204: z.null().describe('It is not protected any more.'),
          404: problemResponse('There is no protection of this id.'),
          ...problems,
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const found = protections.list().find((window) => window.id === id);
      if (!found || !callerOf(request).sees(found.cameraId) || !(await kept(protections.remove(id)))) {
        throw new ApiError(404, 'protection-not-found', 'there is no protection of this id');
      }
      return reply.code(204).send(null);
    },
  );
};

/** A change that the disk does not take is the operator's to know, with the reason. */
async function kept<T>(change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (err) {
    if (err instanceof ProtectionError && err.code === 'too-many-protections') {
      throw new ApiError(409, err.code, err.message, { cause: err });
    }
    const detail = err instanceof ProtectionError ? err.message : diskFault(err).message;
    throw new ApiError(503, 'protection-not-kept', detail, { cause: err });
  }
}
