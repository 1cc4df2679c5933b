// `GET /api/cameras/{id}/activity`: when something changed in the picture of a camera, or in a part of it, as its key frames show it.

import { z } from 'zod';
import { DAY_MS } from '../../../base/units.ts';
import { CELLS, SURE } from '../../activity/grid.ts';
import { UnlistedNodes } from '../../footage/elsewhere-item.ts';
import { requireOrder } from '../../http/interval.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { EpochSeconds, queryNumber } from '../../http/query.ts';
import { isKnownCamera, type ApiRoutes } from '../deps.ts';
import { FROM } from '../examples.ts';
import { askOthers } from '../pass-on.ts';
import { Scope } from '../scope.ts';

const MAX_DAYS = 31;
const MOST = 1_000;
const USUAL = 200;
const REGION = 'expected left,top,right,bottom, each from 0 to 1, such as 0.5,0.25,1,0.75';
const LIMIT = `expected a whole number from 1 to ${MOST}`;
const CONFIDENCE = 'expected a whole number from 1 to 100';

const Region = z
  .string()
  .regex(/^[01](\.[0-9]+)?(,[01](\.[0-9]+)?){3}$/, REGION)
  .transform((text) => {
    const [left, top, right, bottom] = text.split(',').map(Number) as [number, number, number, number];
    return { left, top, right, bottom };
  })
  .refine(({ left, top, right, bottom }) => left < right && top < bottom && right <= 1 && bottom <= 1, REGION)
  .describe('A part of the picture: its sides as left,top,right,bottom, each from 0 to 1. Default: the whole picture.');

const Query = z.object({
  from: EpochSeconds.describe('Start of the interval, seconds since 1970.'),
  to: EpochSeconds.describe(`End of the interval, at most ${MAX_DAYS} days later.`),
  region: Region.optional(),
  confidence: queryNumber(z.int(CONFIDENCE).min(1, CONFIDENCE).max(100, CONFIDENCE))
    .default(SURE)
    .describe(
      'How sure a change must be at least. Below 50, leaves, rain and a clock in the picture are changes, too.',
    ),
  limit: queryNumber(z.int(LIMIT).min(1, LIMIT).max(MOST, LIMIT))
    .default(USUAL)
    .describe('At most so many, the newest.'),
  scope: Scope.optional().describe('node, the default: in the footage of this node. cluster: in that of all nodes.'),
});

const Activity = z
  .object({
    changes: z
      .array(
        z.object({
          start_ms: z.number().int().describe('The first key frame with a change.'),
          end_ms: z.number().int().describe('The last one. Changes that are at most 10 s apart are one.'),
          cells: z.number().int().describe(`How many of the ${CELLS} cells of the picture have changed at most.`),
          confidence: z.number().int(),
        }),
      )
      .describe('Newest first.'),
    more: z.boolean().describe('There are older ones: ask again with the start of the last one as to.'),
    ...UnlistedNodes.shape,
  })
  .meta({ id: 'CameraActivity', description: 'What the key frames of a camera show, not what the camera told.' });

export const activityRoutes: ApiRoutes = async (app, { deps }) => {
  app.get(
    '/api/cameras/:id/activity',
    {
      config: {
        role: 'viewer',
        cameras: { param: 'id' },
        examples: {
          200: {
            changes: [{ start_ms: FROM * 1000, end_ms: (FROM + 8) * 1000, cells: 31, confidence: 96 }],
            more: false,
          },
        },
      },
      schema: {
        operationId: 'searchActivity',
        summary: 'When something changed in the picture, or in a part of it',
        description:
          'Only for cameras with activity: true, and only in footage that was looked at: files are, in the background, after they are closed. A list without changes does not say that nothing happened: the bands of the timeline (activity=1) say when nothing changed, when that cannot be told, and when nothing was looked at.',
        tags: ['archive'],
        params: z.object({ id: z.string() }),
        querystring: Query,
        response: {
          200: Activity,
          404: problemResponse('There is no such camera.'),
          500: problemResponse('The disk cannot be read.'),
        },
      },
    },
    async (request) => {
      const { id: cameraId } = request.params;
      if (!(await isKnownCamera(deps, cameraId, true))) throw unknownCamera();
      const { from, to, region, confidence, limit, scope } = request.query;
      requireOrder({ from, to });
      const [fromMs, toMs] = [Math.round(from * 1000), Math.round(to * 1000)];
      if (toMs - fromMs > MAX_DAYS * DAY_MS) {
        throw new ApiError(400, 'interval-too-wide', `to: expected at most ${MAX_DAYS} days after from`);
      }
      const query = { cameraId, region, fromMs, toMs, leastConfidence: confidence, limit: limit + 1 };
      const own = await deps.activity.search(query).catch((err: unknown) => {
        throw new ApiError(500, 'archive-unreadable', 'what was seen in the footage cannot be read', { cause: err });
      });
      const passed = new URLSearchParams({
        from: `${from}`,
        to: `${to}`,
        confidence: `${confidence}`,
        limit: `${limit}`,
      });
      if (region) passed.set('region', [region.left, region.top, region.right, region.bottom].join(','));
      const path = `/api/cameras/${encodeURIComponent(cameraId)}/activity?scope=node&${passed.toString()}`;
      const { answers, unlisted } =
        scope === 'cluster' ? await askOthers(request, deps, path, Activity) : { answers: [], unlisted: {} };
      const changes = own.map((change) => ({
        start_ms: Math.floor(change.fromMs),
        end_ms: Math.ceil(change.toMs),
        cells: change.cells,
        confidence: change.confidence,
      }));
      const all = [...changes, ...answers.flatMap((answer) => answer.changes)].sort((a, b) => b.start_ms - a.start_ms);
      const more = all.length > limit || answers.some((answer) => answer.more);
      return { changes: all.slice(0, limit), more, ...unlisted };
    },
  );
};
