// Arguments of `recorder discover` that make no sense.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { UsageError } from './command.ts';
import { run } from './discover.ts';
import { commandContext } from './test-support.ts';

for (const [name, args, words] of [
  ['an unknown option', ['--colour', 'red'], /--colour/],
  ['an unknown output', ['--output', 'json'], /--output: expected one of table, yaml, kubernetes/],
  ['an output of every object', ['--output', 'toString'], /--output: expected/],
  ['a time that is none', ['--timeout', 'soon'], /--timeout: expected a duration from 1s to 1m/],
  ['a time that is too long', ['--timeout', '1h'], /--timeout: expected a duration from 1s to 1m/],
  ['a user without a password', ['--interface', 'lo', '--user', 'a'], /--user: needs --password-file/],
  ['a password without a user', ['--interface', 'lo', '--password-file', '-'], /--password-file: needs --user/],
  [
    'a password file that is not there',
    ['--interface', 'lo', '--user', 'a', '--password-file', '/nowhere'],
    /--password-file: .*ENOENT/,
  ],
  ['an unknown interface', ['--interface', 'nowhere7'], /--interface: there is no nowhere7/],
] as const) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(
      run(args, commandContext().context),
      (err: unknown) => err instanceof UsageError && words.test(err.message),
    );
  });
}
