import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { hashPassword } from '../../base/password-hash.ts';
import { Users } from './users.ts';

test('to refuse a name that does not exist costs as much as to refuse a password', async () => {
  const password = await hashPassword('correct horse');
  const users = new Users([{ name: 'anna', role: 'viewer', cameras: ['*'], export: true, password }], systemClock);
  /** Processor time of the whole process, in microseconds. */
  const costOf = async (name: string): Promise<number> => {
    const before = process.cpuUsage();
    assert.equal(
      await users.signIn(name, 'wrong horse', { key: '10.0.0.1', isKnown: false, begin: () => {}, failed: () => {} }),
      undefined,
    );
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  await costOf('anna');
  const [known, unknown] = [await costOf('anna'), await costOf('nobody')];
  assert.ok(unknown > known / 3, `${unknown} µs for nobody, ${known} µs for anna`);
});
