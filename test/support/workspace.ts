// A temporary directory that goes away with its test.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

export function workspace(t: Pick<TestContext, 'after'>): string {
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-test-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
