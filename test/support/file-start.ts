// The start of a recorded file, as its name says: read here without the product's own parser.

import assert from 'node:assert/strict';

/** Milliseconds since 1970: `…_YYYYMMDD_HHMMSSmmm.mp4`, UTC. */
export function startMsOf(file: string): number {
  const match = /_(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)(\d{3})\.mp4$/.exec(file);
  assert.ok(match, file);
  const [year = 0, month = 0, ...rest] = match.slice(1).map(Number);
  return Date.UTC(year, month - 1, ...rest);
}
