// `/api/archive/{camera_id}/protect` and `/api/archive/protections`: footage that retention does not remove.

import { z } from 'zod';
import { footageOf } from '../../audit/entry.ts';
import { diskFault } from '../../archive/disk/faults.ts';
import { ProtectionError, type Protection as ProtectedWindow } from '../../contract/protection.ts';
import { callerOf, visibleCamera } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { requireRole } from '../../http/auth.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { isKnownCamera, type ApiRoutes } from '../deps.ts';
import { requireOrder } from '../../http/interval.ts';
import { EpochSeconds } from '../../http/query.ts';
import { Protection } from '../protection-item.ts';
import { cursorOf, Next, PageQuery, pageOf, pageQuery, placeOf } from '../pages.ts';
import { UnlistedNodes } from '../../footage/elsewhere-item.ts';
import { askOthers } from '../pass-on.ts';
import { Scope } from '../scope.ts';
import { isoTime } from '../times.ts';
import { START, TIME } from '../examples.ts';

const MAX_NOTE = 200;

const UNTIL = 'expected seconds since 1970, or never';

const Window = z.object({
  from: EpochSeconds.describe('Start of the window, seconds since 1970.'),
  to: EpochSeconds.describe('End of the window, seconds since 1970; it may lie in the future.'),
  note: z
    .string()
    .max(MAX_NOTE, `expected at most ${MAX_NOTE} characters`)
    .optional()
    .describe('Why it is protected, for readers of the list.'),
  until: z
    .string({ error: UNTIL })
    .refine((text) => text === 'never' || EpochSeconds.safeParse(text).success, UNTIL)
    .transform((text) => (text === 'never' ? text : Number(text)))
    .optional()
    .describe(
      'When the protection ends, seconds since 1970, or never. The default is archive.protectFor (90 days) from now; only admins may set a later time.',
    ),
});

const Protections = z
  .object({
    protections: z.array(Protection).describe('By camera and start.'),
    ...UnlistedNodes.shape,
    next: Next,
  })
  .meta({ id: 'ProtectionList', description: 'Protected footage.' });

const ListQuery = PageQuery.extend({
  scope: Scope.optional().describe(
    'node, the default: the protections of this node. cluster: those of all nodes, each of which protects its own footage.',
  ),
});

const ProtectionPlace = z.tuple([z.literal('protections'), z.string(), z.number(), z.string()]);

const CameraParams = z.object({ camera_id: z.string() });
const IdParams = z.object({ id: z.string() });

const problems = {
  403: problemResponse('The role does not allow this.'),
  503: problemResponse('The change cannot be written to the disk: nothing has changed.'),
};

const placeIn = ({ camera_id, from_ms, id }: z.output<typeof Protection>) =>
  ['protections', camera_id, from_ms, id] as const;

const byPlace = (a: z.output<typeof Protection>, b: z.output<typeof Protection>): number =>
  (a.camera_id < b.camera_id ? -1 : a.camera_id > b.camera_id ? 1 : 0) ||
  a.from_ms - b.from_ms ||
  (a.id < b.id ? -1 : 1);

/** Examples for the OpenAPI document. */
const PROTECTION = {
  id: 'p-5b1f0c9e',
  camera_id: 'gate',
  from: START,
  to: TIME,
  from_ms: Date.parse(START),
  to_ms: Date.parse(TIME),
  created: TIME,
  note: 'the red car',
  until: TIME,
  segments: 2,
};

export const protectionRoutes: ApiRoutes = async (app, { deps }) => {
  if (!deps.protections) return;
  const { archive, clock } = deps;
  const { windows: protections, keptMs } = deps.protections;

  const toProtection = async ({ id, cameraId, fromMs, toMs, createdMs, note, untilMs }: ProtectedWindow) => ({
    id,
    camera_id: cameraId,
    from: isoTime(fromMs),
    to: isoTime(toMs),
    from_ms: fromMs,
    to_ms: toMs,
    created: isoTime(createdMs),
    note: note ?? null,
    until: untilMs === undefined ? null : isoTime(untilMs),
    segments: await archive.countSegments(cameraId, fromMs, toMs),
    ...(deps.cluster && { node_id: deps.cluster.nodeId }),
  });

  function listed(items: readonly z.output<typeof Protection>[], asked: z.output<typeof PageQuery>) {
    const { entries, next } = pageOf(items, asked, placeOf(asked.cursor, ProtectionPlace), placeIn);
    return { protections: [...entries], ...(next === undefined ? {} : { next }) };
  }

  app.post(
    '/api/archive/:camera_id/protect',
    {
      config: { role: 'operator', cameras: { param: 'camera_id' }, audit: 'protect', examples: { 201: PROTECTION } },
      schema: {
        operationId: 'protectFootage',
        summary: 'Protect footage of a camera from removal',
        description:
          'Every segment that overlaps the window is kept until the protection ends or is removed. It still counts towards maxSize.',
        tags: ['archive'],
        params: CameraParams,
        querystring: Window,
        response: {
          201: Protection,
          400: problemResponse('A time is missing or not a number, from is not before to, or until is in the past.'),
          404: problemResponse('There is no such camera and no footage of it.'),
          409: problemResponse('Too many windows are protected.'),
          ...problems,
        },
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      const cameraId = params.camera_id;
      const { from, to, note } = query;
      if (!(await isKnownCamera(deps, cameraId, false))) throw unknownCamera();
      requireOrder({ from, to });
      const caller = callerOf(request);
      const nowMs = clock.wallMs();
      const untilMs = endOf(query.until, nowMs + keptMs, nowMs);
      // null: without an end.
      const until = untilMs === undefined ? null : new Date(untilMs).toISOString();
      tell(request, { ...footageOf({ fromMs: from * 1000, toMs: to * 1000 }), until });
      // Protected footage fills the disk for as long as it is protected, so longer times need an admin.
      if (untilMs === undefined || untilMs > nowMs + keptMs) requireRole(caller, 'admin');
      const window = { cameraId, fromMs: Math.floor(from * 1000), toMs: Math.ceil(to * 1000), note, untilMs };
      const added = await kept(protections.add({ ...window, by: caller.name }, nowMs));
      tell(request, { protection: added.id });
      return reply.code(201).send(await toProtection(added));
    },
  );

  app.get(
    '/api/archive/protections',
    {
      config: { role: 'viewer', cameras: 'filtered', examples: { 200: { protections: [PROTECTION] } } },
      schema: {
        operationId: 'listProtections',
        summary: 'All protected footage',
        tags: ['archive'],
        querystring: ListQuery,
        response: { 200: Protections },
      },
    },
    async (request) => {
      const { query } = request;
      const { sees } = callerOf(request);
      const seen = (await protections.list()).filter(({ cameraId }) => sees(cameraId));
      const own = await Promise.all(seen.map(toProtection));
      if (query.scope !== 'cluster') return listed(own, query);
      // Each node gives its part of the page, from the same place on.
      const path = `/api/archive/protections?scope=node${pageQuery(query)}`;
      const { answers, unlisted } = await askOthers(request, deps, path, Protections);
      const all = [...own, ...answers.flatMap((answer) => answer.protections)].sort(byPlace);
      const page = listed(all, query);
      const last = page.protections.at(-1);
      const isMore = page.next === null && answers.some(({ next }) => typeof next === 'string');
      return { ...page, ...(isMore && last ? { next: cursorOf(placeIn(last)) } : {}), ...unlisted };
    },
  );

  app.get(
    '/api/archive/:camera_id/protections',
    {
      config: { role: 'viewer', cameras: 'filtered', examples: { 200: { protections: [PROTECTION] } } },
      schema: {
        operationId: 'listCameraProtections',
        summary: 'Protected footage of a camera',
        tags: ['archive'],
        params: CameraParams,
        querystring: PageQuery,
        response: { 200: Protections },
      },
    },
    async (request) => {
      const cameraId = visibleCamera(request, request.params.camera_id);
      const windows = await protections.list(cameraId);
      return listed(await Promise.all(windows.map(toProtection)), request.query);
    },
  );

  app.delete(
    '/api/archive/protections/:id',
    {
      config: { role: 'operator', cameras: 'filtered', audit: 'unprotect' },
      schema: {
        operationId: 'removeProtection',
        summary: 'Remove a protection, so that retention may remove the footage',
        tags: ['archive'],
        params: IdParams,
        response: {
          204: z.null().describe('The footage is no longer protected.'),
          404: problemResponse('There is no protection with this id.'),
          ...problems,
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const found = (await protections.list()).find((window) => window.id === id);
      if (!found || !callerOf(request).sees(found.cameraId) || !(await kept(protections.remove(id)))) {
        throw new ApiError(404, 'protection-not-found', 'there is no protection with this id');
      }
      tell(request, { camera: found.cameraId, protection: id, ...footageOf(found) });
      return reply.code(204).send(null);
    },
  );
};

/** Milliseconds since 1970; undefined: never. */
function endOf(until: number | 'never' | undefined, usualMs: number, nowMs: number): number | undefined {
  if (until === undefined) return usualMs;
  if (until === 'never') return undefined;
  const untilMs = Math.ceil(until * 1000);
  if (untilMs <= nowMs) throw new ApiError(400, 'invalid-interval', 'until: expected a time in the future');
  return untilMs;
}

/** A change that cannot be written to the disk is an error with its reason. */
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
