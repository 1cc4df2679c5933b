// Every warning of a recorder, and every reason of a camera that people may act on, says what to do.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { NODE_WARNINGS, RECORDING_REASONS } from '../../crds/reason-table.ts';
import type { RetentionWarning } from '../archive/retention/alarms.ts';
import { todoOf, toReason } from './todo.ts';

const ROOT = join(import.meta.dirname, '../..');

test('every warning has its row', () => {
  const sources = globSync('recorder/**/*.ts', { cwd: ROOT })
    .filter((path) => !/\.test\.ts$|recorder\/api\/page\//.test(path))
    .map((path) => readFileSync(join(ROOT, path), 'utf8'))
    .join('\n');
  const codes = Array.from(
    sources.matchAll(/\{\s*code: '([a-z-]+)',[^{}]*?cameraId: undefined/g),
    ([, code = '']) => code,
  );
  assert.ok(codes.length >= 7, codes.join());
  for (const code of codes) assert.ok(code in NODE_WARNINGS, code);
  // The compiler refuses this line while a code has no row.
  const rows: Readonly<Record<RetentionWarning['code'], unknown>> = NODE_WARNINGS;
  assert.ok('disk-exhausted' in rows);
});

test('what to do is plain text without links', () => {
  for (const code of Object.keys({ ...RECORDING_REASONS, ...NODE_WARNINGS })) {
    assert.doesNotMatch(todoOf(code) ?? '', /[`[\]]|\.md/, code);
  }
  assert.deepEqual(toReason({ code: 'not-found', message: 'the camera has no such stream' }), {
    code: 'not-found',
    message: 'the camera has no such stream',
    todo: 'correct the path in its source',
  });
  assert.deepEqual(toReason({ code: 'constructor', message: 'x' }), { code: 'constructor', message: 'x' });
  assert.equal(toReason(undefined), null);
});
