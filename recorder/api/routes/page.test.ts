import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import fastify from 'fastify';
import { until } from '../../../test/support/until.ts';
import { workspace } from '../../../test/support/workspace.ts';
import { pageRoutes } from './page.ts';

const DEPS = {
  playback: { port: () => undefined, advertised: undefined, document: () => ({}) as never, routes: async () => {} },
};

test('the page is read once, and again if it could not be read: files that a package replaces are those of the next process', async (t) => {
  const directory = join(workspace(t), 'page');
  const app = fastify();
  t.after(() => app.close());
  await app.register(pageRoutes, { deps: DEPS, directory });
  assert.equal((await app.inject('/')).statusCode, 500);
  mkdirSync(directory);
  writeFileSync(join(directory, 'index.html'), '<meta charset="utf-8" /><title>Cameras</title>');
  const answer = await app.inject('/');
  assert.equal(answer.statusCode, 200, answer.body);
  assert.match(answer.body, /<title>Cameras<\/title>/);
  writeFileSync(join(directory, 'index.html'), '<meta charset="utf-8" /><title>Of the next version</title>');
  assert.equal((await app.inject('/')).body, answer.body);
});

test('a recorder goes on serving its own page after another package was installed, also a page that nobody has asked for', async (t) => {
  const directory = workspace(t);
  mkdirSync(join(directory, 'vendor'));
  const install = (version: string): void => {
    writeFileSync(join(directory, 'index.html'), `<meta charset="utf-8" /><title>${version}</title>`);
    writeFileSync(join(directory, 'vendor/hls.js'), `export const version = '${version}';`);
  };
  install('old');
  const readFile = t.mock.method(files, 'readFile');
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const app = fastify();
  t.after(() => app.close());
  await app.register(pageRoutes, { deps: DEPS, directory });
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.mock.timers.tick(10_000);
  t.mock.timers.reset();
  await until('both files are read', () => readFile.mock.calls.length === 2);
  await Promise.all(readFile.mock.calls.map(async ({ result }) => result));
  install('new');
  assert.match((await app.inject('/')).body, /<title>old<\/title>/);
  assert.match((await app.inject('/page/vendor/hls.js')).body, /'old'/);
  assert.equal(readFile.mock.calls.length, 2);
});

test('what loads the page again when a script is missing is in the page, and no other script may be', async (t) => {
  const app = fastify();
  t.after(() => app.close());
  await app.register(pageRoutes, { deps: DEPS });
  const { body, headers } = await app.inject('/');
  const [, script = ''] = /<script data-page="\/page\/[\w-]{16}\/">([^]*?)<\/script>/.exec(body) ?? [];
  assert.match(script, /location\.reload/);
  const digest = createHash('sha256').update(script).digest('base64');
  assert.ok(String(headers['content-security-policy']).endsWith(`; script-src 'self' 'sha256-${digest}'`));
  assert.equal(body.match(/<script(?![^>]* src=)/g)?.length, 1);
});
