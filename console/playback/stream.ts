// Decides which of the two recorded streams of a camera playback shows: the only place with this rule.

import { SMALL_WIDTH } from '../live/quality.ts';
import { previewId } from './footage.ts';

export type Stream = 'main' | 'preview';

interface Choice {
  /** Whether the main stream has footage of the moment, and whether the preview has. */
  readonly hasMain: boolean;
  readonly hasPreview: boolean;
  /** Streams whose footage this browser could not play. */
  readonly unplayable: ReadonlySet<Stream>;
  /** Of the picture, in CSS pixels; 0 if it is not known. */
  readonly width: number;
}

/**
 * Where both have footage, a small picture gets the preview, and so does a browser that cannot play the main stream. If it can
 * play neither, the answer is `main`: stills show more of that.
 */
export function streamOf({ hasMain, hasPreview, unplayable, width }: Choice): Stream {
  if (!hasPreview) return 'main';
  if (!hasMain) return 'preview';
  if (unplayable.has('preview')) return 'main';
  const isSmall = width > 0 && width < SMALL_WIDTH;
  return isSmall || unplayable.has('main') ? 'preview' : 'main';
}

export const isPreview = (footageId: string): boolean => footageId.endsWith(previewId(''));

/** The id of a stream's footage in addresses. */
export const footageIdOf = (cameraId: string, stream: Stream): string =>
  stream === 'preview' ? previewId(cameraId) : cameraId;
