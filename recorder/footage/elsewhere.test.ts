import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GapCause } from '../contract/gap-cause.ts';
import { elsewhereIn, withElsewhere, type NodeAccount } from './elsewhere.ts';

const part = (fromMs: number, toMs: number) => ({ fromMs, toMs });
const account = (footage: NodeAccount['footage'], ...gaps: readonly (readonly [number, number, GapCause])[]) => ({
  footage,
  gaps: gaps.map(([fromMs, toMs, cause]) => ({ fromMs, toMs, cause })),
});
const WINDOW = part(0, 100_000);

test('footage of another node that this one lacks is elsewhere, and not what both have', () => {
  const own = account([part(0, 40_000)]);
  const answered = [
    { nodeId: 'b', ...account([part(30_000, 60_000)]) },
    { nodeId: 'c', ...account([part(90_000, 200_000)]) },
  ];
  assert.deepEqual(elsewhereIn(WINDOW, own, { answered, away: [] }), [
    { nodeId: 'b', fromMs: 40_000, toMs: 60_000, isOnline: true },
    { nodeId: 'c', fromMs: 90_000, toMs: 100_000, isOnline: true },
  ]);
});

test('a node that does not answer may have what no other has and no cause explains', () => {
  const own = account([part(0, 10_000)], [10_000, 20_000, 'camera-unreachable'], [20_000, 30_000, 'unknown']);
  const answered = [{ nodeId: 'b', ...account([part(50_000, 60_000)], [60_000, 70_000, 'disk-full']) }];
  const away = [{ nodeId: 'c', fromMs: -1_000, toMs: 80_000, isOnline: false }];
  assert.deepEqual(
    elsewhereIn(WINDOW, own, { answered, away }).filter(({ nodeId }) => nodeId === 'c'),
    [
      { nodeId: 'c', fromMs: 20_000, toMs: 50_000, isOnline: false },
      { nodeId: 'c', fromMs: 70_000, toMs: 80_000, isOnline: false },
    ],
  );
});

test('gaps are divided where the footage is on another node; a known cause gives way only to footage', () => {
  const gaps = [
    { ...part(0, 30_000), cause: 'moved' as GapCause },
    { ...part(40_000, 60_000), cause: 'unknown' as GapCause },
    { ...part(30_000, 32_000), cause: 'starting' as GapCause },
  ];
  const elsewhere = [
    { nodeId: 'b', ...part(10_000, 20_000), isOnline: true },
    { nodeId: 'c', ...part(15_000, 50_000), isOnline: false },
  ];
  assert.deepEqual(
    withElsewhere(gaps, elsewhere).map(({ fromMs, toMs, cause }) => [fromMs, toMs, cause]),
    [
      [0, 10_000, 'moved'],
      [10_000, 20_000, 'on-other-node'],
      [20_000, 30_000, 'moved'],
      [40_000, 50_000, 'on-node-away'],
      [50_000, 60_000, 'unknown'],
      [30_000, 32_000, 'on-node-away'],
    ],
  );
});
