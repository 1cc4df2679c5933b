// How the recorder says a failed job can be requested again, without the cause of its failure.

import type { Span } from '../playback/spans.ts';
import type { Job } from '../app/answers.ts';

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

/** Undefined where the recorder knows no other way. */
export function retryOf({ retry, cameras = [], from_ms, to_ms }: Job): Retry | undefined {
  if (!retry || from_ms === undefined || to_ms === undefined) return undefined;
  const { without_camera: cameraId, split_at_ms: atMs } = retry;
  if (cameraId !== undefined) {
    const ids = cameras.map(({ camera_id }) => camera_id).filter((id) => id !== cameraId);
    return { kind: 'without-camera', cameraId, cameras: ids, window: { startMs: from_ms, endMs: to_ms } };
  }
  if (atMs === undefined) return undefined;
  return {
    kind: 'in-two',
    parts: [
      { startMs: from_ms, endMs: atMs },
      { startMs: atMs, endMs: to_ms },
    ],
  };
}
