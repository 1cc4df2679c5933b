// From media to what a camera offers: an SDP section, frames with RTP timestamps, and how they become packets.

import { assertNever } from '../../base/assert.ts';
import {
  nalType,
  packetizeAac,
  packetizeG711,
  packetizeH264,
  packetizeH265,
  packetizeLatm,
  packetizeMpegAudio,
  packetizeOpus,
  packetizePayloads,
} from '../support/packetize.ts';
import { packetizeAv1 } from '../support/packetize-av1.ts';
import { packetizeMjpeg } from '../support/packetize-mjpeg.ts';
import type { PacketizeOptions } from '../support/packetize.ts';
import type { AudioMedia, VideoMedia } from './media.ts';

/** One frame on its way out. Tests change what they want in `onFrame`. */
export interface CameraFrame {
  readonly track: number;
  /** Position in its track, from 0; goes on when the media starts over. */
  readonly index: number;
  /** Number drawn into the picture; -1 for what is no picture. */
  readonly number: number;
  readonly key: boolean;
  /** Milliseconds since the start of the media at which an encoder hands it out. */
  readonly sendAtMs: number;
  /** RTP ticks since the start of the media: the session's first timestamp is added to it. */
  readonly timestamp: number;
  /** NAL units of a picture, or the one buffer of an audio frame. */
  readonly units: readonly Buffer[];
}

export interface Track {
  readonly kind: 'video' | 'audio' | 'application';
  readonly clockRate: number;
  readonly payloadType: number;
  /** What SETUP is asked for. */
  readonly control: string;
  /** The section of the SDP, from `m=` on; `a=control` included. */
  readonly sdp: readonly string[];
  readonly frames: readonly Omit<CameraFrame, 'track'>[];
  /** After this long the media starts over with timestamps that go on. */
  readonly durationMs: number;
  readonly packetize: (units: readonly Buffer[], options: PacketizeOptions) => Buffer[];
}

interface TrackOptions {
  readonly payloadType?: number;
  readonly control?: string;
  /** Greatest packet; 1400 when absent. Small values make fragments of small pictures. */
  readonly mtu?: number;
  readonly packetize?: Track['packetize'];
}

interface VideoTrackOptions extends TrackOptions {
  /** Small NAL units travel together in STAP-A or AP. */
  readonly aggregate?: boolean;
  /** The value of `a=fmtp` after the payload type; null: no such line. Absent: complete and right. */
  readonly fmtp?: string | null;
  /** Further lines of the section. */
  readonly attributes?: readonly string[];
  /** H.265 only: write decoding order numbers. */
  readonly decodingOrderNumbers?: boolean;
}

export function videoTrack(media: VideoMedia, options: VideoTrackOptions = {}): Track {
  const {
    payloadType = media.codec === 'mjpeg' ? 26 : 96,
    control = 'trackID=1',
    mtu = 1400,
    aggregate = false,
  } = options;
  const fmtp = options.fmtp === undefined ? videoFmtp(media) : options.fmtp;
  // A picture is handed out when the last one that it waits for has been captured.
  const delay90k = Math.max(...media.frames.map((frame) => frame.pts90k - frame.dts90k));
  let decodingOrderNumber = 0;
  const packetize: Track['packetize'] = (units, packetizeOptions) => {
    const all = { mtu, aggregate, ...packetizeOptions };
    if (media.codec === 'av1') return packetizeAv1(units, all);
    if (media.codec === 'mjpeg') return packetizeMjpeg(joined(units), all);
    if (media.codec === 'h264') return packetizeH264(units, all);
    if (!options.decodingOrderNumbers) return packetizeH265(units, all);
    const first = decodingOrderNumber;
    decodingOrderNumber = (decodingOrderNumber + units.length) & 0xffff;
    return packetizeH265(units, { ...all, decodingOrderNumber: first });
  };
  return {
    kind: 'video',
    clockRate: 90_000,
    payloadType,
    control,
    sdp: [
      `m=video 0 RTP/AVP ${payloadType}`,
      `a=rtpmap:${payloadType} ${media.codec === 'mjpeg' ? 'JPEG' : media.codec.toUpperCase()}/90000`,
      ...(!fmtp ? [] : [`a=fmtp:${payloadType} ${fmtp}`]),
      ...(options.attributes ?? []),
      `a=control:${control}`,
    ],
    frames: media.frames.map((frame, index) => ({
      index,
      number: frame.number,
      key: frame.key,
      sendAtMs: (frame.dts90k + delay90k) / 90,
      timestamp: frame.pts90k,
      units: frame.nals,
    })),
    durationMs: (media.frames.length * 1000) / media.framesPerSecond,
    packetize: options.packetize ?? packetize,
  };
}

/** The format parameters a good camera gives: RFC 6184 §8.1, RFC 7798 §7.1. */
export function videoFmtp({ codec, ...media }: VideoMedia): string {
  if (codec === 'mjpeg' || codec === 'av1') return '';
  const nals = media.frames[0]?.nals ?? [];
  const sets = (type: number): string =>
    nals
      .filter((nal) => nalType(nal, codec) === type)
      .map((nal) => nal.toString('base64'))
      .join(',');
  if (codec === 'h265') return `sprop-vps=${sets(32)};sprop-sps=${sets(33)};sprop-pps=${sets(34)}`;
  const sps = nals.find((nal) => nalType(nal, 'h264') === 7);
  const profile = sps?.subarray(1, 4).toString('hex') ?? '42001f';
  return `packetization-mode=1;profile-level-id=${profile};sprop-parameter-sets=${sets(7)},${sets(8)}`;
}

export interface AudioTrackOptions extends TrackOptions {
  /** AAC frames as LATM (RFC 6416) instead of RFC 3640. */
  readonly latm?: boolean;
  /** AAC frames in one packet. */
  readonly framesPerPacket?: number;
  /** Lines after `m=`; absent: complete and right. */
  readonly attributes?: readonly string[];
}

const STATIC_TYPES: ReadonlyMap<AudioMedia['codec'], number> = new Map([
  ['pcmu', 0],
  ['pcma', 8],
  ['g722', 9],
  ['l16', 11],
  ['mp2', 14],
  ['mp3', 14],
]);

/** RFC 3551 §4.5.2 and §4.5.13: G.722 counts in 8 kHz, MPEG audio in 90 kHz. */
const CLOCK_RATES: ReadonlyMap<AudioMedia['codec'], number> = new Map([
  ['g722', 8_000],
  ['mp2', 90_000],
  ['mp3', 90_000],
]);

export function audioTrack(media: AudioMedia, options: AudioTrackOptions = {}): Track {
  const defaultType = STATIC_TYPES.get(media.codec) ?? 97;
  const { payloadType = defaultType, control = 'trackID=2', mtu = 1400, framesPerPacket = 1 } = options;
  const groups = Array.from({ length: Math.floor(media.frames.length / framesPerPacket) }, (_, i) =>
    media.frames.slice(i * framesPerPacket, (i + 1) * framesPerPacket),
  );
  const clockRate = CLOCK_RATES.get(media.codec) ?? media.sampleRate;
  const packetize: Track['packetize'] = (units, packetizeOptions) => {
    const all = { mtu, ...packetizeOptions };
    if (media.codec === 'mp2' || media.codec === 'mp3') return packetizeMpegAudio(units, all);
    if (media.codec === 'aac') return options.latm ? packetizeLatm(joined(units), all) : packetizeAac(units, all);
    return media.codec === 'opus' ? packetizeOpus(joined(units), all) : packetizeG711(joined(units), all);
  };
  return {
    kind: 'audio',
    clockRate,
    payloadType,
    control,
    sdp: [
      `m=audio 0 RTP/AVP ${payloadType}`,
      ...(options.attributes ?? audioAttributes(media, payloadType, options.latm ?? false)),
      `a=control:${control}`,
    ],
    frames: groups.map((group, index) => ({
      index,
      number: -1,
      key: true,
      // Sent when its last sample has been captured.
      sendAtMs: (((group.at(-1)?.pts ?? 0) + media.samplesPerFrame) * 1000) / media.sampleRate,
      timestamp: Math.round(((group[0]?.pts ?? 0) * clockRate) / media.sampleRate),
      units: group.map((frame) => frame.data),
    })),
    durationMs: 10_000,
    packetize: options.packetize ?? packetize,
  };
}

const joined = (units: readonly Buffer[]): Buffer => (units.length === 1 ? (units[0] as Buffer) : Buffer.concat(units));

function audioAttributes(media: AudioMedia, payloadType: number, latm: boolean): string[] {
  const rate = media.sampleRate;
  switch (media.codec) {
    case 'opus':
      return [`a=rtpmap:${payloadType} opus/48000/2`];
    case 'pcma':
      return [`a=rtpmap:${payloadType} PCMA/8000`];
    case 'pcmu':
      return [`a=rtpmap:${payloadType} PCMU/8000`];
    case 'l16':
      return [`a=rtpmap:${payloadType} L16/${rate}/${media.channels}`];
    case 'g722':
      return [`a=rtpmap:${payloadType} G722/8000`];
    case 'mp2':
    case 'mp3':
      return [`a=rtpmap:${payloadType} MPA/90000`];
    case 'g726-32':
      return [`a=rtpmap:${payloadType} G726-32/8000`];
    case 'aac': {
      if (latm) {
        const config = streamMuxConfig(media);
        return [
          `a=rtpmap:${payloadType} MP4A-LATM/${rate}`,
          `a=fmtp:${payloadType} profile-level-id=1;cpresent=0;config=${config.toString('hex')}`,
        ];
      }
      const config = audioSpecificConfig(media).toString('hex');
      return [
        `a=rtpmap:${payloadType} MPEG4-GENERIC/${rate}/1`,
        `a=fmtp:${payloadType} streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=${config}`,
      ];
    }
    default:
      return assertNever(media.codec);
  }
}

const AAC_RATES = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000];

/** AAC-LC, ISO/IEC 14496-3 §1.6.2.1: 5 bits object type, 4 bits rate, 4 bits channels, 3 zero bits. */
export function audioSpecificConfig(media: AudioMedia): Buffer {
  const bits = (2 << 11) | (AAC_RATES.indexOf(media.sampleRate) << 7) | (media.channels << 3);
  return Buffer.from([bits >> 8, bits & 0xff]);
}

/** StreamMuxConfig, ISO/IEC 14496-3 §1.7.3: one program, one layer, the config above, frame length of its own. */
function streamMuxConfig(media: AudioMedia): Buffer {
  const config = audioSpecificConfig(media).readUInt16BE(0).toString(2).padStart(16, '0');
  // audioMuxVersion 0, allStreamsSameTimeFraming 1, numSubFrames 6 bits, numProgram 4 bits, numLayer 3 bits; then the
  // config; frameLengthType 3 bits, latmBufferFullness 8 bits, otherDataPresent, crcCheckPresent.
  const bits = ['0', '1', '000000', '0000', '000', config, '000', '11111111', '0', '0'].join('');
  const bytes = bits.padEnd(Math.ceil(bits.length / 8) * 8, '0').match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
}

/** A 7-byte ADTS header before an AAC frame (ISO/IEC 14496-3 §1.A.2.2). */
export function adtsFrame(media: AudioMedia, frame: Buffer): Buffer {
  const size = frame.length + 7;
  const rate = AAC_RATES.indexOf(media.sampleRate);
  return Buffer.concat([
    Buffer.from([
      0xff,
      0xf1,
      (1 << 6) | (rate << 2) | (media.channels >> 2),
      ((media.channels & 3) << 6) | (size >> 11),
      (size >> 3) & 0xff,
      ((size & 7) << 5) | 0x1f,
      0xfc,
    ]),
    frame,
  ]);
}

/** ONVIF metadata: offered, and silent unless given frames. */
export function metadataTrack(control = 'trackID=3', payloadType = 107): Track {
  return {
    kind: 'application',
    clockRate: 90_000,
    payloadType,
    control,
    sdp: [
      `m=application 0 RTP/AVP ${payloadType}`,
      `a=rtpmap:${payloadType} vnd.onvif.metadata/90000`,
      `a=control:${control}`,
    ],
    frames: [],
    durationMs: 10_000,
    packetize: packetizePayloads,
  };
}
