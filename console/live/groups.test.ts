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

test('a camera that was given a group is in that one, even alone, whatever its id begins with', () => {
  const cameras = [
    { id: 'yard-1' },
    { id: 'yard-2', group: 'entrance' },
    { id: 'yard-3', group: null },
    { id: 'gate', group: 'entrance' },
    { id: 'till', group: 'shop' },
    { id: 'roof' },
  ];
  assert.deepEqual(
    groupsOf(cameras).map(({ name, cameras: members }) => [name, members.map(({ id }) => id)]),
    [
      ['entrance', ['yard-2', 'gate']],
      ['shop', ['till']],
      ['yard', ['yard-1', 'yard-3']],
      ['', ['roof']],
    ],
  );
});

test('a camera is found by any words of its name, id and group, in any case', () => {
  const camera = { id: 'cam4', name: 'Back yard', group: 'outside' };
  assert.deepEqual(
    ['yard', 'YARD back', 'cam4', '', 'outside yard', 'front'].map((text) => isFound(camera, text)),
    [true, true, true, true, true, false],
  );
});
