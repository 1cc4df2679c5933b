// Time that a caller can cost: whatever a caller repeats in a text, no regular expression of the product takes more than 5 ms of one
// core for 16 KiB of it, as much as a request may have in its head. One process serves all cameras of a node.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { nearName } from '../../base/near-name.ts';
import { KeySuggestions } from '../../recorder/config/did-you-mean.ts';
import { processorCost } from '../support/processor-cost.ts';

const ROOT = join(import.meta.dirname, '../..');
const BUDGET_MS = 5;
const LENGTH = 16 * 1024;
/** A text of this length that takes less than `SUSPECT_MS` takes less than the budget at the full length, also by square. */
const FIRST_LENGTH = LENGTH / 8;
const SUSPECT_MS = BUDGET_MS / 64;

/** Literals, found by what stands before them. */
const LITERAL = /(?:^|[=(,:;!&|?[{}]|return|=>)\s*(\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[dgimsuvy]*)/gm;
const TOKENS =
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
function expensiveText(pattern: RegExp, tokens = TOKENS): string | undefined {
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

test('no regular expression of the product takes more than 5 ms for 16 KiB of a repeated text', () => {
  const files = globSync('{base,console,crds,operator,recorder,store}/**/*.{ts,js}', { cwd: ROOT }).filter(
    (file) => !/\.test\.|support/.test(file),
  );
  let count = 0;
  const expensive: string[] = [];
  for (const file of files) {
    for (const [, literal = ''] of readFileSync(join(ROOT, file), 'utf8').matchAll(LITERAL)) {
      const end = literal.lastIndexOf('/');
      let pattern: RegExp;
      try {
        pattern = new RegExp(literal.slice(1, end), literal.slice(end + 1));
      } catch {
        // A division, or a text with slashes.
        continue;
      }
      count++;
      const text = expensiveText(pattern);
      if (text !== undefined) expensive.push(`${file}: ${literal} with ${text}`);
    }
  }
  assert.ok(count > 300, `${count} literals were found`);
  assert.deepEqual(expensive, []);
});

test('an expression that takes the square of its text is noticed', () => {
  assert.notEqual(expensiveText(/\[.*\]$/, ['[']), undefined);
  assert.notEqual(expensiveText(/\s*,\s*/, [' ']), undefined);
});

test('thousands of unknown keys, and a name of 16 KiB, are compared with known names within 5 ms each time', () => {
  const suggestions = new KeySuggestions();
  suggestions.for('recrod_path');
  const steps = [
    () => Array.from({ length: 5_000 }, (_, i) => suggestions.for(`cameras[0].k${i}`)),
    () => nearName('a'.repeat(LENGTH), ['from', 'to', 'limit', 'cursor']),
  ];
  for (const step of steps) assert.ok(processorCost(step, BUDGET_MS) <= BUDGET_MS);
});
