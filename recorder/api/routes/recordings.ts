// `GET /recordings/<filename>`: a file of the archive with Range, so that the page can play what is newest. The playback
// listener takes this over when it comes; nothing but the page should use it.

import fastifyStatic from '@fastify/static';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { parsePath } from '../../archive/names.ts';
import type { ApiDeps } from '../deps.ts';
import { ApiError } from '../../http/problem.ts';

export const recordingRoutes: FastifyPluginAsyncZod<{ deps: Pick<ApiDeps, 'recordPath'> }> = async (app, { deps }) => {
  await app.register(fastifyStatic, { root: deps.recordPath, serve: false, decorateReply: true, cacheControl: false });

  app.get(
    '/recordings/*',
    {
      config: { role: 'viewer', credentials: 'header-or-query' },
      schema: { hide: true, params: z.object({ '*': z.string() }) },
    },
    async ({ params }, reply) => {
      const path = params['*'];
      // Only what is named as a segment, in the directory of its day: nothing else below the record path is footage.
      if (!parsePath(path)) throw new ApiError(404, 'not-found', 'there is no such recording');
      return reply
        .header('content-type', 'video/mp4')
        .header('cache-control', 'private, no-cache')
        .header('x-content-type-options', 'nosniff')
        .sendFile(path);
    },
  );
};
