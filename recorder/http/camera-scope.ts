// Decides whether the patterns of a token cover a camera.

/** A pattern is a camera id in which `*` stands for any characters: `gate`, `dock-*`. */
export function inScope(patterns: readonly string[], cameraId: string): boolean {
  return patterns.some((pattern) => matches(pattern, cameraId));
}

/** Takes time linear in the length of the id, which the caller chooses, for any pattern. */
function matches(pattern: string, text: string): boolean {
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
