// Checks exports: what no other file imports is not exported.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const EXPORTED =
  /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const|let|function\*?|class|interface|type|enum)\s+(\w+)/gm;
const IMPORTED = /(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|\*(?:\s+as\s+\w+)?)\s+from\s+'(\.[^']+)'/g;
const LOADED = /import\('(\.[^']+)'\)/g;

/** `file name` of each export that no file imports. `texts`: source text by path. */
function unusedExports(texts: ReadonlyMap<string, string>): string[] {
  const used = new Set<string>();
  for (const [file, text] of texts) {
    const at = (address: string): string => normalize(join(file, '..', address));
    for (const [, names = '', address = ''] of text.matchAll(IMPORTED)) {
      if (names.startsWith('*')) used.add(at(address));
      const listed = names.replaceAll(/[{}]/g, '').split(',');
      for (const name of listed)
        used.add(
          `${at(address)} ${
            name
              .trim()
              .replace(/^type\s+/, '')
              .split(/\s/)[0]
          }`,
        );
    }
    for (const [, address = ''] of text.matchAll(LOADED)) used.add(at(address));
  }
  return [...texts].flatMap(([file, text]) =>
    [...text.matchAll(EXPORTED)]
      .map(([, name]) => `${file} ${name}`)
      .filter((one) => !used.has(file) && !used.has(one)),
  );
}

test('every export is imported by another file', () => {
  const files = globSync('**/*.ts', { cwd: ROOT, exclude: ['node_modules', 'dist'] });
  assert.ok(files.length > 500, 'the sources were found');
  assert.deepEqual(unusedExports(new Map(files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]))), []);
});

test('an export that only its own file uses is found', () => {
  const texts = new Map([
    ['base/a.ts', 'export const a = 1;\nexport async function b() {}\nexport interface C {}\n'],
    ['base/b.ts', "import {\n  a,\n  type C as D,\n} from './a.ts';\n"],
  ]);
  assert.deepEqual(unusedExports(texts), ['base/a.ts b']);
});
