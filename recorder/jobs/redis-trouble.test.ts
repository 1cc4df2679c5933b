import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redisTrouble } from './redis-trouble.ts';

const answered = (message: string, name: string): Error => Object.assign(new Error(message), { command: { name } });

for (const [what, err, message, isLasting] of [
  [
    'its code, whatever else the answer says',
    answered('NOPERM whatever', 'xadd'),
    'redis does not give the user in redis.url the permissions that jobs need',
    true,
  ],
  [
    'the command that sends the password, for versions without a code for it',
    answered('ERR whatever', 'auth'),
    'redis refuses the user or the password in redis.url',
    true,
  ],
  ['no word that is not the code', answered('ERR invalid password, WRONGPASS', 'eval'), 'redis does not answer', false],
  ['an answer that passes', answered('OOM command not allowed', 'xadd'), 'redis has no memory left', false],
] as const)
  test(`the trouble with Redis is told by ${what}`, () => {
    assert.deepEqual(redisTrouble(err), { message, isLasting });
  });
