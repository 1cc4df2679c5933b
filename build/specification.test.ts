import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { SECTIONS, type Section } from './specification-rules.ts';
import { PAGE, specificationPage, unchecked } from './specification.ts';

test('every sentence of the specification has its place, and its tests are there', () => {
  assert.deepEqual(unchecked(), []);
  const [first] = SECTIONS as [Section];
  const [row] = first.rows as [Section['rows'][number]];
  const gone = { ...row, tests: [['build/specification.test.ts', 'a test that is gone']] as const };
  const wrong: readonly Section[] = [
    { ...first, rows: [{ ...row, tests: [] }] },
    { ...first, rows: [gone] },
    { ...first, sentences: first.sentences + 1 },
    { ...first, sentences: first.sentences + 1, rows: [row, row] },
  ];
  for (const section of wrong) assert.equal(unchecked([section]).length, 1);
});

test('the page is that of the rules: else run node build/generate-specification.ts', async () => {
  assert.equal(readFileSync(PAGE, 'utf8'), await specificationPage());
});
