// Groups of the camera list, and its search.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupsOf, isFound } from './groups.ts';

const groups = (...ids: string[]): string[] =>
  groupsOf(ids.map((id) => ({ id }))).map(({ name, cameras }) => `${name}: ${cameras.map(({ id }) => id).join(' ')}`);

test('cameras whose ids begin alike are a group, the others come last', () => {
  assert.deepEqual(groups('till', 'yard-1', 'hall-b', 'yard-2', 'hall-a', 'shop-1'), [
    'hall: hall-b hall-a',
    'yard: yard-1 yard-2',
    ': till shop-1',
  ]);
});

test('cameras that all begin alike, or all differ, are not grouped', () => {
  assert.deepEqual(groups('cam-1', 'cam-2'), [': cam-1 cam-2']);
  assert.deepEqual(groups('gate', 'yard'), [': gate yard']);
});

test('a camera is found by any words of its name and id, in any case', () => {
  const camera = { id: 'cam4', name: 'Back yard' };
  assert.deepEqual(
    ['yard', 'YARD back', 'cam4', '', 'front'].map((text) => isFound(camera, text)),
    [true, true, true, true, false],
  );
});
