// What a tile says of its camera.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byUrgency, conditionOf, wordsOfCondition } from './condition.ts';
import { aCamera } from './camera.support.ts';

const clock = (ms: number): string => new Date(ms).toISOString().slice(11, 16);
const words = (changes: Parameters<typeof aCamera>[0]): string =>
  wordsOfCondition(conditionOf(aCamera(changes)), clock);

test('a camera that does not answer is not recorded, since when and why', () => {
  assert.equal(
    words({
      state: 'retrying',
      silent: true,
      silent_since: '2026-11-22T02:11:20.000+00:00',
      reason: { code: 'unreachable', message: 'connect ECONNREFUSED 10.0.0.7:554' },
    }),
    'Not recorded since 02:11 – camera does not answer',
  );
});

test('a reason that the console has no words for is reported in those of the recorder', () => {
  assert.match(words({ silent: true, reason: { code: 'encrypted', message: 'SRTP only' } }), /– SRTP only$/);
});

test('a disk that fails is the reason, although the camera sends', () => {
  const recording = { state: 'failed', reason: { code: 'disk-full', message: 'ENOSPC' }, last_written: null } as const;
  assert.equal(words({ recording }), 'Not recorded – disk is full');
});

test('the user who stopped a camera is named, and that is no alarm', () => {
  const camera = aCamera({
    state: 'stopped',
    state_since: '2026-11-22T02:11:20.000+00:00',
    reason: { code: 'stopped', message: 'stopped by anna' },
  });
  assert.equal(conditionOf(camera).level, 'off');
  assert.equal(wordsOfCondition(conditionOf(camera), clock), 'Stopped by anna since 02:11');
});

test('a camera that the configuration turns off is shown as such, without a time: it was never on', () => {
  const reason = { code: 'disabled', message: 'enabled is false in the configuration' };
  const state_since = '2026-11-22T02:11:20.000+00:00';
  assert.equal(words({ state: 'stopped', reason, state_since }), 'Turned off in the configuration');
});

test('a camera that has just been lost is being reconnected: no alarm before it is silent', () => {
  assert.equal(conditionOf(aCamera({ state: 'retrying' })).level, 'busy');
});

test('nothing is claimed of a camera whose node is away', () => {
  assert.deepEqual(conditionOf(aCamera({ state: 'unknown' })).level, 'attention');
});

test('a camera without a node is an alarm', () => {
  assert.equal(
    words({ state: 'unassigned', recording: { state: 'idle', reason: null, last_written: null } }),
    'Not recorded – no node records this camera',
  );
});

test('problems stand first, then names in the order of their numbers', () => {
  const cameras = [
    aCamera({ id: 'a', name: 'Gate 10' }),
    aCamera({ id: 'b', name: 'Gate 9' }),
    aCamera({ id: 'c', name: 'Yard', silent: true }),
    aCamera({ id: 'd', name: 'Attic', state: 'stopped' }),
  ];
  assert.deepEqual(
    cameras.sort(byUrgency).map(({ name }) => name),
    ['Yard', 'Attic', 'Gate 9', 'Gate 10'],
  );
});
