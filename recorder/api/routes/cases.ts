// `POST /api/cases`: exports of several cameras over one window, as one ZIP file with a signed manifest.

import { z } from 'zod';
import { footageOf } from '../../audit/entry.ts';
import { CAMERA_ID } from '../../../base/camera-id.ts';
import { callerOf } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { EpochNumber } from '../../http/query.ts';
import { isKnownCamera, type ApiRoutes } from '../deps.ts';
import { MAX_WINDOW, checkWindow } from '../job-window.ts';
import { Scope } from '../scope.ts';
import { Submitted, available, toSubmitted } from '../submitted-job.ts';
import { FROM, SUBMITTED } from '../examples.ts';

const MAX_CAMERAS = 64;
const CAMERA = 'expected the id of a camera';

const text = (most: number) =>
  z.string({ error: 'expected a text' }).max(most, `expected at most ${most} characters`).optional();

const Body = z.object({
  cameras: z
    .array(z.string({ error: CAMERA }).regex(CAMERA_ID, CAMERA), { error: 'expected a list of cameras' })
    .min(1, 'expected at least one camera')
    .max(MAX_CAMERAS, `expected at most ${MAX_CAMERAS} cameras`)
    .superRefine((cameras, context) => {
      for (const [i, camera] of cameras.entries()) {
        const same = cameras.indexOf(camera);
        if (same < i) context.addIssue({ code: 'custom', path: [i], message: `this is already cameras.${same}` });
      }
    })
    .meta({ uniqueItems: true, description: 'Ids of the cameras, each once; the ZIP file has them in this order.' }),
  from: EpochNumber.describe('Start of the window, seconds since 1970, with fractions down to the millisecond.'),
  to: EpochNumber.describe('End of the window, at most four hours later.'),
  name: z
    .string({ error: 'expected a text' })
    .min(1, 'expected a text')
    .max(200, 'expected at most 200 characters')
    .optional()
    .describe('Name of the case for people; it is part of the manifest.'),
  number: text(100).describe('The number under which others file it.'),
  reason: text(500).describe('Why it is made.'),
  notes: text(4_000).describe(
    'Text for those who get the case. Number, reason and notes are in its report and its manifest.',
  ),
  keep: z
    .boolean({ error: 'expected true or false' })
    .optional()
    .describe('true: the result is kept until somebody removes the job; otherwise for an hour.'),
});

const Query = z.object({
  scope: Scope.optional().describe('node, the default: the footage of this node. cluster: the footage of all nodes.'),
});

export const caseRoutes: ApiRoutes = async (app, { deps }) => {
  const { jobs, cluster } = deps;

  app.post(
    '/api/cases',
    {
      config: {
        role: 'viewer',
        right: 'export',
        cameras: 'filtered',
        audit: 'case',
        examples: {
          body: { name: 'Theft at the gate', cameras: ['gate', 'hall'], from: FROM, to: FROM + 600 },
          202: SUBMITTED,
        },
      },
      schema: {
        operationId: 'makeCase',
        summary: 'A window of several cameras as one ZIP file with a signed manifest',
        description:
          'One job, which counts as an export. Its result is a ZIP file with the movies of each camera, without re-encoding, manifest.json and manifest.json.sig. A camera without footage in the window is listed with its gaps. Without scope=cluster, it has only footage that this node recorded.',
        tags: ['jobs'],
        querystring: Query,
        body: Body,
        response: {
          202: Submitted,
          400: problemResponse('A field is missing or wrong; the detail names it.'),
          403: problemResponse('This needs the role operator.'),
          404: problemResponse('There is no such camera and no footage of it, or the token does not cover it.'),
          413: problemResponse(`The window is longer than ${MAX_WINDOW}, or the body is larger than 64 KiB.`),
          503: problemResponse('Redis is missing on the node; the detail says how to install it.'),
        },
      },
    },
    async (request, reply) => {
      const { cameras, from, to, keep, ...about } = request.body;
      tell(request, { cameras, ...footageOf({ fromMs: from * 1000, toMs: to * 1000 }) });
      const caller = callerOf(request);
      const isOfAll = request.query.scope === 'cluster';
      await cluster?.lookAtNodes();
      const isKnown = async (id: string): Promise<boolean> =>
        caller.sees(id) && (await isKnownCamera(deps, id, isOfAll));
      const unknown = (await Promise.all(cameras.map(isKnown))).indexOf(false);
      if (unknown >= 0) {
        throw new ApiError(
          404,
          'unknown-camera',
          `cameras.${unknown}: ${isOfAll ? 'no node knows' : 'this node does not know'} such a camera`,
        );
      }
      const wanted = { kind: 'export', ...checkWindow({ from, to }), by: caller.name } as const;
      const of = {
        cameraId: cameras[0] as string,
        case: { cameras, ...about, ...(keep && { isKept: true }) },
        ...(isOfAll && { isOfAllNodes: true }),
      };
      const job = await available(jobs.submit({ ...wanted, ...of }));
      tell(request, { job: job.id });
      return reply.code(202).send(toSubmitted(job));
    },
  );
};
