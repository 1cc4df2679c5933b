import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCommand } from './command.ts';
import { COMMANDS } from './table.ts';
import { commandContext } from './test-support.ts';

test('each page of the manual is what the command prints with --help', async () => {
  const pages = [...COMMANDS].flatMap(([name, { load, pages }]) => pages.map((page) => ({ name, load, page })));
  assert.ok(pages.length >= 8);
  for (const { name, load, page } of pages) {
    const { context, printed } = commandContext();
    const code = await runCommand(await load(), [...page, '--help'], context);
    const { out, err } = printed;
    assert.equal(err, '', name);
    assert.equal(code, 0, name);
    assert.ok(out.startsWith(`Usage: recorder ${[name, ...page].join(' ')}`), out);
  }
});
