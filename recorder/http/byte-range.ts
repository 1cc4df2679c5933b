// Parses the header `Range` (RFC 9110 §14).

/** Bytes from `from` to before `to`. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/** More than any player asks for; a request with more ranges is probably an attack (RFC 9110 §14.2, §17.15). */
const MAX_RANGES = 16;

/**
 * `whole`: no range, or one that is ignored: of another unit, or malformed (§14.2).
 * `unsatisfiable`: answer 416.
 */
type RangeRequest =
  | { readonly kind: 'whole' }
  | { readonly kind: 'ranges'; readonly ranges: readonly ByteRange[] }
  | { readonly kind: 'unsatisfiable' };

/** `header` as it was sent, for a representation of `size` bytes. */
export function parseRange(header: string | undefined, size: number): RangeRequest {
  const set = /^bytes=(.*)$/i.exec(header ?? '')?.[1];
  if (set === undefined) return { kind: 'whole' };
  const specs = set
    .split(',')
    .map((spec) => spec.trim())
    .filter((spec) => spec !== ''); // a list may have empty elements (§5.6.1.2)
  if (specs.length === 0) return { kind: 'whole' };
  if (specs.length > MAX_RANGES) return { kind: 'unsatisfiable' };
  const ranges: ByteRange[] = [];
  for (const spec of specs) {
    const parsed = parseSpec(spec, size);
    if (!parsed) return { kind: 'whole' };
    if (parsed.from < parsed.to) ranges.push(parsed);
  }
  if (ranges.length === 0 || overlapTwice(ranges)) return { kind: 'unsatisfiable' };
  return { kind: 'ranges', ranges };
}

/** `first-last`, `first-` or `-suffix`; an empty range when it lies after the end, undefined when malformed. */
function parseSpec(spec: string, size: number): ByteRange | undefined {
  const match = /^(\d{0,15})-(\d{0,15})$/.exec(spec);
  if (!match || spec === '-') return undefined;
  const [, first = '', last = ''] = match;
  if (first === '') return { from: Math.max(0, size - Number(last)), to: size };
  const from = Number(first);
  if (last !== '' && Number(last) < from) return undefined;
  return { from, to: Math.min(size, last === '' ? size : Number(last) + 1) };
}

/** More than two ranges that overlap one another are an attack, or a mistake (§14.2). */
function overlapTwice(ranges: readonly ByteRange[]): boolean {
  const sorted = ranges.toSorted((a, b) => a.from - b.from);
  let overlaps = 0;
  let end = 0;
  for (const range of sorted) {
    if (range.from < end) overlaps++;
    end = Math.max(end, range.to);
  }
  return overlaps > 1;
}

export const contentRange = ({ from, to }: ByteRange, size: number): string => `bytes ${from}-${to - 1}/${size}`;
