// `/api/cameras/{id}/probe` and `/capture`: examine a camera that is being recorded, or capture its connection for a
// problem report. `/api/cameras/test`: examines a camera that is not configured yet.

import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import { CameraFile } from '../../config/schema.ts';
import { hostOf } from '../../config/values.ts';
import { tell } from '../../http/audit.ts';
import { Bytes } from '../../http/openapi.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { queryNumber } from '../../http/query.ts';
import { DoctorBusy } from '../../probe/report/examiner.ts';
import { ProbeReport } from '../../probe/report/report.ts';
import { toReason } from '../todo.ts';
import { edited } from './camera-settings.ts';

const Params = z.object({ id: z.string().meta({ examples: ['gate'] }) });
const SECONDS = 'expected a number of seconds from 1 to 120';
const Query = z.object({
  seconds: queryNumber(z.number(SECONDS).min(1, SECONDS).max(120, SECONDS))
    .default(30)
    .describe('How long to watch, 30 by default; the answer comes at the end of that time.'),
});

const MAX_TEST = 'expected a number of seconds from 1 to 30';
const Tested = CameraFile.pick({ source: true, transport: true, tls: true, allowPlaintextLogin: true }).extend({
  id: z
    .string()
    .optional()
    .describe(
      'A camera of this node whose stored password is used if the address has none, and host and port are its own.',
    ),
  seconds: z
    .number(MAX_TEST)
    .min(1, MAX_TEST)
    .max(30, MAX_TEST)
    .default(10)
    .describe('How long to watch; the watch ends earlier if the connection fails.'),
});

const refusals = {
  400: problemResponse('The parameter is not valid.'),
  403: problemResponse('This needs the role admin.'),
  409: problemResponse('The camera is stopped, or another one is being examined.'),
};

/** Examples for the OpenAPI document. */
const PROBE = {
  seconds: 30,
  state: 'recording',
  transport: 'tcp',
  server: 'Rtsp Server/3.0',
  login: ['Digest MD5'],
  methods: ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY', 'TEARDOWN', 'GET_PARAMETER'],
  session_timeout: '60',
  answers: [
    { method: 'DESCRIBE', status: 200, ms: 12 },
    { method: 'SETUP', status: 200, ms: 4 },
    { method: 'PLAY', status: 200, ms: 9 },
  ],
  unanswered: [],
  streams: [
    {
      kind: 'video',
      encoding: 'H264',
      clock_rate: 90_000,
      payload_types: [{ payload_type: 96, packets: 9_312 }],
      announced_payload_type: 96,
      packets: 9_312,
      bits_per_second: 4_012_345,
      frames: 752,
      frame_rate: 25.01,
      stamp_rate: 25.01,
      key_frame_seconds: { usual: 2, longest: 2 },
      b_frames: false,
      clock_ratio: 1.00002,
      delay_ms: { median: 3.1, p95: 11.4, worst: 64.2 },
      bunched: 0.011,
      marker: 'last-packet',
      sources: 1,
      source_changes: 0,
      lost: 0,
      duplicates: 0,
      reordered: 0,
      sequence_restarts: 0,
      malformed: 0,
      stamp_jumps: 0,
      sender_reports: 6,
      first_report_after_ms: 14,
      clock_offset_ms: 312,
      byes: 0,
    },
  ],
  not_recorded: [{ kind: 'application', encoding: 'VND.ONVIF.METADATA', payload_type: 107 }],
  not_believed: [],
  recorded: { video: { codec: 'avc1.64001f', width: 1920, height: 1080 } },
  runs_ended: [],
  rows: [{ row: 37, seen: 'metadata' }],
};

export const probeRoutes: ApiRoutes = async (app, { deps: { cameras, doctor, cameraEditor } }) => {
  async function unlessBusy<T>(examination: Promise<T>): Promise<T> {
    try {
      return await examination;
    } catch (err) {
      if (err instanceof DoctorBusy) throw new ApiError(409, 'doctor-busy', err.message);
      throw err;
    }
  }

  /** Runs until it is done or the caller disconnects. */
  async function examined<T>(id: string, gone: AbortSignal, examine: (signal: AbortSignal) => Promise<T | undefined>) {
    if (!cameras.get(id)) throw unknownCamera();
    const seen = await unlessBusy(examine(gone));
    if (seen !== undefined) return seen;
    throw new ApiError(409, 'camera-stopped', `camera ${id} is stopped: there is no connection to examine`);
  }

  app.get(
    '/api/cameras/:id/probe',
    {
      config: {
        role: 'admin',
        cameras: { param: 'id' },
        follows: { param: 'id' },
        audit: 'probe',
        examples: { 200: PROBE },
      },
      schema: {
        operationId: 'probeCamera',
        summary: 'Examine a camera that is being recorded',
        description:
          'Watches the connection that records the camera; nothing is sent to the camera, and the recording continues.',
        tags: ['cameras'],
        params: Params,
        querystring: Query,
        response: { 200: ProbeReport.describe('What was seen.'), ...refusals },
      },
    },
    async ({ params, query }, reply) => {
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      return examined(params.id, gone.signal, (signal) => doctor.report(params.id, query.seconds, signal));
    },
  );

  app.post(
    '/api/cameras/test',
    {
      config: {
        role: 'admin',
        audit: 'test-camera',
        examples: { body: { source: 'rtsp://admin:secret@10.0.0.9/stream1' }, 200: PROBE },
      },
      schema: {
        operationId: 'testCamera',
        summary: 'Test the address of a camera before it is saved',
        description:
          'Connects as the recorder would, where cameraNetworks allows it, and records nothing. One test runs at a time. A camera that cannot be reached or refuses is not an error of the request: `state` and `reason` report it.',
        tags: ['cameras'],
        body: Tested,
        response: {
          200: ProbeReport.describe('What was seen.'),
          403: refusals[403],
          409: problemResponse('Another camera is being examined.'),
        },
      },
    },
    async (request, reply) => {
      const { seconds, id, ...camera } = request.body;
      tell(request, { host: hostOf(camera.source), ...(id !== undefined && cameras.get(id) && { camera: id }) });
      if (id !== undefined) {
        if (!cameraEditor) throw unknownCamera();
        camera.source = await edited(cameraEditor.complete(id, camera.source));
      }
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const report = await unlessBusy(doctor.tryOut(camera, seconds, gone.signal));
      return { ...report, reason: toReason(report.reason) ?? undefined };
    },
  );

  app.get(
    '/api/cameras/:id/capture',
    {
      config: { role: 'admin', cameras: { param: 'id' }, follows: { param: 'id' }, audit: 'capture' },
      schema: {
        operationId: 'captureCamera',
        summary: 'A capture of a camera, for a report of a problem',
        description:
          'The messages and packets of the connection that records the camera, without its address, login, pictures and sound. `hack/camera --replay FILE` replays the camera.',
        tags: ['cameras'],
        params: Params,
        querystring: Query,
        response: {
          200: {
            description: 'The capture: lines of JSON, compressed with gzip.',
            content: { 'application/gzip': { schema: Bytes } },
          },
          ...refusals,
        },
      },
    },
    async ({ params, query }, reply) => {
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const file = await examined(params.id, gone.signal, (signal) => doctor.capture(params.id, query.seconds, signal));
      // Sends the bytes unchanged: the serializer of the schema would turn them into text.
      return reply
        .serializer((payload: unknown) => payload as string)
        .header('content-disposition', 'attachment; filename="camera-capture.jsonl.gz"')
        .type('application/gzip')
        .send(file);
    },
  );
};
