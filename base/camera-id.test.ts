import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isCameraId } from './camera-id.ts';

test('a camera id begins with a letter or digit and has at most 63 characters', () => {
  for (const id of ['a', 'Gate.1-a', '0'.repeat(63)]) assert.ok(isCameraId(id), id);
  for (const id of ['', '-a', '.a', 'a_b', 'a b', 'ä', '0'.repeat(64)]) assert.ok(!isCameraId(id), id);
});
