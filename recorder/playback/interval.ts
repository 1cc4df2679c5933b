// The interval in the query of playlists and windows.

import { z } from 'zod';
import type { Interval } from '../../base/interval.ts';
import { HOUR_MS } from '../../base/units.ts';
import { IntervalQuery as Bounds, MAX_INTERVAL_MS, requireAtMostOneDay, requireOrder } from '../http/interval.ts';
import { flag, LinkQuery } from '../http/query.ts';

/** The duration that is played without `from`. */
const DEFAULT_INTERVAL_MS = HOUR_MS;

export const IntervalQuery = Bounds.extend({
  ...LinkQuery.shape,
  local: flag().optional().describe('In a cluster: only the footage on this node.'),
});

/** The camera id is not validated: an invalid one simply has no footage. */
export const CameraParams = z.object({ camera_id: z.string() });

/** Without `from`: an hour. Without `to`: the longest interval. Throws ApiError. */
export function toInterval({ from, to }: z.output<typeof IntervalQuery>, nowMs: number): Interval {
  const fromMs = from === undefined ? (to === undefined ? nowMs : to * 1000) - DEFAULT_INTERVAL_MS : from * 1000;
  const toMs = to === undefined ? fromMs + MAX_INTERVAL_MS : to * 1000;
  requireOrder({ from: fromMs, to: toMs });
  requireAtMostOneDay({ fromMs, toMs });
  return { fromMs, toMs };
}
