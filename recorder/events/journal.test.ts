import assert from 'node:assert/strict';
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { workspace } from '../../test/support/workspace.ts';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { MemoryBudget, unlimitedMemory } from '../../base/memory-budget.ts';
import { EventJournal, KEPT_MS, type JournalOptions } from './journal.ts';

interface Stage {
  readonly clock: VirtualClock;
  readonly directory: string;
  readonly file: string;
  /** Opens the journal in another process on the same files. */
  readonly open: (changes?: Partial<JournalOptions>) => Promise<EventJournal>;
}

function stage(t: TestContext): Stage {
  const clock = new VirtualClock();
  const directory = join(workspace(t), 'events');
  return {
    clock,
    directory,
    file: join(directory, 'journal.jsonl'),
    open: async (changes) => {
      const memory = unlimitedMemory('events');
      const journal = await EventJournal.open({ directory, node: 'rack-1', clock, log: silentLog, memory, ...changes });
      t.after(() => journal.close());
      return journal;
    },
  };
}

const progress = (number: number) => ({ type: 'job.progress', cameraId: 'gate', data: { number } }) as const;

/** Resolves when all reported events can be read. */
async function shown(journal: EventJournal, number: number): Promise<void> {
  const done = Promise.withResolvers<void>();
  const look = (): void => (numbersIn(journal).includes(number) ? done.resolve() : undefined);
  const leave = journal.follow(look);
  look();
  await done.promise;
  leave();
}

const numbersIn = (journal: EventJournal, afterId = 0): unknown[] =>
  [...journal.after(afterId)].map(({ json }) => (JSON.parse(json) as { data: { number: unknown } }).data.number);

test('what anybody was told is there after a kill, in order, and ids continue', async (t) => {
  const { open, clock } = stage(t);
  const first = await open();
  for (const number of [1, 2, 3]) first.tell(progress(number));
  await shown(first, 3);
  // Nothing is closed: the next process finds what this one had written.
  clock.advance(1);
  const second = await open();
  assert.deepEqual(numbersIn(second), [1, 2, 3]);
  second.tell(progress(4));
  await shown(second, 4);
  assert.deepEqual(numbersIn(second), [1, 2, 3, 4]);
  const ids = [...second.after(0)].map(({ id }) => id);
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((a, b) => a - b),
  );
  assert.equal(second.missedSince(ids[0] as number), undefined);
});

test('a torn last line is no event, and the next one is whole', async (t) => {
  const { open, clock, file } = stage(t);
  const first = await open();
  for (const number of [1, 2]) first.tell(progress(number));
  await shown(first, 2);
  const [before = 0, torn = 0] = [...first.after(0)].map(({ id }) => id);
  truncateSync(file, statSync(file).size - 20);
  clock.advance(1);
  const second = await open();
  assert.deepEqual(numbersIn(second), [1]);
  second.tell(progress(3));
  await shown(second, 3);
  assert.deepEqual(numbersIn(second, before), [3]);
  // Otherwise a client that got the torn event would take the new one for it.
  assert.ok([...second.after(before)].every(({ id }) => id > torn));
  const third = await open();
  assert.deepEqual(numbersIn(third), [1, 3]);
});

test('ids ascend also where the clock is set back', async (t) => {
  const { open, clock } = stage(t);
  const journal = await open();
  journal.tell(progress(1));
  clock.stepWall(-86_400_000);
  journal.tell(progress(2));
  await shown(journal, 2);
  const [first = 0, second = 0] = [...journal.after(0)].map(({ id }) => id);
  assert.equal(second, first + 1);
  const next = await open();
  assert.deepEqual(numbersIn(next), [1, 2]);
});

test('an hour is kept; of what is older it is said that it is missing', async (t) => {
  const { open, clock } = stage(t);
  const journal = await open();
  journal.tell(progress(1));
  clock.advance(1_000);
  journal.tell(progress(2));
  await shown(journal, 2);
  const [first = 0, second = 0] = [...journal.after(0)].map(({ id }) => id);
  clock.advance(KEPT_MS - 500);
  journal.tell(progress(3));
  await shown(journal, 3);
  assert.deepEqual(numbersIn(journal), [2, 3]);
  for (const one of [journal, await open()]) {
    assert.equal(one.missedSince(first), undefined, 'who has seen it misses nothing');
    assert.equal(one.missedSince(first - 1)?.id, first);
    assert.equal(one.missedSince(second), undefined);
    assert.equal(one.missedSince(0), undefined, 'who asks for all that is there has it');
  }
});

test('memory and file are bounded, whatever happens, and the file remembers that something is missing', async (t) => {
  const { open, file } = stage(t);
  const journals: EventJournal[] = [];
  const memory = new MemoryBudget(Infinity).open('events', {
    maxBytes: 100_000,
    shed: (bytes) => journals[0]?.shed(bytes),
  });
  const journal = await open({ memory });
  journals.push(journal);
  let largest = 0;
  for (let number = 1; number <= 5_000; number++) {
    journal.tell(progress(number));
    if (number % 10 === 0) {
      await shown(journal, number);
      largest = Math.max(largest, statSync(file).size);
      assert.ok(memory.usedBytes <= 100_000);
    }
  }
  assert.ok(largest < 2 * 100_000 + 256 * 1024 + 10_000, `${largest} bytes`);
  const numbers = numbersIn(journal) as number[];
  assert.ok(numbers.length > 100);
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => 5_001 - numbers.length + i),
  );
  const [oldest = 0] = [...journal.after(0)].map(({ id }) => id);
  const next = await open();
  assert.ok(next.missedSince(1), 'what was dropped before the file was written again');
  assert.deepEqual(numbersIn(next, oldest - 1).slice(-numbers.length), numbers);
});

test('a disk that refuses costs nobody an event, and has all of them when it is back', async (t) => {
  const { open, directory, file, clock } = stage(t);
  writeFileSync(directory, 'no directory');
  const journal = await open();
  journal.tell(progress(1));
  await shown(journal, 1);
  journal.tell(progress(2));
  await shown(journal, 2);
  rmSync(directory);
  journal.tell(progress(3));
  await shown(journal, 3);
  assert.equal(readFileSync(file, 'utf8').trim().split('\n').length, 3);
  clock.advance(1);
  assert.deepEqual(numbersIn(await open()), [1, 2, 3]);
});

test('lines that are none of ours are passed over', async (t) => {
  const { open, file } = stage(t);
  const first = await open();
  first.tell(progress(1));
  await shown(first, 1);
  const line = readFileSync(file, 'utf8');
  const garbage = ['', '{}', 'null', '[1]', '{"id":"x"}', '{"dropped":"99999999999999999"}', '\u0000'];
  writeFileSync(file, [...garbage, line, ...garbage, line, ''].join('\n'));
  assert.deepEqual(numbersIn(await open()), [1]);
});
