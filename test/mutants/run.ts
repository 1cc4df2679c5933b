// Runs tests against mutants, in copies of the tree: the tests of the room of the changed file, first those beside it.

import { spawn } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { mutantsOf, type Mutant } from './mutants.ts';

interface MutantOfFile {
  readonly file: string;
  readonly mutant: Mutant;
}

interface Results {
  readonly caught: number;
  readonly survivors: readonly MutantOfFile[];
  /** Files whose tests fail without a mutant: nothing can be said of them. */
  readonly failing: readonly string[];
  /** Files without a test in their directory. */
  readonly untested: readonly string[];
  /** Mutants for which there was no time. */
  readonly untried: number;
}

interface Options {
  readonly root: string;
  /** Everything that a copy of the tree needs; paths are relative to `root`. */
  readonly tree: readonly string[];
  /** Whose mutants are tried. */
  readonly files: readonly string[];
  /** Arguments of Node before the test files. */
  readonly nodeArguments: readonly string[];
  /** How many run at a time, each in a copy of its own. */
  readonly atATime: number;
  /** After this time no mutant is begun. */
  readonly limitMs: number;
  /** Between 0 and 1: the order in which mutants are tried. */
  readonly chance: () => number;
}

/** A test that takes longer than that hangs because of its mutant. */
const TEST_MS = 60_000;

export async function tryMutants(options: Options): Promise<Results> {
  const { root, tree, files, atATime, limitMs, chance } = options;
  const untilMs = performance.now() + limitMs;
  const copies = Array.from({ length: atATime }, () => copyOf(root, tree));
  try {
    const tested = files.filter((file) => testsOf(root, file).length > 0);
    const failing = await failingWithoutMutants(tested, options, copies[0] as string);
    const good = tested.filter((file) => !failing.includes(file));
    const all = good.flatMap((file) =>
      mutantsOf(readFileSync(join(root, file), 'utf8')).map((mutant): MutantOfFile => ({ file, mutant })),
    );
    const waiting = all
      .map((one) => ({ one, place: chance() }))
      .sort((a, b) => a.place - b.place)
      .map(({ one }) => one);
    let caught = 0;
    const survivors: MutantOfFile[] = [];
    const work = async (copy: string): Promise<void> => {
      for (let one = waiting[0]; one && performance.now() < untilMs; one = waiting[0]) {
        waiting.shift();
        if (await isCaught(one, copy, options)) caught++;
        else survivors.push(one);
      }
    };
    await Promise.all(copies.map(work));
    return {
      caught,
      survivors,
      failing,
      untested: files.filter((file) => !tested.includes(file)),
      untried: waiting.length,
    };
  } finally {
    for (const copy of copies) rmSync(copy, { recursive: true, force: true });
  }
}

/** Tests that fail anyway would catch every mutant. */
async function failingWithoutMutants(files: readonly string[], options: Options, copy: string): Promise<string[]> {
  const failing: string[] = [];
  for (const together of Map.groupBy(files, (file) => dirname(file)).values()) {
    const tests = testsOf(options.root, together[0] as string);
    if (!(await pass(tests, copy, options))) failing.push(...together);
  }
  return failing;
}

async function isCaught({ file, mutant }: MutantOfFile, copy: string, options: Options): Promise<boolean> {
  writeFileSync(join(copy, file), mutant.text);
  try {
    // Most mutants are caught by the tests that have the name of the file.
    const [own, others] = byName(testsOf(options.root, file), file);
    return (
      (own.length > 0 && !(await pass(own, copy, options))) ||
      (others.length > 0 && !(await pass(others, copy, options)))
    );
  } finally {
    copyFileSync(join(options.root, file), join(copy, file));
  }
}

/** The test files in the directory of a file. */
const testsOf = (root: string, file: string): string[] =>
  readdirSync(join(root, dirname(file)))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(dirname(file), name));

function byName(tests: readonly string[], file: string): [string[], string[]] {
  const own = `${basename(file, '.ts')}.test.ts`;
  return [tests.filter((test) => basename(test) === own), tests.filter((test) => basename(test) !== own)];
}

/** Whether all tests of these files pass. */
async function pass(tests: readonly string[], copy: string, { nodeArguments }: Options): Promise<boolean> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const node = spawn(
    process.execPath,
    [...nodeArguments, '--test', '--test-concurrency=1', `--test-timeout=${TEST_MS}`, '--test-reporter=tap', ...tests],
    { cwd: copy, env, stdio: ['ignore', 'pipe', 'ignore'], detached: true },
  );
  const end = (): void => {
    // Its files are processes of their own, in its group.
    if (node.pid !== undefined && node.exitCode === null) process.kill(-node.pid, 'SIGKILL');
  };
  const timer = setTimeout(end, TEST_MS * 2);
  let hasFailed = false;
  node.stdout.setEncoding('utf8').on('data', (text: string) => {
    // The first failure says enough.
    if (hasFailed || !/^\s*not ok /m.test(text)) return;
    hasFailed = true;
    end();
  });
  const code = await new Promise((resolve) => node.once('close', resolve));
  clearTimeout(timer);
  return code === 0 && !hasFailed;
}

/** A copy of the tree in a temporary directory; what is installed is shared. */
function copyOf(root: string, tree: readonly string[]): string {
  const copy = mkdtempSync(join(tmpdir(), 'mutants-'));
  for (const directory of new Set(tree.map((file) => dirname(file))))
    mkdirSync(join(copy, directory), { recursive: true });
  for (const file of tree) copyFileSync(join(root, file), join(copy, file));
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}
