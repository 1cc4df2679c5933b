// docs/cameras.md lists what cameras do wrong and the test for each: the list is complete, and the tests exist.

import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { test } from 'node:test';

const LAST = 98;

async function testNames(): Promise<Set<string>> {
  const names = new Set<string>();
  const here = new URL('.', import.meta.url);
  for (const file of await readdir(here)) {
    if (!file.endsWith('.test.ts')) continue;
    const source = await readFile(new URL(file, here), 'utf8');
    for (const match of source.matchAll(/\btest\(\s*(['`])(\d+\. .*?)\1,/gs)) {
      const name = match[2] ?? '';
      // The one test that is written once for two methods.
      if (name.includes('${method}')) for (const m of ['SETUP', 'PLAY']) names.add(name.replace('${method}', m));
      else names.add(name);
    }
  }
  return names;
}

async function tableRows(): Promise<{ number: number; tests: string[] }[]> {
  const text = await readFile(new URL('../../docs/cameras.md', import.meta.url), 'utf8');
  return [...text.matchAll(/^\| +(\d+) +\|.*\|([^|]*)\|$/gm)].map((match) => ({
    number: Number(match[1]),
    tests: [...(match[2] ?? '').matchAll(/`([^`]+)`/g)].map((code) => code[1] ?? ''),
  }));
}

test('docs/cameras.md has a line for every hazard, in order', async () => {
  const expected = Array.from({ length: LAST }, (_, i) => i + 1);
  assert.deepEqual(
    (await tableRows()).map((row) => row.number),
    expected,
  );
});

test('every line of docs/cameras.md names its tests, and every test of a hazard is in its line', async () => {
  const named = (await tableRows()).flatMap(({ number, tests }) => {
    assert.ok(tests.length > 0, `no test in line ${number}`);
    for (const name of tests) assert.ok(name.startsWith(`${number}. `), `line ${number} names ${name}`);
    return tests;
  });
  assert.deepEqual(named.toSorted(), [...(await testNames())].sort());
});
