// Evaluates the conditional headers of a request (RFC 9110 §13).

/** Identifies one state of a resource. */
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

/** Evaluates the conditions in the order of RFC 9110 §13.2.2. */
export function evaluate(headers: ConditionalHeaders, current: Validators): 'send' | 'not-modified' | 'failed' {
  const match = headers['if-match'];
  const unmodifiedSince = seconds(headers['if-unmodified-since']);
  const noneMatch = headers['if-none-match'];
  const modifiedSince = seconds(headers['if-modified-since']);
  if (match !== undefined) {
    if (!listsStrongTag(match, current.etag)) return 'failed';
  } else if (unmodifiedSince !== undefined && wholeSeconds(current) > unmodifiedSince) return 'failed';
  if (noneMatch !== undefined) return listsTag(noneMatch, current.etag) ? 'not-modified' : 'send';
  return modifiedSince !== undefined && wholeSeconds(current) <= modifiedSince ? 'not-modified' : 'send';
}

/** Whether `Range` applies: without `If-Range`, or if that names this state (§13.1.5). */
export function rangeApplies(headers: ConditionalHeaders, current: Validators): boolean {
  const ifRange = headers['if-range'];
  if (ifRange === undefined) return true;
  if (/^(W\/)?"/.test(ifRange)) return ifRange === current.etag;
  return seconds(ifRange) === wholeSeconds(current);
}

/** The tags in a list, with the prefix `W/` of weak ones. */
const entityTags = (list: string | undefined): string[] => list?.match(/(W\/)?"[^"]*"/g) ?? [];

/** Whether `If-None-Match` names the state; tags are compared weakly (RFC 9110 §13.1.2). */
export const listsTag = (list: string | undefined, etag: string): boolean =>
  list !== undefined && (list.trim() === '*' || entityTags(list).some((tag) => strong(tag) === strong(etag)));

/** The comparison of `If-Match`: a weak tag never matches (§13.1.1). */
const listsStrongTag = (list: string, etag: string): boolean =>
  list.trim() === '*' || entityTags(list).some((tag) => tag === etag);

const strong = (tag: string): string => tag.replace(/^W\//, '');

/** HTTP dates have no fractions. */
const wholeSeconds = ({ modifiedMs }: Validators): number => Math.floor(modifiedMs / 1000);

function seconds(date: string | undefined): number | undefined {
  const ms = date === undefined ? NaN : Date.parse(date);
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}
