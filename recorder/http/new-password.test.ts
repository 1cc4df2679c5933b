import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliDecompressSync } from 'node:zlib';
import { COMMON_PASSWORDS } from './common-passwords.ts';
import { problemOfPassword } from './new-password.ts';

test('passwords that are guessed first are refused, in any case', () => {
  const problems: Record<string, readonly string[]> = {
    'one of the most common': ['password', 'Passw0rd', 'ILOVEYOU', 'trustno1', 'qwertyuiop', 'football1', '1qaz2wsx'],
    'repeats a shorter text': ['11111111', 'aaaaaaaa', 'abcabcabc', 'AdminAdmin'],
    'a sequence of characters': ['12345678', 'abcdefgh', 'hgfedcba', '87654321'],
    'little more than the name': ['annemarie', 'Annemarie1', '2annemarie!'],
    'at least 8 characters': ['', '1234567'],
    'at most 256 characters': ['x'.repeat(257)],
  };
  for (const [problem, passwords] of Object.entries(problems)) {
    for (const password of passwords) {
      assert.match(problemOfPassword(password, 'annemarie') ?? 'accepted', new RegExp(problem), password);
    }
  }
});

test('other passwords are accepted, whatever characters they have', () => {
  for (const password of [
    'correct horse',
    'x7Kq!m2P',
    'annemarie and bert',
    'Grün über Blau',
    '密码密码是密码吗',
    'password of the gate',
  ]) {
    assert.equal(problemOfPassword(password, 'annemarie'), undefined, password);
  }
  assert.equal(problemOfPassword('correct horse'), undefined, 'without a name');
});

test('the list has ten thousand passwords, each once, that are long enough', () => {
  const list = brotliDecompressSync(Buffer.from(COMMON_PASSWORDS, 'base64')).toString().split('\n');
  assert.equal(new Set(list).size, 10_000);
  assert.ok(list.every((one) => one.length >= 8 && one === one.toLowerCase()));
});
