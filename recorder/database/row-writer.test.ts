import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import type { Connection, Run } from './connection.ts';
import { DatabaseError } from './error.ts';
import { DatabaseMetrics } from './metrics.ts';
import type { RowChange } from './row.ts';
import type { Queued, RowQueue } from './row-queue.ts';
import { writeRest, writeRows } from './row-writer.ts';

const change = (filename: string): RowChange => ({ kind: 'remove', filename, cameraId: 'gate' });

/** A queue with these rows, and a database that never accepts `refused`, and nothing while `away` is set. */
function stage(filenames: readonly string[], refused: readonly string[]) {
  let waiting: Queued[] = filenames.map((filename) => ({ change: change(filename), applied: false }));
  const table = new Set(filenames);
  const state = { away: (_filenames: readonly string[]): boolean => false, faulty: '' };
  const queue = {
    peek: (count: number) => waiting.slice(0, count),
    applied: (batch: readonly Queued[]) => (waiting = waiting.filter((row) => !batch.includes(row))),
    filled: async (signal: AbortSignal) => {
      if (waiting.length === 0) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  } as unknown as RowQueue;
  const connection = {
    async transaction(work: (run: Run) => Promise<void>) {
      const removed: string[] = [];
      await work(async (_sql, values) => {
        const names = values?.[1] as string[];
        if (state.away(names)) throw new DatabaseError('UNAVAILABLE', 'connect ECONNREFUSED');
        if (names.some((name) => state.faulty === name)) throw new TypeError('a fault of this program');
        if (names.some((name) => refused.includes(name))) throw new DatabaseError('REJECTED', 'no such value');
        removed.push(...names);
        return [];
      });
      for (const name of removed) table.delete(name);
    },
  } as unknown as Connection;
  const sources = { reachable: () => true, waiting: () => 0, cameras: () => ({ used: 0, refused: 0 }) };
  const metrics = new DatabaseMetrics(new Registry(), sources);
  const bugs: Error[] = [];
  const clock = new VirtualClock();
  const log: Log = { ...silentLog, bug: ({ err }) => void bugs.push(err as Error) };
  const follow = (told: (problem: string) => void, signal: AbortSignal) =>
    writeRows({ connection, queue, nodeName: 'n', clock, log, metrics, told }, signal);
  const write = () => writeRest({ connection, queue, nodeName: 'n', clock, log, metrics });
  return { clock, follow, write, state, table, bugs, waiting: () => waiting.map(({ change }) => change) };
}

const FIVE = ['1', '2', '3', '4', '5'];

test('a row that the database refuses is left out, and holds up no other', async () => {
  const { write, table, waiting } = stage(FIVE, ['3']);
  await write();
  assert.deepEqual([[...table], waiting()], [['3'], []]);
});

test('a database that goes away while the rows of a refused batch are tried one by one costs none of them', async () => {
  const { write, state, table, waiting } = stage(FIVE, ['3']);
  state.away = (names) => names.length === 1 && Number(names[0]) >= 4;
  await assert.rejects(write(), { code: 'UNAVAILABLE' });
  assert.deepEqual(waiting(), FIVE.map(change), 'all of them wait, also those that it took: again does no harm');
  state.away = () => false;
  await write();
  assert.deepEqual([[...table], waiting()], [['3'], []]);
});

test('a row that this program cannot write is left out, is logged as a fault, and holds up no other', async () => {
  const { write, state, table, waiting, bugs } = stage(FIVE, []);
  state.faulty = '3';
  await write();
  assert.deepEqual([[...table], waiting()], [['3'], []]);
  assert.deepEqual(
    bugs.map(({ message }) => message),
    ['a fault of this program'],
  );
});

test('a database that takes no rows is told with its reason, until it takes them', async () => {
  const { clock, follow, state, table } = stage(FIVE, []);
  state.away = () => true;
  const told: string[] = [];
  const stop = new AbortController();
  const following = follow((problem) => void told.push(problem), stop.signal);
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) {
      clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await until(() => told.length === 2);
  state.away = () => false;
  await until(() => table.size === 0 && told.at(-1) === '');
  stop.abort();
  await following;
  assert.deepEqual(told, ['connect ECONNREFUSED', 'connect ECONNREFUSED', '']);
});
