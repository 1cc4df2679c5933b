// `/api/cameras/{id}/snapshot` and `/thumbnail`: a still image that the camera makes, and the newest key frame as a small
// picture.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { visit } from '../../http/audit.ts';
import { listsTag } from '../../http/conditions.ts';
import { Bytes } from '../../http/openapi.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { StillError, type StillErrorCode } from '../../still/error.ts';
import type { StillImage } from '../../still/shared-images.ts';
import type { StillSource } from '../deps.ts';

const CameraParams = z.object({ id: z.string() });
/** An image element in a page cannot send headers, so its token is in the query. */
const Query = z.object({ access_token: z.string().optional() });

const images = (...types: string[]) => Object.fromEntries(types.map((type) => [type, { schema: Bytes }]));

const common = {
  304: z.null().describe('If-None-Match names the current image.'),
  401: problemResponse('No token, or a wrong one.'),
};

const STATUS: Readonly<Record<Exclude<StillErrorCode, 'unknown-camera'>, number>> = {
  'no-snapshot-address': 404,
  'nothing-recorded': 404,
  'camera-unreachable': 502,
  'camera-refused-login': 502,
  'camera-login-downgraded': 502,
  'camera-error': 502,
  'not-an-image': 502,
  'image-too-large': 502,
  'redirected-elsewhere': 502,
  'address-refused': 502,
  'camera-timeout': 504,
  'ffmpeg-missing': 503,
  'thumbnail-failed': 503,
  'too-many-thumbnails': 503,
};

async function imageOf(answer: Promise<StillImage>): Promise<StillImage> {
  try {
    return await answer;
  } catch (err) {
    if (!(err instanceof StillError)) throw err;
    if (err.code === 'unknown-camera') throw unknownCamera();
    throw new ApiError(STATUS[err.code], err.code, err.message, { cause: err });
  }
}

function send(request: FastifyRequest, reply: FastifyReply, { type, body, etag, remainingMs }: StillImage) {
  reply.headers({
    'cache-control': `private, max-age=${Math.round(remainingMs / 1000)}`,
    etag,
    // The bytes come from the camera: a browser must treat them as an image only.
    'content-security-policy': "default-src 'none'; sandbox",
  });
  if (listsTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
  // Sends the bytes unchanged: the serializer of the schema would turn them into text.
  return reply
    .type(type)
    .serializer((payload: unknown) => payload as string)
    .send(body);
}

async function show(
  request: FastifyRequest<{ Params: z.output<typeof CameraParams> }>,
  reply: FastifyReply,
  image: Promise<StillImage>,
): Promise<FastifyReply> {
  const found = await imageOf(image);
  visit(request, reply, { camera: request.params.id });
  return send(request, reply, found);
}

export const stillRoutes: FastifyPluginAsyncZod<{ stills: StillSource }> = async (app, { stills }) => {
  app.get(
    '/api/cameras/:id/snapshot',
    {
      config: {
        role: 'viewer',
        credentials: 'header-or-query',
        cameras: { param: 'id' },
        follows: { param: 'id' },
        audit: 'still',
      },
      schema: {
        operationId: 'getSnapshot',
        summary: 'A still image, as the camera made it',
        description:
          'Fetched from the address `snapshot` of the camera (`snapuri` in the database). One image serves all requests for 15 seconds; Cache-Control has the remaining time.',
        tags: ['cameras'],
        params: CameraParams,
        querystring: Query,
        response: {
          200: {
            description: 'The image.',
            content: images('image/jpeg', 'image/png', 'image/gif', 'image/webp', 'image/avif'),
          },
          ...common,
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
      config: {
        role: 'viewer',
        credentials: 'header-or-query',
        cameras: { param: 'id' },
        follows: { param: 'id' },
        audit: 'still',
      },
      schema: {
        operationId: 'getThumbnail',
        summary: 'The newest key frame of the live stream or the archive, as a small picture',
        description: 'At most 640 pixels wide. One image serves all requests for 10 seconds.',
        tags: ['cameras'],
        params: CameraParams,
        querystring: Query,
        response: {
          200: { description: 'The picture.', content: images('image/jpeg') },
          ...common,
          404: problemResponse('The node does not know this camera or has no picture of it.'),
          503: problemResponse('ffmpeg is missing on the node, busy, or cannot decode the picture.'),
        },
      },
    },
    async (request, reply) => show(request, reply, stills.thumbnail(request.params.id)),
  );
};
