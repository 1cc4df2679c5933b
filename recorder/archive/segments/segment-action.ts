// The actions that the segmenter requests. The archive carries them out in this order, and reports to the segmenter
// which files have failed.

import type { Mp4Error } from '../../mp4/error.ts';
import type { SegmentClosing } from '../../mp4/meta.ts';
import type { Sample } from '../../mp4/sample.ts';
import type { Fragment } from './fragment-builder.ts';
import type { SegmentPlan } from './segment-plan.ts';

/** Why pictures are dropped. `last-fault`: what made the archive stop writing last. */
export type SegmenterDropCause = 'disk-slow' | 'no-key-frame' | 'last-fault';

export type SegmentAction =
  /** A file receives the samples from now on. `audioFault`: the run's audio fits no file and is left out. */
  | {
      readonly kind: 'open';
      readonly plan: SegmentPlan;
      readonly first: Sample;
      readonly audioFault: Mp4Error | undefined;
    }
  /** There is space in the budget for this fragment; the receiver gives it back. */
  | { readonly kind: 'write'; readonly plan: SegmentPlan; readonly fragment: Fragment }
  /** The newest file gets no more pictures. `goesOn`: the camera is there and pictures follow, in the next file or run. */
  | { readonly kind: 'ended'; readonly goesOn: boolean }
  /** Nothing more will be written to the file. `noSpace`: it ends early, because there was no space in the budget. */
  | { readonly kind: 'close'; readonly plan: SegmentPlan; readonly closing: SegmentClosing; readonly noSpace: boolean }
  /** A file should begin, but the archive allows none. */
  | { readonly kind: 'refused' }
  /** A file should begin, but none can hold the run's leading track. */
  | { readonly kind: 'unsupported'; readonly error: Mp4Error }
  | { readonly kind: 'drop'; readonly cause: SegmenterDropCause; readonly videoFrames: number }
  /** The camera must send a key frame. Always the last action. */
  | { readonly kind: 'askKeyFrame' };
