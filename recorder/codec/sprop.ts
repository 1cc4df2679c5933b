// Parameter sets of an SDP (`sprop-…`, base64, separated by commas) in, NAL units out.

import type { ParameterSets } from './parameter-sets.ts';

const START_CODE = Buffer.from([0, 0, 1]);
const MAX_SPROP_LENGTH = 16_384;

/** NAL units of one attribute. Some cameras leave the start code of the next one behind each (gw_main). */
export function parseSprop(value: string | undefined): Buffer[] {
  if (value === undefined || value.length > MAX_SPROP_LENGTH) return [];
  const nals: Buffer[] = [];
  for (const part of value.split(',')) {
    let nal = Buffer.from(part.trim(), 'base64');
    // A start code in front as well: zeros, then a one.
    const first = nal.findIndex((byte) => byte !== 0);
    if (first > 0 && nal[first] === 1) nal = nal.subarray(first + 1);
    const tail = nal.indexOf(START_CODE);
    if (tail >= 0) nal = nal.subarray(0, tail);
    // No NAL unit ends in a zero (ITU-T H.264 §7.4.1): it belongs to the start code.
    while (nal.at(-1) === 0) nal = nal.subarray(0, -1);
    if (nal.length > 1) nals.push(nal);
  }
  return nals;
}

/**
 * Takes sets from an SDP as the first ones in force, when all kinds that a decoder needs are there and make sense. An
 * incomplete or broken collection (a missing PPS, VPS without SPS, VStarcam's SPS without header) counts as none: what
 * comes in band is used then.
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
