import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError, messageOf } from './error.ts';

class DiskError extends CodedError<'full' | 'broken'> {
  override readonly name = 'DiskError';
}

test('an error with a code says its name, its code and why', () => {
  const cause = new Error('ENOSPC');
  const err = new DiskError('full', 'no space is left', { cause });
  assert.ok(err instanceof Error);
  assert.deepEqual([String(err), err.code, err.cause], ['DiskError: no space is left', 'full', cause]);
});

test('whatever is thrown has a message', () => {
  assert.deepEqual([new Error('broken'), 'words', undefined].map(messageOf), ['broken', 'words', 'undefined']);
});
