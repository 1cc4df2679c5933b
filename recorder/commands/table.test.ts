import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { COMMANDS } from './table.ts';

test('each page of the manual is what the command prints with --help', async () => {
  const pages = [...COMMANDS].flatMap(([name, { run, pages = [] }]) => pages.map((page) => ({ name, run, page })));
  assert.ok(pages.length >= 8);
  for (const { name, run, page } of pages) {
    let out = '';
    const code = await run([...page, '--help'], {
      clock: systemClock,
      version: '1.2.3',
      stdin: process.stdin,
      print: (text) => void (out += text),
      printError: () => assert.fail(`${name} --help is an error`),
      interrupted: () => new AbortController().signal,
      load: () => assert.fail(`${name} --help reads the configuration`),
    });
    assert.equal(code, 0, name);
    assert.ok(out.startsWith(`Usage: recorder ${[name, ...page].join(' ')}`), out);
  }
});
