import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { Reading } from './reading.ts';
import { stage } from './test-support.ts';

test('a file is held once from the first request until a minute after the last', () => {
  const clock = new VirtualClock();
  const held: string[] = [];
  const holds: string[] = [];
  const reading = new Reading(
    {
      list: async () => ({ segments: [], days: [] }),
      openEntries: () => [],
      holdWindow: () => () => {},
      holdForReading: (path) => {
        holds.push(path);
        held.push(path);
        return () => held.splice(held.indexOf(path), 1);
      },
    },
    clock,
  );
  for (let second = 0; second < 100; second++) {
    reading.touch('a');
    if (second === 0) reading.touch('b');
    clock.advance(1_000);
    assert.deepEqual(held, second < 59 ? ['a', 'b'] : ['a']);
  }
  clock.advance(58_000);
  assert.deepEqual(held, ['a']);
  clock.advance(1_000);
  assert.deepEqual(held, []);
  reading.touch('a');
  assert.deepEqual([held, holds], [['a'], ['a', 'b', 'a']]);
});

test('a window is held while it is sent', async (t) => {
  const stand = await stage(t);
  const { camera, fs, start, archive } = stand;
  camera.begin();
  await camera.play(5, fs);
  const windows: [string, number, number][] = [];
  let held = 0;
  archive.holdWindow = (...window) => {
    windows.push(window);
    held++;
    return () => held--;
  };
  const answer = await stand.app.inject(`/window/gate.mp4?from=${start}&to=${start + 4}`);
  assert.equal(answer.statusCode, 200);
  assert.deepEqual([windows, held], [[['gate', start * 1000, (start + 4) * 1000]], 0]);
});
