// How a job that failed can be asked for again without what made it fail, by the recorder's reason.

import type { Span } from '../playback/spans.ts';
import type { Job } from './jobs.ts';

export type Retry =
  /** A case without one of its cameras. */
  | {
      readonly kind: 'without-camera';
      readonly cameraId: string;
      readonly cameras: readonly string[];
      readonly window: Span;
    }
  /** One export before a moment, and one after it. */
  | { readonly kind: 'in-two'; readonly parts: readonly [Span, Span] };

/** Undefined where the reason names neither a camera of a case nor a moment within the window. */
export function retryOf({ state, kind, cameras, from_ms, to_ms, reason = '' }: Job): Retry | undefined {
  if (state !== 'failed' || from_ms === undefined || to_ms === undefined) return undefined;
  const window = { startMs: from_ms, endMs: to_ms };
  if (cameras) {
    const ids = cameras.map(({ camera_id }) => camera_id);
    const failed = ids.find((id) => reason.startsWith(`camera ${id}: `));
    if (failed === undefined || ids.length < 2) return undefined;
    return { kind: 'without-camera', cameraId: failed, cameras: ids.filter((id) => id !== failed), window };
  }
  const [, written = ''] = /request the footage before and after (\S+) separately$/.exec(reason) ?? [];
  const atMs = Date.parse(written);
  if (kind !== 'export' || !(atMs > from_ms && atMs < to_ms)) return undefined;
  return {
    kind: 'in-two',
    parts: [
      { startMs: from_ms, endMs: atMs },
      { startMs: atMs, endMs: to_ms },
    ],
  };
}
