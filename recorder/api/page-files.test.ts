// The page as browsers get it.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { workspace } from '../../test/support/workspace.ts';
import { preloadsOf, readPage, type PageFiles } from './page-files.ts';

const PAGE = join(import.meta.dirname, '../../console');

function pageOf(t: TestContext, sources: Readonly<Record<string, string>>): Promise<PageFiles> {
  const directory = workspace(t);
  for (const [path, text] of Object.entries(sources)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  return readPage(directory);
}

const bodyOf = ({ files }: PageFiles, path: string): string => files.get(path)?.body ?? 'missing';

test('Node strips types as the page needs it: line by line, in place', () => {
  assert.equal(
    stripTypeScriptTypes('const a: number = 1;\nlet b = a as any;'),
    'const a         = 1;\nlet b = a       ;',
  );
});

test('every script of the page is JavaScript, and imports nothing but what is served', async () => {
  const { files } = await readPage(PAGE);
  assert.ok(files.has('app/main.ts') && files.has('player.js') && files.has('vendor/preact.js'));
  for (const [path, { body, type }] of files) {
    if (!type.startsWith('text/javascript')) continue;
    for (const [, name = ''] of body.matchAll(/(?:\bfrom|\bimport\(?)\s*["']([\w./@-]+)["']/g)) {
      if (!path.startsWith('player')) assert.ok(files.has(join(dirname(path), name)), `${path} imports ${name}`);
    }
  }
});

test('packages get addresses, wherever the importing file is', async (t) => {
  const page = await pageOf(t, {
    'a.ts': "import { h } from 'preact';",
    'b/c/d.ts': "import { signal } from '@preact/signals';\nconst later: unknown = await import('htm');",
  });
  assert.equal(bodyOf(page, 'a.ts'), "import { h } from './vendor/preact.js';");
  assert.match(
    bodyOf(page, 'b/c/d.ts'),
    /from '\.\.\/\.\.\/vendor\/signals\.js';\nconst later +=[^]*import\('\.\.\/\.\.\/vendor\/htm\.js'\)/,
  );
  assert.match(bodyOf(page, 'vendor/signals.js'), /from"\.\/preact\.js"/);
});

test('a package that is not served is an error that names the file', async (t) => {
  await assert.rejects(pageOf(t, { 'a.ts': "import { z } from 'zod';" }), /a\.ts: the page imports zod/);
});

test('tests are not part of the page', async (t) => {
  const page = await pageOf(t, { 'a.ts': '', 'a.test.ts': '' });
  assert.equal(page.files.has('a.test.ts'), false);
});

test('a changed file changes the version, and nothing else does', async (t) => {
  const pages = [{ 'a.js': '1' }, { 'a.js': '1' }, { 'a.js': '2' }].map((files) => pageOf(t, files));
  const [one, same, other] = (await Promise.all(pages)).map(({ version }) => version);
  assert.equal(one, same);
  assert.notEqual(one, other);
});

test('what a build has written is served as it is', async (t) => {
  const page = await pageOf(t, { 'a.ts': "import 'anything'", 'vendor/preact.js': '' });
  assert.equal(bodyOf(page, 'a.ts'), "import 'anything'");
});

test('the page names all modules that a browser needs at first, and none that it loads later', async (t) => {
  const { files } = await pageOf(t, {
    'app/main.ts': "import '../b.ts';\nvoid import('./later.ts');",
    'app/later.ts': '',
    'b.ts': "export { c } from './c.js';",
    'c.js': 'export const c = 1;',
    'd.ts': '',
  });
  assert.deepEqual(preloadsOf(files, 'app/main.ts'), ['app/main.ts', 'b.ts', 'c.js']);
});
