// Looks for a text that costs a regular expression too much: whatever a caller repeats in a text, no expression takes more than the budget
// of one core for as much as a request may have in its head.

import { processorCost } from './processor-cost.ts';

export const BUDGET_MS = 5;
export const LENGTH = 16 * 1024;
/** A text of this length that takes less than `SUSPECT_MS` takes less than the budget at the full length, also by square. */
const FIRST_LENGTH = LENGTH / 8;
const SUSPECT_MS = BUDGET_MS / 64;

export const TOKENS =
  '@:|:|/|#|?|%|[|]|;|,|=|"|\\|&|<|>|a|0|-|*|(|{|}|.|_| |\t|\n|+|^|!|A|%zz|\\"|""|, | ,|[a|{a|(a|a=|a.|a-|a/|0.|a | a|\r\n|<a|a:|é|..|yyyy'
    .split('|')
    .concat('|', 'rtsp://');
const PREFIXES = ['', 'a', 'rtsp://a', '"', 'bytes=', '['];
const ENDS = ['x', '\u2028'];

const elapsed = (step: () => void): number => {
  const before = performance.now();
  step();
  return performance.now() - before;
};

/** The text that costs too much; undefined if none does. */
export function expensiveText(pattern: RegExp, tokens = TOKENS): string | undefined {
  const step = (text: string) => () => {
    text.replace(pattern, '');
    if (!pattern.global) pattern.exec(text);
  };
  for (const prefix of PREFIXES)
    for (const token of tokens)
      for (const end of ENDS) {
        const text = (length: number): string => prefix + token.repeat(Math.ceil(length / token.length)) + end;
        if (elapsed(step(text(FIRST_LENGTH))) < SUSPECT_MS) continue;
        if (processorCost(step(text(LENGTH)), BUDGET_MS) > BUDGET_MS)
          return `${prefix}${JSON.stringify(token)}…${JSON.stringify(end)}`;
      }
  return undefined;
}
