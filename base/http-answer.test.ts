import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRedirect, readBody } from './http-answer.ts';

const tooLong = (): Error => new Error('too long');

async function* endless(): AsyncGenerator<Buffer> {
  for (;;) yield Buffer.from('abcd');
}

test('a body is read to its end, up to the limit', async () => {
  const body = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from('ab');
    yield Buffer.from('cd');
  };
  assert.equal(String(await readBody(body(), 4, tooLong)), 'abcd');
  await assert.rejects(readBody(body(), 3, tooLong), /too long/);
});

test('a body without end is given up at the limit', async () => {
  await assert.rejects(readBody(endless(), 1000, tooLong), /too long/);
});

test('a redirect has a Location to follow', () => {
  assert.deepEqual([301, 302, 303, 307, 308].map(isRedirect), [true, true, true, true, true]);
  assert.deepEqual([200, 300, 304, 401, undefined].map(isRedirect), [false, false, false, false, false]);
});
