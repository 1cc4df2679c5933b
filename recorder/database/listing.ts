// Lists closed segments and days of a camera from the table. Segments whose rows are not written yet, and those in progress, are
// added from memory, so that none is ever missing.

import { localCalendar, offsetCalendar, type Calendar } from '../archive/catalogue/calendar.ts';
import type { ListQuery, SegmentListing } from '../archive/catalogue/listing.ts';
import { ORIGINS } from '../mp4/meta.ts';
import { LOOK_BACK, MAX_SEGMENT_MS, type OpenSegment, type Segment } from '../archive/catalogue/segment.ts';
import type { Clock } from '../../base/clock.ts';
import { HOUR_MS } from '../../base/units.ts';
import type { Connection } from './connection.ts';
import { DatabaseError } from './error.ts';
import { cameraOf, filenameOf, type RecordingRow, type RowChange } from './row.ts';

interface ListingDeps {
  readonly connection: Pick<Connection, 'run'>;
  /** This node's name; segments of other nodes carry theirs in the result. */
  readonly ownName?: string;
  /** Only rows of this node; undefined: of all nodes. */
  readonly nodeName: string | undefined;
  /** Changes that the table does not show yet, in order; undefined if not all of them are known. */
  readonly pending: () => readonly RowChange[] | undefined;
  /** Segments of the camera that are being recorded. */
  readonly open: (cameraId: string) => readonly OpenSegment[];
  readonly clock: Clock;
}

/** Throws DatabaseError. */
export async function listFromTable(deps: ListingDeps, cameraId: string, query: ListQuery): Promise<SegmentListing> {
  // Read before the table: a segment that closes meanwhile is then in one of them or in both.
  const open = deps.open(cameraId);
  const pending = deps.pending();
  if (!pending) {
    throw new DatabaseError(
      'UNAVAILABLE',
      'the database is catching up with recordings from the time when it could not be reached',
    );
  }
  const changes = new Map<string, RowChange>();
  for (const change of pending) if (cameraOf(change) === cameraId) changes.set(filenameOf(change), change);
  const calendar = query.tzOffsetMinutes === undefined ? localCalendar : offsetCalendar(query.tzOffsetMinutes);
  const [rows, days] = await Promise.all([segmentsOf(deps, cameraId, query), daysOf(deps, cameraId, calendar)]);
  const nowMs = deps.clock.wallMs();
  const segments = new Map<string, Segment>();
  for (const [filename, change] of changes) {
    if (change.kind === 'remove') continue;
    const { row } = change;
    if (overlaps(row.startMs, row.endMs, query)) segments.set(filename, toListed(row));
    addDays(days, calendar, row.startMs, row.endMs);
  }
  for (const row of rows) {
    if (changes.get(row.path)?.kind !== 'remove') segments.set(row.path, row);
  }
  // Last: what was in progress at the start of the query is listed as such even if it has a row by now.
  for (const entry of open) {
    if (entry.isHidden || changes.get(entry.path)?.kind === 'remove') continue;
    // It is still growing, so it reaches up to now.
    if (overlaps(entry.startMs, Math.max(nowMs, entry.startMs), query)) segments.set(entry.path, entry);
    addDays(days, calendar, entry.startMs, entry.endMs ?? nowMs);
  }
  return {
    segments: [...segments.values()].sort((a, b) => a.startMs - b.startMs || a.sequence - b.sequence),
    days: [...days].sort(),
  };
}

/** [fromMs, toMs), or an instant if both are equal. */
const overlaps = (startMs: number, endMs: number, { fromMs, toMs }: ListQuery): boolean =>
  startMs === fromMs || (startMs < toMs && endMs > fromMs);

/** Adds the days of a segment, from its start to its end. */
function addDays(days: Set<string>, calendar: Calendar, startMs: number, endMs: number): void {
  days.add(calendar.dayOf(startMs));
  for (let midnightMs = calendar.nextMidnight(startMs); midnightMs < endMs;) {
    days.add(calendar.dayOf(midnightMs));
    midnightMs = calendar.nextMidnight(midnightMs);
  }
}

const toListed = (row: RecordingRow): Segment => ({
  path: row.filename,
  startMs: row.startMs,
  sequence: row.sequence,
  sizeBytes: row.sizeBytes,
  mtimeMs: row.mtimeMs,
  isOpen: false,
  endMs: row.endMs,
  ...(row.origin && { origin: row.origin }),
});

/** `node_name` only if it can differ, to keep the result of a day small. */
const nodeColumn = ({ nodeName }: Pick<ListingDeps, 'nodeName'>): string =>
  nodeName === undefined ? ', node_name' : '';
const COLUMNS = 'filename, started_at, ended_at, sequence, size, mtime, origin';
const ofNode = (deps: Pick<ListingDeps, 'nodeName'>, parameter: string): string =>
  deps.nodeName === undefined ? '' : `AND node_name = ${parameter}`;
const nodeValue = ({ nodeName }: Pick<ListingDeps, 'nodeName'>): string[] => (nodeName === undefined ? [] : [nodeName]);

/** Separators between the fields of a segment and between segments: ASCII's own, which no name contains. */
const FIELD_END = '\x1f';
const SEGMENT_END = '\x1e';

/**
 * Exported for the bench: the query for a day. Values: camera, from, to, earliest start, and the node. All segments are returned
 * as one text: with one row each, three thousand objects and strings would cause pauses for garbage collection. `date_part`
 * returns doubles, which are exact for these milliseconds once rounded, in half the time of `extract` with its decimals.
 */
export const segmentsSql = (deps: Pick<ListingDeps, 'nodeName'>): string => `
  SELECT string_agg(
    (date_part('epoch', started_at) * 1000)::bigint || E'${FIELD_END}' || sequence || E'${FIELD_END}' || size ||
      E'${FIELD_END}' || (date_part('epoch', mtime) * 1000)::bigint || E'${FIELD_END}' || filename ||
      E'${FIELD_END}' || (date_part('epoch', ended_at) * 1000)::bigint || E'${FIELD_END}' || origin
      ${deps.nodeName === undefined ? `|| E'${FIELD_END}' || node_name` : ''},
    E'${SEGMENT_END}') AS segments
  FROM (
    SELECT ${COLUMNS}${nodeColumn(deps)} FROM recordings
    WHERE camera_id = $1 AND started_at >= $2 AND started_at < $3 ${ofNode(deps, '$5')}
    UNION ALL
    SELECT * FROM (
      SELECT ${COLUMNS}${nodeColumn(deps)} FROM recordings
      WHERE camera_id = $1 AND started_at < $2 AND started_at > $4 ${ofNode(deps, '$5')}
      ORDER BY started_at DESC LIMIT ${LOOK_BACK}
    ) AS before WHERE ended_at > $2
  ) AS found`;

async function segmentsOf(deps: ListingDeps, cameraId: string, { fromMs, toMs }: ListQuery): Promise<Segment[]> {
  // Starts are whole milliseconds: a segment that starts with the interval belongs to it, even if the interval is an instant.
  const untilMs = Math.max(toMs, fromMs + 1);
  const values = [cameraId, time(fromMs), time(untilMs), time(fromMs - MAX_SEGMENT_MS), ...nodeValue(deps)];
  const [row] = await deps.connection.run<{ segments: string | null }>(segmentsSql(deps), values);
  const text = row?.segments;
  return text ? text.split(SEGMENT_END).map((segment) => parseSegment(segment, deps.ownName)) : [];
}

function parseSegment(text: string, ownName: string | undefined): Segment {
  const [startMs, sequence, sizeBytes, mtimeMs, path = '', endMs, origin, nodeName] = text.split(FIELD_END);
  const known = ORIGINS.find((one) => one === origin);
  const segment = {
    path,
    startMs: Number(startMs),
    sequence: Number(sequence),
    sizeBytes: Number(sizeBytes),
    mtimeMs: Number(mtimeMs),
    isOpen: false,
    endMs: Number(endMs),
    ...(known && { origin: known }),
  };
  return nodeName === undefined || nodeName === ownName ? segment : { ...segment, nodeId: nodeName };
}

/** When a camera's footage starts and ends. */
const boundsSql = (deps: Pick<ListingDeps, 'nodeName'>): string => `
  SELECT (extract(epoch FROM min(started_at)) * 1000)::float8 AS first_ms,
         (extract(epoch FROM max(ended_at)) * 1000)::float8 AS last_ms
  FROM (
    (SELECT started_at, ended_at FROM recordings
     WHERE camera_id = $1 ${ofNode(deps, '$2')} ORDER BY started_at LIMIT 1)
    UNION ALL
    (SELECT started_at, ended_at FROM recordings
     WHERE camera_id = $1 ${ofNode(deps, '$2')} ORDER BY started_at DESC LIMIT ${LOOK_BACK})
  ) AS ends`;

/**
 * Exported for the bench: the days of a camera, as indices into an ascending list of midnights whose first one is before all
 * footage. From a day with footage it jumps to the first segment after the next midnight: two index lookups per day, however many
 * segments it has. Values: camera, midnights, and the node.
 */
export const daysSql = (deps: Pick<ListingDeps, 'nodeName'>): string => `
  WITH RECURSIVE day (place) AS (
    (SELECT width_bucket(started_at, $2::timestamptz[]) FROM recordings
     WHERE camera_id = $1 ${ofNode(deps, '$3')} ORDER BY started_at LIMIT 1)
    UNION ALL
    SELECT (SELECT width_bucket(started_at, $2::timestamptz[]) FROM recordings
            WHERE camera_id = $1 AND started_at >= ($2::timestamptz[])[day.place + 1] ${ofNode(deps, '$3')}
            ORDER BY started_at LIMIT 1)
    FROM day WHERE day.place IS NOT NULL
  )
  SELECT place, (
    SELECT width_bucket(ended_at - interval '1 microsecond', $2::timestamptz[]) FROM recordings
    WHERE camera_id = $1 AND started_at < ($2::timestamptz[])[day.place + 1] ${ofNode(deps, '$3')}
    ORDER BY started_at DESC LIMIT 1
  ) AS last_place
  FROM day WHERE place IS NOT NULL`;

async function daysOf(deps: ListingDeps, cameraId: string, calendar: Calendar): Promise<Set<string>> {
  const days = new Set<string>();
  const [bounds] = await deps.connection.run<{ first_ms: number | null; last_ms: number | null }>(boundsSql(deps), [
    cameraId,
    ...nodeValue(deps),
  ]);
  if (typeof bounds?.first_ms !== 'number' || typeof bounds.last_ms !== 'number') return days;
  const midnights = midnightsOf(calendar, bounds.first_ms, bounds.last_ms);
  const values = [cameraId, midnights.map(time), ...nodeValue(deps)];
  const found = await deps.connection.run<{ place: number; last_place: number }>(daysSql(deps), values);
  for (const { place, last_place: lastPlace } of found) {
    // A day may contain only the end of a segment that started on the day before.
    for (let i = place; i <= Math.max(place, lastPlace); i++) {
      const midnightMs = midnights[i - 1];
      if (midnightMs !== undefined) days.add(calendar.dayOf(midnightMs));
    }
  }
  return days;
}

/** The starts of days, from the day that contains `firstMs` to one after `lastMs`. */
export function midnightsOf(calendar: Calendar, firstMs: number, lastMs: number): number[] {
  const midnights: number[] = [];
  // No day is longer than 25 hours, so this far back is the same day or the one before.
  let midnightMs = calendar.nextMidnight(firstMs - 25 * HOUR_MS - 1);
  while (midnightMs <= firstMs) {
    midnights[0] = midnightMs;
    midnightMs = calendar.nextMidnight(midnightMs);
  }
  for (; midnightMs <= lastMs; midnightMs = calendar.nextMidnight(midnightMs)) midnights.push(midnightMs);
  midnights.push(midnightMs);
  return midnights;
}

/** File names have years with four digits; times beyond are clamped. */
const MIN_MS = Date.parse('0001-01-01T00:00:00Z');
const MAX_MS = Date.UTC(9999, 11, 31);
const time = (ms: number): string => new Date(Math.min(Math.max(ms, MIN_MS), MAX_MS)).toISOString();
