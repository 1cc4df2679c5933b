// The window of a job, as it is asked for: which are refused.

import { requireOrder } from '../http/interval.ts';
import { ApiError } from '../http/problem.ts';

const MAX_WINDOW_SECONDS = 4 * 3_600;
export const MAX_WINDOW = 'four hours';

/** Seconds since 1970 in. Throws ApiError. */
export function checkWindow({ from, to }: { readonly from: number; readonly to: number }) {
  requireOrder({ from, to });
  if (to - from > MAX_WINDOW_SECONDS) {
    throw new ApiError(413, 'window-too-long', 'to: expected at most 4 hours after from');
  }
  return { fromMs: Math.round(from * 1000), toMs: Math.round(to * 1000) };
}
