import assert from 'node:assert/strict';
import { test } from 'node:test';
import { queueNodeName } from './bull-queue.ts';

test('nodes that share a Redis have queues of different names', () => {
  const nodes = ['rack-1', 'rack.1', 'rack_1', 'rack:1', 'узел1', 'сеть1', '--', 'cmFja18x', '~cmFja18x'];
  const names = nodes.map(queueNodeName);
  assert.equal(new Set(names).size, nodes.length);
  for (const name of names) assert.match(name, /^[A-Za-z0-9._~-]+$/);
  assert.equal(queueNodeName('rack-1'), 'rack-1');
});
