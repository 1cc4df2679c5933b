// The headers that make a request conditional in, what becomes of it out (RFC 9110 §13).

/** What tells one state of a resource from another. */
export interface Validators {
  /** Strong, with its quotes. */
  readonly etag: string;
  readonly modifiedMs: number;
}

export interface ConditionalHeaders {
  readonly 'if-match'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
  readonly 'if-modified-since'?: string | undefined;
  readonly 'if-unmodified-since'?: string | undefined;
  readonly 'if-range'?: string | undefined;
}

/** In the order of RFC 9110 §13.2.2. */
export function evaluate(headers: ConditionalHeaders, current: Validators): 'send' | 'not-modified' | 'failed' {
  const match = headers['if-match'];
  const unmodifiedSince = seconds(headers['if-unmodified-since']);
  const noneMatch = headers['if-none-match'];
  const modifiedSince = seconds(headers['if-modified-since']);
  if (match !== undefined) {
    // Strong comparison: a weak tag never matches.
    if (!listed(match, current.etag, false)) return 'failed';
  } else if (unmodifiedSince !== undefined && wholeSeconds(current) > unmodifiedSince) return 'failed';
  if (noneMatch !== undefined) return listed(noneMatch, current.etag, true) ? 'not-modified' : 'send';
  return modifiedSince !== undefined && wholeSeconds(current) <= modifiedSince ? 'not-modified' : 'send';
}

/** Whether `Range` is to be looked at: without `If-Range`, or when it names this very state (§13.1.5). */
export function rangeApplies(headers: ConditionalHeaders, current: Validators): boolean {
  const ifRange = headers['if-range'];
  if (ifRange === undefined) return true;
  if (/^(W\/)?"/.test(ifRange)) return ifRange === current.etag;
  return seconds(ifRange) === wholeSeconds(current);
}

/** The tags in a list, with `W/` where it stands. */
export const entityTags = (list: string | undefined): string[] => list?.match(/(W\/)?"[^"]*"/g) ?? [];

const listed = (list: string, etag: string, weakly: boolean): boolean =>
  list.trim() === '*' || entityTags(list).some((tag) => (weakly ? tag.replace(/^W\//, '') : tag) === etag);

/** HTTP dates have no fractions. */
const wholeSeconds = ({ modifiedMs }: Validators): number => Math.floor(modifiedMs / 1000);

function seconds(date: string | undefined): number | undefined {
  const ms = date === undefined ? NaN : Date.parse(date);
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}
