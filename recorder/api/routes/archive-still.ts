// `/api/archive/{camera_id}/still`: the picture of a moment. In a cluster, whichever node has it.

import { z } from 'zod';
import { askerOf, visibleCamera } from '../../http/access.ts';
import { visit } from '../../http/audit.ts';
import { problemResponse } from '../../http/problem.ts';
import { EpochSeconds, flag, LinkQuery, queryNumber } from '../../http/query.ts';
import type { ApiRoutes } from '../deps.ts';
import { imageBody, imageOf, imageResponses, sendImage } from '../image-answer.ts';

const WIDTH = { least: 64, most: 1920, usual: 640, expected: 'expected a number of pixels from 64 to 1920' };

const Query = LinkQuery.extend({
  at: EpochSeconds.describe('The moment, seconds since 1970; may have a fraction.'),
  width: queryNumber(z.int(WIDTH.expected).min(WIDTH.least, WIDTH.expected).max(WIDTH.most, WIDTH.expected))
    .default(WIDTH.usual)
    .describe('The picture is at most so many pixels wide; it is never enlarged.'),
  local: flag().optional().describe('In a cluster: only the footage on this node.'),
});

/** A year: footage does not change. */
const FOREVER = 'private, max-age=31536000, immutable';

export const archiveStillRoutes: ApiRoutes = async (app, { deps: { stills } }) => {
  app.get(
    '/api/archive/:camera_id/still',
    {
      config: { role: 'viewer', credentials: 'anywhere', cameras: 'filtered', audit: 'still' },
      schema: {
        operationId: 'getArchivedStill',
        summary: 'The recorded picture of a moment, as JPEG',
        description:
          'The newest key frame at or before the moment. X-Picture-Time-Ms says when it was captured, in milliseconds since 1970. It can be cached without limit, except for the newest picture of a recording in progress.',
        tags: ['archive'],
        params: z.object({ camera_id: z.string() }),
        querystring: Query,
        response: {
          200: { description: 'The picture.', content: imageBody('image/jpeg') },
          ...imageResponses,
          400: problemResponse('at or width is missing or not valid.'),
          404: problemResponse('Nothing is recorded at this moment.'),
          500: problemResponse('The archive on the disk cannot be read.'),
          503: problemResponse(
            'ffmpeg is missing on the node, busy, or cannot decode the picture; or the footage is on a node that does not answer.',
          ),
        },
      },
    },
    async (request, reply) => {
      const { at, width, local } = request.query;
      const cameraId = visibleCamera(request, request.params.camera_id);
      const atMs = Math.round(at * 1000);
      // Out of scope: no node is asked about it.
      const by = local || cameraId === '' ? undefined : askerOf(request);
      const still = await imageOf(stills.archived(cameraId, atMs, width, by));
      visit(request, reply, { camera: cameraId, fromMs: still.timeMs, toMs: atMs });
      reply.header('x-picture-time-ms', String(still.timeMs));
      return sendImage(request, reply, still, still.isSettled ? FOREVER : 'no-store');
    },
  );
};
