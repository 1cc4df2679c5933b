import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemberSessions } from './member-sessions.ts';

test('who follows the sessions of members gets those that were told before, and each change', () => {
  const sessions = new MemberSessions();
  assert.equal(sessions.keyOf('rack-2'), undefined);
  const first = { keys: new Map([['rack-2', 'A']]), ended: [] };
  sessions.are(first);
  const told: unknown[] = [];
  sessions.follow((now) => told.push(now));
  const second = { keys: new Map(), ended: [{ of: 'id-1', atMs: 1 }] };
  sessions.are(second);
  assert.deepEqual([told, sessions.keyOf('rack-2')], [[first, second], undefined]);
});
