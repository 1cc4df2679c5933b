// Keeps the parameter sets of one video stream, from the SDP and in band, and makes `NalParameters` from them.
//
// Sets in an access unit are staged until that unit is known to be complete, and then count as known to a decoder (`current`).
// The parameters of the track change only at the next random access point: if a set that the picture uses has changed, a new
// object is made.

import { ownCopy } from '../../base/own-copy.ts';
import type { NalParameters } from './access-unit.ts';
import type { NalSyntax, ParsedSet, SetKind, SetLookup } from './nal-syntax.ts';

/** Larger NAL units are not parameter sets of a camera. */
const MAX_SET_BYTES = 4096;
/** Limit for one access unit; more are ignored. */
const MAX_STAGED = 64;

const NOTHING: readonly Buffer[] = [];

type Offer = 'repeated' | 'changed' | 'invalid';

export class ParameterSets implements SetLookup {
  readonly #syntax: NalSyntax;
  readonly #current: Readonly<Record<SetKind, Map<number, ParsedSet>>> = {
    vps: new Map(),
    sps: new Map(),
    pps: new Map(),
  };
  #staged: ParsedSet[] = [];
  /** The sets of the last complete access unit. */
  #committed: ParsedSet[] = [];
  #activePpsId: number | undefined;
  #parameters: NalParameters | undefined;
  /** Whether `current` has changed since `parameters` was made. */
  #changed = false;

  constructor(syntax: NalSyntax) {
    this.#syntax = syntax;
  }

  get parameters(): NalParameters | undefined {
    return this.#parameters;
  }

  /** A set as seen by the current access unit. */
  get(kind: SetKind, id: number): ParsedSet | undefined {
    for (let i = this.#staged.length - 1; i >= 0; i--) {
      const set = this.#staged[i] as ParsedSet;
      if (set.kind === kind && set.id === id) return set;
    }
    return this.#current[kind].get(id);
  }

  get mayHaveFields(): boolean {
    for (const sps of this.#current.sps.values()) if (sps.mayHaveFields) return true;
    return false;
  }

  /**
   * Takes a set from an access unit, `bytes[start, end)`. `repeated` means that decoder and track have it already, so that it can
   * be removed from the access unit.
   */
  offer(bytes: Buffer, start: number, end: number): Offer {
    // Zeros after the stop bit belong to a byte stream, not to the set.
    let setEnd = end;
    while (setEnd > start && bytes[setEnd - 1] === 0) setEnd--;
    if (setEnd - start > MAX_SET_BYTES || setEnd === start) return 'invalid';
    const known = this.#find(bytes, start, setEnd);
    if (known) return this.#isInForce(known) ? 'repeated' : this.#stage(known);
    const set = this.#syntax.parseSet(ownCopy(bytes.subarray(start, setEnd)));
    if (!set) return 'invalid';
    return this.#stage(set);
  }

  /** Whether the staged sets contain a PPS and everything that it refers to. */
  isStagedComplete(): boolean {
    return this.#staged.some((pps) => {
      const sps = pps.kind === 'pps' ? this.get('sps', pps.refersTo) : undefined;
      return (
        sps !== undefined && (!this.#syntax.setKinds.includes('vps') || this.#staged.some((s) => s.kind === 'vps'))
      );
    });
  }

  /** The access unit with the staged sets is complete: decoders will know them. */
  commit(): void {
    const staged = this.#staged;
    this.#staged = this.#committed;
    this.#staged.length = 0;
    this.#committed = staged;
    for (const set of staged) {
      if (this.#current[set.kind].get(set.id) === set) continue;
      this.#current[set.kind].set(set.id, set);
      this.#changed = true;
    }
  }

  /** The access unit with the staged sets is damaged. */
  rollback(): void {
    this.#staged.length = 0;
  }

  /**
   * Updates `parameters` for the random access point that was just committed; its picture uses this PPS. Returns the sets that
   * are new to the track and missing in that access unit: they must be added.
   */
  activate(ppsId: number | undefined): readonly Buffer[] {
    if (this.#parameters && !this.#changed && this.#activePpsId === ppsId) return NOTHING;
    const pps = (ppsId === undefined ? undefined : this.#current.pps.get(ppsId)) ?? firstOf(this.#current.pps);
    const sps = pps && this.#current.sps.get(pps.refersTo);
    if (!pps || !sps) return NOTHING;
    const vps = this.#current.vps.get(sps.refersTo) ?? firstOf(this.#current.vps);
    if (!vps && this.#syntax.setKinds.includes('vps')) return NOTHING;
    this.#changed = false;
    this.#activePpsId = ppsId;
    const allPps = [...this.#current.pps.values()].filter((set) => set.refersTo === sps.id).sort((a, b) => a.id - b.id);
    const next = this.#syntax.describe(vps, sps, allPps);
    const before = this.#parameters;
    const had = before && [...before.vps, ...before.sps, ...before.pps];
    const has = [...next.vps, ...next.sps, ...next.pps];
    if (had && had.length === has.length && has.every((nal, i) => nal === had[i])) return NOTHING;
    this.#parameters = next;
    if (!had) return NOTHING;
    return has.filter((nal) => !had.includes(nal) && !this.#committed.some((set) => set.nal === nal));
  }

  /** A set with exactly these bytes that is in force under its id for the current access unit. */
  #find(bytes: Buffer, start: number, end: number): ParsedSet | undefined {
    for (const set of this.#staged) if (this.#isSeen(set) && equals(set.nal, bytes, start, end)) return set;
    for (const kind of this.#syntax.setKinds) {
      for (const set of this.#current[kind].values()) {
        if (equals(set.nal, bytes, start, end) && this.#isSeen(set)) return set;
      }
    }
    return undefined;
  }

  #isSeen(set: ParsedSet): boolean {
    return this.get(set.kind, set.id) === set;
  }

  #isInForce(set: ParsedSet): boolean {
    return this.#staged.includes(set) || (this.#parameters?.[set.kind].includes(set.nal) ?? false);
  }

  #stage(set: ParsedSet): Offer {
    if (this.#staged.length >= MAX_STAGED) return 'invalid';
    this.#staged.push(set);
    return 'changed';
  }
}

function firstOf(sets: ReadonlyMap<number, ParsedSet>): ParsedSet | undefined {
  let first: ParsedSet | undefined;
  for (const set of sets.values()) if (!first || set.id < first.id) first = set;
  return first;
}

function equals(nal: Buffer, bytes: Buffer, start: number, end: number): boolean {
  return nal.length === end - start && nal.compare(bytes, start, end) === 0;
}
