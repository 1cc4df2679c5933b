import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fastify from 'fastify';
import { workspace } from '../../../test/support/workspace.ts';
import { pageRoutes } from './page.ts';

test('the page is read when it is asked for, and again if it could not be read', async (t) => {
  const directory = join(workspace(t), 'page');
  const app = fastify();
  t.after(() => app.close());
  await app.register(pageRoutes, { deps: {}, directory });
  assert.equal((await app.inject('/')).statusCode, 500);
  mkdirSync(directory);
  writeFileSync(join(directory, 'index.html'), '<meta charset="utf-8" /><title>Cameras</title>');
  const answer = await app.inject('/');
  assert.equal(answer.statusCode, 200, answer.body);
  assert.match(answer.body, /<title>Cameras<\/title>/);
});
