import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from './clock.ts';
import { RotatingFile } from './rotating-file.ts';

test('log files are bounded in size and number, the newest lines are kept in order', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'rotating-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = new RotatingFile({
    directory: join(directory, 'logs'),
    name: 'recorder.log',
    maxBytes: 100,
    maxFiles: 3,
  });
  for (let i = 0; i < 100; i++) file.write(`line ${String(i).padStart(3, '0')}\n`);
  file.close();
  const names = readdirSync(join(directory, 'logs')).sort();
  assert.deepEqual(names, ['recorder.log', 'recorder.log.1', 'recorder.log.2']);
  for (const name of names) assert.ok(statSync(join(directory, 'logs', name)).size <= 100);
  const text = names.toReversed().map((name) => readFileSync(join(directory, 'logs', name), 'utf8'));
  const lines = text.join('').trim().split('\n');
  assert.equal(lines.at(-1), 'line 099');
  assert.deepEqual(lines, lines.toSorted());
});

test('a file that was there is continued', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'rotating-'));
  t.after(() => rmSync(directory, { recursive: true }));
  for (const line of ['a\n', 'b\n']) {
    const file = new RotatingFile({ directory, name: 'x.log' });
    file.write(line);
    file.close();
  }
  assert.equal(readFileSync(join(directory, 'x.log'), 'utf8'), 'a\nb\n');
});

test('a directory that goes away costs lines, not the process', (t) => {
  const parent = mkdtempSync(join(tmpdir(), 'rotating-'));
  t.after(() => rmSync(parent, { recursive: true }));
  const directory = join(parent, 'logs');
  const file = new RotatingFile({ directory, name: 'x.log', maxBytes: 10 });
  rmSync(directory, { recursive: true });
  for (let i = 0; i < 5; i++) file.write('a line of more than ten bytes\n');
  file.close();
  assert.deepEqual(readdirSync(parent), []);
});

test('each day (UTC) has a file of its own, also when the process was not there at midnight', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'rotating-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const clock = new VirtualClock(Date.UTC(2026, 10, 21, 23, 59, 59));
  const options = { directory, name: 'x.log', maxFiles: 3, clock };
  const contents = (): string[] =>
    readdirSync(directory)
      .sort()
      .map((name) => readFileSync(join(directory, name), 'utf8'));
  const file = new RotatingFile(options);
  file.write('a\n');
  clock.advance(999);
  file.write('b\n');
  clock.advance(1);
  file.write('c\n');
  file.close();
  assert.deepEqual(contents(), ['c\n', 'a\nb\n']);
  const lastLine = new Date(clock.wallMs());
  utimesSync(join(directory, 'x.log'), lastLine, lastLine);
  clock.advance(3_600_000);
  new RotatingFile(options).write('d\n');
  assert.deepEqual(contents(), ['c\nd\n', 'a\nb\n']);
  utimesSync(join(directory, 'x.log'), lastLine, lastLine);
  clock.advance(3 * 86_400_000);
  const later = new RotatingFile(options);
  later.write('e\n');
  later.write('f\n');
  assert.deepEqual(contents(), ['e\nf\n', 'c\nd\n', 'a\nb\n']);
  clock.advance(86_400_000);
  later.write('g\n');
  later.close();
  assert.deepEqual(contents(), ['g\n', 'e\nf\n', 'c\nd\n'], 'and no more than maxFiles');
});
