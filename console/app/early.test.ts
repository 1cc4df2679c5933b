import assert from 'node:assert/strict';
import { test } from 'node:test';

const early = new Map<string, unknown>();
Object.assign(globalThis, { early });
const { takeEarly } = await import('./early.ts');

const put = (path: string, receivedMs: number): Response => {
  const response = new Response('{}');
  early.set(path, { sentMs: receivedMs - 40, answer: Promise.resolve({ response, receivedMs }) });
  return response;
};

test('an answer that is there is taken once, with the times of its own request', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 10_000 });
  const receivedMs = Date.now() - 2_000;
  const response = put('/api/session', receivedMs);
  assert.deepEqual(await takeEarly('/api/session'), { response, receivedMs, sentMs: receivedMs - 40 });
  assert.equal(await takeEarly('/api/session'), undefined);
  assert.equal(await takeEarly('/api/other'), undefined);
});

test('an answer that has become old while the scripts were loaded is not used', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 10_000 });
  put('/api/cameras', Date.now() - 5_001);
  assert.equal(await takeEarly('/api/cameras'), undefined);
});

test('the first caller gets the failure of an early request, and the next caller asks again', async () => {
  early.set('/api/session', { sentMs: 0, answer: Promise.reject(new TypeError('no answer')) });
  await assert.rejects(takeEarly('/api/session'), TypeError);
  assert.equal(await takeEarly('/api/session'), undefined);
});
