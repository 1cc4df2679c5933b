// The operator's image runs the operator as a user of the image's own; tests on real nodes give it a cluster.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR_NODE_FLAG } from '../../build/image/layout.ts';
import { Image, imagesMissing, VERSION } from './image.ts';

const USER = 65_532;

suite('the image of the operator', { skip: imagesMissing() }, () => {
  let image: Image;

  before(() => {
    image = new Image('operator');
  });

  after(() => image?.close());

  test('its user is the one that the chart names', () => {
    assert.equal(image.config.config.User, `${USER}:${USER}`);
  });

  test('`operator --version` is the version of the package', async () => {
    const child = image.run(USER, ['operator', '--version']);
    assert.equal((await child.exit()).code, 0, child.output);
    assert.equal(child.output, `${VERSION}\n`);
  });

  test('its Node bounds the space for young objects, as in the tests and benches', () => {
    const [interpreter] = readFileSync(join(image.root, 'app/operator/main.js'), 'utf8').split('\n');
    assert.equal(interpreter, `#!/usr/local/bin/node ${OPERATOR_NODE_FLAG}`);
  });

  test('without a cluster it ends and says so in one line', async () => {
    const child = image.run(USER, ['operator']);
    assert.equal((await child.exit()).code, 1);
    assert.match(child.output, /^operator: there is no cluster: [^\n]+\n$/);
  });

  test('in a pod that was given no service account it ends and says so in one line', async () => {
    const env = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' };
    const child = image.run(USER, ['operator'], env);
    assert.equal((await child.exit()).code, 1);
    assert.match(child.output, /^operator: the files of the service account cannot be read[^\n]*\n$/);
  });
});
