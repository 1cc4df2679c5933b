// `GET /hls/{camera_id}/index.m3u8?from&to`: HLS of recorded footage, and the two kinds of resources in its playlists that
// are not files: initialization sections, and parts that are not byte ranges of a file.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { previewId } from '../../../base/camera-id.ts';
import { parsePath, type SegmentName } from '../../archive/disk/names.ts';
import { visibleCamera } from '../../http/access.ts';
import { visit } from '../../http/audit.ts';
import { ApiError } from '../../http/problem.ts';
import { queryNumber, TokenQuery } from '../../http/query.ts';
import { initSegmentOf } from '../../mp4/init.ts';
import { intervalOf, rangesOf } from '../about.ts';
import type { ArchiveFile, ArchiveFiles } from '../archive-file.ts';
import { totalSize, type Piece } from '../body.ts';
import { elsewhereHeaders } from '../../http/elsewhere-header.ts';
import { CameraParams, IntervalQuery, toInterval, type Footage } from '../footage.ts';
import { Numbering } from '../numbering.ts';
import { partPieces } from '../part.ts';
import { nothingToPlay, placeOf, wholeFootage, type WholeDeps } from '../whole.ts';
import { Playlists } from '../playlist.ts';
import { multivariantPlaylist } from '../variants.ts';
import type { Reading } from '../reading.ts';
import { sendTogether, type Responder } from '../respond.ts';

interface HlsDeps extends WholeDeps {
  readonly files: ArchiveFiles;
  readonly reading: Reading;
  readonly responder: Responder;
}

/** A camera that reconnects continues in a new file: its playlist does not end during this time. */
const RECONNECT_MS = 60_000;
/** A part or an initialization section of a closed file does not change. */
const UNCHANGING = 'private, max-age=3600';

const config = { role: 'viewer', credentials: 'header-or-query', cameras: 'filtered', audit: 'playback' } as const;
const UNTIL = 'expected milliseconds since 1970';
const PART = 'expected the number of a part, from 0';

export const hlsRoutes: FastifyPluginAsyncZod<{ deps: HlsDeps }> = async (app, { deps }) => {
  const playlists = new Playlists();
  const numbering = new Numbering(deps.clock);

  app.get(
    '/hls/:camera_id/index.m3u8',
    {
      config,
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
      const live = interval.toMs > nowMs && goesOn(deps, cameraId, nowMs, footage);
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
      config,
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

  app.route({
    method: ['GET', 'HEAD'],
    url: '/hls/:camera_id/init/*',
    config,
    schema: {
      operationId: 'getInitializationSection',
      summary: 'The initialization section of a file in a playlist',
      tags: ['playback'],
      params: z.object({ camera_id: z.string(), '*': z.string() }),
      querystring: TokenQuery,
      response: rangesOf('video/mp4'),
    },
    handler: async (request, reply) => {
      const { '*': path } = request.params;
      const cameraId = visibleCamera(request, request.params.camera_id);
      await withPart(deps, cameraId, path, async (file) => {
        const parts = await deps.parts.partsOf(file);
        if (!parts) throw noPart();
        const bytes = initSegmentOf(parts.headers);
        await respondWith(request, reply, deps, file, [bytes], `init-${bytes.length}`, 'video/mp4');
      });
      return reply;
    },
  });

  app.route({
    method: ['GET', 'HEAD'],
    url: '/hls/:camera_id/parts/:part/*',
    config,
    schema: {
      operationId: 'getPart',
      summary: 'A part of a playlist that is not a byte range of a file',
      tags: ['playback'],
      params: z.object({ camera_id: z.string(), part: queryNumber(z.int(PART).min(0, PART)), '*': z.string() }),
      querystring: TokenQuery.extend({
        until: queryNumber(z.number(UNTIL))
          .optional()
          .describe('Where the part ends, if that is before its last picture: milliseconds since 1970.'),
      }),
      response: rangesOf('video/iso.segment'),
    },
    handler: async (request, reply) => {
      const { part, '*': path } = request.params;
      const cameraId = visibleCamera(request, request.params.camera_id);
      await withPart(deps, cameraId, path, async (file) => {
        const parts = await deps.parts.partsOf(file);
        if (!parts || part >= parts.starts.length - 1) throw noPart();
        const { until = Infinity } = request.query;
        const pieces = await partPieces(file, parts, part, until);
        // After a part that is a range of a file, ffmpeg (5.1) asks on the same connection for as many bytes of this
        // one. With a length it would wait for all of them until the connection ends; with chunks it sees the end.
        const isChunked = until < Infinity;
        await respondWith(request, reply, deps, file, pieces, `part-${part}-${until}`, 'video/iso.segment', isChunked);
      });
      return reply;
    },
  });
};

/** Whether more footage is expected after the newest. */
function goesOn({ archive }: HlsDeps, cameraId: string, nowMs: number, footage: readonly Footage[]): boolean {
  if (archive.openEntries(cameraId).some(({ format }) => format === 'fmp4')) return true;
  if (footage.some(({ parts }) => !parts.complete)) return true;
  const newest = footage.at(-1)?.parts;
  if (!newest) return false;
  return nowMs - (newest.meta.wallStartMs + newest.meta.wallDurationMs) < RECONNECT_MS;
}

async function withPart(
  { files, reading }: HlsDeps,
  cameraId: string,
  path: string,
  work: (file: ArchiveFile) => Promise<void>,
): Promise<void> {
  const segment: SegmentName | undefined = parsePath(path);
  // The scope of the token was checked for this camera: the path must not name a file of another one.
  const isThere =
    segment?.cameraId === cameraId &&
    (await files.use(segment, async (file) => {
      reading.touch(path);
      await work(file).finally(() => reading.touch(path));
    }));
  if (!isThere) throw noPart();
}

function respondWith(
  request: FastifyRequest,
  reply: FastifyReply,
  { responder }: HlsDeps,
  file: ArchiveFile,
  pieces: readonly Piece[],
  name: string,
  contentType: string,
  isChunked = false,
): Promise<void> {
  visit(request, reply, { camera: file.segment.cameraId, fromMs: file.segment.startMs });
  const representation = {
    pieces,
    sizeBytes: totalSize(pieces),
    etag: `"${name}-${file.segment.startMs.toString(16)}"`,
    modifiedMs: file.segment.startMs,
  };
  return responder.respond(request, reply, { representation, file, contentType, cacheControl: UNCHANGING, isChunked });
}

const noPart = (): ApiError => new ApiError(404, 'no-recording', 'the recording has no such part');
