import assert from 'node:assert/strict';
import { test } from 'node:test';
import { videoMedia } from '../../camera/media.ts';
import { Footage } from '../../support/footage.ts';
import { endOf, footageOf, holesIn, type Piece } from './footage.ts';

const piece = (fromMs: number, toMs: number, node = 'node-1'): Piece => ({
  node,
  camera: 'gate',
  path: `${node}/${fromMs}`,
  fromMs,
  toMs,
  isOpen: false,
});

test('footage is read from files that are closed and from one that is written, with what is missing between', async (t) => {
  const startMs = Date.now() - 60_000;
  const footage = await Footage.open(t, { startMs });
  const camera = footage.camera({ video: await videoMedia('h264') });
  camera.begin();
  await camera.play(10);
  camera.end();
  footage.clock.advance(5_000);
  camera.begin();
  await camera.play(10);
  const disks = [{ node: 'node-1', root: footage.root }];
  const pieces = (await footageOf(disks, ['gate'], startMs)).get('gate') ?? [];
  assert.deepEqual(
    pieces.map(({ node, isOpen }) => [node, isOpen]),
    [
      ['node-1', false],
      ['node-1', true],
    ],
  );
  const [hole, ...others] = holesIn(pieces, startMs, endOf(pieces));
  assert.ok(hole);
  assert.deepEqual(others, []);
  assert.ok(Math.abs(hole.fromMs - startMs - 10_000) <= 50, `from ${hole.fromMs - startMs}`);
  assert.ok(Math.abs(hole.toMs - startMs - 15_000) <= 50, `to ${hole.toMs - startMs}`);
  // Up to the last complete fragment: some pictures still wait for theirs.
  const missingMs = startMs + 25_000 - endOf(pieces);
  assert.ok(missingMs >= 0 && missingMs < 1_000, `${missingMs}`);
});

test('holes are times that no disk covers, of a tenth of a second and more', () => {
  const both = [piece(0, 10_000), piece(9_000, 20_000, 'node-2')];
  assert.deepEqual(holesIn(both, 0, 20_000), []);
  assert.deepEqual(holesIn(both, 0, 21_000), [{ fromMs: 20_000, toMs: 21_000 }]);
  assert.deepEqual(holesIn([piece(0, 10_000), piece(10_099, 20_000)], 0, 20_000), []);
  assert.deepEqual(holesIn([piece(10_100, 20_000), piece(0, 10_000)], 0, 20_000), [{ fromMs: 10_000, toMs: 10_100 }]);
  assert.deepEqual(holesIn([], 5_000, 6_000), [{ fromMs: 5_000, toMs: 6_000 }]);
});
