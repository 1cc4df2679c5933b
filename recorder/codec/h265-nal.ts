// The syntax of H.265 NAL units: their role in an access unit, slice headers, parameter sets (ITU-T H.265 §7.3, §7.4.2).

import type { NalParameters } from './access-unit.ts';
import { BitReader } from './bit-reader.ts';
import { h265CodecString, parseH265Sps } from './h265-sps.ts';
import { ROLE, type NalSyntax, type ParsedSet, type Role, type SetLookup, type SliceHeader } from './nal-syntax.ts';

const H265_NAL = { bla: 16, idr: 19, cra: 21, vps: 32, sps: 33, pps: 34, delimiter: 35, prefixSei: 39 } as const;

const isIntraRandomAccess = (type: number): boolean => type >= H265_NAL.bla && type <= 23;

export class H265Syntax implements NalSyntax {
  readonly codec = 'h265';
  readonly headerBytes = 2;
  readonly setKinds = ['vps', 'sps', 'pps'] as const;
  readonly #reader = new BitReader();

  nalType(firstByte: number): number {
    return (firstByte >> 1) & 0x3f;
  }

  role(type: number): Role {
    if (type <= 9 || (type >= 16 && type <= 21)) return ROLE.slice;
    if (type >= H265_NAL.vps && type <= H265_NAL.pps) return ROLE.parameterSet;
    if (type === H265_NAL.delimiter) return ROLE.delimiter;
    if (type >= 36 && type <= 38) return ROLE.dropped; // end of sequence, end of bitstream, filler
    if (type === H265_NAL.prefixSei) return ROLE.prefix;
    if (type === 40) return ROLE.suffix; // suffix SEI
    return ROLE.unknown;
  }

  parseSet(nal: Buffer): ParsedSet | undefined {
    const type = this.nalType(nal[0] as number);
    if (nal.length < 4) return undefined;
    const rest = { refersTo: 0, extraSliceHeaderBits: 0, mayHaveFields: false, nal };
    if (type === H265_NAL.vps) return { ...rest, kind: 'vps', id: (nal[2] as number) >> 4 };
    if (type === H265_NAL.sps) {
      const sps = parseH265Sps(nal);
      return sps && { ...rest, kind: 'sps', id: sps.id, refersTo: sps.vpsId };
    }
    if (type !== H265_NAL.pps) return undefined;
    const reader = this.#reader.reset(nal, 2, nal.length);
    const id = reader.ue(); // pps_pic_parameter_set_id
    const refersTo = reader.ue(); // pps_seq_parameter_set_id
    reader.skip(2); // dependent_slice_segments_enabled_flag, output_flag_present_flag
    const extraSliceHeaderBits = reader.bits(3); // num_extra_slice_header_bits
    if (reader.overrun || id > 63 || refersTo > 15) return undefined;
    return { ...rest, kind: 'pps', id, refersTo, extraSliceHeaderBits };
  }

  readSlice(bytes: Buffer, start: number, end: number, sets: SetLookup, header: SliceHeader): boolean {
    const type = this.nalType(bytes[start] as number);
    const reader = this.#reader.reset(bytes, start + 2, end);
    const first = reader.flag(); // first_slice_segment_in_pic_flag
    if (isIntraRandomAccess(type)) reader.bit(); // no_output_of_prior_pics_flag
    header.randomAccess = isIntraRandomAccess(type);
    header.intra = header.randomAccess;
    header.ppsId = reader.ue(); // slice_pic_parameter_set_id
    header.bidirectional = false;
    // In further slices the type follows an address whose length only the SPS states; reading the first slice is enough.
    if (first) {
      reader.skip(sets.get('pps', header.ppsId)?.extraSliceHeaderBits ?? 0);
      header.bidirectional = reader.ue() === 0; // slice_type
    }
    return !reader.overrun;
  }

  recoveryCount(): undefined {
    return undefined; // open groups have CRA pictures, and x265 does not mark the start of a gradual refresh
  }

  describe(vps: ParsedSet | undefined, spsSet: ParsedSet, pps: readonly ParsedSet[]): NalParameters {
    const sps = parseH265Sps(spsSet.nal);
    return {
      kind: 'video',
      codec: 'h265',
      width: sps?.width ?? 0,
      height: sps?.height ?? 0,
      vps: vps ? [vps.nal] : [],
      sps: [spsSet.nal],
      pps: pps.map((set) => set.nal),
      codecString: sps ? h265CodecString(sps.profileTierLevel) : '',
      reorderDepth: sps?.reorderDepth,
      ...(sps?.pixelAspect ? { pixelAspect: sps.pixelAspect } : {}),
    };
  }
}
