// A search for changes in the picture of a camera, and what the timeline shows of it.

import type { CameraFootage } from './footage.ts';
import type { Span } from './spans.ts';

/** A part of a picture: shares of its width and height. */
export interface Region {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export interface Wanted {
  readonly cameraId: string;
  /** Undefined: the whole picture. */
  readonly region: Region | undefined;
}

export interface Found {
  readonly cameraId: string;
  /** Newest first. */
  readonly changes: readonly Span[];
  /** There are older ones. */
  readonly isMore: boolean;
}

/** Footage whose activity is that of the search. */
export const withFound = (footage: CameraFootage | undefined, found: Found | undefined): CameraFootage | undefined =>
  footage && found?.cameraId === footage.cameraId
    ? {
        ...footage,
        activity: [
          ...(footage.activity ?? []).filter(({ kind }) => kind !== 'active'),
          ...found.changes.map((change) => ({ ...change, kind: 'active' as const })),
        ],
      }
    : footage;
