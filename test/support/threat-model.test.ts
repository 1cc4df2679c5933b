// Checks docs/design/security.md: every boundary names tests that exist, and every remaining risk says what to do.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/design/security.md'), 'utf8');

/** The cells of the table below a heading, without its first two lines. */
function rowsBelow(heading: string): string[][] {
  const section = PAGE.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('|'));
  // A | inside code is part of a name.
  return lines.slice(2).map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** The names of the tests in a file, as written there. */
function namesIn(file: string): string[] {
  const source = readFileSync(join(ROOT, file), 'utf8');
  return Array.from(source.matchAll(/\btest\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1,/g), ([, , name = '']) =>
    name.replaceAll(/\\(.)/g, '$1'),
  );
}

test('every boundary is one against an attacker of the list, and is shown by tests that exist', () => {
  const attackers = new Set(rowsBelow('Who attacks, and from where').map(([name]) => name));
  const rows = rowsBelow('Boundaries');
  assert.ok(rows.length >= 30, `${rows.length} rows`);
  assert.deepEqual(
    rows.map(([number]) => number),
    rows.map((_row, i) => String(i + 1)),
  );
  for (const [number, against = '', promise = '', shown = ''] of rows) {
    assert.ok(attackers.has(against) || against === 'all', `${number}: ${against} is no attacker of the list`);
    assert.ok(promise.length > 20, `${number} promises nothing`);
    const tests = shown.split('; `').map((text) => /^`?([^`]+)`: `(.+)`$/.exec(text));
    for (const named of tests) {
      assert.ok(named, `${number}: expected \`file\`: \`name of the test\``);
      const [, file = '', name = ''] = named;
      assert.ok(existsSync(join(ROOT, file)), `${number}: there is no ${file}`);
      assert.ok(namesIn(file).includes(name), `${number}: ${file} has no test "${name}"`);
    }
  }
  const unheld = [...attackers].filter((name) => !rows.some(([, against]) => against === name));
  assert.deepEqual(unheld, [], 'nothing holds against these');
});

test('every remaining risk has a reason, and something that an owner can do', () => {
  const rows = rowsBelow('Remaining risks');
  assert.ok(rows.length > 0);
  for (const row of rows) for (const cell of row) assert.ok(row.length === 3 && cell.length > 10, row.join(' | '));
});
