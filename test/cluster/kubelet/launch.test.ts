// How a container's command and environment come about, by the rules of core/v1.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expand } from './environment.ts';
import { ImageError, launchOf } from './images.ts';

const IMAGES = {
  'host:5000/nvr': { entrypoint: ['node', 'main.ts'], workingDir: '/app', env: { A: '1' } },
  'host:5000/nvr:broken': { entrypoint: ['false'] },
};

test('an image name means every tag and digest that is not named itself', () => {
  const launch = (image: string): readonly string[] => launchOf({ name: 'it', image }, IMAGES).command;
  assert.deepEqual(launch('host:5000/nvr'), ['node', 'main.ts']);
  assert.deepEqual(launch('host:5000/nvr:v2'), ['node', 'main.ts']);
  assert.deepEqual(launch('host:5000/nvr@sha256:00'), ['node', 'main.ts']);
  assert.deepEqual(launch('host:5000/nvr:broken'), ['false']);
});

test('command replaces the entrypoint, args follow either', () => {
  const image = 'host:5000/nvr:v2';
  assert.deepEqual(launchOf({ name: 'it', image, args: ['-v'] }, IMAGES), {
    command: ['node', 'main.ts', '-v'],
    workingDir: '/app',
    env: { A: '1' },
    paths: [],
  });
  assert.deepEqual(launchOf({ name: 'it', image, command: ['sh'], args: ['-c'], workingDir: '/' }, IMAGES), {
    command: ['sh', '-c'],
    workingDir: '/',
    env: { A: '1' },
    paths: [],
  });
});

test('an unknown image runs what the container names, and is refused when it names nothing', () => {
  assert.deepEqual(launchOf({ name: 'it', image: 'other', command: ['true'] }, IMAGES).command, ['true']);
  assert.throws(() => launchOf({ name: 'it', image: 'other' }, IMAGES), ImageError);
});

test('$(NAME) is replaced when it is known, $$ is a dollar', () => {
  assert.equal(expand('$(A)/$(B) $$(A) $A', { A: 'x' }), 'x/$(B) $(A) $A');
});
