// `POST /api/archive/{camera_id}/assemble`: joins exports of several nodes into one movie on this node.

import { z } from 'zod';
import { callerOf } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import type { ApiRoutes } from '../deps.ts';
import { Submitted, available, requireFfmpeg, toSubmitted } from '../submitted-job.ts';
import { JOB_ID, SUBMITTED } from '../examples.ts';

const MAX_PARTS = 200;
const SPEED = 'expected a whole number from 2 to 120';
const ADDRESS = 'expected host:port';

const Part = z.object({
  peer_addr: z
    .string({ error: ADDRESS })
    .max(300, ADDRESS)
    .regex(/^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$/, ADDRESS)
    .refine((address) => isPort(Number(address.slice(address.lastIndexOf(':') + 1))), 'expected a port from 1 to 65535')
    .describe('host:port of a node of the cluster.'),
  peer_job_id: z
    .string({ error: 'expected the id of a job' })
    .regex(/^[A-Za-z0-9._-]{1,300}$/, 'expected the id of a job')
    .describe('The id of a finished export on that node.'),
  ordinal: z
    .number({ error: 'expected a whole number from 0' })
    .int('expected a whole number from 0')
    .nonnegative('expected a whole number from 0')
    .describe('Position of the part, from 0.'),
});

const Body = z
  .object({
    kind: z.enum(['export', 'timelapse'], { error: 'expected export or timelapse' }),
    speed: z
      .number({ error: SPEED })
      .int(SPEED)
      .optional()
      .describe('With timelapse: how many times faster, a whole number from 2 to 120.'),
    parts: z
      .array(Part, { error: 'expected a list of parts' })
      .min(1, 'expected at least one part')
      .max(MAX_PARTS, `expected at most ${MAX_PARTS} parts`)
      .describe('In any order. They are joined in the order of their ordinals, which count from 0 without a gap.'),
  })
  .superRefine(({ kind, speed, parts }, context) => {
    const refuse = (path: (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path, message });
    if (kind === 'timelapse' && !isSpeed(speed)) refuse(['speed'], SPEED);
    const seen = new Map<number, number>();
    for (const [i, { ordinal }] of parts.entries()) {
      const same = seen.get(ordinal);
      if (same !== undefined) refuse(['parts', i, 'ordinal'], `${ordinal} is already the ordinal of parts.${same}`);
      seen.set(ordinal, i);
      if (ordinal < parts.length) continue;
      const missing = parts.findIndex((_, wanted) => !parts.some((part) => part.ordinal === wanted));
      refuse(['parts', i, 'ordinal'], `expected 0 to ${parts.length - 1}: there is no part ${missing}`);
    }
  });

const isPort = (port: number): boolean => port >= 1 && port <= 65_535;
const isSpeed = (speed: unknown): speed is number =>
  typeof speed === 'number' && Number.isInteger(speed) && speed >= 2 && speed <= 120;

export const assembleRoutes: ApiRoutes = async (app, { deps: { jobs } }) => {
  app.post(
    '/api/archive/:camera_id/assemble',
    {
      config: {
        role: 'admin',
        cameras: { param: 'camera_id' },
        audit: 'assemble',
        examples: {
          body: {
            kind: 'export',
            parts: [{ peer_addr: 'rack-2.example:9997', peer_job_id: JOB_ID, ordinal: 0 }],
          },
          202: SUBMITTED,
        },
      },
      schema: {
        operationId: 'assembleParts',
        summary: 'Exports of several nodes as one movie',
        description:
          "The recorder fetches the parts in parallel with the caller's credential, and joins them in the order of their ordinals. It asks only nodes of the cluster.",
        tags: ['jobs'],
        params: z.object({ camera_id: z.string() }),
        body: Body,
        response: {
          202: Submitted,
          400: problemResponse('A field is missing or wrong; the detail names it.'),
          403: problemResponse('This needs the role admin, or an address does not belong to a node of the cluster.'),
          404: problemResponse('The token does not cover this camera.'),
          503: problemResponse('ffmpeg or Redis is missing on the node; the detail says how to install it.'),
        },
      },
    },
    async (request, reply) => {
      const { params, body, headers } = request;
      const { kind, speed, parts } = body;
      const stranger = parts.findIndex(({ peer_addr }) => !jobs.isMember(peer_addr));
      if (stranger >= 0) {
        const detail = `parts.${stranger}.peer_addr: ${parts[stranger]?.peer_addr} is not a member of the cluster`;
        throw new ApiError(403, 'not-a-member', detail);
      }
      if (kind === 'timelapse') await requireFfmpeg(jobs);
      const { authorization } = headers;
      const inOrder = parts.toSorted((a, b) => a.ordinal - b.ordinal);
      const wanted = {
        kind,
        cameraId: params.camera_id,
        fromMs: 0,
        toMs: 0,
        by: callerOf(request).name,
        ...(kind === 'timelapse' && isSpeed(speed) ? { speed } : {}),
        assembly: {
          parts: inOrder.map(({ peer_addr, peer_job_id }) => ({ peerAddress: peer_addr, peerJobId: peer_job_id })),
          withCredential: authorization !== undefined,
        },
      };
      const job = await available(jobs.submit(wanted, authorization));
      tell(request, { job: job.id, parts: parts.length });
      return reply.code(202).send(toSubmitted(job));
    },
  );
};
