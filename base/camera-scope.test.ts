import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inScope } from './camera-scope.ts';

for (const [patterns, inside, outside] of [
  [['gate'], ['gate'], ['gate2', 'a-gate', 'Gate', '', 'gat']],
  [['dock-*'], ['dock-', 'dock-1', 'dock-a.b'], ['dock', 'adock-1', 'Dock-1']],
  [
    ['*-in', 'roof'],
    ['gate-in', '-in', 'roof'],
    ['in', 'gate-in2', 'roof2'],
  ],
  [['a*b*c'], ['abc', 'a1b2c', 'abbc', 'abcbc'], ['ac', 'acb', 'abcd']],
  [['ab*ba'], ['abba', 'ab-ba'], ['aba']],
  [['a*b*b'], ['abb', 'axbxb'], ['ab']],
  [['*'], ['gate', ''], []],
  [[], [], ['gate']],
] as const) {
  test(`a token for ${JSON.stringify(patterns)} concerns ${inside.length} of these cameras`, () => {
    const all = [...inside, ...outside];
    assert.deepEqual(
      all.filter((cameraId) => inScope(patterns, cameraId)),
      [...inside],
    );
  });
}

test('a caller who sees a camera sees the footage of its preview', () => {
  for (const patterns of [['gate'], ['g*'], ['*e'], ['gate~preview']]) assert.ok(inScope(patterns, 'gate~preview'));
  for (const patterns of [['yard'], ['gat'], ['gate-*']]) assert.ok(!inScope(patterns, 'gate~preview'));
});
