// The time that an export takes: the selection, or a minute from the shown moment on.

import type { Playback } from '../playback/playback.ts';
import type { Span } from '../playback/spans.ts';

/** The length without a selection. */
export const USUAL_MS = 60_000;

export function windowOf(playback: Playback): Span {
  const selection = playback.selection.value;
  if (selection) return selection;
  const startMs = playback.inMs.value ?? Math.round(playback.atMs.value);
  const endMs = playback.outMs.value ?? startMs + USUAL_MS;
  return endMs > startMs ? { startMs, endMs } : { startMs: endMs - USUAL_MS, endMs };
}

/** The window as the panel shows it: while pictures play, it moves on by whole seconds, so that people can read it. */
export function shownWindow(playback: Playback): Span {
  const window = windowOf(playback);
  if (!isMoving(playback)) return window;
  const startMs = Math.floor(window.startMs / 1_000) * 1_000;
  return { startMs, endMs: playback.outMs.value ?? startMs + USUAL_MS };
}

/** Whether the window follows the pictures that play. */
export const isMoving = (playback: Playback): boolean => playback.isPlaying.value && playback.inMs.value === undefined;
