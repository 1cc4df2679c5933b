// `/api/cameras/{id}/snapshot` and `/thumbnail`: a still image that the camera makes, and the newest key frame as a small
// picture.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { visit } from '../../http/audit.ts';
import { problemResponse } from '../../http/problem.ts';
import { flag, LinkQuery } from '../../http/query.ts';
import type { StillImage } from '../../snapshots/shared-images.ts';
import type { ApiRoutes } from '../deps.ts';
import { imageBody, imageOf, imageResponses, sendImage } from '../image-answer.ts';

const CameraParams = z.object({ id: z.string() });
const ThumbnailQuery = LinkQuery.extend({
  fresh: flag().optional().describe('A picture that was made at most a second ago, instead of ten.'),
});

async function show(
  request: FastifyRequest<{ Params: z.output<typeof CameraParams> }>,
  reply: FastifyReply,
  image: Promise<StillImage>,
): Promise<FastifyReply> {
  const found = await imageOf(image);
  visit(request, reply, { camera: request.params.id });
  return sendImage(request, reply, found, `private, max-age=${Math.round(found.remainingMs / 1000)}`);
}

/** Who may see a camera's pictures, and how that is recorded. */
const ACCESS = {
  role: 'viewer',
  credentials: 'anywhere',
  cameras: { param: 'id' },
  follows: { param: 'id' },
  audit: 'still',
} as const;

export const stillRoutes: ApiRoutes = async (app, { deps: { stills } }) => {
  app.get(
    '/api/cameras/:id/snapshot',
    {
      config: ACCESS,
      schema: {
        operationId: 'getSnapshot',
        summary: 'A still image, as the camera made it',
        description:
          'Fetched from the address `snapshot` of the camera (`snapuri` in the database). One image serves all requests for 15 seconds; Cache-Control has the remaining time.',
        tags: ['cameras'],
        params: CameraParams,
        querystring: LinkQuery,
        response: {
          200: {
            description: 'The image.',
            content: imageBody('image/jpeg', 'image/png', 'image/gif', 'image/webp', 'image/avif'),
          },
          ...imageResponses,
          404: problemResponse('The node does not know this camera, or it has no snapshot address.'),
          502: problemResponse('The camera answered with an error, or not with an image.'),
          504: problemResponse('The camera did not answer within 10 seconds.'),
        },
      },
    },
    async (request, reply) => show(request, reply, stills.snapshot(request.params.id)),
  );

  app.get(
    '/api/cameras/:id/thumbnail',
    {
      config: ACCESS,
      schema: {
        operationId: 'getThumbnail',
        summary: 'The newest key frame of the live stream or the archive, as a small picture',
        description:
          'At most 640 pixels wide. One image serves all requests for 10 seconds, and those with fresh=1 for one second. Cache-Control has the remaining time.',
        tags: ['cameras'],
        params: CameraParams,
        querystring: ThumbnailQuery,
        response: {
          200: { description: 'The picture.', content: imageBody('image/jpeg') },
          ...imageResponses,
          404: problemResponse('The node does not know this camera or has no picture of it.'),
          503: problemResponse(
            'ffmpeg is missing on the node, busy, or cannot decode the picture; or the node that records the camera does not answer (node-away).',
          ),
        },
      },
    },
    async (request, reply) => show(request, reply, stills.thumbnail(request.params.id, request.query.fresh ?? false)),
  );
};
