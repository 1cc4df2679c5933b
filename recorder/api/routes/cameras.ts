// `/api/cameras`: the cameras of the node, their state and its reason, and the codecs that a player needs to know.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { Reason } from '../../probe/reason.ts';
import type { AudioParameters, VideoParameters } from '../../codec/access-unit.ts';
import type { ApiDeps } from '../deps.ts';
import type { CameraView } from '../../model/camera-view.ts';
import { callerOf } from '../../http/access.ts';
import { asFormed } from '../../http/answers.ts';
import { problemResponse, unknownCamera } from '../../http/problem.ts';
import { PacketCounts, toPackets } from '../packet-counts.ts';
import { playbackAddress } from '../playback-address.ts';
import { isoTime } from '../times.ts';
import { toReason } from '../todo.ts';
import { Warning, warningsFor } from '../warning.ts';
import { FILENAME, START, TIME } from '../examples.ts';

const Video = z
  .object({
    codec: z.enum(['h264', 'h265', 'av1', 'mjpeg']),
    codec_string: z.string().describe('RFC 6381, for Media Source Extensions.'),
    width: z.number().int(),
    height: z.number().int(),
  })
  .meta({ id: 'Video', description: 'Video as it is stored.' });

const Audio = z
  .object({
    codec: z
      .enum(['aac', 'opus', 'flac', 'mp2', 'mp3'])
      .describe('As stored: G.711, L16, G.722 and G.726 are carried as FLAC.'),
    codec_string: z.string().describe('RFC 6381, for Media Source Extensions.'),
    sample_rate: z.number().int(),
    channels: z.number().int(),
  })
  .meta({ id: 'Audio', description: 'Sound as it is stored.' });

const mime = () =>
  z.string().nullable().describe('Media type of the live stream, for MediaSource.isTypeSupported and addSourceBuffer.');

const Recording = z.object({
  state: z.enum(['idle', 'writing', 'failed']),
  reason: Reason.nullable().describe('Why the video of the camera is not written.'),
  last_written: z.iso.datetime({ offset: true }).nullable().describe('Capture time of the last picture written.'),
  filename: z.string().nullable().describe('The file being written, relative to the record path.'),
});

const Preview = z
  .object({
    state: z
      .enum(['idle', 'connecting', 'live', 'failed'])
      .describe(
        'idle: nobody watches it. connecting: no video yet. live: video arrives. failed: the camera did not deliver it, and the recorder tries again after a pause.',
      ),
    reason: Reason.nullable().describe('Why it failed.'),
    codecs: z
      .object({ video: Video.nullable(), audio: Audio.nullable(), mime: mime() })
      .describe('The codecs of the present connection, or of the last one; null before the first.'),
    bitrate: z.number().int().describe('Bits per second over the last ten seconds.'),
    viewers: z.number().int(),
    recording: Recording.nullable().describe(
      'null: it is not recorded (its setting recorded). Its footage has the id {id}~preview in addresses of the archive and of playback.',
    ),
  })
  .meta({
    id: 'Preview',
    description: 'The second, smaller stream of a camera, connected while somebody watches it or it is recorded.',
  });

const Camera = z
  .object({
    id: z.string(),
    name: z.string(),
    group: z.string().nullable().describe('The group in which the console lists it (its setting group).'),
    state: z
      .enum(['connecting', 'recording', 'retrying', 'stopped'])
      .describe(
        'connecting: no video yet. recording: video arrives. retrying: waits after a failure. stopped: should not be recorded.',
      ),
    state_since: z.iso.datetime({ offset: true }),
    reason: Reason.nullable().describe('Why the camera is not recorded, or what ended the last connection.'),
    node: z.object({
      name: z.string(),
      address: z.string().nullable().describe('Address at which others reach the node, where it is configured.'),
      playback: z.string().nullable().describe('Where the node serves playback: http://host:port.'),
    }),
    transport: z.enum(['tcp', 'udp', 'multicast']).nullable(),
    codecs: z.object({
      video: Video.nullable(),
      video_remark: Reason.nullable().describe(
        'A property of the recorded video that causes problems in some players: open-gop (Chromium may stop) or gradual-refresh.',
      ),
      audio: Audio.nullable(),
      mime: mime(),
      audio_dropped: Reason.nullable().describe('Why the sound that the camera offers is not recorded.'),
    }),
    not_recorded: z
      .array(z.object({ kind: z.string(), codec: z.string().nullable(), reason: Reason }))
      .describe('What else the camera offered at the last connection: other streams, metadata, the audio backchannel.'),
    bitrate: z.number().int().describe('Bits per second over the last ten seconds.'),
    frame_rate: z.number().describe('Pictures per second over the last ten seconds.'),
    usual_frame_rate: z
      .number()
      .nullable()
      .describe('Its median over the last hour; null in the first minute of pictures.'),
    max_age_seconds: z
      .number()
      .nullable()
      .describe(
        'How long its footage should be kept, by maxAge of the camera and of the node; null: as long as there is space.',
      ),
    last_frame: z.iso.datetime({ offset: true }).nullable().describe('When the last video frame arrived.'),
    frames: z.object({
      video: z.number().int(),
      audio: z.number().int(),
      discarded: z.number().int().describe('Frames that were discarded because a part was missing.'),
      lost_packets: z.number().int(),
    }),
    packet_counts: z
      .object({
        video: PacketCounts,
        audio: PacketCounts,
        skipped_bytes: z
          .number()
          .int()
          .describe('Bytes of the RTSP connection that belonged to no message and, over TCP, to no packet.'),
      })
      .describe(
        'Packets since the recorder started to record this camera; a new connection does not reset the counts.',
      ),
    recording: Recording,
    silent: z
      .boolean()
      .describe('The camera should be recorded, but no video was written for 15 seconds, whatever else it sends.'),
    silent_since: z.iso
      .datetime({ offset: true })
      .nullable()
      .describe('When the last video of a silent camera was written, or should have been.'),
    viewers: z.number().int().describe('Live viewers of the main stream.'),
    preview: Preview.nullable().describe('null: the camera has none (its setting preview), or should not be recorded.'),
    ptz: z.boolean().describe('Whether the camera may be moved (its setting ptz).'),
  })
  .meta({ id: 'Camera', description: 'A camera, its state and the reason for it.' });

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

const optionalTime = (ms: number | undefined): string | null => (ms === undefined ? null : isoTime(ms));

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
  last_written: optionalTime(archive?.lastWrittenMs),
  filename: archive?.currentFile ?? null,
});

function toPreview(
  preview: NonNullable<CameraView['preview']>,
  archive: CameraView['previewArchive'],
): z.output<typeof Preview> {
  const { state, reason, video, audio, bitrate } = preview.status();
  return {
    state,
    reason: toReason(reason),
    codecs: { video: video ? toVideo(video) : null, audio: audio ? toAudio(audio) : null, mime: mimeOf(video, audio) },
    bitrate,
    viewers: preview.stats.viewers,
    recording: archive ? toRecording(archive) : null,
  };
}

type Deps = Pick<
  ApiDeps,
  'cameras' | 'cluster' | 'keeping' | 'refusedCameras' | 'ptz' | 'nodeName' | 'address' | 'playback' | 'warnings'
>;

function toCamera(
  { status, group, archive, live, preview, previewArchive, silence }: CameraView,
  deps: Deps,
  playback: string | undefined,
): z.output<typeof Camera> {
  const { video, audio, counters } = status;
  const wantedMs = deps.keeping?.wantedMs(status.id);
  return {
    id: status.id,
    name: status.name,
    group: group ?? null,
    state: status.state,
    state_since: isoTime(status.stateSinceMs),
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
    bitrate: Math.round(status.bitrate),
    frame_rate: tenths(status.frameRate),
    usual_frame_rate: status.usualFrameRate === undefined ? null : tenths(status.usualFrameRate),
    max_age_seconds: wantedMs === undefined ? null : Math.round(wantedMs / 1_000),
    last_frame: optionalTime(status.lastFrameMs),
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
    silent_since: optionalTime(silence?.sinceMs),
    viewers: live?.stats.viewers ?? 0,
    preview: preview ? toPreview(preview, previewArchive) : null,
    ptz: typeof deps.ptz.get(status.id) === 'object',
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

export const cameraRoutes: FastifyPluginAsyncZod<{ deps: Deps }> = async (app, { deps }) => {
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
        response: { 200: Cameras, 401: problemResponse('No token, or a wrong one.') },
      },
    },
    async (request) => {
      const playback = playbackAddress(request, deps.playback);
      const { sees } = callerOf(request);
      const seen = deps.cameras.list().filter(({ status }) => sees(status.id));
      const cameras = seen.map((view) => toCamera(view, deps, playback));
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
          401: problemResponse('No token, or a wrong one.'),
          404: problemResponse('The node does not know this camera.'),
        },
      },
    },
    async (request) => {
      const view = deps.cameras.get(request.params.id);
      if (!view) throw unknownCamera();
      return toCamera(view, deps, playbackAddress(request, deps.playback));
    },
  );
};
