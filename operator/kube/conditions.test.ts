import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mergeConditions, unknownConditions, type StatedCondition } from './conditions.ts';

const T0 = new Date('2026-01-01T12:00:00.250Z');
const T1 = new Date('2026-01-01T12:05:00Z');

const ready = (parts: Partial<StatedCondition> = {}): StatedCondition => ({
  type: 'Ready',
  status: 'True',
  reason: 'Recording',
  message: 'recorded by a',
  ...parts,
});

test('a first visit states every condition as Unknown', () => {
  const { conditions } = mergeConditions([], unknownConditions(['Ready', 'Assigned']), 1, T0);
  assert.deepEqual(
    conditions.map(({ type, status, reason }) => ({ type, status, reason })),
    [
      { type: 'Assigned', status: 'Unknown', reason: 'Pending' },
      { type: 'Ready', status: 'Unknown', reason: 'Pending' },
    ],
  );
});

test('lastTransitionTime changes with the status only; reason, message and observedGeneration follow', () => {
  const first = mergeConditions([], [ready()], 1, T0).conditions;
  assert.deepEqual(first, [{ ...ready(), observedGeneration: 1, lastTransitionTime: '2026-01-01T12:00:00Z' }]);

  const reworded = mergeConditions(first, [ready({ reason: 'Moved', message: 'recorded by b' })], 2, T1);
  assert.deepEqual(reworded.conditions, [
    {
      ...ready({ reason: 'Moved', message: 'recorded by b' }),
      observedGeneration: 2,
      lastTransitionTime: '2026-01-01T12:00:00Z',
    },
  ]);
  assert.deepEqual(reworded.transitions, []);

  const failed = mergeConditions(reworded.conditions, [ready({ status: 'False' })], 2, T1);
  assert.equal(failed.conditions[0]?.lastTransitionTime, '2026-01-01T12:05:00Z');
  assert.deepEqual(
    failed.transitions.map(({ from, to }) => [from?.status, to.status]),
    [['True', 'False']],
  );
});

test('nothing new is the same array, so that nothing is written', () => {
  const { conditions } = mergeConditions([], [ready(), ready({ type: 'Assigned' })], 3, T0);
  const again = mergeConditions(conditions, [ready({ type: 'Assigned' }), ready()], 3, T1);
  assert.equal(again.conditions, conditions);
  assert.deepEqual(again.transitions, []);
});

test('a condition that is not stated any more is dropped', () => {
  const before = mergeConditions([], [ready(), ready({ type: 'Old' })], 1, T0).conditions;
  assert.deepEqual(
    mergeConditions(before, [ready()], 1, T1).conditions.map(({ type }) => type),
    ['Ready'],
  );
});

test('a message is cut to what the API server takes', () => {
  const { conditions } = mergeConditions([], [ready({ message: 'x'.repeat(10_000) })], 1, T0);
  assert.equal(conditions[0]?.message.length, 4096);
});
