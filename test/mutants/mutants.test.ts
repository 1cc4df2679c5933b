import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { workspace } from '../support/workspace.ts';
import { mutantsOf, sentenceOf } from './mutants.ts';
import { tryMutants } from './run.ts';

/** The lines that mutants change, and how. */
const changesOf = (source: string): string[] =>
  mutantsOf(source).map(({ line, kind, text }) => {
    const changed = (text.split('\n')[line - 1] ?? '').trim();
    return `${line} ${kind}${changed === '' ? '' : `: ${changed}`}`;
  });

test('a guard, an awaited call and a release are removed, and a comparison is turned', () => {
  const source = [
    'if (isClosed) return;',
    "if (!found) throw new Error('x');",
    'await this.#store.sync(path);',
    'this.#active.delete(id);',
    'release();',
    'return nowMs < untilMs;',
    'if (a === b) continue;',
    'void work?.abort();',
  ];
  assert.deepEqual(changesOf(source.join('\n')), [
    '1 guard',
    '2 guard',
    '3 await',
    '4 release',
    '5 release',
    '6 comparison: return nowMs >= untilMs;',
    '7 guard',
    '7 comparison: if (a !== b) continue;',
    '8 release',
  ]);
});

test('what is no such statement has no mutant: comments, texts, types, and what an else follows', () => {
  const source = [
    '// if (a < b) return;',
    "const words = 'a < b';",
    'const map = new Map<string, number>();',
    'const f = (a: number): void => use(a);',
    'if (a) return b;',
    'else use(c);',
    'const answer = await ask(url);',
  ];
  assert.deepEqual(changesOf(source.join('\n')), []);
});

const SOURCE = `export function halfOf(n: number, log: string[]): number {
  if (n < 0) throw new Error('negative');
  if (n === 1) return 0;
  if (n === 0) return 0;
  log.push('half');
  return n / 2;
}
`;
const TEST = `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { halfOf } from './half.ts';
test('half of an even number', () => assert.equal(halfOf(4, []), 2));
test('a negative number is refused', () => assert.throws(() => halfOf(-2, [])));
test('half of one is nothing', () => assert.equal(halfOf(1, []), 0));
`;

test('survivors are what no test holds, and the tree itself is not changed', async (t) => {
  const root = workspace(t);
  mkdirSync(join(root, 'room'));
  mkdirSync(join(root, 'other'));
  mkdirSync(join(root, 'node_modules'));
  const tree = ['room/half.ts', 'room/half.test.ts', 'other/alone.ts'];
  writeFileSync(join(root, 'room/half.ts'), SOURCE);
  writeFileSync(join(root, 'room/half.test.ts'), TEST);
  writeFileSync(join(root, 'other/alone.ts'), SOURCE);
  const results = await tryMutants({
    root,
    tree,
    files: ['room/half.ts', 'other/alone.ts'],
    nodeArguments: [],
    atATime: 2,
    limitMs: 600_000,
    chance: () => 0,
  });
  assert.deepEqual([results.failing, results.untested, results.untried], [[], ['other/alone.ts'], 0]);
  assert.deepEqual(
    results.survivors.map(({ file, mutant }) => sentenceOf(file, mutant)),
    // Half of nothing is nothing without a rule.
    ['room/half.ts:4: may be removed without a failing test: if (n === 0) return 0;'],
  );
  assert.equal(results.caught, 5);
  assert.equal(readFileSync(join(root, 'room/half.ts'), 'utf8'), SOURCE);
});

test('of a room whose tests fail anyway nothing is said', async (t) => {
  const root = workspace(t);
  mkdirSync(join(root, 'node_modules'));
  writeFileSync(join(root, 'half.ts'), SOURCE);
  writeFileSync(join(root, 'half.test.ts'), `${TEST}test('it fails', () => assert.fail());`);
  const results = await tryMutants({
    root,
    tree: ['half.ts', 'half.test.ts'],
    files: ['half.ts'],
    nodeArguments: [],
    atATime: 1,
    limitMs: 600_000,
    chance: () => 0,
  });
  assert.deepEqual(results, {
    caught: 0,
    survivors: [],
    failing: ['half.ts'],
    untested: [],
    untried: 0,
  });
});
