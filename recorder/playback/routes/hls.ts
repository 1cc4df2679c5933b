// `GET /hls/{camera_id}/index.m3u8?from&to`: HLS playlists of recorded footage.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { previewId } from '../../../base/camera-id.ts';
import { visibleCamera } from '../../http/access.ts';
import { visit } from '../../http/audit.ts';
import { intervalOf } from '../about.ts';
import { totalSize } from '../body.ts';
import { elsewhereHeaders } from '../../http/elsewhere-header.ts';
import type { Footage } from '../../footage/footage.ts';
import { CameraParams, IntervalQuery, toInterval } from '../interval.ts';
import { Numbering } from '../numbering.ts';
import { nothingToPlay, placeOf, wholeFootage, type WholeDeps } from '../whole.ts';
import { Playlists } from '../playlist.ts';
import { multivariantPlaylist } from '../variants.ts';
import { sendTogether, type Responder } from '../respond.ts';

interface HlsDeps extends WholeDeps {
  readonly responder: Responder;
}

/** A camera that reconnects continues in a new file: its playlist does not end during this time. */
const RECONNECT_MS = 60_000;

export const HLS_ACCESS = {
  role: 'viewer',
  credentials: 'header-or-query',
  cameras: 'filtered',
  audit: 'playback',
} as const;

export const hlsRoutes: FastifyPluginAsyncZod<{ deps: HlsDeps }> = async (app, { deps }) => {
  const playlists = new Playlists();
  const numbering = new Numbering(deps.clock);

  app.get(
    '/hls/:camera_id/index.m3u8',
    {
      config: HLS_ACCESS,
      schema: {
        operationId: 'getPlaylist',
        summary: 'HLS playlist of the footage of a camera in an interval',
        description:
          'Without to, or with a time in the future, the playlist follows the recording. Without from, it begins an hour before to, or an hour ago.',
        tags: ['playback'],
        params: CameraParams,
        querystring: IntervalQuery,
        response: intervalOf('A playlist.', 'application/vnd.apple.mpegurl'),
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      const cameraId = visibleCamera(request, params.camera_id);
      const nowMs = deps.clock.wallMs();
      const interval = toInterval(query, nowMs);
      const local = query.local ?? false;
      const { footage, elsewhere } = await wholeFootage(request, deps, { cameraId, interval, local });
      const live = interval.toMs > nowMs && (await goesOn(deps, cameraId, nowMs, footage));
      const token = query.access_token;
      const suffix = token === undefined ? '' : `?access_token=${encodeURIComponent(token)}`;
      // Without from and to the interval moves with the time: all requests still share one playlist, which keeps its start.
      const startMs = query.from === undefined && query.to === undefined ? -Infinity : interval.fromMs;
      const key = `${cameraId} ${query.from} ${query.to} ${local}`;
      const { listed, ...numbered } = numbering.number(key, footage, live);
      const options = {
        cameraId,
        ...interval,
        startMs,
        live,
        ...numbered,
        suffix,
        placeOf: ({ nodeId }: Footage): string => placeOf(request, nodeId, deps.cluster),
      };
      const playlist = playlists.build(listed, options);
      if (playlist === undefined) throw nothingToPlay(elsewhere);
      visit(request, reply, { camera: cameraId, fromMs: interval.fromMs, toMs: Math.min(interval.toMs, nowMs) });
      reply.headers({
        'content-type': 'application/vnd.apple.mpegurl',
        'content-length': totalSize(playlist),
        'cache-control': 'no-store',
        ...elsewhereHeaders(elsewhere),
      });
      await deps.responder.stream(request, reply, 200, (raw) => sendTogether(raw, playlist));
      return reply;
    },
  );

  app.get(
    '/hls/:camera_id/variants.m3u8',
    {
      config: HLS_ACCESS,
      schema: {
        operationId: 'getVariants',
        summary:
          'HLS multivariant playlist of the footage of a camera in an interval: its main stream, and its preview',
        description:
          'Lists the playlists of both that have footage, the main stream first; players choose by their bandwidth and by what they decode. Takes the parameters of index.m3u8.',
        tags: ['playback'],
        params: CameraParams,
        querystring: IntervalQuery,
        response: intervalOf('A playlist.', 'application/vnd.apple.mpegurl'),
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      const cameraId = visibleCamera(request, params.camera_id);
      const interval = toInterval(query, deps.clock.wallMs());
      const local = query.local ?? false;
      // For a camera that this caller may not see, there is no id and no footage.
      const ids = cameraId === '' ? [''] : [cameraId, previewId(cameraId)];
      const found = await Promise.all(ids.map((id) => wholeFootage(request, deps, { cameraId: id, interval, local })));
      const { search } = new URL(request.url, 'http://node');
      const variants = found.flatMap(({ footage }, i) => {
        const address = `${i === 0 ? '' : `../${ids[i]}/`}index.m3u8${search}`;
        return footage.length > 0 ? [{ address, footage }] : [];
      });
      const elsewhere = found.flatMap((one) => one.elsewhere);
      if (variants.length === 0) throw nothingToPlay(elsewhere);
      return reply
        .headers({
          'content-type': 'application/vnd.apple.mpegurl',
          'cache-control': 'no-store',
          ...elsewhereHeaders(elsewhere),
        })
        .send(multivariantPlaylist(variants));
    },
  );
};

/** Whether more footage is expected after the newest. */
async function goesOn(
  { footage: { own } }: HlsDeps,
  cameraId: string,
  nowMs: number,
  footage: readonly Footage[],
): Promise<boolean> {
  if ((await own.archive.openEntries(cameraId)).some(({ format }) => format === 'fmp4')) return true;
  if (footage.some(({ parts }) => !parts.complete)) return true;
  const newest = footage.at(-1)?.parts;
  if (!newest) return false;
  return nowMs - (newest.meta.wallStartMs + newest.meta.wallDurationMs) < RECONNECT_MS;
}
