// A segment as answers show it.

import { z } from 'zod';
import type { Segment as ArchiveSegment } from '../archive/catalogue/segment.ts';

export const SegmentItem = z
  .object({
    timestamp: z.iso.datetime({ offset: true }).describe('Start.'),
    start_ms: z.number().int().describe('The same in milliseconds since 1970.'),
    end: z.iso
      .datetime({ offset: true })
      .nullable()
      .describe('null while the segment is written, or where the file does not say.'),
    end_ms: z.number().int().nullable(),
    duration_seconds: z.number().nullable().describe('From start to end.'),
    duration_ms: z.number().int().nullable().describe('The same in milliseconds: end_ms - start_ms.'),
    sequence: z.number().int(),
    filename: z.string().describe('Relative to the record path.'),
    size: z.number().int().describe('Bytes; final when is_open is false.'),
    mtime: z.number().int().describe('Seconds since 1970.'),
    is_open: z
      .boolean()
      .describe('The segment is being written, or it was the last one and the next has no pictures yet.'),
    origin: z
      .enum(['edge', 'mixed'])
      .optional()
      .describe(
        'Set if pictures were fetched from the memory of the camera, after a gap: all of them (edge), or the last ones (mixed).',
      ),
    node_id: z
      .string()
      .optional()
      .describe(
        'In a cluster: the node whose disk holds the segment, where that is another node. target:NAME: only this target has it.',
      ),
    copies: z
      .array(z.string())
      .optional()
      .describe('Names of the targets in object storage that have a copy, with a digest that they have confirmed.'),
  })
  .meta({ id: 'Segment', description: 'A file of the archive.' });

export const toSegment = (segment: ArchiveSegment, iso: (ms: number) => string): z.output<typeof SegmentItem> => ({
  timestamp: iso(segment.startMs),
  start_ms: Math.floor(segment.startMs),
  ...endOf(segment, iso),
  sequence: segment.sequence,
  filename: segment.path,
  size: segment.sizeBytes,
  mtime: Math.floor(segment.mtimeMs / 1000),
  is_open: segment.isOpen,
  ...(segment.origin && { origin: segment.origin }),
  ...(segment.nodeId !== undefined && { node_id: segment.nodeId }),
});

function endOf({ startMs, endMs }: ArchiveSegment, iso: (ms: number) => string) {
  if (endMs === undefined) return { end: null, end_ms: null, duration_seconds: null, duration_ms: null };
  // Whole milliseconds, as in the database.
  const wholeMs = Math.round(endMs);
  const duration_ms = wholeMs - Math.floor(startMs);
  return { end: iso(wholeMs), end_ms: wholeMs, duration_seconds: duration_ms / 1000, duration_ms };
}
