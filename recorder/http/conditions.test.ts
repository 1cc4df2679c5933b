import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evaluate, rangeApplies, type ConditionalHeaders } from './conditions.ts';

const MODIFIED_MS = Date.UTC(2026, 0, 1, 12, 0, 0) + 345;
const current = { etag: '"a1"', modifiedMs: MODIFIED_MS };
const SAME = 'Thu, 01 Jan 2026 12:00:00 GMT';
const BEFORE = 'Thu, 01 Jan 2026 11:59:59 GMT';
const AFTER = 'Thu, 01 Jan 2026 12:00:01 GMT';

const cases: { name: string; headers: ConditionalHeaders; expected: ReturnType<typeof evaluate> }[] = [
  { name: 'no condition', headers: {}, expected: 'send' },
  { name: 'If-None-Match with this tag', headers: { 'if-none-match': '"x", "a1"' }, expected: 'not-modified' },
  {
    name: 'If-None-Match with this tag as a weak one',
    headers: { 'if-none-match': 'W/"a1"' },
    expected: 'not-modified',
  },
  { name: 'If-None-Match with any', headers: { 'if-none-match': '*' }, expected: 'not-modified' },
  { name: 'If-None-Match with another', headers: { 'if-none-match': '"x"' }, expected: 'send' },
  {
    name: 'If-None-Match before If-Modified-Since',
    headers: { 'if-none-match': '"x"', 'if-modified-since': AFTER },
    expected: 'send',
  },
  { name: 'If-Modified-Since the same second', headers: { 'if-modified-since': SAME }, expected: 'not-modified' },
  { name: 'If-Modified-Since before', headers: { 'if-modified-since': BEFORE }, expected: 'send' },
  { name: 'If-Modified-Since that is no date', headers: { 'if-modified-since': 'yesterday' }, expected: 'send' },
  { name: 'If-Match with this tag', headers: { 'if-match': '"a1"' }, expected: 'send' },
  { name: 'If-Match with this tag as a weak one', headers: { 'if-match': 'W/"a1"' }, expected: 'failed' },
  { name: 'If-Match with another', headers: { 'if-match': '"x"' }, expected: 'failed' },
  { name: 'If-Unmodified-Since before', headers: { 'if-unmodified-since': BEFORE }, expected: 'failed' },
  { name: 'If-Unmodified-Since the same second', headers: { 'if-unmodified-since': SAME }, expected: 'send' },
  {
    name: 'If-Match before If-Unmodified-Since',
    headers: { 'if-match': '"a1"', 'if-unmodified-since': BEFORE },
    expected: 'send',
  },
];
for (const { name, headers, expected } of cases) {
  test(`conditions: ${name}`, () => assert.equal(evaluate(headers, current), expected));
}

const ranged: { ifRange: string | undefined; expected: boolean }[] = [
  { ifRange: undefined, expected: true },
  { ifRange: '"a1"', expected: true },
  { ifRange: 'W/"a1"', expected: false },
  { ifRange: '"x"', expected: false },
  { ifRange: SAME, expected: true },
  { ifRange: AFTER, expected: false },
  { ifRange: 'nonsense', expected: false },
];
for (const { ifRange, expected } of ranged) {
  test(`If-Range ${ifRange}: the range ${expected ? 'applies' : 'is ignored'}`, () =>
    assert.equal(rangeApplies({ 'if-range': ifRange }, current), expected));
}
