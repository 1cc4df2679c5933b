import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReadPacer } from './read-pacer.ts';

/** An event loop whose turns and clock the test controls. */
function loop(intervalMs: number) {
  const state = { nowMs: 1_000, rests: [] as number[], callbacks: [] as (() => void)[] };
  const pacer = new ReadPacer({
    intervalMs,
    nowMs: () => state.nowMs,
    rest: (ms) => {
      state.rests.push(ms);
      state.nowMs += ms;
    },
    afterTurn: (callback) => state.callbacks.push(callback),
  });
  const turn = (reads: number, workMs: number): void => {
    for (let i = 0; i < reads; i++) pacer.noteRead();
    state.nowMs += workMs;
    for (const callback of state.callbacks.splice(0)) callback();
  };
  return { state, pacer, turn };
}

test('turns with reads begin an interval apart, however many reads they hold', () => {
  const { state, turn } = loop(2);
  turn(1, 0.5); // the first one: there was none before
  turn(3, 0.5);
  turn(2, 0.25);
  assert.deepEqual(state.rests, [1.5, 1.75]);
});

test('a busy loop does not rest', () => {
  const { state, turn } = loop(2);
  turn(1, 0);
  turn(20, 1.9);
  turn(20, 5);
  assert.deepEqual(state.rests, []);
});

test('a turn without reads of cameras does not rest', () => {
  const { state, turn } = loop(2);
  turn(1, 0);
  turn(0, 0);
  assert.equal(state.rests.length, 0);
  assert.equal(state.callbacks.length, 0);
});

test('a turn with a datagram does not rest, and those after it rest for a millisecond at most', () => {
  const { state, pacer, turn } = loop(4);
  turn(1, 0);
  pacer.noteDatagram();
  turn(1, 0);
  assert.deepEqual(state.rests, []);
  turn(1, 0.25);
  turn(1, 0);
  assert.deepEqual(state.rests, [0.75, 1]);
  for (let i = 0; i < 10_000; i++) turn(1, 1);
  turn(1, 0);
  assert.equal(state.rests.at(-1), 4, 'no datagrams for ten seconds');
});

test('the loop does not rest while a request is being answered', () => {
  const { state, pacer, turn } = loop(2);
  turn(1, 0);
  const first = pacer.keepAwake();
  const second = pacer.keepAwake();
  turn(1, 0);
  first();
  first();
  turn(1, 0);
  assert.deepEqual(state.rests, []);
  second();
  turn(1, 0);
  assert.deepEqual(state.rests, [2]);
});

test('the real pacer blocks the thread for the rest of the interval, not longer than the interval', async () => {
  const pacer = new ReadPacer({ intervalMs: 20 });
  // A busy machine takes part of an interval, or adds to it.
  const rests: number[] = [];
  for (let i = 0; i < 10; i++) {
    pacer.noteRead();
    await new Promise(setImmediate);
    const startMs = performance.now();
    pacer.noteRead();
    await new Promise(setImmediate);
    rests.push(performance.now() - startMs);
  }
  assert.ok(
    rests.some((tookMs) => tookMs > 10 && tookMs < 1_000),
    `rested ${rests.join(', ')} ms`,
  );
});
