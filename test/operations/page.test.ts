import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matches, sectionsOf } from './page.ts';

test('console blocks of a page are commands with their output, commands on nodes, and events', () => {
  const [one, two] = sectionsOf(
    '# A\n\n```console\n$ kubectl get \\\n  nodes\nNAME\na\n\n# it rains\nnode-2# ls\n```\n\n## B\n\n```sh\n$ no\n```\n',
  );
  assert.deepEqual(one, {
    title: 'A',
    lines: [
      { kind: 'command', command: 'kubectl get \\\n  nodes', output: 'NAME\na\n' },
      { kind: 'event', text: 'it rains' },
      { kind: 'command', command: 'ls', node: 'node-2', output: '' },
    ],
  });
  assert.deepEqual(two, { title: 'B', lines: [] });
});

test('tables are compared cell by cell, whatever their widths and ages are', () => {
  const shown = 'NAME   NODE     AGE\ngate   node-1   5s\nhall            5m\n';
  assert.equal(matches('NAME      NODE   AGE\ngate      node-1 7d\nhall             3s\n', shown), true);
  assert.equal(matches('NAME   NODE     AGE\ngate   node-2   5s\nhall            5m\n', shown), false);
  assert.equal(matches('NAME   NODE     AGE\ngate   node-2   5s\nhall            5m\n', shown, ['NODE', 'AGE']), true);
  assert.equal(matches('NAME   NODE     AGE\nhall            5s\nyard   node-1   5s\n', shown, ['NAME', 'AGE']), true);
  assert.equal(matches('NAME   NODE     AGE\ngate   node-1   5s\n', shown), false);
});

test('other output is compared by line; … stands for any number of them', () => {
  assert.equal(matches('a 10.0.0.1 5s\nb\n', 'a 1.2.3.4 7m\nb\n'), true);
  assert.equal(matches('a\nb\n', 'a\nc\n'), false);
  assert.equal(matches('x\ny\nb\nz\n', '…\nb\n…\n'), true);
  assert.equal(matches('x\n', '…\nb\n'), false);
});
