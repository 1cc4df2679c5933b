// What leaves the codec room: one access unit, and what a decoder must know before it.

import type { MediaData } from './slab.ts';
import type { RtpPacket } from '../rtp/packet.ts';

export type VideoCodec = VideoParameters['codec'];
/** As stored: G.711, L16, G.722 and G.726 have become FLAC by then. */
export type AudioCodec = 'aac' | 'opus' | 'flac' | 'mp2' | 'mp3';

/** What the sample entry of a video track is made of. Compared by identity: a new object is a change. */
export type VideoParameters = NalParameters | Av1Parameters | MjpegParameters;

interface PictureParameters {
  readonly kind: 'video';
  /** Pixels, after cropping. */
  readonly width: number;
  readonly height: number;
  /** RFC 6381, as `avc1.64001f`, `hvc1.1.6.L93.B0`, `av01.0.04M.08` or `mp4v.6C`. */
  readonly codecString: string;
  /** Pictures that may precede another in decoding order and follow it in output order; undefined when not stated. */
  readonly reorderDepth: number | undefined;
  /** Sample aspect ratio, when not square. */
  readonly pixelAspect?: { readonly horizontal: number; readonly vertical: number };
}

export interface NalParameters extends PictureParameters {
  readonly codec: 'h264' | 'h265';
  /** Raw NAL units with header, without start code or length; one active of each is enough. */
  readonly vps: readonly Buffer[];
  readonly sps: readonly Buffer[];
  readonly pps: readonly Buffer[];
}

export interface Av1Parameters extends PictureParameters {
  readonly codec: 'av1';
  /** AV1CodecConfigurationRecord (AV1 in ISOBMFF §2.3.3). */
  readonly config: Buffer;
}

/** Each picture is a whole JPEG file. */
export interface MjpegParameters extends PictureParameters {
  readonly codec: 'mjpeg';
}

export interface AudioParameters {
  readonly kind: 'audio';
  readonly codec: AudioCodec;
  /** Samples a second; also the timescale of the track. Opus: always 48000. */
  readonly sampleRate: number;
  readonly channels: number;
  /** AudioSpecificConfig (AAC), the body of `dOps` (Opus), STREAMINFO without its header (FLAC), or empty. */
  readonly config: Buffer;
  readonly codecString: string;
}

/** One picture, or one audio frame. */
export interface AccessUnit {
  /**
   * H.264 and H.265: NAL units each after a 4-byte length, without delimiters, filler and repeated identical parameter
   * sets. AV1: OBUs with their sizes, without temporal delimiters and padding. JPEG: a whole file.
   */
  readonly data: MediaData;
  /** RTP timestamp, 32 bits unsigned, in the stream's RTP clock rate; a later frame of one packet has it advanced. */
  readonly timestamp: number;
  /** Decoding can start here: IDR, CRA, BLA, H.264 recovery point (also of a gradual refresh), shown key frame of AV1, any JPEG picture. Always true for audio. */
  readonly randomAccess: boolean;
  /** Packets lost since the access unit before this one; more than 0 means that pictures are missing or refer to missing ones. */
  readonly lostPackets: number;
  /** Audio: length in ticks of `sampleRate`; video: 0 (the timeline decides). */
  readonly durationTicks: number;
  /** True when the picture has a B slice: it may precede in output order a picture before it in decoding order. */
  readonly bidirectional: boolean;
}

/**
 * RTP packets of one stream in, access units out. A value machine: no sockets, no timers, no logger. Whatever the
 * packets hold, `push` returns; it never throws for a camera's fault.
 */
export interface Depacketizer {
  /** The parameters in force for the access units that follow; undefined until known (from SDP or in band). */
  readonly parameters: VideoParameters | AudioParameters | undefined;
  /** Takes one packet, in sequence order; emits what it finishes through the callback given at construction. */
  push(packet: RtpPacket): void;
  /** Emits what is complete although nothing follows: at the end of a stream. */
  flush(): void;
  /** Lets go of memory. */
  close(): void;
  /** Why nothing is emitted although packets arrive, as a stable code and a sentence; undefined when all is well. */
  readonly problem: { readonly code: string; readonly message: string } | undefined;
  /** What to know of a stream that is taken: what some decoders cannot do with it. Undefined when there is nothing. */
  readonly remark?: { readonly code: string; readonly message: string } | undefined;
  /** Access units dropped: a part was lost or made no sense, or they came before the parameters were known. */
  readonly discarded: number;
  /** Counted faults of the camera, by a short constant name such as `fu_without_start`. */
  readonly faults: ReadonlyMap<string, number>;
}

export type AccessUnitCallback = (unit: AccessUnit) => void;
