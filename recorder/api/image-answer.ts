// Sends images as answers, with the headers that caches need.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { listsTag } from '../http/conditions.ts';
import { Bytes } from '../http/openapi.ts';
import { ApiError, unknownCamera } from '../http/problem.ts';
import { StillError, type StillErrorCode } from '../snapshots/error.ts';
import type { StillImage } from '../snapshots/shared-images.ts';

export const imageBody = (...types: string[]) => Object.fromEntries(types.map((type) => [type, { schema: Bytes }]));

export const imageResponses = {
  304: z.null().describe('If-None-Match names the current image.'),
};

const STATUS: Readonly<Record<Exclude<StillErrorCode, 'unknown-camera'>, number>> = {
  'no-snapshot-address': 404,
  'nothing-recorded': 404,
  'no-footage': 404,
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

/** Turns an error into an answer. */
export async function imageOf<T extends StillImage>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (err) {
    if (!(err instanceof StillError)) throw err;
    if (err.code === 'unknown-camera') throw unknownCamera();
    throw new ApiError(STATUS[err.code], err.code, err.message, { cause: err });
  }
}

/** Sends the image unless the caller has it. */
export function sendImage(
  request: FastifyRequest,
  reply: FastifyReply,
  { type, body, etag }: StillImage,
  cacheControl: string,
): FastifyReply {
  reply.headers({
    'cache-control': cacheControl,
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
