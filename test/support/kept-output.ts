// What the programs of a test printed is gone when the test has ended, and so is the cause of a failure that does not come back. Where
// hack/test says where, it is kept for each test file with a failed test.

import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { IS_TEST_FILE } from './preload.ts';

/** Shown of each with the failure. */
const SHOWN_LINES = 15;

const outputs = new Map<string, () => string>();
const searches: (() => void)[] = [];
/** Files, also of what the test has removed since. */
const kept = new Set<string>();
let failures = 0;

if (IS_TEST_FILE) {
  const { after, afterEach } = await import('node:test');
  // Before the test removes its files. The types do not have what the context has.
  afterEach((test: object) => {
    if ((test as { passed: boolean }).passed) return;
    failures++;
    keep();
  });
  after(() => {
    if (failures > 0) keep();
    for (const path of kept) console.error(`the last lines of ${path}:\n${lastLines(path)}`);
  });
}

export const hasFailed = (): boolean => failures > 0;

/** `name` is unique in the test file. */
export function keepOutput(name: string, read: () => string): void {
  if (IS_TEST_FILE) outputs.set(name, read);
}

export function keepLog(file: string): void {
  keepOutput(`${outputs.size}-${basename(file)}`, () => readLog(file));
}

/** For programs that are started by others: the files below `directory` that match `pattern` when a test fails. */
export function keepLogsIn(name: string, directory: string, pattern: string): void {
  if (!IS_TEST_FILE) return;
  searches.push(() => {
    for (const path of globSync(pattern, { cwd: directory })) {
      const key = `${name}-${path.replaceAll('/', '-')}`;
      if (!outputs.has(key)) outputs.set(key, () => readLog(join(directory, path)));
    }
  });
}

function readLog(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // the test has removed it
  }
}

function keep(): void {
  const { KUBE_NVR_FAILED: directory } = process.env;
  if (directory === undefined) return;
  const test = relative(process.cwd(), process.argv[1] ?? '').replaceAll('/', '-');
  mkdirSync(directory, { recursive: true });
  for (const search of searches) search();
  for (const [name, read] of outputs) {
    const path = join(directory, `${test}-${process.pid}-${name.replace(/\.log$/, '')}.log`);
    const output = read();
    if (output === '') continue;
    writeFileSync(path, output);
    kept.add(path);
  }
}

const lastLines = (path: string): string =>
  readFileSync(path, 'utf8').trimEnd().split('\n').slice(-SHOWN_LINES).join('\n');
