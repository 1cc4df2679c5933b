import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FileParts } from '../mp4/parts.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import type { Footage } from './footage.ts';
import { inTurns, partsInTurn } from './turns.ts';

/** A complete file in parts of several seconds, in seconds. */
function file(nodeId: string, epoch: number, ...starts: readonly [number, number, ...number[]]) {
  const fromS = starts[0];
  const durationMs = ((starts.at(-1) as number) - fromS) * 1_000;
  const parts = {
    meta: {
      epoch,
      sequence: fromS,
      wallStartMs: fromS * 1_000,
      wallDurationMs: durationMs,
      mediaDurationMs: durationMs,
    },
    headers: [],
    shownFrom: 0,
    lead: [fromS, 1, 2],
    times: starts.map((start) => (start - fromS) * VIDEO_TIMESCALE),
    starts: starts.map((_, i) => i),
    complete: true,
  } as unknown as FileParts;
  return { path: `${nodeId}/${fromS}`, parts, turn: undefined, nodeId } as unknown as Footage & {
    readonly nodeId: string;
  };
}

/** What is played, and until when. */
const playedOf = (...files: readonly ReturnType<typeof file>[]): string[] =>
  inTurns(files).map(({ path, turn }) => (turn ? `${path} to ${turn.toMs / 1_000}` : path));

test('after a restart in place a standby is played from its beginning on, until the new process begins', () => {
  const standby = file('other', 1, 98, 104, 130);
  const restarted = file('own', 1, 123, 180);
  assert.deepEqual(playedOf(file('own', 1, 60, 120), standby, restarted), [
    'own/60 to 98',
    'other/98 to 123',
    'own/123',
  ]);
});

test('the same if the old process had just begun another file: that does not interrupt the standby', () => {
  const standby = file('other', 1, 98, 104, 130);
  const restarted = file('own', 1, 123, 180);
  assert.deepEqual(playedOf(file('own', 1, 60, 118), file('own', 1, 118, 120.5), standby, restarted), [
    'own/60 to 98',
    'other/98 to 123',
    'own/123',
  ]);
});

test('a turn knows the first pictures of the file that continues, not of a later one of that node', () => {
  const played = inTurns([file('own', 1, 60, 180), file('other', 2, 100, 160), file('other', 2, 160, 200)]);
  assert.deepEqual(
    played.map(({ path, turn }) => [path, turn?.next]),
    [
      ['own/60', [100, 1, 2]],
      ['other/100', undefined],
      ['other/160', undefined],
    ],
  );
});

test('of a file whose turn ended before a time, nothing is played from that time on, although a part contains it', () => {
  const [lower] = inTurns([file('own', 1, 60, 90, 120), file('other', 2, 100, 160)]);
  assert.equal(lower?.turn?.toMs, 100_000);
  assert.deepEqual(partsInTurn(lower, { fromMs: 95_000, toMs: 130_000 }), [1, 2]);
  assert.deepEqual(partsInTurn(lower, { fromMs: 105_000, toMs: 130_000 }), [1, 1]);
});

test('where a node goes on after another, its group of pictures is played whose key frame is the picture at which the other ends', () => {
  // The clock of the node dates the picture 10 ms earlier than that of the other node does.
  const own = file('own', 1, 60, 90, 119.99, 150, 180);
  const [before, other, after] = inTurns([own, file('other', 2, 100, 120)]);
  assert.deepEqual([before?.path, other?.path, after?.path], ['own/60', 'other/100', 'own/60']);
  assert.deepEqual(partsInTurn(after as Footage, { fromMs: 0, toMs: 200_000 }), [2, 4]);
  const late = file('own', 1, 60, 90, 119.9, 150, 180);
  const afterLate = inTurns([late, file('other', 2, 100, 120)]).at(-1) as Footage;
  assert.deepEqual(
    partsInTurn(afterLate, { fromMs: 0, toMs: 200_000 }),
    [3, 4],
    'one that began before is not played twice',
  );
});
