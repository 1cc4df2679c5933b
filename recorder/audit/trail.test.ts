import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { until } from '../../test/support/until.ts';
import { hashOf, type AuditLine } from './files.ts';
import { readAudit, type AuditQuery } from './read.ts';
import { AuditTrail, type AuditTrailOptions } from './trail.ts';
import { verifyAudit } from './verify.ts';

const ALL: AuditQuery = { fromMs: -Infinity, toMs: Infinity, limit: 1_000 };

function stage(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'audit-test-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  // Files have the times of the system clock.
  const clock = new VirtualClock(Date.now());
  const open = (changes: Partial<AuditTrailOptions> = {}): AuditTrail =>
    new AuditTrail({
      directory,
      node: 'rack-1',
      maxAgeMs: 90 * 86_400_000,
      maxBytes: 2 ** 30,
      clock,
      log: silentLog,
      ...changes,
    });
  /** A process that writes lines for these cameras, one after another, and ends. */
  async function write(cameras: readonly string[], changes: Partial<AuditTrailOptions> = {}): Promise<void> {
    const trail = open(changes);
    for (const camera of cameras) trail.write({ what: 'export', caller: 'ops', camera });
    await trail.close();
  }
  const path = join(directory, 'audit.log');
  const lines = (): AuditLine[] =>
    readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as AuditLine);
  return { directory, path, clock, open, write, lines };
}

const cameraOf = (line: AuditLine): unknown => line['camera'];

test('a line is one JSON object: number, time, node, what was done, and the SHA-256 of the line before', async (t) => {
  const { write, path, clock } = stage(t);
  await write(['gate', 'dock']);
  const [first, second] = readFileSync(path, 'utf8').split('\n') as [string, string];
  assert.deepEqual(JSON.parse(first), {
    n: 1,
    time: new Date(clock.wallMs()).toISOString(),
    node: 'rack-1',
    what: 'export',
    caller: 'ops',
    camera: 'gate',
    prev: '0'.repeat(64),
  });
  assert.equal((JSON.parse(second) as AuditLine).prev, hashOf(first));
  assert.equal(statSync(path).mode & 0o777, 0o640);
});

test('numbers and hashes continue over restarts, new days and full files', async (t) => {
  const { directory, clock, write } = stage(t);
  await write(['a', 'b']);
  await write(['c']);
  const path = join(directory, 'audit.log');
  const yesterday = new Date(clock.wallMs() - 86_400_000);
  utimesSync(path, yesterday, yesterday);
  await write(['d']);
  await write(['e', 'f', 'g', 'h'], { maxFileBytes: 450 });
  assert.deepEqual(readdirSync(directory).sort(), [
    'audit-000000000001.log',
    'audit-000000000004.log',
    'audit-000000000006.log',
    'audit.log',
  ]);
  const verdict = await verifyAudit(directory);
  assert.deepEqual([verdict.lines, verdict.first, verdict.end?.n, verdict.broken], [8, 1, 8, undefined]);
});

for (const [what, change, problem] of [
  ['changed', (text: string) => text.replace('"b"', '"x"'), /^audit\.log:3: line 2 was changed after it was written$/],
  ['taken out', (text: string) => text.replace(/.*"b".*\n/, ''), /^audit\.log:2: line 3 is at the position of line 2$/],
  [
    'put in',
    (text: string) => text.replace(/(.*"b".*\n)/, '$1$1'),
    /^audit\.log:3: line 2 is at the position of line 3$/,
  ],
] as const) {
  test(`a line that was ${what} is found`, async (t) => {
    const { directory, path, write } = stage(t);
    await write(['a', 'b', 'c']);
    writeFileSync(path, change(readFileSync(path, 'utf8')));
    assert.match((await verifyAudit(directory)).broken ?? '', problem);
  });
}

test('a line that a crash has cut is part of the chain, and the next one begins on a line of its own', async (t) => {
  const { directory, path, write } = stage(t);
  await write(['a']);
  appendFileSync(path, '{"n":2,"time":"2026-01-01T12:00');
  await write(['b']);
  const verdict = await verifyAudit(directory);
  assert.deepEqual([verdict.lines, verdict.end?.n, verdict.broken], [3, 3, undefined]);
  assert.deepEqual((await readAudit(directory, ALL)).lines.map(cameraOf), ['b', 'a']);
});

test('an audit.log of a version without numbers is put aside and kept', async (t) => {
  const { directory, path, write, lines } = stage(t);
  writeFileSync(path, '{"level":30,"time":"2025-12-31T10:00:00.000Z","caller":"ops","msg":"audit"}\n');
  await write(['a']);
  assert.equal(lines()[0]?.n, 1);
  const [before] = readdirSync(directory).filter((name) => name.startsWith('audit-before'));
  assert.match(readFileSync(join(directory, before as string), 'utf8'), /2025-12-31/);
});

test('files go when their last line is too old, and the oldest when all are too large; the newest stays', async (t) => {
  const { directory, clock, write } = stage(t);
  const names = (): string[] => readdirSync(directory).sort();
  writeFileSync(join(directory, 'audit.log.1'), 'of an older version\n');
  writeFileSync(join(directory, 'recorder.log.1'), 'no audit\n');
  const old = new Date(clock.wallMs() - 91 * 86_400_000);
  for (const name of names()) utimesSync(join(directory, name), old, old);
  await write(['a', 'b', 'c', 'd', 'e'], { maxFileBytes: 200 });
  assert.ok(!names().includes('audit.log.1'));
  assert.ok(names().includes('recorder.log.1'));
  assert.equal(names().filter((name) => name.startsWith('audit')).length, 5);
  await write(['f'], { maxFileBytes: 200, maxBytes: 500 });
  const left = names().filter((name) => name.startsWith('audit'));
  assert.deepEqual(left, ['audit-000000000004.log', 'audit-000000000005.log', 'audit.log']);
});

test('a disk that accepts nothing delays no request: lines wait, lost ones are counted, and the rest follows in order', async (t) => {
  const { directory, clock, open } = stage(t);
  writeFileSync(join(directory, 'blocked'), '');
  const trail = open({ directory: join(directory, 'blocked') });
  for (let i = 1; i <= 5_000; i++) trail.write({ what: 'export', caller: 'ops', camera: `c${i}` });
  await until(
    'it says why',
    () => trail.problem !== undefined && trail.problem !== 'the disk is too slow: lines were lost',
  );
  rmSync(join(directory, 'blocked'));
  await until('it goes on', () => {
    clock.advance(2_000);
    return trail.end.n === 4_096;
  });
  trail.write({ what: 'export', caller: 'ops', camera: 'later' });
  await trail.close();
  const { lines: all } = await readAudit(join(directory, 'blocked'), { ...ALL, limit: 5_000 });
  assert.deepEqual(
    [all.length, all.at(-1)?.['camera'], all[0]?.['camera'], all[0]?.['lost']],
    [4_097, 'c1', 'later', 904],
  );
  assert.equal(trail.problem, undefined);
});

test('a line of which a full disk took a part is written once, and whole, when there is space again', async (t) => {
  const { open, path, lines, clock, directory } = stage(t);
  const trail = open();
  const limit = (bytes: number | 'unlimited'): void =>
    void execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`]);
  t.after(() => limit('unlimited'));
  trail.write({ what: 'export', caller: 'ops', camera: 'first' });
  await until('it is written', () => trail.end.n === 1);
  const { size } = statSync(path);
  // A write that reaches the limit brings a part, and the next one fails, as on a full disk.
  limit(size + 20);
  trail.write({ what: 'export', caller: 'ops', camera: 'second' });
  await until('it fails', () => trail.problem !== undefined);
  assert.equal(statSync(path).size, size);
  limit('unlimited');
  await until('it is written', () => {
    clock.advance(60_000);
    return trail.end.n === 2;
  });
  await trail.close();
  assert.deepEqual(lines().map(cameraOf), ['first', 'second']);
  assert.equal((await verifyAudit(directory)).broken, undefined);
});

test('a stop does not wait for a disk that fails', async (t) => {
  const { directory, open } = stage(t);
  writeFileSync(join(directory, 'blocked'), '');
  const trail = open({ directory: join(directory, 'blocked') });
  trail.write({ what: 'export', caller: 'ops' });
  await trail.close();
});

test('a stop waits two seconds for a disk that does not answer', async (t) => {
  const { path, clock, open } = stage(t);
  // Opening a pipe at whose other end there is nobody holds a thread as a disk does that is gone.
  execFileSync('mkfifo', [path]);
  const trail = open();
  trail.write({ what: 'export', caller: 'ops' });
  let isClosed = false;
  const closed = trail.close().then(() => (isClosed = true));
  clock.advance(1_999);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isClosed, false);
  clock.advance(1);
  await closed;
  const other = openSync(path, constants.O_RDWR);
  await until('the thread is free', () => trail.end.n === 1 || trail.problem !== undefined);
  closeSync(other);
});

test('a question is answered newest first, a page at a time, by time, caller, action and camera', async (t) => {
  const { directory, clock, open } = stage(t);
  const trail = open({ maxFileBytes: 2_000 });
  const start = clock.wallMs();
  for (let i = 0; i < 60; i++) {
    trail.write({
      what: i % 3 === 0 ? 'export' : 'protect',
      caller: i % 2 === 0 ? 'ops' : 'guard',
      camera: `c${i}`,
    });
    clock.advance(1_000);
  }
  trail.write({ what: 'cameras', caller: null, cameras: ['c7', 'c8'] });
  await trail.close();
  const ask = async (query: Partial<AuditQuery>): Promise<unknown[]> =>
    (await readAudit(directory, { ...ALL, ...query })).lines.map((line) => line['camera'] ?? 'several');
  assert.deepEqual(await ask({ fromMs: start + 56_000, toMs: start + 59_000 }), ['c58', 'c57', 'c56']);
  assert.deepEqual(await ask({ what: 'export', who: 'ops', limit: 3 }), ['c54', 'c48', 'c42']);
  assert.deepEqual(await ask({ camera: 'c7' }), ['several', 'c7']);
  const seen: unknown[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const page = await readAudit(directory, { ...ALL, limit: 7, cursor });
    seen.push(...page.lines.map(({ n }) => n));
    cursor = page.next;
    pages++;
  } while (cursor !== undefined);
  assert.deepEqual(
    seen,
    Array.from({ length: 61 }, (_, i) => 61 - i),
  );
  assert.ok(pages <= 9 + 1);
});

test('one request reads a bounded part of large files, and the cursor leads to the rest', async (t) => {
  const { directory, path, write } = stage(t);
  await write(['first']);
  const line = (n: number): string =>
    `${JSON.stringify({ n, time: '2026-01-01T12:00:00.000Z', node: 'rack-1', what: 'live', caller: 'x'.repeat(200), prev: '' })}\n`;
  appendFileSync(path, Array.from({ length: 40_000 }, (_, i) => line(i + 2)).join(''));
  const query = { ...ALL, what: 'export' };
  const page = await readAudit(directory, query);
  assert.deepEqual([page.lines.length, typeof page.next], [0, 'string']);
  let cursor = page.next;
  let pages = 1;
  let found: AuditLine | undefined;
  while (cursor !== undefined && !found) {
    const { lines, next } = await readAudit(directory, { ...query, cursor });
    [found] = lines;
    cursor = next;
    pages++;
  }
  assert.equal(found?.['camera'], 'first');
  assert.equal(pages, Math.ceil(statSync(path).size / (4 * 2 ** 20)));
});

test('a file of the trail has at most 10 MiB', async (t) => {
  const { directory, write } = stage(t);
  await write(Array.from({ length: 12 }, () => 'x'.repeat(1_000_000)));
  const sizes = readdirSync(directory).map((name) => statSync(join(directory, name)).size);
  const [largest = 0] = sizes.toSorted((a, b) => b - a);
  assert.ok(largest > 9 * 2 ** 20 && largest <= 10 * 2 ** 20, sizes.join());
});
