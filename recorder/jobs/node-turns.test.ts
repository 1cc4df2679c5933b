import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gapsOfAll, turnsOf } from './node-turns.ts';

const S = 1_000;
const node = (nodeId: string, ...seconds: readonly (readonly [number, number])[]) => ({
  nodeId,
  footage: seconds.map(([from, to]) => ({ fromMs: from * S, toMs: to * S })),
});
const turns = (from: number, to: number, ...nodes: readonly ReturnType<typeof node>[]): string[] =>
  turnsOf({ fromMs: from * S, toMs: to * S }, nodes).map(
    ({ nodeId, fromMs, toMs }) => `${nodeId} ${fromMs / S}-${toMs / S}`,
  );

for (const [what, found, wanted] of [
  ['one node has all', turns(0, 60, node('a', [0, 60])), ['a 0-60']],
  ['nobody has any', turns(0, 60), []],
  [
    'a camera that moved and came back',
    turns(0, 60, node('a', [0, 20], [40, 60]), node('b', [19, 41])),
    ['a 0-20', 'b 20-41', 'a 41-60'],
  ],
  [
    'a hole before a node takes over belongs to the turn before it',
    turns(0, 60, node('a', [5, 20]), node('b', [30, 50])),
    ['a 0-30', 'b 30-60'],
  ],
  ['a hole that nobody fills', turns(0, 60, node('a', [0, 20], [30, 60])), ['a 0-60']],
  [
    'a hole of less than a second',
    turns(0, 60, node('a', [0, 20], [20.5, 60]), node('b', [0, 21])),
    ['b 0-21', 'a 21-60'],
  ],
  [
    'a hole that another node fills',
    turns(0, 60, node('a', [0, 20], [30, 60]), node('b', [15, 35])),
    ['a 0-20', 'b 20-35', 'a 35-60'],
  ],
  ['footage of less than a second', turns(0, 60, node('a', [0, 20]), node('b', [20, 20.5])), ['a 0-60']],
  ['footage beyond the window', turns(10, 20, node('a', [0, 15]), node('b', [15, 99])), ['a 10-15', 'b 15-20']],
] as const) {
  test(`the turns of nodes: ${what}`, () => assert.deepEqual(found, wanted));
}

test('the gaps of all nodes are what none has, divided where a node is away', () => {
  const window = { fromMs: 0, toMs: 60 * S };
  const known = [
    { fromMs: 20 * S, toMs: 30 * S, cause: 'camera-unreachable' },
    { fromMs: 40 * S, toMs: 60 * S, cause: 'on-node-away' },
  ];
  const elsewhere = [{ nodeId: 'c', fromMs: 40 * S, toMs: 60 * S, isOnline: false }];
  assert.deepEqual(gapsOfAll(window, [node('a', [0, 20]), node('b', [10, 15])], known, elsewhere), [
    { fromMs: 20 * S, toMs: 40 * S, cause: 'camera-unreachable' },
    { fromMs: 40 * S, toMs: 60 * S, cause: 'on-node-away' },
  ]);
});
