// A media section of an SDP in, the depacketizer for its packets out, or why its media cannot be recorded.

import type { AccessUnitCallback, Depacketizer } from './access-unit.ts';
import { AacDepacketizer } from './aac.ts';
import type { AuHeaderLayout } from './aac.ts';
import { FLAC_MAX_CHANNELS } from './flac.ts';
import { G711Depacketizer } from './g711.ts';
import type { G711Law } from './g711.ts';
import { H264Depacketizer } from './h264.ts';
import { H265Depacketizer } from './h265.ts';
import { LatmDepacketizer } from './latm.ts';
import { OPUS_CLOCK_RATE, OpusDepacketizer } from './opus.ts';
import type { SlabPool } from './slab.ts';

/** What the SDP says about one stream, as the codec room needs it. */
export interface MediaDescription {
  readonly kind: 'video' | 'audio';
  /** Of `a=rtpmap`, in any case; undefined when it is absent and only the static payload type (RFC 3551) tells. */
  readonly encodingName: string | undefined;
  readonly payloadType: number;
  /** Of `a=rtpmap`, ticks a second; undefined when it is absent. */
  readonly clockRate: number | undefined;
  /** Of `a=rtpmap`; undefined when it does not say. */
  readonly channels: number | undefined;
  /** Of `a=fmtp`; names in lower case. */
  readonly formatParameters: ReadonlyMap<string, string>;
}

export interface DepacketizerDeps {
  readonly pool: SlabPool;
  readonly emit: AccessUnitCallback;
}

/** Why media is not recorded: a stable code in kebab case, and a sentence for a person. */
export interface Unsupported {
  readonly code: string;
  readonly message: string;
}

export type DepacketizerChoice =
  | {
      readonly depacketizer: Depacketizer;
      /** Ticks a second of the packets' timestamps, where cameras announce another one than they use (Opus). */
      readonly clockRate: number;
    }
  | { readonly unsupported: Unsupported };

const VIDEO_CLOCK_RATE = 90_000;

/** Of the static payload types that matter here, RFC 3551 §6. */
const STATIC_NAMES: ReadonlyMap<number, string> = new Map([
  [0, 'PCMU'],
  [8, 'PCMA'],
]);

/** Chooses the depacketizer for a stream. `rtpmap` wins over the static payload types: cameras redefine them. */
export function createDepacketizer(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const name = media.encodingName?.trim().toUpperCase() ?? STATIC_NAMES.get(media.payloadType);
  switch (`${media.kind}/${name}`) {
    case 'video/H264':
      return h264(media, deps);
    case 'video/H265':
    case 'video/HEVC':
      return h265(media, deps);
    case 'audio/MPEG4-GENERIC':
      return aac(media, deps);
    case 'audio/MP4A-LATM':
      return latm(media, deps);
    case 'audio/OPUS':
      return { depacketizer: new OpusDepacketizer(deps), clockRate: OPUS_CLOCK_RATE };
    case 'audio/PCMU':
      return g711('mu', media, deps);
    case 'audio/PCMA':
      return g711('a', media, deps);
    default:
      return unsupported('codec-unsupported', `${media.kind} in ${name ?? `payload type ${media.payloadType}`}`);
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
  const mode = parameters.get('mode')?.toLowerCase() ?? 'aac-hbr';
  if (mode !== 'aac-hbr' && mode !== 'aac-lbr')
    return unsupported('aac-mode-unsupported', `MPEG4-GENERIC in mode ${mode}`);
  const clockRate = saneRate(media.clockRate) ?? VIDEO_CLOCK_RATE;
  const options = {
    layout: auHeaderLayout(parameters, mode === 'aac-lbr'),
    config: parameters.get('config'),
    clockRate,
  };
  return { depacketizer: new AacDepacketizer({ ...options, ...deps }), clockRate };
}

/** RFC 3640 §4.1; what is not said is as in AAC-hbr (§3.3.6) or AAC-lbr (§3.3.5). */
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
  // A configuration in the SDP means that packets have none, also where `cpresent=0` was forgotten.
  const configInBand = inBand === undefined ? config === undefined : inBand !== '0';
  return { depacketizer: new LatmDepacketizer({ config, configInBand, clockRate, ...deps }), clockRate };
}

function g711(law: G711Law, media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const sampleRate = saneRate(media.clockRate) ?? 8000;
  const channels = media.channels ?? 1;
  if (channels < 1 || channels > FLAC_MAX_CHANNELS)
    return unsupported('channels-unsupported', `G.711 of ${channels} channels`);
  return { depacketizer: new G711Depacketizer({ law, sampleRate, channels, ...deps }), clockRate: sampleRate };
}

function saneRate(rate: number | undefined): number | undefined {
  return rate !== undefined && Number.isInteger(rate) && rate >= 1000 && rate <= 655_350 ? rate : undefined;
}
