// Makes the sample entry of a track from codec parameters: avc1, hvc1 (ISO/IEC 14496-15), av01 (AV1 in ISOBMFF), mp4v and mp4a
// (14496-14), Opus, fLaC.

import type { AudioParameters, NalParameters, VideoParameters } from '../codec/access-unit.ts';
import { isMpeg1Rate } from '../codec/mpeg-audio.ts';
import { assertNever } from '../../base/assert.ts';
import { box, concat, fullBox, i16, u16, u24, u32, u8, zeros, type Part } from './box.ts';
import { Mp4Error } from './error.ts';
import { parseAvcFields, parseHevcFields } from './parameter-sets.ts';
import type { TrackParameters } from './sample.ts';

/** Changed parameter sets are in band too; players accept them under this entry (docs/design/recorded-files.md). */
export function sampleEntry(track: TrackParameters): Buffer {
  if (track.kind === 'video') return visualSampleEntry(track);
  return audioSampleEntry(track);
}

function visualSampleEntry(video: VideoParameters): Buffer {
  switch (video.codec) {
    case 'h264':
      return visual('avc1', video, avcC(video));
    case 'h265':
      // hvc1, not hev1: Safari refuses hev1.
      return visual('hvc1', video, hvcC(video));
    case 'av1':
      return visual('av01', video, box('av1C', video.config));
    case 'mjpeg':
      return visual('mp4v', video, esds(STREAM_TYPE.visual, OBJECT_TYPE_JPEG));
    default:
      return assertNever(video);
  }
}

/** VisualSampleEntry, ISO/IEC 14496-12 §12.1.3. */
const visual = (type: string, video: VideoParameters, configuration: Buffer): Buffer =>
  box(type, [
    zeros(6), // reserved
    u16(1), // data_reference_index
    zeros(16), // pre_defined, reserved
    u16(video.width), // width
    u16(video.height), // height
    u32(0x00480000), // horizresolution, 72 dpi
    u32(0x00480000), // vertresolution
    u32(0), // reserved
    u16(1), // frame_count
    zeros(32), // compressorname
    u16(0x0018), // depth: colour, no alpha
    i16(-1), // pre_defined
    configuration,
    pasp(video),
  ]);

/** Pixel Aspect Ratio, ISO/IEC 14496-12 §12.1.4.2; left out for square pixels. */
function pasp(video: VideoParameters): Part {
  const aspect = video.pixelAspect;
  if (!aspect || aspect.horizontal === aspect.vertical) return [];
  return box('pasp', [
    u32(aspect.horizontal), // hSpacing
    u32(aspect.vertical), // vSpacing
  ]);
}

/** AVC Configuration, ISO/IEC 14496-15 §5.3.3.1. */
function avcC(video: NalParameters): Buffer {
  const { sps, pps } = video;
  if (!sps[0] || !pps[0]) throw new Mp4Error('UNSUPPORTED', 'H.264 without SPS and PPS');
  if (sps.length > 31 || pps.length > 255) throw new Mp4Error('TOO_LARGE', 'too many H.264 parameter sets');
  const { profile, compatibility, level, format } = parseAvcFields(sps[0]);
  return box('avcC', [
    u8(1), // configurationVersion
    u8(profile), // AVCProfileIndication
    u8(compatibility), // profile_compatibility
    u8(level), // AVCLevelIndication
    u8(0xfc | 3), // lengthSizeMinusOne
    u8(0xe0 | sps.length), // numOfSequenceParameterSets
    sps.map(withLength),
    u8(pps.length), // numOfPictureParameterSets
    pps.map(withLength),
    format
      ? [
          u8(0xfc | format.chromaFormat), // chroma_format
          u8(0xf8 | format.lumaDepthMinus8), // bit_depth_luma_minus8
          u8(0xf8 | format.chromaDepthMinus8), // bit_depth_chroma_minus8
          u8(0), // numOfSequenceParameterSetExt
        ]
      : [],
  ]);
}

const HEVC_VPS = 32;
const HEVC_SPS = 33;
const HEVC_PPS = 34;

/** HEVC Configuration, ISO/IEC 14496-15 §8.3.3.1. */
function hvcC(video: NalParameters): Buffer {
  const { vps, sps, pps } = video;
  if (!vps[0] || !sps[0] || !pps[0]) throw new Mp4Error('UNSUPPORTED', 'H.265 without VPS, SPS and PPS');
  const fields = parseHevcFields(sps[0]);
  return box('hvcC', [
    u8(1), // configurationVersion
    fields.generalProfileTierLevel, // general_profile_space to general_level_idc
    u16(0xf000), // min_spatial_segmentation_idc: unknown
    u8(0xfc), // parallelismType: unknown
    u8(0xfc | fields.chromaFormat), // chroma_format_idc
    u8(0xf8 | fields.lumaDepthMinus8), // bit_depth_luma_minus8
    u8(0xf8 | fields.chromaDepthMinus8), // bit_depth_chroma_minus8
    u16(0), // avgFrameRate: unknown
    u8((fields.temporalLayers << 3) | (fields.temporalIdNested ? 4 : 0) | 3), // constantFrameRate, layers, lengthSizeMinusOne
    u8(3), // numOfArrays
    hevcArray(HEVC_VPS, vps),
    hevcArray(HEVC_SPS, sps),
    hevcArray(HEVC_PPS, pps),
  ]);
}

const hevcArray = (nalType: number, nals: readonly Buffer[]): Part => [
  u8(0x80 | nalType), // array_completeness: hvc1 demands it
  u16(nals.length), // numNalus
  nals.map(withLength),
];

function withLength(nal: Buffer): Part {
  if (nal.length > 0xffff) throw new Mp4Error('TOO_LARGE', 'parameter set of more than 64 KiB');
  return [u16(nal.length), nal];
}

function audioSampleEntry(audio: AudioParameters): Buffer {
  switch (audio.codec) {
    case 'aac':
      return sound('mp4a', audio, esds(STREAM_TYPE.audio, OBJECT_TYPE_MPEG4_AUDIO, audio.config));
    case 'mp2':
    case 'mp3':
      return sound(
        'mp4a',
        audio,
        esds(STREAM_TYPE.audio, isMpeg1Rate(audio.sampleRate) ? OBJECT_TYPE_MPEG1_AUDIO : OBJECT_TYPE_MPEG2_AUDIO),
      );
    case 'opus':
      return sound('Opus', audio, box('dOps', audio.config)); // Opus in ISOBMFF §4.3.2
    case 'flac':
      return sound('fLaC', audio, dfLa(audio.config));
    default:
      return assertNever(audio.codec);
  }
}

/** AudioSampleEntry, ISO/IEC 14496-12 §12.2.3. */
const sound = (type: string, audio: AudioParameters, configuration: Buffer): Buffer =>
  box(type, [
    zeros(6), // reserved
    u16(1), // data_reference_index
    zeros(8), // reserved
    u16(audio.channels), // channelcount
    u16(16), // samplesize
    zeros(4), // pre_defined, reserved
    u32(audio.sampleRate > 0xffff ? 0 : audio.sampleRate * 0x10000), // samplerate, 16.16; the codec's own is what counts
    configuration,
  ]);

/** ISO/IEC 14496-1 table 6. */
const STREAM_TYPE = { visual: 0x04, audio: 0x05 } as const;

/** ISO/IEC 14496-1 table 5. The types of MPEG-1 (11172-3) and MPEG-2 (13818-3) cover all layers; the frames state theirs. */
const OBJECT_TYPE_MPEG4_AUDIO = 0x40;
const OBJECT_TYPE_MPEG2_AUDIO = 0x69;
const OBJECT_TYPE_MPEG1_AUDIO = 0x6b;
const OBJECT_TYPE_JPEG = 0x6c;

/** ES Descriptor, ISO/IEC 14496-14 §6.7.2 and 14496-1 §7.2.6. */
const esds = (streamType: number, objectType: number, config?: Buffer): Buffer =>
  fullBox('esds', 0, 0, [
    descriptor(0x03, [
      u16(0), // ES_ID
      u8(0), // no dependency, no URL, no OCR stream
      descriptor(0x04, [
        u8(objectType), // objectTypeIndication
        u8((streamType << 2) | 1), // streamType, reserved
        u24(0), // bufferSizeDB
        u32(0), // maxBitrate: unknown
        u32(0), // avgBitrate: unknown
        config ? descriptor(0x05, config) : [], // DecoderSpecificInfo: AudioSpecificConfig
      ]),
      descriptor(0x06, u8(2)), // SLConfigDescriptor: as in MP4 files
    ]),
  ]);

function descriptor(tag: number, parts: Part): Buffer {
  const body = concat(parts);
  if (body.length > 0x3fff) throw new Mp4Error('TOO_LARGE', 'audio configuration of more than 16 KiB');
  // The length in four groups of 7 bits, as most writers do; some players rely on it.
  const length = [0x80, 0x80, 0x80 | (body.length >> 7), body.length & 0x7f];
  return concat([Buffer.of(tag, ...length), body]);
}

/** FLAC Specific Box: a single metadata block of type STREAMINFO (Encapsulation of FLAC in ISOBMFF §3.3.2). */
const dfLa = (streamInfo: Buffer): Buffer =>
  fullBox('dfLa', 0, 0, [
    u8(0x80), // LastMetadataBlockFlag, BlockType STREAMINFO
    u24(streamInfo.length), // Length
    streamInfo,
  ]);
