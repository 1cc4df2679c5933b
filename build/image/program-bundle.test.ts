import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { workspace } from '../../test/support/workspace.ts';
import { preloadsOf, readPage } from '../../recorder/api/page-files.ts';
import type { Program } from './layout.ts';
import { bundledPackages } from './packages.ts';
import { bundleProgram } from './program-bundle.ts';

for (const [program, threads] of [
  ['operator', []],
  ['recorder', ['details-worker.js']],
] as [Program, string[]][]) {
  test(`the bundle of the ${program} has every file that it starts as a thread`, async (t) => {
    const directory = workspace(t);
    await bundleProgram(program, directory);
    const bundle = join(directory, program);
    const scripts = readdirSync(bundle).filter((name) => name.endsWith('.js'));
    const started = scripts.flatMap((name) => {
      const text = readFileSync(join(bundle, name), 'utf8');
      return Array.from(text.matchAll(/new URL\(["'`]\.\/([^"'`]+\.[jt]s)["'`]/g), ([, file]) => file as string);
    });
    assert.deepEqual(started, threads);
    for (const file of started) assert.ok(existsSync(join(bundle, file)), file);
  });
}

test('a recorder that needs no database, queue, cluster or ONVIF loads none, and its texts have one byte a character', async (t) => {
  const directory = workspace(t);
  const { outputs } = await bundleProgram('recorder', directory);
  const scripts = new Map(Object.entries(outputs).filter(([path]) => path.endsWith('.js')));
  const [main] = [...scripts.keys()].filter((path) => path.endsWith('recorder/main.js'));
  const loaded = new Set<string>();
  const load = (path: string): void => {
    if (loaded.has(path) || !scripts.has(path)) return;
    loaded.add(path);
    for (const { path: other, kind } of scripts.get(path)?.imports ?? []) if (kind === 'import-statement') load(other);
  };
  load(main ?? '');
  const inputs = [...loaded].flatMap((path) => Object.keys(scripts.get(path)?.inputs ?? {}));
  assert.ok(inputs.includes('recorder/run/recorder.ts'));
  const later =
    /^(operator|store)\/|node_modules\/(pg|bullmq|ioredis|onvif|@kubernetes\/client-node|@opentelemetry\/otlp-.*)\//;
  assert.deepEqual(
    inputs.filter((path) => later.test(path)),
    [],
  );
  for (const name of readdirSync(join(directory, 'recorder')).filter((file) => file.endsWith('.js')))
    assert.match(readFileSync(join(directory, 'recorder', name), 'latin1'), /^[\0-\x7f]*$/, name);
});

test('the bundle of the recorder has the page without types, its libraries and their licences', async (t) => {
  const directory = workspace(t);
  const metafile = await bundleProgram('recorder', directory);
  const { files: inSources } = await readPage(join(import.meta.dirname, '../../console'));
  const { files: inBundle } = await readPage(join(directory, 'console'));
  const unique = [...inBundle.keys()].filter((path) => !/^app\/both-\w+\.ts$/.test(path));
  assert.deepEqual(unique.sort(), [...inSources.keys()].sort());
  assert.doesNotMatch(inBundle.get('app/router.ts')?.body ?? '', /ViewName|readonly/);
  assert.match(inBundle.get('live/tile.ts')?.body ?? '', /from"\.\.\/parts\/html\.ts"/);
  const names = bundledPackages(metafile, join(import.meta.dirname, '../..')).map(({ name }) => name);
  for (const name of ['preact', 'htm', '@preact/signals', '@preact/signals-core'])
    assert.ok(names.includes(name), name);
});

test('the console in the bundle is two scripts and one style sheet; settings, alarms and the library for playback come later', async (t) => {
  const directory = workspace(t);
  await bundleProgram('recorder', directory);
  const { files } = await readPage(join(directory, 'console'));
  const first = preloadsOf(files, 'app/main.ts');
  assert.deepEqual([first[0], first.length], ['app/main.ts', 2]);
  const all = new Set([...first, ...preloadsOf(files, 'app/later.ts')]);
  assert.equal(all.size, 3);
  assert.match(files.get('app/main.ts')?.body ?? '', /import\("\.\/later\.ts"\)/);
  const served = (paths: Iterable<string>): number =>
    ['index.html', 'boot.js', 'console.css', ...paths].reduce(
      (sum, path) => sum + gzipSync(files.get(path)?.body ?? '', { level: 4 }).length,
      0,
    );
  assert.ok(served(first) <= 80_000, `${served(first)} bytes at the first look`);
  assert.ok(served(all) <= 110_000, `${served(all)} bytes`);
  assert.match(files.get('app/main.ts')?.body ?? '', /import\("\.\.\/vendor\/hls\.js"\)/);
  const sheets = files.get('index.html')?.body.match(/rel="stylesheet"/g);
  assert.equal(sheets?.length, 1);
  for (const rule of ['.wall', '.timeline', '.strip', '.found'])
    assert.ok(files.get('console.css')?.body.includes(rule), rule);
});
