// The size of each camera's days, in a small file for the next start: so that it need not look at every file.

import { parseJson } from '../../../base/parse-json.ts';
import type { CameraDay, DayTotal } from '../catalogue/camera-day.ts';
import { parseDay } from '../disk/names.ts';

const VERSION = 1;

/** By camera and start of the day. */
type SavedTotals = ReadonlyMap<string, ReadonlyMap<number, DayTotal>>;

/** Of the days of which all sizes are known. */
export function formatTotals(all: Iterable<CameraDay>): string {
  const days: Record<string, Record<string, [count: number, bytes: number]>> = {};
  for (const day of all) {
    const { count, bytes } = day.total;
    if (day.isMeasured && count > 0) (days[day.path] ??= {})[day.cameraId] = [count, bytes];
  }
  return JSON.stringify({ version: VERSION, days });
}

/** What `formatTotals` wrote; empty for anything else. */
export function parseTotals(text: string): SavedTotals {
  const totals = new Map<string, Map<number, DayTotal>>();
  const value = parseJson(text);
  if (!isRecord(value) || value['version'] !== VERSION || !isRecord(value['days'])) return totals;
  for (const [path, cameras] of Object.entries(value['days'])) {
    const [year = '', month = '', day = ''] = path.split('/');
    const dayMs = parseDay(year, month, day);
    if (dayMs === undefined || !isRecord(cameras)) continue;
    for (const [cameraId, total] of Object.entries(cameras)) {
      if (!Array.isArray(total)) continue;
      const [count, bytes] = total as unknown[];
      if (!isAmount(count) || !isAmount(bytes)) continue;
      let days = totals.get(cameraId);
      if (!days) totals.set(cameraId, (days = new Map()));
      days.set(dayMs, { count, bytes });
    }
  }
  return totals;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isAmount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
