// `GET /<filename>`: a file of the archive, finished or still being written.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { parsePath, type SegmentName } from '../../archive/disk/names.ts';
import { callerOf } from '../../http/access.ts';
import { visit } from '../../http/audit.ts';
import { ApiError } from '../../http/problem.ts';
import { flag, LinkQuery, queryNumber } from '../../http/query.ts';
import { rangesOf } from '../about.ts';
import type { ArchiveFile, ArchiveFiles } from '../../footage/archive-file.ts';
import type { ConditionalHeaders } from '../../http/conditions.ts';
import type { OwnArchive } from '../../footage/own-footage.ts';
import type { PlaybackCluster } from '../deps.ts';
import { sentElsewhere, type Sought } from '../elsewhere.ts';
import type { PeerSender } from '../../peers/peer-requests.ts';
import type { Reading } from '../reading.ts';
import { Recordings, type Representation } from '../recording.ts';
import type { Responder } from '../respond.ts';

interface FileDeps {
  readonly archive: OwnArchive;
  readonly cluster?: PlaybackCluster | undefined;
  readonly peers?: PeerSender | undefined;
  readonly files: ArchiveFiles;
  readonly reading: Reading;
  readonly recordings: Recordings;
  readonly responder: Responder;
}

const BYTES = 'expected a number of bytes';
const FileQuery = LinkQuery.extend({
  size: queryNumber(z.int(BYTES).min(1, BYTES))
    .optional()
    .describe('The file as it was when it had this many bytes: the size that `current` reports while the file grows.'),
  download: flag().optional(),
});

/** A closed file does not change, and neither does a state of a growing file. */
const UNCHANGING = 'private, max-age=3600';

export const fileRoutes: FastifyPluginAsyncZod<{ deps: FileDeps }> = async (app, { deps }) => {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/*',
    config: { role: 'viewer', credentials: 'anywhere', cameras: 'filtered', audit: 'playback' },
    schema: {
      operationId: 'getFile',
      summary: 'A file of the archive, finished or still being written',
      description:
        'filename is the one that segments and current report, including its slashes. While the file is written, a request with Range is redirected to the state of the file at that moment.',
      tags: ['playback'],
      params: z.object({ '*': z.string() }),
      querystring: FileQuery,
      response: {
        ...rangesOf('video/mp4'),
        307: z.null().describe('Redirect to a state of a growing file; in a cluster, to the node that has the file.'),
      },
    },
    handler: async (request, reply) => {
      const { query } = request;
      const path = request.params['*'];
      // Only segments in the directory of their day are served; other files below the record path are not footage.
      const segment = parsePath(path);
      const visible = segment && callerOf(request).sees(segment.cameraId);
      const file = visible && (await deps.files.open(segment));
      if (!file) {
        const sent = segment && (await sentElsewhere(request, reply, soughtFile(segment), deps));
        if (!sent) throw noRecording();
        return sent;
      }
      deps.reading.touch(path);
      try {
        const state = await stateOf(deps, file, query.size, request.headers);
        if (state.kind === 'pin') {
          const parameters = new URLSearchParams(request.url.split('?', 2)[1]);
          parameters.set('size', String(state.bytes));
          return await reply
            .header('cache-control', request.headers['icy-metadata'] === undefined ? 'no-store' : KEPT_SHORTLY)
            .redirect(`${request.url.split('?', 1)[0]}?${parameters.toString()}`, 307);
        }
        visit(request, reply, { camera: segment.cameraId, fromMs: segment.startMs });
        const disposition = query.download ? 'attachment' : 'inline';
        reply.header('content-disposition', `${disposition}; filename="${path.slice(path.lastIndexOf('/') + 1)}"`);
        await deps.responder.respond(request, reply, {
          representation: state.representation,
          file,
          contentType: 'video/mp4',
          cacheControl: state.settled ? UNCHANGING : 'private, no-cache',
        });
        return reply;
      } finally {
        deps.reading.touch(path);
        await file.close();
      }
    },
  });
};

/**
 * ffmpeg, which sends `Icy-MetaData`, asks the first address again for each range unless the redirect may be kept, and then mixes two states.
 * It reads `max-age` only where the value begins with it. Browsers stay with the state, and would show an old one after a reload.
 */
const KEPT_SHORTLY = 'max-age=60, private';

const soughtFile = ({ cameraId, startMs }: SegmentName): Sought => ({
  cameraId,
  fromMs: startMs,
  toMs: startMs,
});

type State =
  | { readonly kind: 'send'; readonly representation: Representation; readonly settled: boolean }
  /** A player that requests ranges is redirected to the current state, so that all its ranges belong to the same state. */
  | { readonly kind: 'pin'; readonly bytes: number };

type Headers = ConditionalHeaders & { readonly range?: string | undefined };

async function stateOf(
  { archive, recordings }: FileDeps,
  file: ArchiveFile,
  askedBytes: number | undefined,
  headers: Headers,
): Promise<State> {
  const writtenBytes = await growingBytes(archive, recordings, file);
  if (writtenBytes === undefined) {
    // The file was closed while a client was reading an earlier state.
    const ifRange = headers['if-range'];
    const bytes = askedBytes ?? (ifRange === undefined ? undefined : Recordings.bytesOfTag(ifRange));
    const state = bytes === undefined ? undefined : await earlierState(recordings, file, bytes);
    return { kind: 'send', representation: state ?? recordings.whole(file), settled: true };
  }
  const current = await recordings.stateAt(file, writtenBytes);
  if (!current) throw new ApiError(404, 'nothing-recorded', 'nothing is recorded in this file yet');
  if (askedBytes !== undefined) {
    const representation = await recordings.stateAt(file, askedBytes);
    if (!representation)
      throw new ApiError(404, 'nothing-recorded', 'size: the file had no whole picture at that size');
    return { kind: 'send', representation, settled: true };
  }
  const ifRange = headers['if-range'];
  const tagged = ifRange === undefined ? undefined : Recordings.bytesOfTag(ifRange);
  const earlier = tagged === undefined ? undefined : await recordings.stateAt(file, tagged);
  if (earlier && earlier.etag === ifRange) return { kind: 'send', representation: earlier, settled: false };
  if (headers.range !== undefined) return { kind: 'pin', bytes: writtenBytes };
  return { kind: 'send', representation: current, settled: false };
}

async function earlierState(
  recordings: Recordings,
  file: ArchiveFile,
  bytes: number,
): Promise<Representation | undefined> {
  const layout = await recordings.layoutOf(file);
  if (layout.kind !== 'finalized' || !layout.firstMoov) return undefined;
  return recordings.stateAt(file, Math.min(bytes, layout.moov.offset));
}

/** The bytes of whole fragments in a file that may still grow; undefined when it is closed. */
async function growingBytes(
  archive: OwnArchive,
  recordings: Recordings,
  file: ArchiveFile,
): Promise<number | undefined> {
  const entries = await archive.openEntries(file.segment.cameraId);
  const open = entries.find((entry) => entry.path === file.path);
  if (open?.format === 'mp4') {
    throw new ApiError(404, 'not-written-out', 'record.format is mp4: this file can be played once it is closed');
  }
  if (open) return open.sizeBytes;
  const layout = await recordings.layoutOf(file);
  if (layout.kind === 'cut') throw new ApiError(404, 'nothing-recorded', 'nothing is recorded in this file yet');
  // An open file that is not being written: the disk failed, and recovery completes the file later.
  return layout.kind === 'open' ? file.sizeBytes : undefined;
}

const noRecording = (): ApiError => new ApiError(404, 'no-recording', 'there is no such recording');
