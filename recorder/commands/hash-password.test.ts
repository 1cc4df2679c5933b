import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { matchesPassword, parsePasswordHash } from '../../base/password-hash.ts';
import { runHashPassword } from './hash-password.ts';
import { UsageError } from './command.ts';

test('the hash of the first line of the input is returned', async () => {
  const hash = await runHashPassword(Readable.from(['correct horse\nmore\n']), () => {});
  const parsed = parsePasswordHash(hash);
  assert.ok(parsed && (await matchesPassword('correct horse', parsed)));
});

test('passwords that are too short, too long or common are refused, with the reason', async () => {
  for (const password of ['', '1234567', 'x'.repeat(257), 'Password1']) {
    await assert.rejects(
      runHashPassword(Readable.from([`${password}\n`]), () => {}),
      (err) => err instanceof UsageError && /^password: (expected|it is one of the most common)/.test(err.message),
    );
  }
});
