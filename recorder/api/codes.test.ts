import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');

test('docs/api.md lists every code of an error with its status', () => {
  const documented = readFileSync(join(ROOT, 'docs/api.md'), 'utf8');
  const files = globSync('recorder/{api,http,playback}/**/*.ts', { cwd: ROOT }).filter((file) => !/test/.test(file));
  const thrown = files.flatMap((file) =>
    Array.from(
      readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:ApiError|problem)\(\s*(\d{3}),\s*'([a-z-]+)'/g),
      ([, status, code]) => ({ status, code }),
    ),
  );
  assert.ok(thrown.length > 30, `${thrown.length} were found`);
  const missing = thrown.filter(
    ({ status, code }) => !new RegExp(`^\\| ${status} +\\| \`${code}\` `, 'm').test(documented),
  );
  assert.deepEqual(missing, []);
});
