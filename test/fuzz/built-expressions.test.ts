// Expressions that are built from parts when a module is loaded: no text of a caller may cost them more than the literals
// (test/fuzz/callers.test.ts). They are recorded before any module of the product is loaded.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { expensiveText } from '../support/expensive-text.ts';

const ROOT = join(import.meta.dirname, '../..');

test('no regular expression that is built from parts takes more than 5 ms for 16 KiB of a repeated text', async () => {
  const files = globSync('{base,crds,operator,recorder,store}/**/*.ts', { cwd: ROOT }).filter(
    (file) =>
      !/\.test\.|support|main\.ts$/.test(file) && readFileSync(join(ROOT, file), 'utf8').includes('new RegExp('),
  );
  const Original = globalThis.RegExp;
  const built = new Map<string, RegExp>();
  globalThis.RegExp = new Proxy(Original, {
    construct(target, args, newTarget) {
      const made = Reflect.construct(target, args, newTarget) as RegExp;
      built.set(String(made), made);
      return made;
    },
  });
  try {
    // The kinds build theirs by functions of other modules.
    for (const file of [...files, 'crds/kinds.ts']) await import(join(ROOT, file));
  } finally {
    globalThis.RegExp = Original;
  }
  const ours = ['nvrjoin', 'notin', 'rtsp'].filter((word) => [...built.keys()].some((text) => text.includes(word)));
  assert.deepEqual(ours, ['nvrjoin', 'notin', 'rtsp'], 'tokens for joining, selectors, addresses of cameras');
  const expensive = [...built.values()].flatMap((pattern) => {
    const text = expensiveText(pattern);
    return text === undefined ? [] : [`${String(pattern)} with ${text}`];
  });
  assert.deepEqual(expensive, []);
});
