// Checks the window of a requested job.

import { requireOrder } from '../http/interval.ts';
import { ApiError } from '../http/problem.ts';

const MAX_WINDOW_SECONDS = 4 * 3_600;
export const MAX_WINDOW = 'four hours';

/** `from` and `to` in seconds since 1970. Throws ApiError. */
export function checkWindow({ from, to }: { readonly from: number; readonly to: number }) {
  requireOrder({ from, to });
  if (to - from > MAX_WINDOW_SECONDS) {
    throw new ApiError(413, 'window-too-long', 'to: expected at most 4 hours after from');
  }
  return { fromMs: Math.round(from * 1000), toMs: Math.round(to * 1000) };
}
