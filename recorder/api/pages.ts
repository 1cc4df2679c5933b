// Divides long lists into pages. A cursor holds the place of the last entry, not a count of entries: an entry that is added
// or removed between two requests does not shift the next page.

import { assert } from '../../base/assert.ts';
import { z } from 'zod';
import { ApiError } from '../http/problem.ts';
import { queryNumber } from '../http/query.ts';

const MAX_ENTRIES = 1_000;
const USUAL_ENTRIES = 100;
const LIMIT = `expected a whole number from 1 to ${MAX_ENTRIES}`;
const CURSOR = 'expected the value of next in an answer';

export const PageQuery = z.object({
  limit: queryNumber(z.int(LIMIT).min(1, LIMIT).max(MAX_ENTRIES, LIMIT))
    .optional()
    .describe(
      `At most this many entries; ${USUAL_ENTRIES} when there is only a cursor. Without both, the answer has all entries.`,
    ),
  cursor: z
    .string(CURSOR)
    .regex(/^[A-Za-z0-9_-]{1,1024}$/, CURSOR)
    .optional()
    .describe('`next` of the previous answer. All other parameters must be the same as before.'),
});

export const Next = z
  .string()
  .nullable()
  .optional()
  .describe('Only with limit or cursor: the cursor of the next page, null on the last.');

type PageRequest = z.output<typeof PageQuery>;
/** The sort key of an entry: entries are compared by the first value, then by the next. */
type SortKey = readonly (number | string)[];

/** The place in a cursor, parsed with `schema`; undefined without a cursor. Throws ApiError for a cursor of another list. */
export function placeOf<T extends SortKey>(cursor: string | undefined, schema: z.ZodType<T>): T | undefined {
  if (cursor === undefined) return undefined;
  try {
    return schema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
  } catch (err) {
    throw new ApiError(400, 'invalid-parameter', `cursor: ${CURSOR}`, { cause: err });
  }
}

export const cursorOf = (place: SortKey): string => Buffer.from(JSON.stringify(place)).toString('base64url');

/**
 * At most `limit` entries after `after`, and the cursor of the next page; all entries without limit and cursor. `placeOf`
 * returns the place of an entry, with as many values as `after` has.
 */
export function pageOf<T>(
  entries: readonly T[],
  { limit, cursor }: PageRequest,
  after: SortKey | undefined,
  placeOf: (entry: T) => SortKey,
): { readonly entries: readonly T[]; readonly next?: string | null } {
  if (limit === undefined && cursor === undefined) return { entries };
  const placed = entries.map((entry) => ({ entry, place: placeOf(entry) })).sort((a, b) => compare(a.place, b.place));
  const rest = after ? placed.filter(({ place }) => compare(place, after) > 0) : placed;
  const page = rest.slice(0, limit ?? USUAL_ENTRIES);
  const last = rest.length > page.length ? page.at(-1) : undefined;
  return { entries: page.map(({ entry }) => entry), next: last ? cursorOf(last.place) : null };
}

function compare(a: SortKey, b: SortKey): number {
  const i = a.findIndex((value, k) => value !== b[k]);
  if (i < 0) return 0;
  const [one, other] = [a[i], b[i]];
  if (typeof one === 'string' && typeof other === 'string') return one < other ? -1 : 1;
  assert(typeof one === 'number' && typeof other === 'number', 'the places of a list have the same form');
  return one < other ? -1 : 1;
}

/** The same page of another node, to be added to a query. */
export const pageQuery = ({ limit, cursor }: z.output<typeof PageQuery>): string =>
  [limit === undefined ? '' : `&limit=${limit}`, cursor === undefined ? '' : `&cursor=${cursor}`].join('');
