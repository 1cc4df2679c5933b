// Listing from the table: camera and interval in, closed segments and days out. What is still on its way to the table,
// and what is being written, is added from memory, so that no segment is missing at any moment.

import { localCalendar, offsetCalendar, type Calendar } from '../archive/catalogue/calendar.ts';
import { openSegment } from '../archive/catalogue/catalogue.ts';
import type { ListedSegment, ListQuery, OpenEntry, SegmentListing } from '../archive/catalogue/catalogue.ts';
import type { Clock } from '../../base/clock.ts';
import { HOUR_MS } from '../../base/units.ts';
import type { Connection } from './connection.ts';
import { DatabaseError } from './error.ts';
import { cameraOf, filenameOf, type RecordingRow, type RowChange } from './row.ts';

export interface ListingDeps {
  readonly connection: Pick<Connection, 'run'>;
  /** The node that lists: of segments of others it is said whose they are. */
  readonly ownName?: string;
  /** Only rows of this node; undefined: of all. */
  readonly nodeName: string | undefined;
  /** Changes that the table does not show yet, in order; undefined when not all of them are known. */
  readonly pending: () => readonly RowChange[] | undefined;
  /** Segments of the camera's recording in progress. */
  readonly open: (cameraId: string) => readonly OpenEntry[];
  readonly clock: Clock;
}

/** No segment is longer: it ends at the first key frame behind midnight, or soon after. */
const MAX_SEGMENT_MS = 26 * HOUR_MS;
/** Segments overlap only where a clock was stepped back: so many before an interval are looked at. */
const LOOK_BACK = 8;

/** Throws DatabaseError. */
export async function listFromTable(deps: ListingDeps, cameraId: string, query: ListQuery): Promise<SegmentListing> {
  // Before the table is asked: a segment that closes meanwhile is in one of them, or in both.
  const open = deps.open(cameraId);
  const pending = deps.pending();
  if (!pending) {
    throw new DatabaseError('UNAVAILABLE', 'the database is catching up with what was recorded while it was away');
  }
  const changes = new Map<string, RowChange>();
  for (const change of pending) if (cameraOf(change) === cameraId) changes.set(filenameOf(change), change);
  const calendar = query.tzOffsetMinutes === undefined ? localCalendar : offsetCalendar(query.tzOffsetMinutes);
  const [rows, days] = await Promise.all([segmentsOf(deps, cameraId, query), daysOf(deps, cameraId, calendar)]);
  const nowMs = deps.clock.wallMs();
  const segments = new Map<string, ListedSegment>();
  for (const [filename, change] of changes) {
    if (change.kind === 'remove') continue;
    const { row } = change;
    if (overlaps(row.startMs, row.endMs, query)) segments.set(filename, toListed(row));
    addDays(days, calendar, row.startMs, row.endMs);
  }
  for (const row of rows) {
    if (changes.get(row.path)?.kind !== 'remove') segments.set(row.path, row);
  }
  // Last: what was in progress when the question was asked is listed as that, although it may have a row by now.
  for (const entry of open) {
    if (entry.isEmpty || changes.get(entry.path)?.kind === 'remove') continue;
    // It grows: what is written now reaches up to now.
    if (overlaps(entry.startMs, Math.max(nowMs, entry.startMs), query)) segments.set(entry.path, openSegment(entry));
    addDays(days, calendar, entry.startMs, entry.endMs ?? nowMs);
  }
  return {
    segments: [...segments.values()].sort((a, b) => a.startMs - b.startMs || a.sequence - b.sequence),
    days: [...days].sort(),
  };
}

/** [fromMs, toMs), or the instant when both are the same. */
const overlaps = (startMs: number, endMs: number, { fromMs, toMs }: ListQuery): boolean =>
  startMs === fromMs || (startMs < toMs && endMs > fromMs);

/** What a segment adds to the days, from the one in which it begins to the one in which it ends. */
function addDays(days: Set<string>, calendar: Calendar, startMs: number, endMs: number): void {
  days.add(calendar.dayOf(startMs));
  for (let midnightMs = calendar.nextMidnight(startMs); midnightMs < endMs;) {
    days.add(calendar.dayOf(midnightMs));
    midnightMs = calendar.nextMidnight(midnightMs);
  }
}

const toListed = (row: RecordingRow): ListedSegment => ({
  path: row.filename,
  startMs: row.startMs,
  sequence: row.sequence,
  sizeBytes: row.sizeBytes,
  mtimeMs: row.mtimeMs,
  isOpen: false,
  endMs: row.endMs,
});

/** `node_name` only where it may be another: a day is as many bytes as it has to be. */
const nodeColumn = ({ nodeName }: Pick<ListingDeps, 'nodeName'>): string =>
  nodeName === undefined ? ', node_name' : '';
const COLUMNS = 'filename, started_at, ended_at, sequence, size, mtime';
const ofNode = (deps: Pick<ListingDeps, 'nodeName'>, parameter: string): string =>
  deps.nodeName === undefined ? '' : `AND node_name = ${parameter}`;
const nodeValue = ({ nodeName }: Pick<ListingDeps, 'nodeName'>): string[] => (nodeName === undefined ? [] : [nodeName]);

/** Between the fields of a segment, and between segments: ASCII's own separators, which are in no name. */
const FIELD_END = '\x1f';
const SEGMENT_END = '\x1e';

/**
 * For the bench: what is asked for a day. Values: camera, from, to, earliest start, and the node. All segments come as one
 * text: a row each would be three thousand objects and strings that the collector of garbage stops for. `date_part` gives
 * doubles, which hold any of these milliseconds once rounded, in half the time of `extract` with its decimals.
 */
export const segmentsSql = (deps: Pick<ListingDeps, 'nodeName'>): string => `
  SELECT string_agg(
    (date_part('epoch', started_at) * 1000)::bigint || E'${FIELD_END}' || sequence || E'${FIELD_END}' || size ||
      E'${FIELD_END}' || (date_part('epoch', mtime) * 1000)::bigint || E'${FIELD_END}' || filename ||
      E'${FIELD_END}' || (date_part('epoch', ended_at) * 1000)::bigint
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

async function segmentsOf(deps: ListingDeps, cameraId: string, { fromMs, toMs }: ListQuery): Promise<ListedSegment[]> {
  // Starts are whole milliseconds: one that begins with the interval belongs to it, also when that is an instant.
  const untilMs = Math.max(toMs, fromMs + 1);
  const values = [cameraId, time(fromMs), time(untilMs), time(fromMs - MAX_SEGMENT_MS), ...nodeValue(deps)];
  const [row] = await deps.connection.run<{ segments: string | null }>(segmentsSql(deps), values);
  const text = row?.segments;
  return text ? text.split(SEGMENT_END).map((segment) => parseSegment(segment, deps.ownName)) : [];
}

function parseSegment(text: string, ownName: string | undefined): ListedSegment {
  const [startMs, sequence, sizeBytes, mtimeMs, path = '', endMs, nodeName] = text.split(FIELD_END);
  const segment = {
    path,
    startMs: Number(startMs),
    sequence: Number(sequence),
    sizeBytes: Number(sizeBytes),
    mtimeMs: Number(mtimeMs),
    isOpen: false,
    endMs: Number(endMs),
  };
  return nodeName === undefined || nodeName === ownName ? segment : { ...segment, nodeID: nodeName };
}

/** Where a camera's footage begins and ends. */
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
 * For the bench: the days of a camera, as places in an ascending list of midnights, of which the first is before all
 * footage. From one day with footage it jumps to the first segment behind the next midnight: two looks into the index a
 * day, whatever number of segments it has. Values: camera, midnights, and the node.
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
    // A day may hold nothing but the end of a segment that began on the day before.
    for (let i = place; i <= Math.max(place, lastPlace); i++) {
      const midnightMs = midnights[i - 1];
      if (midnightMs !== undefined) days.add(calendar.dayOf(midnightMs));
    }
  }
  return days;
}

/** The instants at which days begin, from the one in which `firstMs` lies to one behind `lastMs`. */
export function midnightsOf(calendar: Calendar, firstMs: number, lastMs: number): number[] {
  const midnights: number[] = [];
  // No day is longer than 25 hours: what begins so long before is in the day before, or in the same one.
  let midnightMs = calendar.nextMidnight(firstMs - 25 * HOUR_MS - 1);
  while (midnightMs <= firstMs) {
    midnights[0] = midnightMs;
    midnightMs = calendar.nextMidnight(midnightMs);
  }
  for (; midnightMs <= lastMs; midnightMs = calendar.nextMidnight(midnightMs)) midnights.push(midnightMs);
  midnights.push(midnightMs);
  return midnights;
}

/** Names of files have years of four digits: what is asked for beyond them is as good as their ends. */
const MIN_MS = Date.parse('0001-01-01T00:00:00Z');
const MAX_MS = Date.UTC(9999, 11, 31);
const time = (ms: number): string => new Date(Math.min(Math.max(ms, MIN_MS), MAX_MS)).toISOString();
