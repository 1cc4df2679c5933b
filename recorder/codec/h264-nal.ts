// The syntax of H.264 NAL units: their role in an access unit, slice headers, picture parameter sets, recovery points (ITU-T
// H.264 §7.3, §7.4.1, Annex D).

import type { NalParameters } from './access-unit.ts';
import { BitReader } from './bit-reader.ts';
import { h264CodecString, parseH264Sps } from './h264-sps.ts';
import { ROLE, findRecoveryPoint } from './nal-syntax.ts';
import type { NalSyntax, ParsedSet, Role, SetLookup, SliceHeader } from './nal-syntax.ts';

const H264_NAL = { slice: 1, idr: 5, sei: 6, sps: 7, pps: 8, delimiter: 9 } as const;

const ROLES: readonly Role[] = [
  ROLE.unknown,
  ROLE.slice, // 1: non-IDR
  ROLE.slice, // 2: data partition A
  ROLE.suffix, // 3: data partition B
  ROLE.suffix, // 4: data partition C
  ROLE.slice, // 5: IDR
  ROLE.prefix, // 6: SEI
  ROLE.parameterSet, // 7: SPS
  ROLE.parameterSet, // 8: PPS
  ROLE.delimiter, // 9: access unit delimiter
  ROLE.dropped, // 10: end of sequence
  ROLE.dropped, // 11: end of stream
  ROLE.dropped, // 12: filler
  ROLE.prefix, // 13: SPS extension
  ROLE.prefix, // 14: prefix of the base layer of a scalable stream
  ROLE.dropped, // 15: subset SPS of layers that we do not store
  ROLE.unknown,
  ROLE.unknown,
  ROLE.unknown,
  ROLE.suffix, // 19: auxiliary slice
  ROLE.dropped, // 20: slice of another layer
];

export class H264Syntax implements NalSyntax {
  readonly codec = 'h264';
  readonly headerBytes = 1;
  readonly setKinds = ['sps', 'pps'] as const;
  readonly #reader = new BitReader();

  nalType(firstByte: number): number {
    return firstByte & 0x1f;
  }

  role(type: number): Role {
    return ROLES[type] ?? ROLE.unknown;
  }

  parseSet(nal: Buffer): ParsedSet | undefined {
    if (this.nalType(nal[0] as number) === H264_NAL.sps) {
      const sps = parseH264Sps(nal);
      if (!sps) return undefined;
      return { kind: 'sps', id: sps.id, refersTo: 0, extraSliceHeaderBits: 0, mayHaveFields: !sps.framesOnly, nal };
    }
    if (this.nalType(nal[0] as number) !== H264_NAL.pps) return undefined;
    const reader = this.#reader.reset(nal, 1, nal.length);
    const id = reader.ue(); // pic_parameter_set_id
    const refersTo = reader.ue(); // seq_parameter_set_id
    if (reader.overrun || id > 255 || refersTo > 31) return undefined;
    return { kind: 'pps', id, refersTo, extraSliceHeaderBits: 0, mayHaveFields: false, nal };
  }

  readSlice(bytes: Buffer, start: number, end: number, _sets: SetLookup, header: SliceHeader): boolean {
    const reader = this.#reader.reset(bytes, start + 1, end);
    reader.ue(); // first_mb_in_slice
    const sliceType = reader.ue() % 5; // slice_type; 5 to 9 mean that all slices of the picture have the same type
    header.randomAccess = this.nalType(bytes[start] as number) === H264_NAL.idr;
    header.bidirectional = sliceType === 1;
    header.intra = sliceType === 2 || sliceType === 4;
    header.ppsId = reader.ue(); // pic_parameter_set_id
    return !reader.overrun;
  }

  /**
   * Encoders with open groups mark their I pictures like this; those with gradual refresh mark the first picture of each cycle.
   */
  recoveryCount(bytes: Buffer, start: number, end: number): number | undefined {
    if (this.nalType(bytes[start] as number) !== H264_NAL.sei) return undefined;
    return findRecoveryPoint(bytes, start + 1, end, this.#reader) ? this.#reader.ue() : undefined; // recovery_frame_cnt
  }

  describe(_vps: ParsedSet | undefined, spsSet: ParsedSet, pps: readonly ParsedSet[]): NalParameters {
    const sps = parseH264Sps(spsSet.nal);
    return {
      kind: 'video',
      codec: 'h264',
      width: sps?.width ?? 0,
      height: sps?.height ?? 0,
      vps: [],
      sps: [spsSet.nal],
      pps: pps.map((set) => set.nal),
      codecString: h264CodecString(spsSet.nal),
      reorderDepth: sps?.reorderDepth,
      ...(sps?.pixelAspect ? { pixelAspect: sps.pixelAspect } : {}),
    };
  }
}
