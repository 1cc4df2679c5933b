import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCamera, type Camera, type CameraAssignment, type CameraStatus } from '../../crds/camera.ts';
import { changesOf, decide, isOwnerRestarted, lostSince, vacantSince, type Assignment } from './assignments.ts';

const NODE = { nodeId: 'a', pool: 'default' };

const HELD: CameraStatus['standby'] = { node: 'a', epoch: 4 };

interface Other {
  readonly uid?: string;
  readonly suspend?: boolean;
  readonly pool?: string;
  readonly standby?: CameraStatus['standby'];
}

function camera(
  assignment: Partial<CameraAssignment>,
  { uid = 'u1', suspend = false, pool = 'default', standby }: Other = {},
): Camera {
  return parseCamera({
    apiVersion: 'kube-nvr.dev/v1alpha1',
    kind: 'Camera',
    metadata: { name: 'gate', namespace: 'shop', uid, resourceVersion: '1' },
    spec: { source: 'rtsp://10.0.0.9/', suspend, poolRef: { name: pool } },
    status: { assignment: { epoch: 1, reason: 'Scheduled', time: '2026-11-21T10:00:00Z', ...assignment }, standby },
  });
}

const own = (epoch: number, uid = 'u1'): Assignment => ({
  camera: camera({ node: 'a', epoch }, { uid }),
  state: 'own',
  epoch,
});

const held = (epoch: number): Assignment => ({
  camera: camera({ node: 'b', epoch }, { standby: HELD }),
  state: 'standby',
  epoch,
});

const outcome = (value: Assignment | undefined): unknown => value && [value.state, value.epoch];

const cases: readonly [string, Camera | undefined, Assignment | undefined, unknown][] = [
  ['a camera of this node is recorded', camera({ node: 'a', epoch: 2 }), undefined, ['own', 2]],
  ['a higher epoch is taken over', camera({ node: 'a', epoch: 3 }), own(2), ['own', 3]],
  ['a camera of another node is not recorded', camera({ node: 'b', epoch: 2 }), undefined, undefined],
  ['one that moved is stopped', camera({ node: 'b', epoch: 3, previousNode: 'a' }), own(2), undefined],
  [
    'one that is handed over goes on under its old epoch',
    camera({ node: 'b', epoch: 3, previousNode: 'a', handover: 'Pending' }),
    own(2),
    ['handing-over', 2],
  ],
  [
    'and is stopped when that is complete',
    camera({ node: 'b', epoch: 3, previousNode: 'a', handover: 'Complete' }),
    { ...own(2), state: 'handing-over' },
    undefined,
  ],
  [
    'a handover of a camera that was never recorded here begins nothing',
    camera({ node: 'b', epoch: 3, previousNode: 'a', handover: 'Pending' }),
    undefined,
    undefined,
  ],
  [
    'a suspended camera stays known where it was recorded last',
    camera({ epoch: 3, previousNode: 'a' }, { suspend: true }),
    own(2),
    ['suspended', 3],
  ],
  ['one that nobody has and is not suspended is stopped', camera({ epoch: 3, previousNode: 'a' }), own(2), undefined],
  ['a word from before what was heard changes nothing', camera({ node: 'b', epoch: 1 }), own(2), ['own', 2]],
  ['a camera made anew begins anew', camera({ node: 'a', epoch: 1 }, { uid: 'u2' }), own(7), ['own', 1]],
  ['a camera of another node is held', camera({ node: 'b', epoch: 2 }, { standby: HELD }), undefined, ['standby', 2]],
  ['one that is held is recorded when it moves here', camera({ node: 'a', epoch: 3 }), held(2), ['own', 3]],
  [
    'one that is held and was handed over from here before does not begin again',
    camera({ node: 'b', epoch: 3, previousNode: 'a', handover: 'Pending' }, { standby: HELD }),
    held(2),
    ['standby', 3],
  ],
  ['a camera without a node is not held', camera({ epoch: 3 }, { standby: HELD }), held(2), undefined],
  ['a camera of another pool is not ours', camera({ node: 'a', epoch: 2 }, { pool: 'other' }), undefined, undefined],
  ['a deleted camera is stopped', undefined, own(2), undefined],
];

for (const [name, seen, before, expected] of cases) {
  test(name, () => assert.deepEqual(outcome(decide(NODE, seen, before)), expected));
}

test('a watch alone stops nothing: what it does not show any more is in doubt', () => {
  const before = new Map([['gate', own(2)]]);
  const gone = changesOf(NODE, new Map(), before);
  assert.deepEqual([[...gone.assignments.keys()], gone.doubtful], [['gate'], ['gate']]);
  const moved = changesOf(NODE, new Map([['gate', camera({ node: 'b', epoch: 3, previousNode: 'a' })]]), before);
  assert.deepEqual([outcome(moved.assignments.get('gate')), moved.doubtful], [['own', 2], ['gate']]);
});

test('a watch alone begins recording', () => {
  const { assignments, doubtful } = changesOf(NODE, new Map([['gate', camera({ node: 'a', epoch: 4 })]]), new Map());
  assert.deepEqual([outcome(assignments.get('gate')), doubtful], [['own', 4], []]);
});

const LAST_SEEN = '2026-11-21T09:59:44.250Z';
const lost = { previousNode: 'b', reason: 'NodeUnavailable', lastSeenTime: LAST_SEEN } as const;
const taken = (assignment: Partial<CameraAssignment>, uid = 'u1'): Assignment => ({
  camera: camera({ node: 'a', ...assignment }, { uid }),
  state: 'own',
  epoch: assignment.epoch ?? 1,
});

test('what a lost node has not recorded is answered for once, by the node that takes the camera up', () => {
  const sinceMs = Date.parse(LAST_SEEN);
  assert.equal(vacantSince(taken({ epoch: 3, ...lost }), undefined), sinceMs);
  assert.equal(vacantSince(taken({ epoch: 3, ...lost }), own(2)), sinceMs, "it was this node's in an epoch before");
  assert.equal(vacantSince(taken({ epoch: 3, ...lost }), own(3)), undefined, 'known: a restart, or another report');
  assert.equal(vacantSince(taken({ epoch: 3, ...lost }, 'u2'), own(7)), sinceMs, 'another Camera of the same name');
  assert.equal(
    vacantSince(taken({ epoch: 3, previousNode: 'b' }), undefined),
    undefined,
    'a planned move loses nothing',
  );
  assert.equal(vacantSince({ ...taken({ epoch: 3, ...lost }), state: 'handing-over' }, undefined), undefined);
  assert.equal(vacantSince(taken({ epoch: 3, ...lost, lastSeenTime: 'soon' }), undefined), undefined);
});

test('a node that was lost answers for its cameras up to where the next one does', () => {
  const moved = (previousNode: string): Camera => camera({ node: 'b', epoch: 3, ...lost, previousNode });
  assert.equal(lostSince(NODE, moved('a')), Date.parse(LAST_SEEN));
  assert.equal(lostSince(NODE, moved('c')), undefined, 'the time is of another node');
  assert.equal(lostSince(NODE, undefined), undefined);
});

test('the recorder of a camera that is held was restarted when another process of its node goes on under the same epoch', () => {
  const at = (process: string | undefined, epoch = 2): Assignment => ({
    camera: camera({ node: 'b', epoch }, { standby: { node: 'a', epoch: 4, ...(process && { process }) } }),
    state: 'standby',
    epoch,
  });
  assert.equal(isOwnerRestarted(at('b/2'), at('b/1')), true);
  assert.equal(isOwnerRestarted(at('b/1'), at('b/1')), false);
  assert.equal(isOwnerRestarted(at('b/1'), at(undefined)), false, 'it is only now known');
  assert.equal(isOwnerRestarted(at('b/2', 3), at('b/1')), false, 'another epoch, of which others take care');
  assert.equal(isOwnerRestarted(at('b/2'), at('c/1')), false, 'the camera has moved from another node');
  assert.equal(isOwnerRestarted(at('b/2'), own(2)), false, 'this node recorded it itself');
});
