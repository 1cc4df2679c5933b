// Parses AudioSpecificConfig (ISO/IEC 14496-3 §1.6.2.1) and ADTS headers (§1.A.3.2), and makes the parameters of an AAC track.

import type { AudioParameters } from './access-unit.ts';
import { BitReader } from './bit-reader.ts';

export type AacConfig = {
  /** As announced: 2 is AAC-LC, 5 HE-AAC, 29 HE-AAC v2. */
  readonly objectType: number;
  /** Sampling rate of the core coder, in which frames are counted. */
  readonly sampleRate: number;
  readonly channels: number;
  readonly samplesPerFrame: number;
};

const SAMPLE_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
];
/** Channels by channelConfiguration, table 1.19; with 0, a program_config_element states them. */
const CHANNELS = [0, 1, 2, 3, 4, 5, 6, 8];
const SBR = 5;
const PARAMETRIC_STEREO = 29;
/** Object types with a GASpecificConfig: Main, LC, SSR, LTP, scalable and the error-resilient ones. */
const GENERAL_AUDIO = new Set([1, 2, 3, 4, 6, 7, 17, 19, 20, 21, 22, 23]);

/** Reads the configuration and leaves the reader after it; undefined for a kind that is not supported. */
export function readAudioSpecificConfig(reader: BitReader): AacConfig | undefined {
  const announcedType = readObjectType(reader);
  const sampleRate = readSampleRate(reader);
  const channelConfiguration = reader.bits(4);
  let coreType = announcedType;
  if (announcedType === SBR || announcedType === PARAMETRIC_STEREO) {
    readSampleRate(reader); // extensionSamplingFrequency
    coreType = readObjectType(reader);
  }
  if (!GENERAL_AUDIO.has(coreType) || sampleRate === 0) return undefined;
  const isShort = reader.flag(); // frameLengthFlag
  if (reader.flag()) reader.skip(14); // dependsOnCoreCoder, coreCoderDelay
  const hasExtension = reader.flag(); // extensionFlag
  const channels = channelConfiguration === 0 ? readProgramConfig(reader) : (CHANNELS[channelConfiguration] ?? 0);
  if (coreType === 6 || coreType === 20) reader.skip(3); // layerNr
  if (hasExtension) {
    if (coreType === 22) reader.skip(16);
    if ([17, 19, 20, 23].includes(coreType)) reader.skip(3);
    reader.bit(); // extensionFlag3
  }
  if (reader.overrun || channels === 0) return undefined;
  return {
    objectType: announcedType,
    sampleRate,
    channels,
    samplesPerFrame: isShort ? 960 : 1024,
  };
}

export function parseAudioSpecificConfig(bytes: Uint8Array): AacConfig | undefined {
  return readAudioSpecificConfig(new BitReader({ hasEmulationPrevention: false }).reset(bytes, 0, bytes.length));
}

/** The parameters of a track with this configuration, whose bytes are `config`. */
export function aacParameters(aac: AacConfig, config: Buffer): AudioParameters {
  return {
    kind: 'audio',
    codec: 'aac',
    sampleRate: aac.sampleRate,
    channels: aac.channels,
    config,
    codecString: `mp4a.40.${aac.objectType}`,
  };
}

/** The `config` of an SDP, in hexadecimal; undefined if it is absent or invalid. */
export function parseHex(value: string | undefined): Buffer | undefined {
  const hex = value?.replaceAll(/["\s]/g, '');
  if (!hex || hex.length % 2 !== 0 || hex.length > 1024 || !/^[0-9a-f]+$/i.test(hex)) return undefined;
  return Buffer.from(hex, 'hex');
}

type AdtsHeader = {
  readonly headerBytes: number;
  /** Size of header and data. */
  readonly frameBytes: number;
  /** The same information as an AudioSpecificConfig. */
  readonly config: Buffer;
};

/** The ADTS header at `bytes[at]`; undefined if there is none or its frame does not end before `end`. */
export function parseAdts(bytes: Buffer, at: number, end: number): AdtsHeader | undefined {
  if (end - at < 7 || bytes[at] !== 0xff || ((bytes[at + 1] as number) & 0xf6) !== 0xf0) return undefined;
  const [, second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0] = bytes.subarray(at, at + 6);
  const headerBytes = (second & 1) === 1 ? 7 : 9; // protection_absent
  const frameBytes = ((fourth & 3) << 11) | (fifth << 3) | (sixth >> 5);
  const objectType = (third >> 6) + 1;
  const rateIndex = (third >> 2) & 0x0f;
  const channelConfiguration = ((third & 1) << 2) | (fourth >> 6);
  if (frameBytes <= headerBytes || at + frameBytes > end || rateIndex >= SAMPLE_RATES.length) return undefined;
  const config = Buffer.alloc(2);
  config.writeUInt16BE((objectType << 11) | (rateIndex << 7) | (channelConfiguration << 3));
  return { headerBytes, frameBytes, config };
}

function readObjectType(reader: BitReader): number {
  const type = reader.bits(5);
  return type === 31 ? 32 + reader.bits(6) : type;
}

function readSampleRate(reader: BitReader): number {
  const index = reader.bits(4);
  return index === 15 ? reader.bits(24) : (SAMPLE_RATES[index] ?? 0);
}

/** program_config_element, §4.4.1.1: returns the number of channels of its elements. */
function readProgramConfig(reader: BitReader): number {
  reader.skip(10); // element_instance_tag, object_type, sampling_frequency_index
  const elements = reader.bits(4) + reader.bits(4) + reader.bits(4); // front, side, back
  const lowFrequency = reader.bits(2);
  const associated = reader.bits(3);
  const coupling = reader.bits(4);
  if (reader.flag()) reader.skip(4); // mono_mixdown
  if (reader.flag()) reader.skip(4); // stereo_mixdown
  if (reader.flag()) reader.skip(3); // matrix_mixdown
  let channels = lowFrequency;
  for (let i = 0; i < elements; i++) {
    channels += reader.bit() + 1; // is_cpe: a pair
    reader.skip(4); // tag_select
  }
  reader.skip((lowFrequency + associated) * 4 + coupling * 5);
  reader.skip(reader.remainingBits % 8); // byte_alignment, relative to the start of the configuration
  reader.skip(reader.bits(8) * 8); // comment_field_data
  return channels;
}

/** Adds a number of channels (from the SDP) to a configuration that states none and lacks the program_config_element. */
export function withChannels(config: Buffer, channels: number | undefined): Buffer {
  const number = CHANNELS.indexOf(channels ?? 0, 1);
  if (number < 1 || parseAudioSpecificConfig(config)) return config;
  const patched = Buffer.from(config);
  // Five bits of object type and four bits of sampling rate come first; longer forms are not handled.
  if (config.length < 2 || (config.readUInt16BE(0) & 0x78) !== 0) return config;
  patched.writeUInt16BE(config.readUInt16BE(0) | (number << 3));
  return parseAudioSpecificConfig(patched) ? patched : config;
}
