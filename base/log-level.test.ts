import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lines } from './log.ts';
import { LevelSwitch, LOG_LEVELS } from './log-level.ts';

/** A log that collects what it writes. */
function collector(lines: string[], name = ''): Lines {
  const write = (_fields: unknown, message: string): void => void lines.push(name + message);
  const child = (fields: Record<string, unknown>): Lines => collector(lines, `${name}${String(fields['camera'])}: `);
  return { debug: write, info: write, warn: write, error: write, child };
}

test('a log and its children follow the level, whenever they were made', () => {
  const lines: string[] = [];
  const levels = new LevelSwitch('info');
  const log = levels.apply(collector(lines));
  const child = log.child({ camera: 'gate' });
  const write = (): string[] => {
    lines.length = 0;
    for (const level of LOG_LEVELS) for (const each of [log, child]) each[level]({}, level);
    return lines;
  };
  assert.deepEqual(write(), ['info', 'gate: info', 'warn', 'gate: warn', 'error', 'gate: error']);
  levels.level = 'error';
  assert.deepEqual(write(), ['error', 'gate: error']);
  levels.level = 'debug';
  assert.equal(write().length, 8);
});

test('debug is switched on and off again; another level in the configuration ends that', () => {
  const levels = new LevelSwitch('warn');
  levels.toggleDebug();
  assert.equal(levels.level, 'debug');
  levels.toggleDebug();
  assert.equal(levels.level, 'warn');
  levels.toggleDebug();
  levels.configure('warn');
  assert.equal(levels.level, 'debug', 'the same configuration changes nothing');
  levels.configure('error');
  assert.deepEqual([levels.level, levels.configured], ['error', 'error']);
  const always = new LevelSwitch('debug');
  always.toggleDebug();
  assert.equal(always.level, 'info');
});

test('a fault of the program is logged once with its stack for each place, and counted each time', () => {
  const lines: unknown[] = [];
  const nothing = (): void => {};
  const pino: Lines = {
    debug: nothing,
    info: nothing,
    warn: nothing,
    error: (fields) => lines.push(fields),
    child: () => pino,
  };
  const levels = new LevelSwitch('error');
  const log = levels.apply(pino);
  const read = (rows: unknown): number => (rows as string[]).length;
  const faults = [1, 2].map((node) => {
    try {
      return read(undefined);
    } catch (err) {
      log.child({}).bug({ err, node }, 'the rows cannot be read');
      return err;
    }
  });
  const other = new TypeError('elsewhere');
  log.bug({ err: other }, 'the rows cannot be read');
  assert.deepEqual(lines, [
    { err: faults[0], node: 1, bug: true },
    { err: other, bug: true },
  ]);
  assert.equal(levels.bugs, 3);
});
