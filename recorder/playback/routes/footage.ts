// `GET /footage/{camera_id}?from&to`: the files of this node and where their parts are, for the other nodes of the cluster.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { visibleCamera } from '../../http/access.ts';
import { IntervalQuery, MAX_INTERVAL_MS, requireOrder } from '../../http/interval.ts';
import { ApiError } from '../../http/problem.ts';
import { MINUTE_MS } from '../../../base/units.ts';
import { CameraParams } from '../interval.ts';
import { footageMessage } from '../../footage/message.ts';
import { listed, type WholeDeps } from '../whole.ts';

/** `index`: with the indexes of the files. */
const Query = IntervalQuery.required().extend({ index: z.literal('1').optional() });
/** Nodes round the times that they ask for. */
const MAX_MS = MAX_INTERVAL_MS + MINUTE_MS;

export const footageRoutes: FastifyPluginAsyncZod<{ deps: WholeDeps }> = async (app, { deps }) => {
  app.get(
    '/footage/:camera_id',
    {
      config: { role: 'viewer', cameras: 'filtered' },
      schema: { hide: true, params: CameraParams, querystring: Query },
    },
    async (request, reply) => {
      const { from, to, index } = request.query;
      const interval = { fromMs: from * 1000, toMs: to * 1000 };
      requireOrder(request.query);
      if (interval.toMs - interval.fromMs > MAX_MS) {
        throw new ApiError(400, 'interval-too-wide', 'to: expected at most 25 hours after from');
      }
      const { own } = deps.footage;
      const footage = await listed(own.in(visibleCamera(request, request.params.camera_id), interval));
      reply.header('cache-control', 'no-store');
      return footageMessage(index === undefined ? footage : await own.withIndexes(footage));
    },
  );
};
