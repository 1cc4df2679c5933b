import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { format, resolveConfig } from 'prettier';
import { configurationReference, configurationRows } from './reference.ts';

test('docs/configuration.md is what the schema says; build/generate-config-docs.ts writes it again', async () => {
  const file = new URL('../../docs/configuration.md', import.meta.url).pathname;
  const options = await resolveConfig(file);
  const expected = await format(configurationReference(), { ...options, parser: 'markdown' });
  assert.equal(await readFile(file, 'utf8'), expected);
});

test('every key has a type and a meaning', () => {
  const rows = configurationRows();
  assert.ok(rows.length > 40, `${rows.length} rows`);
  for (const row of rows) {
    assert.notEqual(row.type, '', `${row.key} has no type`);
    assert.notEqual(row.meaning, '', `${row.key} has no meaning`);
  }
});

test('defaults and required keys are told apart', () => {
  const rows = new Map(configurationRows().map((row) => [row.key, row.fallback]));
  assert.equal(rows.get('listen'), '`0.0.0.0:9997`');
  assert.equal(rows.get('archive.segmentDuration'), '`5m`');
  assert.equal(rows.get('cameras[].id'), 'required');
  assert.equal(rows.get('cameras[].snapshot'), '');
});
