import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newSeed } from './random.ts';
import { LONG } from './variant.ts';

const ROOT = join(import.meta.dirname, '../..');

test('random tests begin alike in each run of CI, and differently elsewhere', (t) => {
  const { KUBE_NVR_REQUIRE: before } = process.env;
  t.after(() => {
    if (before === undefined) delete process.env['KUBE_NVR_REQUIRE'];
    else process.env['KUBE_NVR_REQUIRE'] = before;
  });
  const seeds = (): number => new Set(Array.from({ length: 8 }, newSeed)).size;
  process.env['KUBE_NVR_REQUIRE'] = 'all';
  assert.equal(seeds(), LONG ? 8 : 1);
  delete process.env['KUBE_NVR_REQUIRE'];
  assert.equal(seeds(), 8);
});

test('no test draws its cases by fast-check alone, which begins with the time', () => {
  const files = execFileSync(join(ROOT, 'hack/test'), ['--files'], { encoding: 'utf8' }).trim().split('\n');
  const paths = files.map((line) => line.split(' ')[1] ?? '');
  const found = paths.filter((path) => /from 'fast-check'/.test(readFileSync(join(ROOT, path), 'utf8')));
  assert.deepEqual(
    found.filter((path) => path !== 'test/support/random.test.ts'),
    [],
    'import test/support/fast-check.ts',
  );
});
