// Decides whether the patterns of a token cover a camera.

import { cameraOfFootage } from './camera-id.ts';

/**
 * A pattern is a camera id in which `*` stands for any characters: `gate`, `dock-*`. It covers the footage of the camera's preview,
 * too.
 */
export function inScope(patterns: readonly string[], cameraId: string): boolean {
  const ids = new Set([cameraId, cameraOfFootage(cameraId)]);
  return patterns.some((pattern) => [...ids].some((id) => matchesPattern(pattern, id)));
}

/** Takes time linear in the length of the id, which the caller chooses, for any pattern. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first, ...rest] = pattern.split('*') as [string, ...string[]];
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const piece of rest) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}
