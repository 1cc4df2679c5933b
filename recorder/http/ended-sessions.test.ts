import assert from 'node:assert/strict';
import { chmodSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { DAY_MS } from '../../base/units.ts';
import { workspace } from '../../test/support/workspace.ts';
import { EndedSessions } from './ended-sessions.ts';

const session = (sinceMs: number, ...of: readonly string[]) => ({ endsWith: () => of, sinceMs });

test('sessions that began before are ended, one that begins later is not', () => {
  const clock = new VirtualClock();
  const ended = new EndedSessions(clock);
  const before = session(clock.wallMs(), 'id-1', 'anna');
  ended.end(['anna']);
  clock.advance(1);
  assert.deepEqual([ended.has(before), ended.has(session(clock.wallMs(), 'id-2', 'anna'))], [true, false]);
  assert.equal(ended.has(session(0, 'id-3', 'bert')), false);
});

test('a session that began at a node whose clock is ahead is ended, too', () => {
  const clock = new VirtualClock();
  const ended = new EndedSessions(clock);
  const sinceMs = clock.wallMs() + 5_000;
  ended.end(['id-1'], sinceMs);
  assert.equal(ended.has(session(sinceMs, 'id-1')), true);
});

test('a restart forgets nothing, and the file is for the owner alone', async (t) => {
  const workDir = workspace(t);
  const clock = new VirtualClock();
  const first = new EndedSessions(clock, { workDir });
  await first.load();
  first.end(['id-1']);
  first.learn([{ of: 'id-2', atMs: clock.wallMs() }]);
  await first.saved();
  const second = new EndedSessions(clock, { workDir });
  await second.load();
  assert.deepEqual(
    ['id-1', 'id-2', 'id-3'].map((of) => second.has(session(0, of))),
    [true, true, false],
  );
  assert.deepEqual(second.told, [{ of: 'id-1', atMs: clock.wallMs() }], 'each node tells its own');
  assert.equal(statSync(join(workDir, 'ended-sessions.json')).mode & 0o777, 0o600);
});

test('a file that cannot be read is reported, and the recorder starts', async (t) => {
  const workDir = workspace(t);
  const file = join(workDir, 'ended-sessions.json');
  writeFileSync(file, '[]');
  chmodSync(file, 0o666);
  const errors: unknown[] = [];
  const log = { ...silentLog, error: (facts: unknown) => void errors.push(facts) };
  await new EndedSessions(new VirtualClock(), { workDir, log }).load();
  assert.equal(errors.length, 1);
});

test('what another node has ended is ended here, but nothing that begins later, whatever that node says', () => {
  const clock = new VirtualClock();
  const ended = new EndedSessions(clock);
  assert.equal(ended.learn([{ of: 'anna', atMs: clock.wallMs() + 30 * DAY_MS }]), true);
  assert.equal(ended.has(session(clock.wallMs(), 'anna')), true);
  clock.advance(1);
  assert.equal(ended.has(session(clock.wallMs(), 'anna')), false);
  clock.advance(DAY_MS);
  assert.equal(ended.learn([{ of: 'anna', atMs: clock.wallMs() - DAY_MS - 1 }]), false, 'it is known');
});

test('what was ended before the oldest session is forgotten, and 200 are told', () => {
  const clock = new VirtualClock();
  const ended = new EndedSessions(clock);
  ended.end(['old']);
  clock.advance(30 * DAY_MS + 1);
  for (let i = 0; i < 300; i++) ended.end([`id-${i}`]);
  assert.equal(ended.has(session(0, 'old')), false);
  assert.deepEqual([ended.told.length, ended.told.at(-1)?.of], [200, 'id-299']);
});
