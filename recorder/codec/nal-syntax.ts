// The interface between the assembly of access units and the syntax of H.264 or H.265: the role of each NAL unit type, and a few
// fields.

import type { NalParameters } from './access-unit.ts';
import type { BitReader } from './bit-reader.ts';

/** The role of a NAL unit in an access unit. Numbers, because this is used for every NAL unit. */
export const ROLE = {
  /** Reserved or unspecified: dropped and counted. */
  unknown: 0,
  /** Filler, end of sequence: dropped. */
  dropped: 1,
  /** Access unit delimiter: dropped, but starts an access unit. */
  delimiter: 2,
  parameterSet: 3,
  /** SEI and others before the picture: starts an access unit if a picture came before. */
  prefix: 4,
  /** The first or a further slice. */
  slice: 5,
  /** Belongs to the previous picture, such as auxiliary slices and suffix SEI. */
  suffix: 6,
} as const;
export type Role = (typeof ROLE)[keyof typeof ROLE];

/** Separates NAL units in a byte stream (ITU-T H.264 Annex B). */
export const START_CODE = Buffer.from([0, 0, 1]);

export type SetKind = 'vps' | 'sps' | 'pps';

/** A parameter set and its references. */
export type ParsedSet = {
  readonly kind: SetKind;
  readonly id: number;
  /** PPS: id of its SPS. SPS: id of its VPS (H.265). Otherwise 0. */
  readonly refersTo: number;
  /** H.265 PPS: num_extra_slice_header_bits. */
  readonly extraSliceHeaderBits: number;
  /** H.264 SPS: pictures may be fields. */
  readonly mayHaveFields: boolean;
  readonly nal: Buffer;
};

/** Fields of a slice header; one object is reused. */
export type SliceHeader = {
  /** IDR, BLA or CRA by its NAL unit type. */
  randomAccess: boolean;
  /** I slice. */
  intra: boolean;
  /** B slice. */
  bidirectional: boolean;
  ppsId: number;
};

export interface NalSyntax {
  readonly codec: NalParameters['codec'];
  readonly headerBytes: 1 | 2;
  /** The kinds of parameter sets that a decoder needs. */
  readonly setKinds: readonly SetKind[];
  nalType(firstByte: number): number;
  role(type: number): Role;
  /** Parses a parameter set and keeps `nal`; undefined if it cannot be used. */
  parseSet(nal: Buffer): ParsedSet | undefined;
  /**
   * Reads the header of the slice `bytes[start, end)` into `header`; false if it cannot be read. `first` is false for further
   * slices of a picture, in which some fields cannot be read.
   */
  readSlice(bytes: Buffer, start: number, end: number, sets: SetLookup, header: SliceHeader): boolean;
  /**
   * The recovery_frame_cnt of this SEI if it has a recovery point: if decoding starts there, this many pictures later they are
   * complete.
   */
  recoveryCount(bytes: Buffer, start: number, end: number): number | undefined;
  describe(vps: ParsedSet | undefined, sps: ParsedSet, pps: readonly ParsedSet[]): NalParameters;
}

export interface SetLookup {
  get(kind: SetKind, id: number): ParsedSet | undefined;
}

const RECOVERY_POINT = 6;
const USER_DATA_UNREGISTERED = 5;
/** The identifiers of signatures: ONVIF Media Signing, and Axis signed video before that. */
const SIGNATURES = ['005bc93f2d715e95ada4796f90877a6f', '5369676e656420566964656f2e2e2e30'].map((id) =>
  Buffer.from(id, 'hex'),
);
/** ONVIF Media Signing: the first byte after the identifier says that the message has the certificate. */
const HAS_CERTIFICATE = 0x80;

/** Calls `found` with type and payload of each message of an SEI, `bytes[start, end)` without its header; returns where they end. */
function readMessages(
  bytes: Buffer,
  start: number,
  end: number,
  found: (type: number, from: number, to: number) => void,
): number {
  let at = start;
  // The last byte contains the trailing bits.
  while (at + 2 < end) {
    let type = 0;
    let size = 0;
    while (bytes[at] === 0xff && at < end) {
      type += 255;
      at++;
    }
    type += bytes[at++] ?? 0;
    while (bytes[at] === 0xff && at < end) {
      size += 255;
      at++;
    }
    size += bytes[at++] ?? 0;
    found(type, at, at + size);
    at += size;
  }
  return at;
}

/**
 * Searches the messages of an SEI, `bytes[start, end)` without its header, for a recovery point, and moves `reader` to its
 * payload (H.264 §D.1.8, H.265 §D.2.8).
 */
export function findRecoveryPoint(bytes: Buffer, start: number, end: number, reader: BitReader): boolean {
  let isFound = false;
  readMessages(bytes, start, end, (type, from, to) => {
    if (isFound || type !== RECOVERY_POINT) return;
    isFound = true;
    reader.reset(bytes, from, Math.min(end, to));
  });
  return isFound;
}

/**
 * Whether the sizes of the messages agree with that of the SEI. Then bytes that look like a start code belong to a message: cameras that
 * sign leave out the emulation prevention.
 */
export const isWholeSei = (bytes: Buffer, start: number, end: number): boolean =>
  bytes[end - 1] === 0x80 && readMessages(bytes, start, end, () => {}) === end - 1;

/** What an SEI, without its header, has of signed video; undefined if nothing. */
export function signatureIn(bytes: Buffer, start: number, end: number): 'certificate' | 'signature' | undefined {
  let signature: 'certificate' | 'signature' | undefined;
  readMessages(bytes, start, end, (type, from) => {
    if (type !== USER_DATA_UNREGISTERED) return;
    const which = SIGNATURES.findIndex((id) => id.compare(bytes, from, from + id.length) === 0);
    if (which < 0) return;
    const hasCertificate = which === 0 && ((bytes[from + 16] ?? 0) & HAS_CERTIFICATE) !== 0;
    signature = hasCertificate ? 'certificate' : 'signature';
  });
  return signature;
}
