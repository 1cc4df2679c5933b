import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { parse } from 'yaml';
import { ConfigFile } from '../config/schema.ts';
import { isGuessable } from '../../base/new-token.ts';
import { UsageError } from './command.ts';
import { commandContext } from './test-support.ts';
import { run } from './token.ts';

function runToken(args: readonly string[]): string {
  const { context, printed } = commandContext();
  run(args, context);
  return printed.out;
}

test('a token has 256 random bits, and the configuration gets only its hash', () => {
  const [token = '', ...rest] = runToken([
    'create',
    '--name',
    'reception',
    '--role',
    'operator',
    '--cameras',
    'gate,dock-*',
  ]).split('\n');
  assert.match(token, /^nvr_[\w-]{43}$/);
  const written = rest.join('\n').split('\n\n').at(-1) as string;
  assert.ok(!written.includes(token));
  const { auth } = ConfigFile.parse(parse(written));
  const sha256 = createHash('sha256').update(token).digest('hex');
  assert.deepEqual(auth.tokens, [{ name: 'reception', role: 'operator', sha256, cameras: ['gate', 'dock-*'] }]);
  assert.notEqual(runToken(['create', '--name', 'reception']).split('\n')[0], token);
  assert.ok(!isGuessable(token));
});

test('arguments that make no sense are named', () => {
  for (const [args, message] of [
    [[], /token create/],
    [['create'], /--name/],
    [['create', '--name', 'x', '--role', 'king'], /--role: expected one of viewer, operator, admin, reporter/],
    [['create', '--name', 'x', '--cameras', 'a/b'], /--cameras: expected a camera id/],
    [['create', '--nam', 'x'], /--nam/],
  ] as const) {
    assert.throws(
      () => runToken(args),
      (err: Error) => err instanceof UsageError && message.test(err.message),
    );
  }
});

test('what is short or repeats itself can be guessed', () => {
  for (const token of ['reception2024', '', 'a'.repeat(64), '0123456789abcdef01234'])
    assert.ok(isGuessable(token), token);
  for (const token of ['4vY3bV9yC0o1lq2Nf8sX7w', 'e'.repeat(3) + '0123456789abcdef0123456789abcdef']) {
    assert.ok(!isGuessable(token), token);
  }
});
