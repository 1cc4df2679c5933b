// A camera as the API shows it: its schema.

import { z } from 'zod';
import { Reason } from '../probe/report/reason.ts';
import { NotBelieved } from '../probe/report/not-believed.ts';
import { PacketCounts } from './packet-counts.ts';

export const Video = z
  .object({
    codec: z.enum(['h264', 'h265', 'av1', 'mjpeg']),
    codec_string: z.string().describe('RFC 6381, for Media Source Extensions.'),
    width: z.number().int(),
    height: z.number().int(),
  })
  .meta({ id: 'Video', description: 'Video as it is stored.' });

export const Audio = z
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

export const Recording = z.object({
  state: z
    .enum(['idle', 'writing', 'waiting', 'failed'])
    .describe('waiting: the disk does not answer, and the video waits in memory. failed: the video is lost.'),
  reason: Reason.nullable().describe('Why the video of the camera is not written.'),
  last_written: z.iso.datetime({ offset: true }).nullable().describe('Capture time of the last picture written.'),
  filename: z.string().nullable().describe('The file being written, relative to the record path.'),
});

export const Preview = z
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

export const Camera = z
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
    not_believed: z
      .array(NotBelieved)
      .describe(
        'What the camera says about time on its connection and is not believed, because something else contradicts it.',
      ),
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
