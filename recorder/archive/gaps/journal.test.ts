import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { silentLog, type Log } from '../../../base/log.ts';
import { systemError, temporaryDirectory, TestFileSystem, TestLog } from '../test-support.ts';
import { Journal } from './journal.ts';
import { formatRecord, parseJournal, parseRecord, type LedgerRecord } from './record.ts';

const recorded = (i: number): LedgerRecord => ({ kind: 'recorded', fromMs: i * 1_000, toMs: i * 1_000 + 500 });
const numbers = (records: readonly LedgerRecord[]): number[] =>
  records.map((record) => (record.kind === 'recorded' ? record.fromMs / 1_000 : NaN));
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

interface Setting {
  readonly root: string;
  readonly path: string;
  readonly fs: TestFileSystem;
  /** Everything that was ever appended. */
  readonly all: LedgerRecord[];
  readonly journal: (options?: { log?: Log; checkDisk?: () => Promise<void> }) => Journal;
  readonly append: (journal: Journal, count: number) => void;
}

function setting(t: TestContext): Setting {
  const root = temporaryDirectory(t);
  mkdirSync(join(root, '.kube-nvr'));
  const directory = `${root}/.kube-nvr/gaps`;
  const fs = new TestFileSystem(root);
  const all: LedgerRecord[] = [];
  return {
    root,
    path: `${directory}/gate.jsonl`,
    fs,
    all,
    journal: ({ log = silentLog, checkDisk = async () => {} } = {}) =>
      new Journal({ fs, directory, name: 'gate.jsonl', log, isHeld: () => false, checkDisk, snapshot: () => all }),
    append(journal, count) {
      for (let i = 0; i < count; i++) {
        const record = recorded(all.length);
        all.push(record);
        journal.append(record);
      }
    },
  };
}

test('a line holds each kind of record, and anything else is none', () => {
  const records: LedgerRecord[] = [
    { kind: 'state', state: 'recording', atMs: 5 },
    { kind: 'state', state: 'starting', atMs: 9, untilMs: 6, because: 'node-down' },
    { kind: 'missed', fromMs: -3, toMs: 4, cause: 'packets-lost' },
    recorded(3),
    { kind: 'degraded', fromMs: 5, toMs: 60_000, lost: 3, expected: 1_500 },
    { kind: 'degraded', fromMs: 60_000, toMs: 120_000, lost: 0, undecodable: 7, expected: 1_500 },
    { kind: 'stop', atMs: 7, detail: 'stopped by anna: repair of the mast' },
    { kind: 'stop', atMs: 8, detail: '' },
  ];
  for (const record of records) assert.deepEqual(parseRecord(formatRecord(record)), record);
  const none = ['', '{', 'null', '1', '"x"', '[]', '{}', '{"at":1}', '{"state":"x"}', '{"at":1.5,"state":"stopped"}'];
  none.push(
    '{"at":1,"state":"stopped","until":"2"}',
    '{"recorded":[2,1]}',
    '{"recorded":[1]}',
    '{"missed":{}}',
    '{"degraded":[1,2],"lost":2,"expected":1}',
    '{"degraded":[1,2],"lost":0,"expected":1}',
    '{"degraded":[1,2],"lost":1}',
    '{"stop":"1","detail":"x"}',
    '\0\0',
  );
  for (const text of none) assert.equal(parseRecord(text), undefined, text);
});

test('a cause of a newer version counts as unknown', () => {
  assert.deepEqual(parseRecord('{"at":1,"state":"eclipse","until":0,"because":"flood"}'), {
    kind: 'state',
    atMs: 1,
    state: 'unknown',
    untilMs: 0,
    because: 'unknown',
  });
});

test('records are in the file in their order, also those that came while others were written', async (t) => {
  const { path, fs, journal, append } = setting(t);
  const first = journal();
  append(first, 3);
  fs.before = ({ name }) => {
    if (name === 'write' && fs.operations.length < 20) append(first, 2);
  };
  await first.flush();
  await first.flush();
  fs.before = () => {};
  const second = journal();
  const before = numbers(await second.read());
  assert.deepEqual(before, upTo(before.length));
  assert.ok(before.length > 3);
  append(second, 2);
  await second.flush();
  assert.deepEqual(numbers(parseJournal(readFileSync(path, 'utf8'))), upTo(before.length + 2));
});

test('a journal that is torn at any byte loses its last record only, and continues', async (t) => {
  const { path, journal, append } = setting(t);
  const first = journal();
  append(first, 4);
  await first.flush();
  const whole = readFileSync(path, 'utf8');
  const next = recorded(99);
  for (let bytes = 0; bytes <= whole.length; bytes++) {
    for (const tail of ['', '\0'.repeat(7), 'x']) {
      writeFileSync(path, whole.slice(0, bytes) + tail);
      const again = journal();
      const lines = whole.slice(0, bytes).trimStart().split('\n').length - 1;
      const kept = numbers(await again.read());
      // A last line of which only the line feed is missing is whole.
      assert.ok(kept.length >= lines && kept.length <= lines + 1, `${kept.length} records of ${bytes} bytes`);
      assert.deepEqual(kept, upTo(kept.length));
      again.append(next);
      await again.flush();
      assert.deepEqual(numbers(await journal().read()), [...kept, 99]);
    }
  }
});

test('killed at any step, also while the file is replaced, everything that was flushed is there', async (t) => {
  const { root, path, fs, journal, append, all } = setting(t);
  /** Returns how many records were on the disk before it was killed. */
  const grow = async (): Promise<number> => {
    const grown = journal();
    let flushed = 0;
    for (let i = 0; i < 60; i++) {
      append(grown, 100);
      await grown.flush();
      if (!grown.dirty) flushed = all.length;
    }
    return flushed;
  };
  await grow();
  const steps = fs.operations.length;
  assert.ok(
    fs.operations.some(({ name }) => name === 'rename'),
    'the file was replaced',
  );
  const replaced = fs.operations.findIndex(({ path }) => path.endsWith('.new'));
  for (let step = 0; step < steps; step += step < 20 || Math.abs(step - replaced) < 15 ? 1 : 29) {
    rmSync(join(root, '.kube-nvr/gaps'), { recursive: true, force: true });
    all.length = 0;
    fs.killAfter(step, step % 2 === 0 ? 0 : 13);
    const flushed = await grow();
    fs.before = () => {};
    const kept = [...new Set(numbers(parseJournal(read(path))))];
    assert.deepEqual(kept, upTo(kept.length));
    assert.ok(kept.length >= flushed, `${kept.length} of ${flushed}, killed at step ${step}`);
  }
});

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

test('a file that has grown is replaced by what is worth keeping', async (t) => {
  const { path, journal, append, all } = setting(t);
  const long = journal();
  for (let i = 0; i < 30; i++) {
    append(long, 100);
    await long.flush();
    // As neighbours become one in the account.
    all.splice(0, all.length, ...all.slice(-3));
  }
  await long.flush();
  const bytes = readFileSync(path, 'utf8').length;
  assert.ok(bytes < 70_000, `${bytes} bytes`);
  assert.deepEqual(parseJournal(readFileSync(path, 'utf8')).at(-1), all.at(-1));
});

test('what a full disk does not take waits, and is written in order when there is space; the log says it once', async (t) => {
  const { fs, journal, append } = setting(t);
  const log = new TestLog();
  const full = journal({ log });
  append(full, 1);
  await full.flush();
  fs.before = ({ name }) => {
    if (name === 'write') throw systemError('ENOSPC');
  };
  for (let i = 0; i < 5; i++) {
    append(full, 3);
    await full.flush();
  }
  fs.before = () => {};
  await full.flush();
  assert.deepEqual(numbers(await journal().read()), upTo(16));
  assert.deepEqual(
    log.lines.map(({ level, message }) => [level, message]),
    [['warn', 'a gap journal cannot be written']],
  );
});

test('more than memory should hold is not kept line by line, and nothing is lost by that', async (t) => {
  const { fs, journal, append } = setting(t);
  const long = journal();
  fs.before = ({ name }) => {
    if (name === 'create') throw systemError('EROFS');
  };
  append(long, 10_000);
  await long.flush();
  append(long, 50);
  fs.before = () => {};
  await long.flush();
  assert.deepEqual(numbers(await journal().read()), upTo(10_050));
});

test('nothing is written beside the archive: neither on another disk nor where .kube-nvr is gone', async (t) => {
  const { root, journal, append } = setting(t);
  let right = false;
  const guarded = journal({
    checkDisk: async () => {
      if (!right) throw new Error('another disk');
    },
  });
  append(guarded, 2);
  await guarded.flush();
  assert.deepEqual(readdirSync(join(root, '.kube-nvr')), []);
  right = true;
  rmSync(join(root, '.kube-nvr'), { recursive: true });
  await guarded.flush();
  assert.deepEqual(readdirSync(root), []);
  mkdirSync(join(root, '.kube-nvr'));
  await guarded.flush();
  assert.deepEqual(numbers(await journal().read()), upTo(2));
});

test('a journal that cannot be read is never replaced', async (t) => {
  const { fs, path, journal, append } = setting(t);
  const first = journal();
  append(first, 2);
  await first.flush();
  const log = new TestLog();
  const second = journal({ log });
  fs.before = ({ name }) => {
    if (name === 'read') throw systemError('EIO');
  };
  assert.deepEqual(await second.read(), []);
  assert.equal(log.lines[0]?.message, 'a gap journal cannot be read');
  fs.before = () => {};
  for (let i = 0; i < 30; i++) {
    append(second, 100);
    await second.flush();
  }
  assert.deepEqual(numbers(parseJournal(readFileSync(path, 'utf8'))), upTo(3_002));
});
