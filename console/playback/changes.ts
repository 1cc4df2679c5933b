// What changed in the picture of a camera, or in a part of it, as the recorder finds it.

import { api } from '../app/api.ts';
import { playableOf, type CameraFootage } from './footage.ts';
import type { Found, Wanted } from './search.ts';
import type { Range } from './scale.ts';
import { clipSpans, mergeSpans, subtractSpans, totalMs } from './spans.ts';

interface Answer {
  readonly changes: readonly { readonly start_ms: number; readonly end_ms: number }[];
  readonly more: boolean;
}

/** Rejects with Problem. */
export async function findChanges(
  { cameraId, region }: Wanted,
  { fromMs, toMs }: Range,
  signal: AbortSignal,
): Promise<Found> {
  const sides = region && [region.left, region.top, region.right, region.bottom].map((side) => side.toFixed(3)).join();
  const window = `scope=cluster&from=${fromMs / 1000}&to=${toMs / 1000}${sides ? `&region=${sides}` : ''}`;
  const { changes, more } = await api<Answer>(`/api/cameras/${encodeURIComponent(cameraId)}/activity?${window}`, {
    signal,
  });
  return {
    cameraId,
    changes: changes.map(({ start_ms: startMs, end_ms: endMs }) => ({ startMs, endMs })),
    isMore: more,
  };
}

/** How much of the footage in a range a search says nothing of: changes cannot be told there, or it was not looked at. */
export function unknownMs(
  footage: CameraFootage,
  { fromMs, toMs }: Range,
): { readonly unclear: number; readonly unseen: number } {
  const recorded = mergeSpans(playableOf(footage)).flatMap((span) =>
    clipSpans([span], { startMs: fromMs, endMs: toMs }),
  );
  const { activity = [] } = footage;
  const unclear = mergeSpans(activity.filter(({ kind }) => kind === 'unclear'));
  return {
    unclear: totalMs(recorded.flatMap((span) => clipSpans(unclear, span))),
    unseen: totalMs(subtractSpans(recorded, activity)),
  };
}
