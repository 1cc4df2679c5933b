import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leafTimes } from './authorities.ts';
import { DAY_MS, HOUR_MS } from './units.ts';

test('a certificate is valid for 90 days, and never longer than the CA that signs it', () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const signer = (toMs: number) => ({ certificate: '', key: '', fromMs: nowMs - DAY_MS, toMs });
  const fromMs = nowMs - HOUR_MS;
  assert.deepEqual(leafTimes(signer(nowMs + 365 * DAY_MS), nowMs), { fromMs, toMs: nowMs + 90 * DAY_MS });
  assert.deepEqual(leafTimes(signer(nowMs + 10 * DAY_MS), nowMs), { fromMs, toMs: nowMs + 10 * DAY_MS });
});
