import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import type { Caller } from './caller.ts';
import { SeenSessions } from './seen-sessions.ts';
import type { Session } from './sessions.ts';

test('of more than a thousand sessions, those that were used longest ago are forgotten', () => {
  const clock = new VirtualClock();
  const seen = new SeenSessions(clock);
  const note = (id: string): void => {
    const session = { id, expiresMs: clock.wallMs() + 1_000 } as Session;
    const account = { kind: 'user', name: 'anna' } as const;
    seen.note({ account, caller: {} as Caller, session, address: '', browser: undefined });
  };
  for (let i = 0; i < 1_000; i++) note(String(i));
  note('0');
  note('1000');
  const ids = seen.list.map(({ session }) => session.id);
  assert.deepEqual([ids.length, ids[0], ids[1], ids.at(-1)], [1_000, '1000', '0', '2']);
  clock.advance(1_000);
  assert.deepEqual(seen.list, []);
});
