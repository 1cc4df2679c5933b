// Tests rules of .oxlintrc.json that apply only to some files, on a small copy of the repository.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

function lint(files: Record<string, string>): { file: string; rule: string }[] {
  const house = mkdtempSync(join(tmpdir(), 'import-rules-'));
  try {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(house, file)), { recursive: true });
      writeFileSync(join(house, file), text);
    }
    copyFileSync(join(ROOT, '.oxlintrc.json'), join(house, '.oxlintrc.json'));
    const run = spawnSync(join(ROOT, 'node_modules/.bin/oxlint'), ['--format', 'json'], {
      cwd: house,
      encoding: 'utf8',
    });
    const report = JSON.parse(run.stdout) as { diagnostics: { filename: string; code: string }[] };
    return report.diagnostics.map(({ filename, code }) => ({
      file: relative(house, join(house, filename)),
      rule: code.replace(/^.*\((.*)\)$/, '$1'),
    }));
  } finally {
    rmSync(house, { recursive: true });
  }
}

test('only a composition root reads the environment', () => {
  const text = `export const a = process.env['A'];\n`;
  const found = lint({ 'recorder/camera/a.ts': text, 'recorder/main.ts': text });
  assert.deepEqual(found, [{ file: 'recorder/camera/a.ts', rule: 'no-process-env' }]);
});
