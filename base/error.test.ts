import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError, isExpected, messageOf } from './error.ts';

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

test('a border expects its own kinds of errors, and those of the system; all others are faults of this program', () => {
  const ofSystem = (code: string): Error => Object.assign(new Error(code), { code });
  const expected = [
    new DiskError('full', 'no space is left'),
    ofSystem('EIO'),
    ofSystem('UND_ERR_SOCKET'),
    new AggregateError([ofSystem('ECONNREFUSED')]),
    new DOMException('too late', 'TimeoutError'),
  ];
  assert.deepEqual(
    expected.map((err) => isExpected(err, DiskError)),
    expected.map(() => true),
  );
  const wrongArgument = Object.assign(new TypeError('a number'), { code: 'ERR_INVALID_ARG_TYPE' });
  const faults = [
    new CodedError('other', ''),
    new TypeError('undefined'),
    wrongArgument,
    new Error('bug: never'),
    'text',
  ];
  assert.deepEqual(
    faults.map((err) => isExpected(err, DiskError)),
    faults.map(() => false),
  );
});
