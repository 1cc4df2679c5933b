import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { resourceReference } from './crd-reference.ts';

test('docs/resources.md is that of the schemas: else run node build/generate-crds.ts', async () => {
  const file = join(import.meta.dirname, '../docs/resources.md');
  const options = await resolveConfig(file);
  assert.equal(readFileSync(file, 'utf8'), await format(resourceReference(), { ...options, parser: 'markdown' }));
});
