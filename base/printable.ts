// Makes texts from strangers safe for logs, terminals and responses.

/**
 * For the schema of a request. By code points, because other languages have no `\p{Cc}`, or read classes such as `\d` by their own
 * version of Unicode: a client must come to the same result.
 */
// oxlint-disable-next-line no-control-regex
export const NO_CONTROLS = /^[^\x00-\x1f\x7f-\x9f]*$/u;

const DEFAULT_MAX = 200;
/**
 * Control, format (including those that change the direction of text), unassigned and private characters, lone surrogates, line
 * separators.
 */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/** One line of at most `max` characters, without control characters and runs of white space. */
export function printable(text: string, max = DEFAULT_MAX): string {
  // Truncated first, so that a megabyte is cheap, and again at the end, so that the limit holds.
  const head = text.slice(0, max * 4).toWellFormed();
  const line = head.replace(UNPRINTABLE, ' ').replace(/\s+/g, ' ').trim();
  const characters = Array.from(line);
  return characters.length <= max ? line : `${characters.slice(0, max - 1).join('')}…`;
}
