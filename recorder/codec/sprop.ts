// Decodes parameter sets in an SDP (`sprop-…`: base64, separated by commas).

import { START_CODE } from './nal-syntax.ts';
import type { ParameterSets } from './parameter-sets.ts';

const MAX_SPROP_LENGTH = 16_384;

/** The NAL units of one attribute. Some cameras leave the start code of the next one after each (gw_main). */
export function parseSprop(value: string | undefined): Buffer[] {
  if (value === undefined || value.length > MAX_SPROP_LENGTH) return [];
  const nals: Buffer[] = [];
  for (const part of value.split(',')) {
    let nal = Buffer.from(part.trim(), 'base64');
    // There may be a start code before it too: zeros, then a one.
    const first = nal.findIndex((byte) => byte !== 0);
    if (first > 0 && nal[first] === 1) nal = nal.subarray(first + 1);
    const tail = nal.indexOf(START_CODE);
    if (tail >= 0) nal = nal.subarray(0, tail);
    // No NAL unit ends with a zero (ITU-T H.264 §7.4.1): it belongs to the start code.
    while (nal.at(-1) === 0) nal = nal.subarray(0, -1);
    if (nal.length > 1) nals.push(nal);
  }
  return nals;
}

/**
 * Uses the sets of an SDP as the first ones in force, if every kind that a decoder needs is there and valid. An incomplete or
 * broken collection (a missing PPS, VPS without SPS, VStarcam's SPS without header) is ignored; the sets in band are used then.
 */
export function useSprop(sets: ParameterSets, nals: readonly Buffer[]): boolean {
  for (const nal of nals) {
    if (sets.offer(nal, 0, nal.length) === 'invalid') {
      sets.rollback();
      return false;
    }
  }
  if (!sets.isStagedComplete()) {
    sets.rollback();
    return false;
  }
  sets.commit();
  sets.activate(undefined);
  return true;
}
