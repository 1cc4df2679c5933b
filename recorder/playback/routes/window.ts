// `GET /window/{camera_id}.mp4?from&to`: what a camera recorded in an interval, as one MP4 that is made while it is sent.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../../base/clock.ts';
import { isCameraId, parsePath } from '../../archive/names.ts';
import { visibleCamera } from '../../http/access.ts';
import { ApiError } from '../../http/problem.ts';
import { initSegmentOf } from '../../mp4/init.ts';
import { intervalOf } from '../about.ts';
import type { ArchiveFile, ArchiveFiles } from '../archive-file.ts';
import type { PlaybackArchive, PlaybackCluster } from '../deps.ts';
import { sentElsewhere } from '../elsewhere.ts';
import { IntervalQuery, footageOf, toInterval, wallAt, type Footage } from '../footage.ts';
import type { PartsCache } from '../parts-cache.ts';
import { partsWithin } from '../playlist.ts';
import type { Responder } from '../respond.ts';
import { WindowStream } from '../window.ts';

export interface WindowDeps {
  readonly archive: PlaybackArchive;
  readonly cluster?: PlaybackCluster | undefined;
  readonly clock: Clock;
  readonly files: ArchiveFiles;
  readonly parts: PartsCache;
  readonly responder: Responder;
}

const WindowQuery = IntervalQuery.extend({
  download: z.enum(['0', '1'], { error: 'expected 0 or 1' }).optional(),
});

export const windowRoutes: FastifyPluginAsyncZod<{ deps: WindowDeps }> = async (app, { deps }) => {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/window/:file',
    config: { role: 'viewer', credentials: 'header-or-query', cameras: 'filtered' },
    schema: {
      summary: 'What a camera recorded in an interval, as one MP4 that begins at from',
      description: 'file is the id of the camera and .mp4. It is made while it is sent and has no ranges.',
      tags: ['playback'],
      params: z.object({ file: z.string() }),
      querystring: WindowQuery,
      response: intervalOf('A fragmented MP4.', 'video/mp4'),
    },
    handler: async (request, reply) => {
      const { query } = request;
      const named = /^(.+)\.mp4$/.exec(request.params.file)?.[1] ?? '';
      if (!isCameraId(named)) throw new ApiError(404, 'not-found', 'expected /window/{camera_id}.mp4');
      const cameraId = visibleCamera(request, named);
      const nowMs = deps.clock.wallMs();
      const { fromMs, toMs } = toInterval(query, nowMs);
      const footage = (await footageOf(deps, cameraId, { fromMs, toMs })).filter(({ parts }) => {
        const [from, to] = partsWithin(parts, fromMs, toMs);
        // What is written since the last part ended is footage too.
        return from < to || !parts.complete;
      });
      const [first] = footage;
      if (!first || fromMs >= nowMs) {
        const sent = sentElsewhere(request, reply, { cameraId, fromMs, toMs }, deps.cluster);
        if (!sent) throw new ApiError(404, 'no-footage', 'nothing is recorded in this interval');
        return sent;
      }
      const startMs = Math.max(fromMs, wallAt(first.parts, first.parts.shownFrom));
      const name = `${cameraId}_${new Date(startMs).toISOString().replaceAll(/[-:]/g, '').slice(0, 15)}Z.mp4`;
      reply.headers({
        'content-type': 'video/mp4',
        'accept-ranges': 'none',
        'cache-control': 'no-store',
        'content-disposition': `${query.download === '1' ? 'attachment' : 'inline'}; filename="${name}"`,
        'x-content-type-options': 'nosniff',
      });
      const window = new WindowStream({ fromMs, toMs }, first.parts.headers);
      const release = deps.archive.holdWindow(cameraId, fromMs, toMs);
      const { responder } = deps;
      const sent = responder.stream(request, reply, 200, async (raw) => {
        await responder.sender.send(raw, undefined, [initSegmentOf(first.parts.headers, startMs)]);
        for (const item of footage) {
          if (window.ended) return;
          await withFile(deps.files, item, async (file) => {
            for await (const pieces of window.take(file, item.parts)) await responder.sender.send(raw, file, pieces);
          });
        }
      });
      await sent.finally(release);
      return reply;
    },
  });
};

/** A file that retention removed meanwhile leaves a gap like any other. */
async function withFile(files: ArchiveFiles, { path }: Footage, work: (file: ArchiveFile) => Promise<void>) {
  const segment = parsePath(path);
  const file = segment && (await files.open(segment));
  if (!file) return;
  try {
    await work(file);
  } finally {
    await file.close();
  }
}
