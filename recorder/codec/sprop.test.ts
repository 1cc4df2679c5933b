import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { parseSprop } from './sprop.ts';

const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64');
const hexOf = (value: string): string[] => parseSprop(value).map((nal) => nal.toString('hex'));

test('sprop: start codes before and behind a NAL unit are not part of it', () => {
  assert.deepEqual(hexOf(`${base64('000000016742c00c00000001')},${base64('00000168ce09c8')}`), [
    '6742c00c',
    '68ce09c8',
  ]);
});

test('sprop: a value that begins with zero and holds no start code comes to an end', () => {
  assert.deepEqual(hexOf(base64('00ce0960')), ['00ce0960']);
  assert.deepEqual(hexOf(base64('00000000')), []);
});

test('sprop: any text is taken', () => {
  fc.assert(fc.property(fc.base64String(), (text) => void parseSprop(text)));
});
