// What the programs of a test printed is gone when the test has ended, and so is the cause of a failure that does not come back. Where
// hack/test says where, it is kept for each test file with a failed test.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { IS_TEST_FILE } from './preload.ts';

/** Shown of each with the failure. */
const SHOWN_LINES = 15;

const outputs = new Map<string, () => string>();
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
    if (failures > 0) for (const path of keep()) console.error(`the last lines of ${path}:\n${lastLines(path)}`);
  });
}

export const hasFailed = (): boolean => failures > 0;

/** `name` is unique in the test file. */
export function keepOutput(name: string, read: () => string): void {
  if (IS_TEST_FILE) outputs.set(name, read);
}

export function keepLog(file: string): void {
  keepOutput(`${outputs.size}-${basename(file)}`, () => {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return ''; // the test has removed it
    }
  });
}

/** Returns the files. */
function keep(): string[] {
  const { KUBE_NVR_FAILED: directory } = process.env;
  if (directory === undefined) return [];
  const test = relative(process.cwd(), process.argv[1] ?? '').replaceAll('/', '-');
  mkdirSync(directory, { recursive: true });
  return [...outputs].flatMap(([name, read]) => {
    const path = join(directory, `${test}-${process.pid}-${name.replace(/\.log$/, '')}.log`);
    const output = read();
    if (output !== '') writeFileSync(path, output);
    return output === '' ? [] : [path];
  });
}

const lastLines = (path: string): string =>
  readFileSync(path, 'utf8').trimEnd().split('\n').slice(-SHOWN_LINES).join('\n');
