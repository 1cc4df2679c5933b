import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { reasonPages } from './reason-pages.ts';

test('the pages of reasons and causes are those of the code: else run node build/generate-reasons-docs.ts', async () => {
  const pages = await reasonPages();
  assert.equal(pages.length, 3);
  for (const { path, text } of pages) assert.equal(readFileSync(path, 'utf8'), text);
  assert.match(pages[1]?.text ?? '', /`camera-unreachable`/);
});
