// Finds the event before or after a moment, also outside of the shown range.

/** Reads the starts of the events in a range of time, at most `limit`, the newest first. */
type ReadStarts = (fromMs: number, toMs: number, limit: number) => Promise<readonly number[]>;

/** The first range that is looked at; each further one is four times as long. */
const FIRST_MS = 600_000;
const GROWTH = 4;
/** The longest that the recorder searches at once. */
const MOST_MS = 31 * 86_400_000;
const MOST_EVENTS = 1_000;
/** Nearer ones are the event at which the playhead is. */
const NEAR_MS = 1_000;

/** The start of the nearest event; undefined if there is none within a month. */
export async function nextEvent(
  atMs: number,
  direction: 1 | -1,
  nowMs: number,
  read: ReadStarts,
): Promise<number | undefined> {
  if (direction < 0) return (await read(Math.max(0, atMs - MOST_MS), atMs - NEAR_MS, 1))[0];
  const fromMs = atMs + NEAR_MS;
  if (fromMs >= nowMs) return undefined;
  for (let lengthMs = FIRST_MS; ; lengthMs = Math.min(MOST_MS, lengthMs * GROWTH)) {
    const toMs = Math.min(nowMs, fromMs + lengthMs);
    const found = await read(fromMs, toMs, MOST_EVENTS);
    if (found.length > 0) return Math.min(...found);
    if (toMs === nowMs || lengthMs === MOST_MS) return undefined;
  }
}
