import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ERROR_STATUSES, type ErrorCode } from '../http/error-codes.ts';
import { JOB_ERROR_CODES } from '../jobs/error.ts';

const ROOT = join(import.meta.dirname, '../..');

test('docs/api.md explains every code of an error with its status, and no other', () => {
  const rows = readFileSync(join(ROOT, 'docs/api.md'), 'utf8').matchAll(/^\| (\d{3}) +\| `([a-z-]+)` /gm);
  const documented = Array.from(rows, ([, status, code]) => `${status} ${code}`);
  const known = Object.entries(ERROR_STATUSES).flatMap(([code, statuses]) =>
    statuses.map((status) => `${status} ${code}`),
  );
  assert.deepEqual(documented.sort(), known.sort());
});

test('every error leaves with a status that its code has', () => {
  const files = globSync('recorder/{api,http,playback}/**/*.ts', { cwd: ROOT }).filter((file) => !/test/.test(file));
  const thrown = files.flatMap((file) =>
    Array.from(
      readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:ApiError|problem)\(\s*(\d{3}),\s*'([a-z-]+)'/g),
      ([, status, code]) => ({ status: Number(status), code: String(code) }),
    ),
  );
  assert.ok(thrown.length > 30, `${thrown.length} were found`);
  const statusesOf = (code: string): readonly number[] => ERROR_STATUSES[code as ErrorCode] ?? [];
  assert.deepEqual(
    thrown.filter(({ status, code }) => !statusesOf(code).includes(status)),
    [],
  );
});

test('docs/exports.md says what each reason_code of a job means', () => {
  const documented = readFileSync(join(ROOT, 'docs/exports.md'), 'utf8');
  const rows = documented.split('\n').filter((line) => line.startsWith('| `'));
  assert.deepEqual(
    JOB_ERROR_CODES.filter((code) => !rows.some((row) => row.split('|')[1]?.includes(`\`${code}\``))),
    [],
  );
});
