// Creates the depacketizer for a media section of an SDP, or says why its media cannot be recorded.

import type { Reason } from '../../base/reason.ts';
import type { Depacketizer, DepacketizerDeps } from './access-unit.ts';
import { AacDepacketizer, type AuHeaderLayout } from './aac.ts';
import { Av1Depacketizer } from './av1.ts';
import { FLAC_MAX_CHANNELS } from './flac.ts';
import { G711Decoder } from './g711.ts';
import { G722Decoder, G722_CLOCK_RATE, G722_SAMPLE_RATE } from './g722.ts';
import { G726Decoder, type G726Rate } from './g726.ts';
import { H264Depacketizer } from './h264.ts';
import { H265Depacketizer } from './h265.ts';
import { LatmDepacketizer } from './latm.ts';
import { MjpegDepacketizer, type PictureSize } from './mjpeg.ts';
import { MpegAudioDepacketizer } from './mpeg-audio.ts';
import { OPUS_CLOCK_RATE, OpusDepacketizer } from './opus.ts';
import { L16Decoder, PcmDepacketizer, type SampleDecoder } from './pcm.ts';

/** The properties of one stream in the SDP. */
export interface MediaDescription {
  readonly kind: 'video' | 'audio';
  /** From `a=rtpmap`, in any case; undefined if absent, and then the static payload type (RFC 3551) counts. */
  readonly encodingName: string | undefined;
  readonly payloadType: number;
  /** From `a=rtpmap`, in Hz; undefined if absent. */
  readonly clockRate: number | undefined;
  /** From `a=rtpmap`; undefined if not stated. */
  readonly channels: number | undefined;
  /** From `a=fmtp`; names in lower case. */
  readonly formatParameters: ReadonlyMap<string, string>;
  /** From `a=framesize` or `a=x-dimensions`. */
  readonly pictureSize?: PictureSize | undefined;
}

type DepacketizerChoice =
  | {
      readonly depacketizer: Depacketizer;
      /** The clock rate of the packets' timestamps in Hz; cameras may announce another one (Opus). */
      readonly clockRate: number;
    }
  | { /** Why the media cannot be recorded. */ readonly unsupported: Reason };

const VIDEO_CLOCK_RATE = 90_000;

/** The static payload types that we support, RFC 3551 §6. */
const STATIC_NAMES: ReadonlyMap<number, string> = new Map([
  [0, 'PCMU'],
  [8, 'PCMA'],
  [26, 'JPEG'],
]);

/** Chooses the depacketizer for a stream. `rtpmap` takes precedence over static payload types, because cameras redefine them. */
export function createDepacketizer(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const name = media.encodingName?.trim().toUpperCase() ?? STATIC_NAMES.get(media.payloadType);
  switch (`${media.kind}/${name}`) {
    case 'video/H264':
      return h264(media, deps);
    case 'video/H265':
    case 'video/HEVC':
      return h265(media, deps);
    case 'video/AV1':
      return { depacketizer: new Av1Depacketizer(deps), clockRate: saneRate(media.clockRate) ?? VIDEO_CLOCK_RATE };
    case 'video/JPEG': {
      const depacketizer = new MjpegDepacketizer({ size: media.pictureSize, ...deps });
      return { depacketizer, clockRate: saneRate(media.clockRate) ?? VIDEO_CLOCK_RATE };
    }
    case 'audio/MPEG4-GENERIC':
      return aac(media, deps);
    case 'audio/MP4A-LATM':
      return latm(media, deps);
    case 'audio/OPUS':
      return { depacketizer: new OpusDepacketizer(deps), clockRate: OPUS_CLOCK_RATE };
    case 'audio/MPA':
      return mpegAudio(media, deps);
    case 'audio/PCMU':
      return pcm((channels) => new G711Decoder('mu', channels), media, deps);
    case 'audio/PCMA':
      return pcm((channels) => new G711Decoder('a', channels), media, deps);
    case 'audio/L16':
      return pcm((channels) => new L16Decoder(channels), media, deps);
    case 'audio/G722':
      return g722(media, deps);
    case 'audio/G726-16':
    case 'audio/G726-24':
    case 'audio/G726-32':
    case 'audio/G726-40':
    case 'audio/AAL2-G726-16':
    case 'audio/AAL2-G726-24':
    case 'audio/AAL2-G726-32':
    case 'audio/AAL2-G726-40':
      return g726(name as string, media, deps);
    default:
      return unsupported(
        'codec-unsupported',
        `${media.kind} in ${name?.slice(0, 64) ?? `payload type ${media.payloadType}`}`,
      );
  }
}

const unsupported = (code: string, what: string): DepacketizerChoice => ({
  unsupported: { code, message: `${what} is not supported` },
});

function h264(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const parameters = media.formatParameters;
  if (parameters.get('packetization-mode') === '2') {
    return unsupported('h264-interleaved', 'H.264 in packetization mode 2');
  }
  const depacketizer = new H264Depacketizer({ sprop: parameters.get('sprop-parameter-sets'), ...deps });
  return { depacketizer, clockRate: saneRate(media.clockRate) ?? VIDEO_CLOCK_RATE };
}

function h265(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const parameters = media.formatParameters;
  const depacketizer = new H265Depacketizer({
    spropVps: parameters.get('sprop-vps'),
    spropSps: parameters.get('sprop-sps'),
    spropPps: parameters.get('sprop-pps'),
    maxDonDiff: Number(parameters.get('sprop-max-don-diff') ?? 0),
    ...deps,
  });
  return { depacketizer, clockRate: saneRate(media.clockRate) ?? VIDEO_CLOCK_RATE };
}

function aac(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const parameters = media.formatParameters;
  // Some cameras write AAC_hbr.
  const mode = (parameters.get('mode') || 'AAC-hbr').toLowerCase().replace(/[-_]/g, '');
  if (mode !== 'aachbr' && mode !== 'aaclbr')
    return unsupported('aac-mode-unsupported', `MPEG4-GENERIC in mode ${parameters.get('mode')}`);
  const clockRate = saneRate(media.clockRate) ?? VIDEO_CLOCK_RATE;
  const options = {
    layout: auHeaderLayout(parameters, mode === 'aaclbr'),
    config: parameters.get('config'),
    channels: media.channels,
    clockRate,
  };
  return { depacketizer: new AacDepacketizer({ ...options, ...deps }), clockRate };
}

/** RFC 3640 §4.1; defaults are those of AAC-hbr (§3.3.6) or AAC-lbr (§3.3.5). */
function auHeaderLayout(parameters: ReadonlyMap<string, string>, isLowBitRate: boolean): AuHeaderLayout {
  const number = (name: string, absent: number, max = 32): number => {
    const value = Number.parseInt(parameters.get(name) ?? '', 10);
    return value >= 0 && value <= max ? value : absent;
  };
  return {
    sizeLength: number('sizelength', isLowBitRate ? 6 : 13),
    indexLength: number('indexlength', isLowBitRate ? 2 : 3),
    indexDeltaLength: number('indexdeltalength', isLowBitRate ? 2 : 3),
    ctsDeltaLength: number('ctsdeltalength', 0),
    dtsDeltaLength: number('dtsdeltalength', 0),
    randomAccessIndication: number('randomaccessindication', 0) === 1,
    streamStateIndication: number('streamstateindication', 0),
    auxiliaryDataSizeLength: number('auxiliarydatasizelength', 0),
    constantSize: number('constantsize', 0, 8191),
  };
}

function latm(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const config = media.formatParameters.get('config');
  const inBand = media.formatParameters.get('cpresent');
  const clockRate = saneRate(media.clockRate) ?? VIDEO_CLOCK_RATE;
  // A configuration in the SDP means that packets contain none, even if `cpresent=0` is missing.
  const configInBand = inBand === undefined ? config === undefined : inBand !== '0';
  return { depacketizer: new LatmDepacketizer({ config, configInBand, clockRate, ...deps }), clockRate };
}

function mpegAudio(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const clockRate = saneRate(media.clockRate) ?? 90_000;
  return { depacketizer: new MpegAudioDepacketizer({ clockRate, ...deps }), clockRate };
}

function pcm(
  decoder: (channels: number) => SampleDecoder,
  media: MediaDescription,
  deps: DepacketizerDeps,
  maxChannels = FLAC_MAX_CHANNELS,
): DepacketizerChoice {
  const sampleRate = saneRate(media.clockRate) ?? 8000;
  const channels = media.channels ?? 1;
  if (channels < 1 || channels > maxChannels) return tooManyChannels(media, channels);
  const depacketizer = new PcmDepacketizer({ decoder: decoder(channels), sampleRate, channels, ...deps });
  return { depacketizer, clockRate: sampleRate };
}

/** `G726-32` has the first code of an octet in its lowest bits, `AAL2-G726-32` in its highest (RFC 3551 §4.5.4). */
function g726(name: string, media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const packing = name.startsWith('AAL2-') ? 'first-high' : 'first-low';
  const rate = Number(name.slice(-2)) as G726Rate;
  return pcm(() => new G726Decoder(rate, packing), media, deps, 1);
}

function g722(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const channels = media.channels ?? 1;
  if (channels !== 1) return tooManyChannels(media, channels);
  const clockRate = saneRate(media.clockRate) ?? G722_CLOCK_RATE;
  const options = { decoder: new G722Decoder(), sampleRate: G722_SAMPLE_RATE, channels, clockRate };
  return { depacketizer: new PcmDepacketizer({ ...options, ...deps }), clockRate };
}

const tooManyChannels = (media: MediaDescription, channels: number): DepacketizerChoice =>
  unsupported('channels-unsupported', `${media.encodingName ?? 'sound'} of ${channels} channels`);

function saneRate(rate: number | undefined): number | undefined {
  return rate !== undefined && Number.isInteger(rate) && rate >= 1000 && rate <= 655_350 ? rate : undefined;
}
