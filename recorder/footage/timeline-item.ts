// A camera in the answer of `/api/archive/timeline`, which nodes also send to each other.

import { z } from 'zod';
import { GAP_CAUSES, type GapCause } from '../contract/gap-cause.ts';
import { NOT_FILLED_REASONS } from '../contract/gap-fill.ts';
import { Happening } from '../happenings/happening.ts';
import { ElsewhereItem } from './elsewhere-item.ts';

const StretchFields = { start_ms: z.number().int(), end_ms: z.number().int() };

const timeline = (Cause: z.ZodType<GapCause>) =>
  z.object({
    from_ms: z.number().int(),
    to_ms: z.number().int(),
    server_time_ms: z.number().int(),
    more_events: z
      .boolean()
      .optional()
      .describe('With events=1: whether the interval has older events than those in the answer.'),
    cameras: z.array(
      z.object({
        camera_id: z.string(),
        kept_from_ms: z.number().int().nullable().describe('Start of the oldest footage; null without any.'),
        known_until_ms: z.number().int().describe('Later time is still being written.'),
        resolution_ms: z.number().int().describe('The requested one, or a coarser one if there are too many spans.'),
        spans: z.array(z.object({ ...StretchFields, kind: z.enum(['footage']) })),
        gaps: z.array(
          z.object({
            ...StretchFields,
            cause: Cause,
            is_open: z.boolean(),
            count: z
              .int()
              .min(2)
              .optional()
              .describe(
                'Set if the entry is several gaps that are closer together than the resolution: how many they are.',
              ),
            missing_ms: z
              .int()
              .min(0)
              .optional()
              .describe(
                'With count: the sum of these gaps. Between them is footage. cause is that of the longest sum.',
              ),
            not_filled: z
              .object({
                reason: z.enum(NOT_FILLED_REASONS),
                means: z.string().describe('The reason in words.'),
                is_tried_again: z.boolean(),
                at_ms: z.number().int(),
              })
              .optional()
              .describe('Why it could not be filled from the memory of the camera.'),
            detail: z
              .string()
              .optional()
              .describe('Of a gap with the cause stopped: who stopped the camera, and the reason that was given.'),
          }),
        ),
        filled: z
          .array(
            z.object({
              ...StretchFields,
              cause: Cause,
              from: z.enum(['edge']),
              at_ms: z.number().int(),
              seam: z
                .enum(['bytes', 'time'])
                .optional()
                .describe('How the place of the filled footage was found. Missing in answers of older nodes.'),
            }),
          )
          .describe('Gaps within spans that were filled from the memory of the camera.'),
        preview: z
          .array(z.object(StretchFields))
          .optional()
          .describe('With preview=1: when its preview was recorded; with scope=cluster on any node that answers.'),
        events: z
          .array(Happening)
          .optional()
          .describe('With events=1: what other systems reported, newest first; at most 1000 for all cameras.'),
        bands: z
          .array(z.object({ ...StretchFields, kind: z.enum(['active', 'quiet', 'unclear']) }))
          .optional()
          .describe(
            'With activity=1: what the key frames show, which is not what the camera told. active: something changed; quiet: nothing did; unclear: that cannot be told. Other time was not looked at.',
          ),
        hidden_gaps: z
          .number()
          .int()
          .describe(
            '0: short gaps are entries with count. Nodes of older versions leave gaps out, and count them here.',
          ),
        written: z
          .array(z.object(StretchFields))
          .optional()
          .describe('With whole=1: when pictures were recorded, also those that retention removed since.'),
        protections: z.array(z.object({ id: z.string(), ...StretchFields, note: z.string().nullable() })),
        elsewhere: z
          .array(ElsewhereItem)
          .describe(
            'In a cluster: other nodes that may have footage of this time; with scope=cluster, the footage that they have and this node does not, and nodes that do not answer.',
          ),
      }),
    ),
  });

export const Timeline = timeline(z.enum(GAP_CAUSES)).meta({
  id: 'Timeline',
  description: 'When cameras have footage, and why there is none.',
});

/** As a node of any version tells it: a cause that this version does not know is unknown. */
export const ToldTimeline = timeline(z.enum(GAP_CAUSES).catch('unknown'));

export type TimelineCamera = z.output<typeof Timeline>['cameras'][number];
