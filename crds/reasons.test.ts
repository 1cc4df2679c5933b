import { test } from 'node:test';
import assert from 'node:assert/strict';
import { codeOf, reasonOf } from './reasons.ts';

test('a code and its word are the same reason', () => {
  for (const [code, reason] of [
    ['wrong-disk', 'WrongDisk'],
    ['no-key-frame', 'NoKeyFrame'],
    ['failed', 'Failed'],
    ['rtsp-454', 'Rtsp454'],
  ] as const) {
    assert.equal(reasonOf(code), reason);
  }
  assert.equal(codeOf('NoKeyFrame'), 'no-key-frame');
  assert.equal(codeOf('Failed'), 'failed');
});

test('whatever a code is, its reason is a word that the API server takes', () => {
  for (const code of ['', '--', '454', 'é', '4-a b_c', `x${'y'.repeat(500)}`]) {
    assert.match(reasonOf(code), /^[A-Z][A-Za-z0-9]{0,127}$/, code);
  }
});
