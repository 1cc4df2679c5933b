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

test('passwords that are too short or too long are refused', async () => {
  for (const password of ['', '1234567', 'x'.repeat(257)]) {
    await assert.rejects(
      runHashPassword(Readable.from([`${password}\n`]), () => {}),
      UsageError,
    );
  }
});
