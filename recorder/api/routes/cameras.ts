// `/api/cameras`: the cameras of the node, their state and its reason, and the codecs that a player needs to know.

import { z } from 'zod';
import { Reason } from '../../probe/report/reason.ts';
import type { AudioParameters, VideoParameters } from '../../codec/access-unit.ts';
import type { ApiDeps, ApiRoutes } from '../deps.ts';
import type { CameraView } from '../../model/camera-view.ts';
import { callerOf } from '../../http/access.ts';
import { asFormed } from '../../http/answers.ts';
import { unknownCamera } from '../../http/problem.ts';
import { Camera, type Audio, type Preview, type Recording, type Video } from '../camera-item.ts';
import { toPackets } from '../packet-counts.ts';
import { playbackAddress } from '../playback-address.ts';
import { isoTime, isoTimes, timeOrNull } from '../times.ts';
import { toReason } from '../todo.ts';
import { Warning, warningsFor } from '../warning.ts';
import { FILENAME, START, TIME } from '../examples.ts';

const Cameras = z
  .object({
    cameras: z.array(Camera),
    elsewhere: z
      .number()
      .int()
      .optional()
      .describe('In a cluster: the number of cameras that other nodes record; GET /cluster/cameras lists all.'),
    refused: z
      .array(z.object({ id: z.string(), reason: Reason }))
      .optional()
      .describe('With a database: cameras in it whose rows cannot be used, and why.'),
    warnings: z
      .array(Warning)
      .describe(
        'Problems that need attention, as in GET /health/ready; for example, that ffmpeg is missing and exports are not possible.',
      ),
  })
  .meta({ id: 'CameraList', description: 'The cameras of the node.' });

const tenths = (rate: number): number => Math.round(rate * 10) / 10;

function toVideo(video: VideoParameters): z.output<typeof Video> {
  return { codec: video.codec, codec_string: video.codecString, width: video.width, height: video.height };
}

function toAudio(audio: AudioParameters): z.output<typeof Audio> {
  const { codec, codecString, sampleRate, channels } = audio;
  return { codec, codec_string: codecString, sample_rate: sampleRate, channels };
}

function mimeOf(video: VideoParameters | undefined, audio: AudioParameters | undefined): string | null {
  const codecs = [video, audio].flatMap((track) => track?.codecString ?? []);
  return codecs.length === 0 ? null : `${video ? 'video' : 'audio'}/mp4; codecs="${codecs.join(', ')}"`;
}

const toRecording = (archive: CameraView['archive']): z.output<typeof Recording> => ({
  state: archive?.state ?? 'idle',
  reason: toReason(archive?.reason),
  last_written: timeOrNull(archive?.lastWrittenMs),
  filename: archive?.currentFile ?? null,
});

function toPreview(
  preview: NonNullable<CameraView['preview']>,
  archive: CameraView['previewArchive'],
): z.output<typeof Preview> {
  const { state, reason, video, audio, bitrate } = preview;
  return {
    state,
    reason: toReason(reason),
    codecs: { video: video ? toVideo(video) : null, audio: audio ? toAudio(audio) : null, mime: mimeOf(video, audio) },
    bitrate,
    viewers: preview.stats.viewers,
    recording: archive ? toRecording(archive) : null,
  };
}

function toCamera(
  { status, ptz = false, group, archive, live, preview, previewArchive, silence }: CameraView,
  deps: ApiDeps,
  playback: string | undefined,
  time: (ms: number) => string,
): z.output<typeof Camera> {
  const { video, audio, counters } = status;
  const wantedMs = deps.keeping?.wantedMs(status.id);
  return {
    id: status.id,
    name: status.name,
    group: group ?? null,
    state: status.state,
    state_since: time(status.stateSinceMs),
    reason: toReason(status.reason),
    node: { name: deps.nodeName, address: deps.address || null, playback: playback ?? null },
    transport: status.transport ?? null,
    codecs: {
      video: video ? toVideo(video) : null,
      video_remark: status.videoRemark ?? null,
      audio: audio ? toAudio(audio) : null,
      mime: mimeOf(video, audio),
      audio_dropped: status.audioDropped ?? null,
    },
    not_recorded: status.notRecorded.map(({ kind, codec, reason }) => ({ kind, codec: codec ?? null, reason })),
    not_believed: status.notBelieved.map(({ sinceMs, ...rest }) => ({ ...rest, since: isoTime(sinceMs) })),
    bitrate: Math.round(status.bitrate),
    frame_rate: tenths(status.frameRate),
    usual_frame_rate: status.usualFrameRate === undefined ? null : tenths(status.usualFrameRate),
    max_age_seconds: wantedMs === undefined ? null : Math.round(wantedMs / 1_000),
    last_frame: status.lastFrameMs === undefined ? null : time(status.lastFrameMs),
    frames: {
      video: counters.videoFrames,
      audio: counters.audioFrames,
      discarded: counters.framesDiscarded,
      lost_packets: counters.packetsLost,
    },
    packet_counts: {
      video: toPackets(counters.streams.video),
      audio: toPackets(counters.streams.audio),
      skipped_bytes: counters.bytesSkipped,
    },
    recording: toRecording(archive),
    silent: silence !== undefined,
    silent_since: timeOrNull(silence?.sinceMs),
    viewers: live?.viewers ?? 0,
    preview: preview ? toPreview(preview, previewArchive) : null,
    ptz,
  };
}

/** Examples for the OpenAPI document. */
const PACKETS = {
  received: 14_090,
  lost: 0,
  late: 0,
  not_rtp: 0,
  other_source: 0,
  other_payload_type: 0,
  sequence_restarts: 0,
  faults: [],
  last_fault: null,
};

const VIDEO_PACKETS = {
  ...PACKETS,
  received: 90_144,
  faults: [{ code: 'fragment-without-start', message: 'fragments without the first one', count: 2 }],
  last_fault: {
    code: 'fragment-without-start',
    time: TIME,
    ssrc: '0x1a2b3c4d',
    sequence_number: 4_711,
    rtsp_channel: 0,
    udp_port: null,
  },
};

const CAMERA = {
  id: 'gate',
  name: 'Gate',
  group: null,
  state: 'recording',
  state_since: START,
  reason: null,
  node: { name: 'rack-1', address: 'rack-1.example:9997', playback: 'http://rack-1.example:9996' },
  transport: 'tcp',
  ptz: false,
  codecs: {
    video: { codec: 'h264', codec_string: 'avc1.64001f', width: 1920, height: 1080 },
    video_remark: null,
    audio: { codec: 'aac', codec_string: 'mp4a.40.2', sample_rate: 48_000, channels: 1 },
    mime: 'video/mp4; codecs="avc1.64001f, mp4a.40.2"',
    audio_dropped: null,
  },
  not_recorded: [
    {
      kind: 'application',
      codec: 'VND.ONVIF.METADATA',
      reason: { code: 'no-media', message: 'only video and audio are recorded' },
    },
  ],
  not_believed: [{ witness: 'rtp-info', message: 'the sound does not arrive where RTP-Info places it', since: START }],
  bitrate: 4_012_345,
  frame_rate: 25,
  usual_frame_rate: 25,
  max_age_seconds: 2_592_000,
  last_frame: TIME,
  frames: { video: 7_512, audio: 14_090, discarded: 2, lost_packets: 0 },
  packet_counts: { video: VIDEO_PACKETS, audio: PACKETS, skipped_bytes: 0 },
  recording: { state: 'writing', reason: null, last_written: TIME, filename: FILENAME },
  silent: false,
  silent_since: null,
  viewers: 1,
  preview: {
    state: 'live',
    reason: null,
    codecs: {
      video: { codec: 'h264', codec_string: 'avc1.4d401e', width: 640, height: 360 },
      audio: null,
      mime: 'video/mp4; codecs="avc1.4d401e"',
    },
    bitrate: 251_004,
    viewers: 2,
    recording: null,
  },
};

export const cameraRoutes: ApiRoutes = async (app, { deps }) => {
  app.get(
    '/api/cameras',
    {
      config: {
        role: 'viewer',
        cameras: 'filtered',
        changesAlways: true,
        examples: { 200: { cameras: [CAMERA], warnings: [] } },
      },
      serializerCompiler: asFormed,
      schema: {
        operationId: 'listCameras',
        summary: 'All cameras of the node',
        tags: ['cameras'],
        response: { 200: Cameras },
      },
    },
    async (request) => {
      const playback = playbackAddress(request, deps.playback);
      const { sees } = callerOf(request);
      const seen = deps.cameras.list().filter(({ status }) => sees(status.id));
      const time = isoTimes();
      const cameras = seen.map((view) => toCamera(view, deps, playback, time));
      const refused = deps.refusedCameras?.().filter(({ id }) => sees(id));
      const warnings = warningsFor(callerOf(request), deps.warnings);
      const others = deps.cluster && [...deps.cluster.others().keys()];
      const elsewhere = others?.filter((id) => sees(id) && !deps.cameras.get(id)).length;
      return {
        cameras,
        ...(elsewhere === undefined ? {} : { elsewhere }),
        ...(refused ? { refused } : {}),
        warnings,
      };
    },
  );

  app.get(
    '/api/cameras/:id',
    {
      config: { role: 'viewer', cameras: { param: 'id' }, follows: { param: 'id' }, examples: { 200: CAMERA } },
      schema: {
        operationId: 'getCamera',
        summary: 'One camera',
        tags: ['cameras'],
        params: z.object({ id: z.string() }),
        response: {
          200: Camera,
        },
      },
    },
    async (request) => {
      const view = deps.cameras.get(request.params.id);
      if (!view) throw unknownCamera();
      return toCamera(view, deps, playbackAddress(request, deps.playback), isoTime);
    },
  );
};
