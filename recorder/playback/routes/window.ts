// `GET /window/{camera_id}.mp4?from&to`: the footage of a camera in an interval, as one MP4 file that is made while it is
// sent.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { isFootageId } from '../../../base/camera-id.ts';
import { askerOf, visibleCamera } from '../../http/access.ts';
import { visit } from '../../http/audit.ts';
import { ApiError } from '../../http/problem.ts';
import { flag } from '../../http/query.ts';
import { initSegmentOf } from '../../mp4/init.ts';
import { intervalOf } from '../about.ts';
import { elsewhereHeaders } from '../../http/elsewhere-header.ts';
import { wallAt } from '../../footage/footage.ts';
import { IntervalQuery, toInterval } from '../interval.ts';
import type { Responder } from '../respond.ts';
import { firstPartOf, isSettled, partsInTurn, startOf } from '../../footage/turns.ts';
import { nothingToPlay, wholeFootage, type WholeDeps } from '../whole.ts';
import { WindowStream, goesOn } from '../window.ts';

interface WindowDeps extends WholeDeps {
  readonly responder: Responder;
}

const WindowQuery = IntervalQuery.extend({
  download: flag().optional(),
});

export const windowRoutes: FastifyPluginAsyncZod<{ deps: WindowDeps }> = async (app, { deps }) => {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/window/:file',
    config: { role: 'viewer', credentials: 'anywhere', cameras: 'filtered', audit: 'window' },
    schema: {
      operationId: 'getWindow',
      summary: 'The footage of a camera in an interval, as one MP4 file that begins at from',
      description:
        'file is the id of the camera, followed by .mp4. The recorder makes the file while it sends it, so it does not support ranges. The file ends where the codec changes: X-Window-Ends-At has that time, and Link (rel="next") the address of the next window.',
      tags: ['playback'],
      params: z.object({ file: z.string() }),
      querystring: WindowQuery,
      response: intervalOf('A fragmented MP4.', 'video/mp4'),
    },
    handler: async (request, reply) => {
      const { query } = request;
      const named = /^(.+)\.mp4$/.exec(request.params.file)?.[1] ?? '';
      if (!isFootageId(named)) throw new ApiError(404, 'not-found', 'expected /window/{camera_id}.mp4');
      const cameraId = visibleCamera(request, named);
      const nowMs = deps.clock.wallMs();
      const { fromMs, toMs } = toInterval(query, nowMs);
      const interval = { fromMs, toMs };
      const local = query.local ?? false;
      const { footage: all, elsewhere } = await wholeFootage(request, deps, { cameraId, interval, local });
      const footage = all.filter((item) => {
        const [from, to] = partsInTurn(item, interval);
        // In a file that is still written, pictures after the last complete part are footage too.
        return (
          from < to ||
          (!isSettled(item) && startOf(item) < toMs && firstPartOf(item.parts, item.turn) < item.parts.starts.length)
        );
      });
      const [first] = footage;
      if (!first || fromMs >= nowMs) throw nothingToPlay(elsewhere);
      visit(request, reply, { camera: cameraId, fromMs, toMs });
      const startMs = Math.max(fromMs, wallAt(first.parts, first.parts.shownFrom));
      const name = `${cameraId}_${new Date(startMs).toISOString().replaceAll(/[-:]/g, '').slice(0, 15)}Z.mp4`;
      reply.headers({
        'content-type': 'video/mp4',
        'accept-ranges': 'none',
        'cache-control': 'no-store',
        ...elsewhereHeaders(elsewhere),
        'content-disposition': `${query.download ? 'attachment' : 'inline'}; filename="${name}"`,
      });
      const next = footage.find(({ parts }) => !goesOn(first.parts.headers, parts.headers));
      if (next) reply.headers(endingBefore(`${cameraId}.mp4`, startOf(next), toMs));
      const window = new WindowStream({ fromMs, toMs }, first.parts.headers);
      const release = deps.footage.own.archive.holdWindow(cameraId, fromMs, toMs);
      const { responder } = deps;
      const caller = askerOf(request);
      const sent = responder.stream(request, reply, 200, async (raw) => {
        await responder.sender.send(raw, undefined, [initSegmentOf(first.parts.headers, startMs)]);
        for (const item of footage) {
          if (window.ended) return;
          // A file that retention has removed meanwhile is skipped, like a gap.
          await deps.footage.use(item, caller, async (file) => {
            for await (const pieces of window.take(file, item)) await responder.sender.send(raw, file, pieces);
          });
        }
      });
      await sent.finally(release);
      return reply;
    },
  });
};

/** A stream ends where the codec changes: headers with that time and with the address of the next window (RFC 8288). */
const endingBefore = (path: string, endsMs: number, toMs: number): Record<string, string> => ({
  'x-window-ends-at': new Date(endsMs).toISOString(),
  link: `<${path}?from=${endsMs / 1000}&to=${toMs / 1000}>; rel="next"`,
});
