// What strangers call themselves, made fit for logs, terminals and answers.

const DEFAULT_MAX = 200;
/** Control, format (also those that turn the direction of text), unassigned and private characters, lone surrogates, line ends. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/** One line without control characters and runs of blanks, of at most `max` characters. */
export function printable(text: string, max = DEFAULT_MAX): string {
  // Cut before, so that a megabyte costs nothing; cut after, so that it holds.
  const head = text.slice(0, max * 4).toWellFormed();
  const line = head.replace(UNPRINTABLE, ' ').replace(/\s+/g, ' ').trim();
  const characters = Array.from(line);
  return characters.length <= max ? line : `${characters.slice(0, max - 1).join('')}…`;
}
