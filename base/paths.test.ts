import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutTrailingSlash } from './paths.ts';

test('slashes at the end of a path go, but not the root', () => {
  for (const [path, expected] of [
    ['/mnt/archive//', '/mnt/archive'],
    ['/mnt/archive', '/mnt/archive'],
    ['a/', 'a'],
    ['/', '/'],
  ] as const) {
    assert.equal(withoutTrailingSlash(path), expected);
  }
});
