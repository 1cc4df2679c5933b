import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { hashPassword, matchesPassword, parsePasswordHash } from './password-hash.ts';

test('a hash matches its password only, and each hash has a salt of its own', async () => {
  const [one, other] = [await hashPassword('correct horse'), await hashPassword('correct horse')];
  assert.notEqual(one, other);
  const known = parsePasswordHash(one);
  assert.ok(known);
  assert.equal(await matchesPassword('correct horse', known), true);
  assert.equal(await matchesPassword('correct horsf', known), false);
  assert.equal(await matchesPassword('', known), false);
});

test('a password matches however its letters are composed', async () => {
  const known = parsePasswordHash(await hashPassword('Gru\u0308n'));
  assert.ok(known && (await matchesPassword('Gr\u00fcn', known)));
});

test('a vector of RFC 7914 §12 matches, with a cost that is accepted', async () => {
  const hash = Buffer.from(
    '7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887',
    'hex',
  );
  const salt = Buffer.from('SodiumChloride');
  assert.equal(await matchesPassword('pleaseletmein', { N: 16384, r: 8, p: 1, salt, hash }), true);
});

test('text that is no hash, and costs out of bounds, are refused', () => {
  const rest = `${'a'.repeat(22)}$${'b'.repeat(43)}`;
  assert.ok(parsePasswordHash(`scrypt$16384$8$5$${rest}`));
  assert.ok(parsePasswordHash(`scrypt$32768$8$3$${rest}`));
  assert.ok(parsePasswordHash(`pbkdf2$600000$${rest}`));
  for (const text of [
    'secret',
    '',
    `scrypt$16384$8$5$${rest}$`,
    `scrypt$16384$8$5$short$${'b'.repeat(43)}`,
    `scrypt$16384$8$5$${'a'.repeat(22)}$short`,
    `scrypt$16385$8$5$${rest}`,
    `scrypt$1$8$5$${rest}`,
    `scrypt$16384$8$0$${rest}`,
    `scrypt$1024$8$1$${rest}`,
    `scrypt$1048576$8$1$${rest}`,
    `scrypt$16384$8$999$${rest}`,
    `pbkdf2$110000$${rest}`,
    `pbkdf2$5000000$${rest}`,
    `pbkdf2$600000$short$${'b'.repeat(43)}`,
  ]) {
    assert.equal(parsePasswordHash(text), undefined, text);
  }
});

test('in FIPS mode a hash is of PBKDF2, and one of scrypt is no hash', async (t) => {
  const scrypt = await hashPassword('correct horse');
  t.mock.method(crypto, 'getFips', () => 1);
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  assert.equal(parsePasswordHash(scrypt), undefined);
  const text = await hashPassword('correct horse');
  const known = parsePasswordHash(text);
  assert.ok(known);
  assert.equal(await matchesPassword('correct horse', known), true);
  assert.equal(await matchesPassword('correct horsf', known), false);
  const [, iterations = '', salt = '', hash] = text.split('$');
  const expected = crypto.pbkdf2Sync('correct horse', Buffer.from(salt, 'base64url'), Number(iterations), 32, 'sha256');
  assert.equal(hash, expected.toString('base64url'));
});

test('many checks keep the memory of one, however many threads the process has', () => {
  const hash = pathToFileURL(join(import.meta.dirname, 'password-hash.ts')).href;
  const script = `
    import { stat } from 'node:fs/promises';
    import { hashPassword, matchesPassword, parsePasswordHash } from '${hash}';
    process.env.UV_THREADPOOL_SIZE = '32';
    const known = parsePasswordHash(await hashPassword('correct horse'));
    const some = Array.from({ length: 32 });
    await Promise.all(some.map(() => stat('/')));
    const before = process.memoryUsage.rss();
    for (const _ of some) await matchesPassword('guess', { ...known, p: 1 });
    console.log(process.memoryUsage.rss() - before);`;
  const grown = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  // A check of this hash takes 16 MiB. In the thread pool it is 300 MiB on two cores, and more on others.
  assert.ok(Number(grown) < 100 * 2 ** 20, grown);
});
