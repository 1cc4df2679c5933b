// `/api/archive/{camera_id}/segments` and `/current`: the segments on the disk, and the one that is being written.

import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import { holdersOf } from '../../footage/open.ts';
import { askerOf, visibleCamera } from '../../http/access.ts';
import { asFormed } from '../../http/answers.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { EpochNumber, flag } from '../../http/query.ts';
import { IntervalQuery, intervalOf, readable, toQuery } from '../interval.ts';
import { cursorOf, Next, PageQuery, pageOf, pageQuery, placeOf } from '../pages.ts';
import { ElsewhereItem, toElsewhere } from '../../footage/elsewhere-item.ts';
import { SegmentItem, toSegment } from '../../footage/segment-item.ts';
import { collectSegments } from '../collected-segments.ts';
import { isoTime, isoTimes, timeOrNull } from '../times.ts';
import { FILENAME, FROM, START } from '../examples.ts';

const OtherArchive = z
  .object({
    node_id: z.string(),
    url: z.string().nullable().describe('URL of the list of its own footage of the camera on that node.'),
    oldest: z.iso.datetime({ offset: true }).nullable(),
    newest: z.iso.datetime({ offset: true }).nullable(),
  })
  .meta({ id: 'OtherArchive', description: 'Another node that holds footage of the camera.' });

const Segments = z
  .object({
    archive: z.array(SegmentItem),
    next: Next,
    days: z.array(z.iso.date()).describe('All days with segments, whatever the interval.'),
    archives: z
      .array(OtherArchive)
      .optional()
      .describe(
        'In a cluster: other nodes that hold footage of the camera. Footage stays on the node that recorded it.',
      ),
    elsewhere: z
      .array(ElsewhereItem)
      .optional()
      .describe(
        'In a cluster, and with copies: what may be missing in the list, because its node or target does not answer.',
      ),
  })
  .meta({ id: 'SegmentList', description: 'Segments of a camera in an interval, and all days with segments.' });

const Current = z
  .object({
    camera_id: z.string(),
    filename: z.string(),
    start: z.iso.datetime({ offset: true }),
    start_ms: z.number().int().describe('The same in milliseconds since 1970.'),
    size: z.number().int().describe('Bytes written at the time of the request.'),
  })
  .meta({ id: 'CurrentRecording', description: 'The recording in progress.' });

/** Includes the interval: the current day may have ended when the next page is requested. */
const SegmentPlace = z.tuple([z.literal('segments'), EpochNumber, EpochNumber, z.number(), z.string()]);

const CameraParams = z.object({ camera_id: z.string() });

export const archiveRoutes: ApiRoutes = async (app, { deps }) => {
  const { archive, segments, clock, cluster } = deps;
  const archivesOf = (cameraId: string): z.output<typeof Segments>['archives'] =>
    cluster?.holdersOf(cameraId).map(({ nodeId, url, oldestMs, newestMs }) => ({
      node_id: nodeId,
      url: url === undefined ? null : `${url}/api/archive/${encodeURIComponent(cameraId)}/segments?local=1`,
      oldest: timeOrNull(oldestMs),
      newest: timeOrNull(newestMs),
    }));

  app.get(
    '/api/archive/:camera_id/segments',
    {
      config: {
        role: 'viewer',
        cameras: 'filtered',
        follows: { param: 'camera_id' },
        isAnsweredByAll: true,
        examples: {
          200: {
            archive: [
              {
                timestamp: START,
                start_ms: Date.parse(START),
                end: new Date(Date.parse(START) + 299_960).toISOString().replace('Z', '+00:00'),
                end_ms: Date.parse(START) + 299_960,
                duration_seconds: 299.96,
                duration_ms: 299_960,
                sequence: 41,
                filename: FILENAME,
                size: 149_812_340,
                mtime: FROM + 300,
                is_open: false,
              },
            ],
            days: ['2026-11-20', '2026-11-21'],
          },
        },
      },
      serializerCompiler: asFormed,
      schema: {
        operationId: 'listSegments',
        summary: 'Segments of a camera in an interval, and all days with segments',
        description:
          'Without from and to: the current day. With only one of them: the day that starts or ends at that time. For a camera that the node does not know, the list is empty.',
        tags: ['archive'],
        params: CameraParams,
        querystring: IntervalQuery.extend(PageQuery.shape).extend({
          local: flag().optional().describe('In a cluster: only the footage on this node.'),
        }),
        response: {
          200: Segments,
          400: problemResponse(
            'from or to is not a number, from is later than to, or the interval is longer than 25 hours.',
          ),
          500: problemResponse('The archive on the disk cannot be read.'),
          503: problemResponse('The database that indexes the archive cannot be read, or is catching up.'),
        },
      },
    },
    async (request) => {
      const cameraId = visibleCamera(request, request.params.camera_id);
      const { query } = request;
      const seen = placeOf(query.cursor, SegmentPlace);
      const interval = intervalOf(query, seen && { from: seen[1], to: seen[2] }, clock.wallMs());
      const list = await readable(segments.list(cameraId, toQuery(interval)));
      const { from, to } = interval;
      const iso = isoTimes();
      const own = { archive: list.segments.map((segment) => toSegment(segment, iso)), days: list.days };
      // Out of scope: no node is asked about it.
      const holders = query.local === true || cameraId === '' ? [] : await holdersOf(deps, cameraId);
      const zone = interval.tzOffsetMinutes === undefined ? '' : `&tz_offset_minutes=${interval.tzOffsetMinutes}`;
      const asked = `from=${from}&to=${to}${zone}${pageQuery(query)}`;
      const past = { fromMs: from * 1000, toMs: Math.min(to * 1000, clock.wallMs()) };
      const whole = await collectSegments(holders, own, cameraId, asked, past, askerOf(request));
      const place = ({ start_ms, filename }: z.output<typeof SegmentItem>) =>
        ['segments', from, to, start_ms, filename] as const;
      const page = pageOf(whole.archive, query, seen, place);
      const last = page.entries.at(-1);
      const following = page.next ?? (whole.hasMore && last ? cursorOf(place(last)) : null);
      await cluster?.lookAtNodes();
      const archives = archivesOf(cameraId);
      const next = page.next === undefined ? {} : { next: following };
      const { elsewhere } = whole;
      return {
        archive: [...page.entries],
        ...next,
        days: [...whole.days],
        ...(archives && { archives }),
        ...((archives || elsewhere.length > 0) && { elsewhere: elsewhere.map(toElsewhere) }),
      } satisfies z.output<typeof Segments>;
    },
  );

  app.get(
    '/api/archive/:camera_id/current',
    {
      config: {
        role: 'viewer',
        cameras: 'filtered',
        follows: { param: 'camera_id' },
        examples: {
          200: {
            camera_id: 'gate',
            filename: FILENAME,
            start: START,
            start_ms: Date.parse(START),
            size: 71_303_168,
          },
        },
      },
      schema: {
        operationId: 'getCurrentRecording',
        summary: 'The recording in progress',
        tags: ['archive'],
        params: CameraParams,
        response: {
          200: Current,
          404: problemResponse('Nothing is being recorded, the camera is not connected, or its record.format is mp4.'),
        },
      },
    },
    async (request) => {
      const { camera_id } = request.params;
      const current = await readable(archive.current(visibleCamera(request, camera_id)));
      if (!current) {
        throw new ApiError(404, 'nothing-recorded', 'this camera has no recording in progress that could be reported');
      }
      return {
        camera_id,
        filename: current.path,
        start: isoTime(current.startMs),
        start_ms: Math.floor(current.startMs),
        size: current.sizeBytes,
      };
    },
  );
};
