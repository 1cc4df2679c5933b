import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextEvent } from './next-event.ts';

const DAY_MS = 86_400_000;
const NOW_MS = 100 * DAY_MS;

const reader = (starts: readonly number[]) => async (fromMs: number, toMs: number, limit: number) => {
  assert.ok(toMs - fromMs <= 31 * DAY_MS, 'the recorder refuses a longer range');
  return starts
    .filter((ms) => ms >= fromMs && ms < toMs)
    .sort((a, b) => b - a)
    .slice(0, limit);
};

test('the next and the previous event are found from any distance of a month', async () => {
  const read = reader([NOW_MS - 20 * DAY_MS, NOW_MS - 3 * DAY_MS, NOW_MS - 3 * DAY_MS + 5_000, NOW_MS - 1_000]);
  assert.equal(await nextEvent(NOW_MS - 20 * DAY_MS, 1, NOW_MS, read), NOW_MS - 3 * DAY_MS);
  assert.equal(await nextEvent(NOW_MS - 3 * DAY_MS, 1, NOW_MS, read), NOW_MS - 3 * DAY_MS + 5_000);
  assert.equal(await nextEvent(NOW_MS - 3 * DAY_MS + 5_000, 1, NOW_MS, read), NOW_MS - 1_000);
  assert.equal(await nextEvent(NOW_MS - DAY_MS, -1, NOW_MS, read), NOW_MS - 3 * DAY_MS + 5_000);
  assert.equal(await nextEvent(NOW_MS - 3 * DAY_MS, -1, NOW_MS, read), NOW_MS - 20 * DAY_MS);
});

test('after the last event, before the first, and in the present there is none', async () => {
  const read = reader([NOW_MS - DAY_MS]);
  assert.equal(await nextEvent(NOW_MS - DAY_MS, 1, NOW_MS, read), undefined);
  assert.equal(await nextEvent(NOW_MS - DAY_MS, -1, NOW_MS, read), undefined);
  assert.equal(await nextEvent(NOW_MS, 1, NOW_MS, read), undefined);
  assert.equal(await nextEvent(NOW_MS - 90 * DAY_MS, 1, NOW_MS, read), undefined);
});
