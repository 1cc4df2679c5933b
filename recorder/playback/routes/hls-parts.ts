// The resources in HLS playlists that are not files: initialization sections, and parts that are not byte ranges of a file.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { parsePath, type SegmentName } from '../../archive/disk/names.ts';
import { visibleCamera } from '../../http/access.ts';
import { visit } from '../../http/audit.ts';
import { ApiError } from '../../http/problem.ts';
import { queryNumber, TokenQuery } from '../../http/query.ts';
import { initSegmentOf } from '../../mp4/init.ts';
import { rangesOf } from '../about.ts';
import type { ArchiveFile, ArchiveFiles } from '../../footage/archive-file.ts';
import { totalSize } from '../body.ts';
import type { Piece } from '../../footage/sample-runs.ts';
import { partPieces } from '../part.ts';
import type { PartsCache } from '../../footage/parts-cache.ts';
import type { Reading } from '../reading.ts';
import type { Responder } from '../respond.ts';
import { HLS_ACCESS } from './hls.ts';

interface HlsPartDeps {
  readonly parts: PartsCache;
  readonly files: ArchiveFiles;
  readonly reading: Reading;
  readonly responder: Responder;
}

/** A part or an initialization section of a closed file does not change. */
const UNCHANGING = 'private, max-age=3600';

const UNTIL = 'expected milliseconds since 1970';
const SIZES = 'expected at most eight sizes in bytes, separated by dots';
const PART = 'expected the number of a part, from 0';

export const hlsPartRoutes: FastifyPluginAsyncZod<{ deps: HlsPartDeps }> = async (app, { deps }) => {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/hls/:camera_id/init/*',
    config: HLS_ACCESS,
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
    config: HLS_ACCESS,
    schema: {
      operationId: 'getPart',
      summary: 'A part of a playlist that is not a byte range of a file',
      tags: ['playback'],
      params: z.object({ camera_id: z.string(), part: queryNumber(z.int(PART).min(0, PART)), '*': z.string() }),
      querystring: TokenQuery.extend({
        until: queryNumber(z.number(UNTIL))
          .optional()
          .describe('Where the part ends, if that is before its last picture: milliseconds since 1970.'),
        next: z
          .string()
          .regex(/^[0-9]{1,9}(\.[0-9]{1,9}){0,7}$/, SIZES)
          .optional()
          .describe(
            'Bytes of each of the pictures with which another node continues after `until`, separated by dots.',
          ),
      }),
      response: rangesOf('video/iso.segment'),
    },
    handler: async (request, reply) => {
      const { part, '*': path } = request.params;
      const cameraId = visibleCamera(request, request.params.camera_id);
      await withPart(deps, cameraId, path, async (file) => {
        const parts = await deps.parts.partsOf(file);
        if (!parts || part >= parts.starts.length - 1) throw noPart();
        const { until, next } = request.query;
        const end = until === undefined ? undefined : { toMs: until, next: next?.split('.').map(Number) ?? [] };
        const pieces = await partPieces(file, parts, part, end);
        // After a part that is a range of a file, ffmpeg (5.1) asks on the same connection for as many bytes of this
        // one. With a length it would wait for all of them until the connection ends; with chunks it sees the end.
        const isChunked = end !== undefined;
        const name = `part-${part}-${until}-${next}`;
        await respondWith(request, reply, deps, file, pieces, name, 'video/iso.segment', isChunked);
      });
      return reply;
    },
  });
};

async function withPart(
  { files, reading }: HlsPartDeps,
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
  { responder }: HlsPartDeps,
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
