// The output of the codec room: access units, and the parameters that a decoder needs first.

import type { Reason } from '../../base/reason.ts';
import type { FaultCounts } from './faults.ts';
import type { MediaData, SlabPool } from './slab.ts';
import type { RtpPacket } from '../rtp/packet.ts';

/** Codecs as stored: G.711, L16, G.722 and G.726 are converted to FLAC. */
export type AudioCodec = 'aac' | 'opus' | 'flac' | 'mp2' | 'mp3';

/** What the sample entry of a video track is made from. Compared by identity: a new object means a change. */
export type VideoParameters = NalParameters | Av1Parameters | MjpegParameters;

interface PictureParameters {
  readonly kind: 'video';
  /** Size in pixels, after cropping. */
  readonly width: number;
  readonly height: number;
  /** RFC 6381, such as `avc1.64001f`, `hvc1.1.6.L93.B0`, `av01.0.04M.08` or `mp4v.6C`. */
  readonly codecString: string;
  /** How many pictures may precede another one in decoding order and follow it in output order; undefined if not stated. */
  readonly reorderDepth: number | undefined;
  /** Sample aspect ratio, if it is not square. */
  readonly pixelAspect?: { readonly horizontal: number; readonly vertical: number };
}

export interface NalParameters extends PictureParameters {
  readonly codec: 'h264' | 'h265';
  /** Raw NAL units with header, without start code or length; one active set of each kind is enough. */
  readonly vps: readonly Buffer[];
  readonly sps: readonly Buffer[];
  readonly pps: readonly Buffer[];
}

export interface Av1Parameters extends PictureParameters {
  readonly codec: 'av1';
  /** AV1CodecConfigurationRecord (AV1 in ISOBMFF §2.3.3). */
  readonly config: Buffer;
}

/** Every picture is a complete JPEG file. */
export interface MjpegParameters extends PictureParameters {
  readonly codec: 'mjpeg';
}

export interface AudioParameters {
  readonly kind: 'audio';
  readonly codec: AudioCodec;
  /** Samples per second; also the timescale of the track. Opus: always 48000. */
  readonly sampleRate: number;
  readonly channels: number;
  /** AudioSpecificConfig (AAC), the body of `dOps` (Opus), STREAMINFO without its block header (FLAC), or empty. */
  readonly config: Buffer;
  readonly codecString: string;
}

/** One picture, or one audio frame. */
export interface AccessUnit {
  /**
   * H.264 and H.265: NAL units, each with a 4-byte length, without delimiters, filler and repeated identical parameter sets. AV1:
   * OBUs with sizes, without temporal delimiters and padding. JPEG: a complete file.
   */
  readonly data: MediaData;
  /** RTP timestamp, 32 bits unsigned, in the stream's clock rate; computed for later frames of one packet. */
  readonly timestamp: number;
  /**
   * Decoding can start here: IDR, CRA, BLA, H.264 recovery point (also of a gradual refresh), shown key frame of AV1, any JPEG
   * picture. Always true for audio.
   */
  readonly randomAccess: boolean;
  /** Packets lost since the previous access unit; if more than 0, pictures are missing or refer to missing ones. */
  readonly lostPackets: number;
  /** Audio: duration in ticks of `sampleRate`. Video: 0 (the timeline computes it). */
  readonly durationTicks: number;
  /** The picture has a B slice: it may be displayed before a picture that precedes it in decoding order. */
  readonly bidirectional: boolean;
}

/**
 * Turns the RTP packets of one stream into access units. No I/O, no timers, no log. Whatever the packets contain, `push` never
 * throws.
 */
export interface Depacketizer {
  /** The parameters of the following access units; undefined until known (from the SDP or in band). */
  readonly parameters: VideoParameters | AudioParameters | undefined;
  /** Takes one packet; packets must be in sequence order. Completed access units go to the callback given at construction. */
  push(packet: RtpPacket): void;
  /** At the end of a stream: emits an access unit that is complete although nothing follows. */
  flush(): void;
  /** Releases its memory. */
  close(): void;
  /** Why nothing is emitted although packets arrive: a stable code and a sentence; undefined if all is well. */
  readonly problem: Reason | undefined;
  /** What some decoders cannot handle in a stream that is recorded; undefined if there is nothing. */
  readonly remark?: Reason | undefined;
  /** Access units dropped because a part was lost or invalid, or because they came before the parameters were known. */
  readonly discarded: number;
}

export type AccessUnitCallback = (unit: AccessUnit) => void;

export interface DepacketizerDeps {
  readonly pool: SlabPool;
  readonly emit: AccessUnitCallback;
  /** Counts the faults; it may already hold counts of earlier depacketizers. */
  readonly faults: FaultCounts;
}
