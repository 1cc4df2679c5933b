// The parameter sets of one video stream, from SDP and in band, and the `NalParameters` made of them.
//
// What arrives in an access unit is staged until that unit is known to be whole, then becomes what a decoder knows
// (`current`). The parameters of the track follow at the next random access point only: there a new object is made
// when a set that the picture uses has changed.

import { ownCopy } from '../../base/own-copy.ts';
import type { NalParameters } from './access-unit.ts';
import type { NalSyntax, ParsedSet, SetKind, SetLookup } from './nal-syntax.ts';

/** Larger ones are no parameter sets of a camera. */
const MAX_SET_BYTES = 4096;
/** Sets of one access unit; more are ignored. */
const MAX_STAGED = 64;

const NOTHING: readonly Buffer[] = [];

export type Offer = 'repeated' | 'changed' | 'invalid';

export class ParameterSets implements SetLookup {
  readonly #syntax: NalSyntax;
  readonly #current: Readonly<Record<SetKind, Map<number, ParsedSet>>> = {
    vps: new Map(),
    sps: new Map(),
    pps: new Map(),
  };
  #staged: ParsedSet[] = [];
  /** Those of the last access unit that was whole. */
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

  /** A set as the access unit in work sees it. */
  get(kind: SetKind, id: number): ParsedSet | undefined {
    for (let i = this.#staged.length - 1; i >= 0; i--) {
      const set = this.#staged[i] as ParsedSet;
      if (set.kind === kind && set.id === id) return set;
    }
    return this.#current[kind].get(id);
  }

  /** Whether the SPS in force allows pictures that are fields. */
  get mayHaveFields(): boolean {
    for (const sps of this.#current.sps.values()) if (sps.mayHaveFields) return true;
    return false;
  }

  /**
   * Takes a set found in an access unit, `bytes[start, end)`. `repeated` when decoder and track know it already: it can
   * be left out of the access unit.
   */
  offer(bytes: Buffer, start: number, end: number): Offer {
    // Zeros behind the stop bit belong to a byte stream, not to the set.
    let setEnd = end;
    while (setEnd > start && bytes[setEnd - 1] === 0) setEnd--;
    if (setEnd - start > MAX_SET_BYTES || setEnd === start) return 'invalid';
    const known = this.#find(bytes, start, setEnd);
    if (known) return this.#isInForce(known) ? 'repeated' : this.#stage(known);
    const set = this.#syntax.parseSet(ownCopy(bytes.subarray(start, setEnd)));
    if (!set) return 'invalid';
    return this.#stage(set);
  }

  /** Whether the staged sets hold a PPS and all that it refers to. */
  isStagedComplete(): boolean {
    return this.#staged.some((pps) => {
      const sps = pps.kind === 'pps' ? this.get('sps', pps.refersTo) : undefined;
      return (
        sps !== undefined && (!this.#syntax.setKinds.includes('vps') || this.#staged.some((s) => s.kind === 'vps'))
      );
    });
  }

  /** The access unit that held the staged sets is whole: decoders will know them. */
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

  /** The access unit that held the staged sets is damaged. */
  rollback(): void {
    this.#staged.length = 0;
  }

  /**
   * Brings `parameters` up to date for the picture of the access unit just committed, which decoding can start at and
   * which uses this PPS. Returns the sets that are new to the track and were not in that access unit: it needs them.
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

  /** A set with exactly these bytes that is what the access unit in work sees under its id. */
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
