// Decides which stream of a camera a picture shows: the only place with this rule.

import type { Camera } from '../app/camera.ts';

/** `stills`: this browser decodes neither stream, so key frames are shown, one a second. */
type Quality = 'main' | 'preview' | 'stills';

export interface Place {
  /** How many pictures are shown beside each other. */
  readonly pictures: number;
  /** Of the picture, in CSS pixels. */
  readonly width: number;
  readonly isPhone: boolean;
}

/** A picture that is narrower, in CSS pixels, shows no more of the main stream than of the preview. */
export const SMALL_WIDTH = 640;

type Video = Pick<NonNullable<Camera['codecs']['video']>, 'codec_string'>;

interface Abilities {
  /** Whether this browser decodes a video. */
  readonly canPlay: (video: Video) => boolean;
  /** The preview was not delivered to this picture. */
  readonly isPreviewBroken: boolean;
  /** The sound of this camera is on. */
  readonly isHeard: boolean;
}

/**
 * Walls of several pictures, small pictures and phones get the preview, where there is one; a large picture gets the main stream.
 * A camera whose main stream the browser cannot decode is shown by its preview everywhere.
 */
export function qualityOf(
  { codecs, preview }: Pick<Camera, 'codecs' | 'preview'>,
  { pictures, width, isPhone }: Place,
  { canPlay, isPreviewBroken, isHeard }: Abilities,
): Quality {
  // A stream whose codec is not known yet may be one that plays: the player finds out.
  const plays = (video: Video | null | undefined): boolean => !video || canPlay(video);
  const isMainPlayable = plays(codecs.video);
  if (!preview || isPreviewBroken || !plays(preview.codecs.video)) return isMainPlayable ? 'main' : 'stills';
  if (!isMainPlayable) return 'preview';
  const isMute = preview.codecs.video !== null && preview.codecs.audio === null;
  if (isHeard && isMute && codecs.audio) return 'main';
  return isPhone || pictures > 1 || width < SMALL_WIDTH ? 'preview' : 'main';
}
