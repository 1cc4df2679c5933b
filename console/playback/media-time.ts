// From wall time to the time line of a player and back. A player puts recorded files one after the other and leaves gaps out;
// each part of a playlist has the wall time of its first picture.

export interface MediaPart {
  /** Wall time of its first picture, milliseconds since 1970. */
  readonly wallMs: number;
  /** Seconds of the player's time line. */
  readonly start: number;
  readonly duration: number;
}

/** Seconds of the player's time line; undefined where no part has that moment. */
export function mediaTimeOf(parts: readonly MediaPart[], atMs: number): number | undefined {
  const part = lastBefore(parts, ({ wallMs }) => wallMs <= atMs);
  if (!part || atMs >= part.wallMs + part.duration * 1000) return undefined;
  return part.start + (atMs - part.wallMs) / 1000;
}

/** Wall time of a moment of the player's time line; undefined outside of all parts. */
export function wallTimeOf(parts: readonly MediaPart[], seconds: number): number | undefined {
  const part = lastBefore(parts, ({ start }) => start <= seconds);
  // A video may end a little later than its last part says.
  if (!part || seconds > part.start + part.duration + 1) return undefined;
  return part.wallMs + (seconds - part.start) * 1000;
}

/** The last one that `holds`; the parts for which it holds come first. */
function lastBefore(parts: readonly MediaPart[], holds: (part: MediaPart) => boolean): MediaPart | undefined {
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(parts[middle] as MediaPart)) low = middle + 1;
    else high = middle;
  }
  return parts[low - 1];
}
