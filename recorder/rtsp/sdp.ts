// The body of a DESCRIBE reply in, the media it offers out (RFC 4566, RFC 2326 appendix C).

export type Direction = 'sendrecv' | 'recvonly' | 'sendonly' | 'inactive';

/** One `m=` section. */
export interface Media {
  /** `video`, `audio`, `application` or what else the camera says, in lower case. */
  readonly kind: string;
  /** RTP payload type, the first of the section. */
  readonly payloadType: number;
  /** Encoding name in upper case, as `H264`, `MPEG4-GENERIC`, `PCMA`; empty when a camera does not name it. */
  readonly encodingName: string;
  /** RTP timestamp units a second, as stated; 0 when not stated and not known. */
  readonly clockRate: number;
  /** Audio channels; 1 when not stated. */
  readonly channels: number;
  /** The parameters of `a=fmtp`, by name in lower case, values as written (`sprop-parameter-sets`, `config`, …). */
  readonly formatParameters: ReadonlyMap<string, string>;
  /** `a=control` as written; undefined when absent. */
  readonly control: string | undefined;
  readonly direction: Direction;
  /** True for the way back to the camera's loudspeaker: such a section is never set up. */
  readonly backchannel: boolean;
}

/** What a camera offers under one URL. */
export interface Presentation {
  /** `a=control` of the session part, as written. */
  readonly control: string | undefined;
  /** In the order of the SDP; the index is the media's name in this program. */
  readonly media: readonly Media[];
}
