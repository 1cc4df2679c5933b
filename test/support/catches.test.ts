// Checks that the product discards no error without a reason: a comment on the line of the `catch`, on the one before or after.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');
const PRODUCT = '{base,console,crds,operator,recorder,store}/**/*.{ts,js}';
const DISCARDS = /\bcatch \{|\.catch\(\(\)(?:: [^=]+)? =>/;
const COMMENT = /(?:^|\s)(?:\/\/|\/?\*)/;

/** `file:line` of each catch that neither looks at its error nor says why. */
const unexplained = (file: string, text: string): string[] => {
  const lines = text.split('\n');
  return lines.flatMap((line, i) => {
    const beside = [lines[i - 1], line, lines[i + 1]];
    return DISCARDS.test(line) && !beside.some((one) => COMMENT.test(one ?? '')) ? [`${file}:${i + 1}`] : [];
  });
};

test('an error that is discarded without a comment is found', () => {
  const text = ['read().catch(() => 0);', '', '} catch {', '  // There is no such file.', '}', 'end.catch(log);'].join(
    '\n',
  );
  assert.deepEqual(unexplained('a.ts', text), ['a.ts:1']);
});

test('each catch of the product that discards its error says why beside it', () => {
  const files = globSync(PRODUCT, { cwd: ROOT }).filter((file) => !/\.test\.ts$|test-support/.test(file));
  assert.deepEqual(
    files.flatMap((file) => unexplained(file, readFileSync(join(ROOT, file), 'utf8'))),
    [],
  );
});
