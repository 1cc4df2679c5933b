// A job as the API shows it: its schema, and the mapping to it.

import { z } from 'zod';
import { JOB_ERROR_CODES } from '../jobs/error.ts';
import {
  RESULT_KEPT_MS,
  camerasOf,
  isExpired,
  type CameraOutcome,
  type Job,
  type JobGap,
  type JobOutcome,
  type JobPart,
} from '../jobs/job.ts';
import { codecName } from '../jobs/movie-name.ts';
import type { Caller } from '../http/caller.ts';
import { FROM, JOB_ID } from './examples.ts';
import { ElsewhereItem, toElsewhere } from '../footage/elsewhere-item.ts';
import { epochSeconds, isoTime } from './times.ts';

export const Gap = z
  .object({
    start: z.iso.datetime({ offset: true }),
    end: z.iso.datetime({ offset: true }),
    cause: z.string().optional().describe('The cause as in the list of gaps, as far as it is known.'),
  })
  .meta({ id: 'JobGap', description: 'A part of a window without footage.' });

export const KnownUntil = z
  .number()
  .int()
  .optional()
  .describe(
    'For a window that was not over: the end of its known part. Later footage is neither in the movie nor listed as a gap.',
  );

const JobPartItem = z
  .object({
    part: z.number().int().describe('Number of the part, from 1.'),
    camera_id: z.string().optional().describe('Of a part of a case: its camera.'),
    name: z.string().describe('Name of the file in the ZIP file.'),
    codec: z.string().describe('h264, h265, av1, mjpeg, aac …'),
    from_ms: z.number().int().describe('Start of the time that the part covers, milliseconds since 1970.'),
    to_ms: z.number().int(),
    duration_seconds: z.number(),
    size_bytes: z.number().int(),
    sha256: z.string().optional().describe('SHA-256 of the movie, hex.'),
    offset: z
      .number()
      .int()
      .describe('Where the bytes of the part begin in the ZIP file, which stores them uncompressed.'),
    download_url: z.string(),
  })
  .meta({ id: 'JobPart', description: 'One of the movies of a result that has several.' });

const CaseCamera = z
  .object({
    camera_id: z.string(),
    duration_seconds: z
      .number()
      .optional()
      .describe('When the job is done: duration of the movies of this camera together.'),
    gaps: z.array(Gap).optional().describe('When the job is done.'),
    elsewhere: z
      .array(ElsewhereItem)
      .optional()
      .describe('When the job is done: footage of the window on other nodes.'),
    reason: z.string().optional().describe('When the job is done: why there is no movie of this camera.'),
    reason_code: z.enum(JOB_ERROR_CODES).optional(),
  })
  .meta({ id: 'CaseCamera', description: 'A camera of a case.' });

export const JobItem = z
  .object({
    job_id: z.string(),
    camera_id: z.string().describe('The camera; of a case, the first of its cameras.'),
    cameras: z.array(CaseCamera).optional().describe('Of a case: all its cameras.'),
    name: z.string().optional().describe('Of a case: its name, as it was given.'),
    number: z.string().optional().describe('Of a case: its number, as it was given.'),
    case_reason: z.string().optional().describe('Of a case: why it was made.'),
    notes: z.string().optional().describe('Of a case.'),
    is_kept: z.boolean().optional().describe('Of a case: whether its result is kept until somebody removes the job.'),
    by: z
      .string()
      .optional()
      .describe('Who asked for it. Operators and admins see it of every job, viewers of their own.'),
    from: z
      .number()
      .int()
      .optional()
      .describe(
        'The window in whole seconds since 1970: rounded down. Of an assembly: only once the other nodes have reported it.',
      ),
    to: z.number().int().optional().describe('End of the window, rounded up to whole seconds.'),
    from_ms: z.number().int().optional().describe('Start of the requested window, milliseconds since 1970.'),
    to_ms: z.number().int().optional(),
    created_at: z.number().int(),
    created_at_ms: z.number().int().describe('The same in milliseconds since 1970.'),
    completed_at: z.number().int().optional().describe('When the job was done or failed, seconds since 1970.'),
    expires_at: z
      .number()
      .int()
      .optional()
      .describe('Of a job that is done: until when its result can be downloaded, seconds since 1970.'),
    is_expired: z
      .boolean()
      .optional()
      .describe('Of a job that is done: whether its result can no longer be downloaded.'),
    kind: z.enum(['export', 'timelapse']),
    speed: z.number().int().optional(),
    state: z.enum(['pending', 'running', 'done', 'failed']),
    progress: z.number().int().describe('0 to 100.'),
    size_bytes: z.number().int().optional().describe('Of a job that is done: size of its result.'),
    duration_seconds: z.number().optional(),
    gaps: z.array(Gap).optional().describe('Parts of the window without footage; the movie skips them.'),
    elsewhere: z
      .array(ElsewhereItem)
      .optional()
      .describe('Of a job that is done: footage of the window on other nodes, which is not in the result.'),
    sha256: z
      .string()
      .optional()
      .describe('Of a job that is done, and whose result is one movie: SHA-256 of the file, hex.'),
    known_until_ms: KnownUntil,
    parts: z
      .array(JobPartItem)
      .optional()
      .describe('Of a case, and where the codec changed in the window: the movies in the ZIP file that is the result.'),
    manifest_url: z.string().optional().describe('Of a job that is done: where its manifest is.'),
    signature_url: z.string().optional(),
    reason: z.string().optional().describe('Of a job that failed: why.'),
    reason_code: z.enum(JOB_ERROR_CODES).optional().describe('The reason as a stable code for programs.'),
    retry: z
      .object({
        without_camera: z.string().optional().describe('Of a case: the camera whose footage made it fail.'),
        split_at_ms: z
          .number()
          .int()
          .optional()
          .describe('Of an export: it can be made in two parts, before and after this time, milliseconds since 1970.'),
      })
      .optional()
      .describe('Of a job that failed: how to request it again in a changed form that may succeed.'),
  })
  .meta({ id: 'Job', description: 'An export, time-lapse, case or assembly, and its progress.' });

export const toGap = ({ fromMs, toMs, cause }: JobGap): z.output<typeof Gap> => ({
  start: isoTime(fromMs),
  end: isoTime(toMs),
  ...(cause === undefined ? {} : { cause }),
});

const toPart = (id: string, part: JobPart, number: number): z.output<typeof JobPartItem> => ({
  part: number,
  ...(part.cameraId === undefined ? {} : { camera_id: part.cameraId }),
  name: part.name,
  codec: codecName(part.codec),
  from_ms: Math.round(part.fromMs),
  to_ms: Math.round(part.toMs),
  duration_seconds: Math.round(part.durationMs) / 1000,
  size_bytes: part.sizeBytes,
  ...(part.sha256 === undefined ? {} : { sha256: part.sha256 }),
  offset: part.offset,
  download_url: `/api/archive/jobs/${id}/download?part=${number}`,
});

/** Whole seconds around the window, and its milliseconds. */
export const toWindow = ({ fromMs, toMs }: Pick<Job, 'fromMs' | 'toMs'>) => ({
  from: Math.floor(fromMs / 1000),
  to: Math.ceil(toMs / 1000),
  from_ms: fromMs,
  to_ms: toMs,
});

type Viewer = Pick<Caller, 'name' | 'role'>;

export function toJobItem(job: Job, nowMs: number, viewer: Viewer): z.output<typeof JobItem> {
  const { outcome, by, case: of } = job;
  return {
    job_id: job.id,
    camera_id: job.cameraId,
    ...(job.case && { cameras: toCameras(job) }),
    ...(of && { name: of.name, number: of.number, case_reason: of.reason, notes: of.notes, is_kept: of.isKept }),
    ...((viewer.role !== 'viewer' || viewer.name === by) && { by }),
    ...(isWindowKnown(job) && toWindow(job)),
    created_at: epochSeconds(job.createdAtMs),
    created_at_ms: Math.round(job.createdAtMs),
    ...(job.completedAtMs === undefined ? {} : { completed_at: epochSeconds(job.completedAtMs) }),
    ...(job.state === 'done' && {
      ...(!of?.isKept && { expires_at: epochSeconds((job.completedAtMs ?? 0) + RESULT_KEPT_MS) }),
      is_expired: isExpired(job, nowMs),
    }),
    kind: job.kind,
    ...(job.speed === undefined ? {} : { speed: job.speed }),
    state: job.state,
    progress: Math.round(job.progress * 100),
    ...(outcome && {
      size_bytes: outcome.sizeBytes,
      duration_seconds: Math.round(outcome.durationMs) / 1000,
      ...(job.case ? {} : { gaps: outcome.gaps.map(toGap) }),
      ...(job.case ? {} : { elsewhere: (outcome.elsewhere ?? []).map(toElsewhere) }),
      ...(outcome.sha256 === undefined ? {} : { sha256: outcome.sha256 }),
      ...toKnownUntil(outcome),
      ...(outcome.parts && { parts: outcome.parts.map((part, i) => toPart(job.id, part, i + 1)) }),
      manifest_url: `/api/archive/jobs/${job.id}/manifest`,
      signature_url: `/api/archive/jobs/${job.id}/signature`,
    }),
    ...(job.reason === undefined ? {} : { reason: job.reason, reason_code: job.reasonCode, ...toRetry(job) }),
  };
}

function toRetry({ retry, case: cameras }: Job): Pick<z.output<typeof JobItem>, 'retry'> {
  if (!retry) return {};
  if ('splitAtMs' in retry) return { retry: { split_at_ms: retry.splitAtMs } };
  // Nothing is left of a case without its only camera.
  return (cameras?.cameras.length ?? 0) > 1 ? { retry: { without_camera: retry.withoutCamera } } : {};
}

export const toKnownUntil = ({ untilMs }: JobOutcome): { known_until_ms?: number } =>
  untilMs === undefined ? {} : { known_until_ms: untilMs };

function toCameras({ outcome, ...job }: Job): z.output<typeof CaseCamera>[] {
  if (!outcome?.cameras) return camerasOf(job).map((camera_id) => ({ camera_id }));
  return outcome.cameras.map(({ cameraId, durationMs, gaps, elsewhere = [], reason, reasonCode }: CameraOutcome) => ({
    camera_id: cameraId,
    duration_seconds: Math.round(durationMs) / 1000,
    gaps: gaps.map(toGap),
    elsewhere: elsewhere.map(toElsewhere),
    ...(reason === undefined ? {} : { reason, reason_code: reasonCode }),
  }));
}

/** The window of an assembly is known when the windows of its parts are. */
const isWindowKnown = ({ fromMs, toMs }: Job): boolean => fromMs < toMs;

/** The window of the examples for the OpenAPI document. */
export const WINDOW = {
  camera_id: 'gate',
  from: FROM,
  to: FROM + 600,
  from_ms: FROM * 1000,
  to_ms: (FROM + 600) * 1000,
};

/** An example for the OpenAPI document. */
export const JOB = {
  job_id: JOB_ID,
  ...WINDOW,
  created_at: FROM + 900,
  created_at_ms: (FROM + 900) * 1000,
  completed_at: FROM + 903,
  expires_at: FROM + 903 + 3_600,
  is_expired: false,
  kind: 'export',
  state: 'done',
  progress: 100,
  size_bytes: 297_411_002,
  duration_seconds: 588.4,
  gaps: [{ start: '2026-11-21T09:28:00.000+00:00', end: '2026-11-21T09:28:11.600+00:00' }],
  elsewhere: [],
  sha256: '0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0',
  manifest_url: `/api/archive/jobs/${JOB_ID}/manifest`,
  signature_url: `/api/archive/jobs/${JOB_ID}/signature`,
};
