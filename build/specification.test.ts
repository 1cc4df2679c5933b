import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PAGE, RULES, specificationPage, unchecked } from './specification.ts';

test('every rule of the specification has tests, and these are there', () => {
  assert.ok(RULES.length > 40);
  assert.deepEqual(unchecked(), []);
  const [rule] = RULES as [(typeof RULES)[number]];
  const gone = { ...rule, tests: [['build/specification.test.ts', 'a test that is gone']] as const };
  assert.equal(unchecked([{ ...rule, tests: [] }, gone]).length, 2);
});

test('the page is that of the rules: else run node build/generate-specification.ts', async () => {
  assert.equal(readFileSync(PAGE, 'utf8'), await specificationPage());
});
