// What was seen of an examined camera, as the API answers it.

import { z } from 'zod';
import { NotBelieved } from './not-believed.ts';
import { Reason } from './reason.ts';

const Count = z.number().int();

const StreamReport = z
  .object({
    kind: z.string().describe('video or audio.'),
    encoding: z.string().describe('As announced in the SDP.'),
    clock_rate: Count.describe('Ticks of the RTP stamps a second, as announced.'),
    payload_types: z.array(z.object({ payload_type: Count, packets: Count })).describe('What came.'),
    announced_payload_type: Count,
    packets: Count,
    bits_per_second: Count.optional(),
    frames: Count.describe('Pictures or frames of sound that were made of the packets.'),
    frame_rate: z.number().optional().describe('Frames a second of arrival.'),
    stamp_rate: z.number().optional().describe('Distinct RTP stamps a second of arrival.'),
    key_frame_seconds: z.object({ usual: z.number(), longest: z.number() }).optional(),
    b_frames: z.boolean(),
    clock_ratio: z.number().optional().describe("The camera's clock by the recorder's: 1.001 runs 0.1 % fast."),
    delay_ms: z
      .object({ median: z.number(), p95: z.number(), worst: z.number() })
      .optional()
      .describe('Beyond the least delayed frame.'),
    bunched: z.number().describe('Share of the frames that arrived within 2 ms of the one before.'),
    marker: z
      .enum(['last-packet', 'every-packet', 'never', 'irregular', 'unknown'])
      .describe('Where the marker bit is.'),
    sources: Count.describe('SSRCs.'),
    source_changes: Count,
    lost: Count,
    duplicates: Count,
    reordered: Count,
    sequence_restarts: Count,
    malformed: Count,
    stamp_jumps: Count.describe('Stamps more than 5 s away from the arrival.'),
    sender_reports: Count,
    first_report_after_ms: Count.optional(),
    clock_offset_ms: Count.optional().describe("The camera's clock less the recorder's."),
    byes: Count,
  })
  .meta({ id: 'ProbedStream', description: 'A stream of an examined camera.' });

export const ProbeReport = z
  .object({
    seconds: z.number(),
    state: z.enum(['connecting', 'recording', 'retrying', 'stopped']),
    reason: Reason.optional(),
    transport: z.string().optional(),
    server: z.string().optional().describe("The camera's name for itself."),
    login: z.array(z.string()).describe('Ways to log in that it offers, as `Digest MD5`.'),
    methods: z.array(z.string()),
    session_timeout: z.string().optional(),
    answers: z.array(z.object({ method: z.string(), status: Count, ms: Count })),
    unanswered: z.array(z.string()).describe('Requests without an answer.'),
    streams: z.array(StreamReport),
    not_recorded: z.array(z.object({ kind: z.string(), encoding: z.string(), payload_type: Count })),
    not_believed: z.array(NotBelieved),
    recorded: z.object({
      video: z.object({ codec: z.string(), width: Count, height: Count }).optional(),
      audio: z.object({ codec: z.string(), sample_rate: Count, channels: Count }).optional(),
      audio_dropped: Reason.optional(),
    }),
    runs_ended: z.array(z.string()).describe('Why runs ended meanwhile.'),
    rows: z
      .array(z.object({ row: Count, seen: z.string() }))
      .describe('Rows of the table in docs/cameras.md that the camera does, and what was seen of them.'),
  })
  .meta({ id: 'ProbeReport', description: 'What was seen of a camera.' });

export type ProbeReport = z.output<typeof ProbeReport>;
