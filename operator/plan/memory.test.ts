import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PoolMemory } from './memory.ts';
import { plan } from './plan.ts';
import type { CameraView, NodeView, PlannedCamera, PoolObjects, Snapshot } from './snapshot.ts';
import { cameraOf, nodeOf, poolOf } from '../../test/support/snapshots.ts';

const viewOf = ({
  writing: _w,
  assignedForMs: _a,
  missingForMs: _m,
  wasTakenUp: _t,
  loginForMs: _l,
  ...view
}: PlannedCamera): CameraView => view;
const camera = (over: Partial<PlannedCamera> = {}): CameraView => viewOf(cameraOf('x', over));

const assigned = (node: string, epoch: number, resourceVersion: string): CameraView =>
  camera({ resourceVersion, assignment: { node, epoch, handover: 'Complete', reason: 'Scheduled' } });

const reporting = (name: string, epoch: number): NodeView =>
  nodeOf(name, { cameras: new Map([['x', { epoch, state: 'Recording' }]]) });

const objects = (
  cameras: readonly CameraView[],
  nodes: readonly NodeView[] = [nodeOf('a'), nodeOf('b')],
): PoolObjects => ({
  pool: poolOf(),
  nodes,
  cameras,
});

/** A memory that has heard both nodes. */
function memoryOf(start: PoolObjects): PoolMemory {
  const memory = new PoolMemory(start);
  memory.look(start, 0);
  for (const version of ['1', '2'])
    for (const { name } of start.nodes)
      memory.detector.saw(name, { resourceVersion: version, renewMs: undefined }, 1_000);
  return memory;
}

const seen = ({ cameras }: Snapshot): PlannedCamera => cameras[0] ?? assert.fail('no camera');

test('a write under way is not planned again, and what the API server answered counts until the cache shows it', () => {
  const stale = objects([camera({ resourceVersion: '10' })]);
  const memory = memoryOf(stale);
  const [write] = plan(memory.look(stale, 1_000)).writes;
  assert.ok(write);
  memory.writing(write, 1_000);
  assert.deepEqual(plan(memory.look(stale, 1_001)).writes, []);

  memory.learned(write.uid, assigned('a', 1, '11'));
  assert.equal(seen(memory.look(stale, 1_002)).assignment?.node, 'a');
  const later = objects([assigned('b', 2, '12')]);
  assert.equal(seen(memory.look(later, 1_003)).assignment?.node, 'b');
});

test('what the API server answered is forgotten when the cache shows it, and is not believed against a later cache', () => {
  const memory = memoryOf(objects([camera({ resourceVersion: '10' })]));
  memory.learned(camera().uid, assigned('a', 1, '11'));
  assert.equal(seen(memory.look(objects([assigned('a', 1, '11')]), 1_000)).assignment?.node, 'a');
  // After a restore from a backup, a cluster continues with the resource versions of the backup.
  assert.equal(seen(memory.look(objects([assigned('b', 2, '5')]), 1_001)).assignment?.node, 'b');
});

test('a write that was not sent is planned again', () => {
  const world = objects([camera()]);
  const memory = memoryOf(world);
  const [write] = plan(memory.look(world, 1_000)).writes;
  assert.ok(write);
  memory.writing(write, 1_000);
  memory.learned(write.uid, undefined);
  assert.equal(plan(memory.look(world, 1_001)).writes.length, 1);
});

test('ages begin when an assignment is first seen, and a camera is missing until its node names its epoch', () => {
  const memory = memoryOf(objects([assigned('a', 1, '1')]));
  const taken = seen(memory.look(objects([assigned('a', 1, '1')], [reporting('a', 1)]), 4_000));
  assert.deepEqual([taken.assignedForMs, taken.missingForMs, taken.wasTakenUp], [4_000, undefined, true]);
  const silent = objects([assigned('a', 1, '1')]);
  memory.look(silent, 5_000);
  assert.deepEqual(
    [seen(memory.look(silent, 9_000)).missingForMs, seen(memory.look(silent, 9_000)).wasTakenUp],
    [4_000, true],
  );
  const moved = seen(memory.look(objects([assigned('b', 2, '2')], [reporting('b', 1)]), 10_000));
  assert.deepEqual([moved.assignedForMs, moved.missingForMs, moved.wasTakenUp], [0, 0, false]);
});

test('a node has the login of a camera from when it stops to say that it lacks it', () => {
  const lacking = {
    ...reporting('a', 1),
    cameras: new Map([['x', { epoch: 1, state: 'Failed', reason: 'NoCredentials' }]]),
  };
  const memory = memoryOf(objects([assigned('a', 1, '1')]));
  const loginForMs = (node: NodeView, nowMs: number): number =>
    seen(memory.look(objects([assigned('a', 1, '1')], [node]), nowMs)).loginForMs;
  assert.deepEqual([loginForMs(lacking, 4_000), loginForMs(lacking, 50_000)], [0, 0]);
  assert.deepEqual([loginForMs(reporting('a', 1), 51_000), loginForMs(reporting('a', 1), 80_000)], [1_000, 30_000]);
});

test('a Camera made again under the old name is another one', () => {
  const memory = memoryOf(objects([assigned('a', 1, '1')], [reporting('a', 1)]));
  memory.look(objects([assigned('a', 1, '1')], [reporting('a', 1)]), 1_000);
  const anew = { ...assigned('a', 1, '9'), uid: 'another' };
  assert.equal(seen(memory.look(objects([anew]), 60_000)).assignedForMs, 0);
});

test('a node that did not take a camera up is chosen last for a minute', () => {
  const world = objects([assigned('a', 1, '1')]);
  const memory = memoryOf(world);
  memory.writing(
    {
      camera: 'x',
      uid: 'uid-x',
      resourceVersion: '1',
      fromEpoch: 1,
      assignment: { node: 'b', epoch: 2, previousNode: 'a', handover: 'Complete', reason: 'NotTakenUp' },
      isNote: false,
      urgent: true,
      confirm: { kind: 'NotTakenUp', node: 'a', epoch: 1 },
    },
    2_000,
  );
  const reluctant = (nowMs: number): boolean[] => memory.look(world, nowMs).nodes.map((node) => node.reluctant);
  assert.deepEqual(
    [reluctant(3_000), reluctant(62_000)],
    [
      [true, false],
      [false, false],
    ],
  );
});
