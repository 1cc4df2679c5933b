import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearName } from './near-name.ts';

const KNOWN = ['from', 'to', 'speed', 'tz_offset_minutes'];

for (const [name, meant] of [
  ['form', 'from'],
  ['From', 'from'],
  ['spede', 'speed'],
  ['speeed', 'speed'],
  ['tzOffsetMinutes', 'tz_offset_minutes'],
  ['tz-offset-minuts', 'tz_offset_minutes'],
  ['until', undefined],
  ['', undefined],
  ['format', undefined],
] as const) {
  test(`${name === '' ? 'nothing' : name} means ${meant ?? 'none of them'}`, () => {
    assert.equal(nearName(name, KNOWN), meant);
  });
}
