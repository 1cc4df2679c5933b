import assert from 'node:assert/strict';
import { test } from 'node:test';
import { urgentFirst } from './parts.ts';
import { plan } from './plan.ts';
import type { Plan, PlannedCamera, PlannedNode, Snapshot } from './snapshot.ts';
import {
  cameraOf,
  carriedOut,
  LIVE,
  nodeOf,
  QUIET,
  recordedBy,
  snapshotOf,
  UNAVAILABLE,
  UNKNOWN,
} from '../../test/support/snapshots.ts';

const NODES = [nodeOf('a'), nodeOf('b'), nodeOf('c')];

/** Cameras `c0 c1 …` on one node. */
const many = (count: number, node: string, over: Partial<PlannedCamera> = {}): PlannedCamera[] =>
  Array.from({ length: count }, (_, i) => recordedBy(`c${i}`, node, over));

const targets = ({ writes }: Plan): Record<string, string | undefined> =>
  Object.fromEntries(writes.map(({ camera, assignment }) => [camera, assignment.node]));

const reasons = ({ cameras }: Plan): Record<string, string> =>
  Object.fromEntries([...cameras].map(([name, { status, reason }]) => [name, `${status} ${reason}`]));

const with_ = (snapshot: Snapshot, name: string, over: Partial<PlannedNode>): Snapshot => ({
  ...snapshot,
  nodes: snapshot.nodes.map((node) => (node.name === name ? { ...node, ...over } : node)),
});

const poolCondition = ({ pool }: Plan, type: string): string | undefined => {
  const found = pool.find((condition) => condition.type === type);
  return found && `${found.status} ${found.reason}: ${found.message}`;
};

test('new cameras go to the node with the fewest, then the most free bytes, then by name', () => {
  const nodes = [nodeOf('a'), nodeOf('b', { freeBytes: 5 }), nodeOf('c', { freeBytes: 9 })];
  const cameras = [recordedBy('old', 'c'), ...['x', 'y', 'z'].map((name) => cameraOf(name))];
  assert.deepEqual(targets(plan(snapshotOf(nodes, cameras))), { x: 'b', y: 'a', z: 'c' });
});

test('a first assignment has epoch 1, and is complete', () => {
  const [write] = plan(snapshotOf(NODES, [cameraOf('x')])).writes;
  assert.deepEqual(write?.assignment, { node: 'a', epoch: 1, handover: 'Complete', reason: 'Scheduled' });
});

test('a camera goes only to nodes with its labels, and to the one it prefers', () => {
  const nodes = [nodeOf('a'), nodeOf('b', { labels: { disk: 'ssd' } }), nodeOf('c', { labels: { disk: 'ssd' } })];
  const cameras = [
    recordedBy('old', 'b'),
    cameraOf('picky', { nodeSelector: { disk: 'ssd' } }),
    cameraOf('fond', { preferredNode: 'b' }),
    cameraOf('lost', { nodeSelector: { disk: 'tape' } }),
  ];
  const planned = plan(snapshotOf(nodes, cameras));
  assert.deepEqual(targets(planned), { picky: 'c', fond: 'b' });
  assert.equal(reasons(planned)['lost'], 'False NoEligibleNode');
});

test('cameras without capacity are named, those of higher priority have it', () => {
  const cameras = [cameraOf('low'), cameraOf('high', { priority: 5 }), cameraOf('mid', { priority: 1 })];
  const planned = plan(snapshotOf([nodeOf('a'), nodeOf('b')], cameras, { pool: { maxCamerasPerNode: 1 } }));
  assert.deepEqual(targets(planned), { high: 'a', mid: 'b' });
  assert.equal(reasons(planned)['low'], 'False NoRoom');
  assert.equal(poolCondition(planned, 'CapacityAvailable'), 'False NoRoom: no node has capacity for: low');
});

test('new cameras wait for nodes that were never heard, at most unavailableAfterSeconds', () => {
  const nodes = [nodeOf('a'), nodeOf('b'), nodeOf('c', { liveness: UNKNOWN })];
  const after = (majorityForMs: number): Plan => plan(snapshotOf(nodes, [cameraOf('x')], { majorityForMs }));
  assert.deepEqual([after(4_000).writes, after(4_000).recheckMs], [[], 11_000]);
  assert.deepEqual(targets(after(15_000)), { x: 'a' });
});

test('cameras of an unavailable node move in order of priority, eight at once to each node, that with the most capacity first', () => {
  const cameras = [...many(20, 'a'), recordedBy('first', 'a', { priority: 9 }), recordedBy('x', 'b')];
  const { writes } = plan(with_(snapshotOf(NODES, cameras), 'a', { liveness: UNAVAILABLE }));
  assert.equal(writes.length, 16);
  assert.deepEqual(writes[0]?.assignment, {
    node: 'c',
    epoch: 2,
    previousNode: 'a',
    handover: 'Complete',
    reason: 'NodeUnavailable',
    home: 'a',
    lostNodes: ['a'],
  });
  assert.equal(writes[0]?.camera, 'first');
  assert.deepEqual(writes.map(({ assignment }) => assignment.node).join(''), 'cb'.repeat(8));
});

test('a slot is free again when a move is taken up, or after five seconds', () => {
  const moved = (age: number | undefined): PlannedCamera[] =>
    Array.from({ length: 16 }, (_, i) =>
      recordedBy(`m${i}`, 'b', {
        assignment: { node: 'b', epoch: 2, previousNode: 'a', handover: 'Complete', reason: 'NodeUnavailable' },
        missingForMs: age,
        wasTakenUp: age === undefined,
      }),
    );
  const plans = [1_000, undefined].map((age) =>
    plan(with_(snapshotOf(NODES, [...moved(age), ...many(2, 'a')]), 'a', { liveness: UNAVAILABLE })),
  );
  assert.deepEqual(
    plans.map(({ writes }) => writes.length),
    [0, 2],
  );
  assert.equal(plans[0]?.recheckMs, 4_000);
  assert.equal(plans[0]?.cameras.get('c0')?.reason, 'Waiting');
});

test('a move that is not taken up within five seconds goes to the next node, after a look at the report itself', () => {
  const camera = recordedBy('x', 'b', {
    assignment: { node: 'b', epoch: 7, previousNode: 'a', handover: 'Complete', reason: 'NodeUnavailable' },
    missingForMs: 5_000,
    wasTakenUp: false,
  });
  const [write] = plan(snapshotOf(NODES, [camera, recordedBy('y', 'a')])).writes;
  assert.deepEqual(write?.assignment, {
    node: 'c',
    epoch: 8,
    previousNode: 'b',
    handover: 'Complete',
    reason: 'NotTakenUp',
  });
  assert.deepEqual(write?.confirm, { kind: 'NotTakenUp', node: 'b', epoch: 7 });
});

test('a move from a silent node names it, so that its last renewal can be told; planned moves do not', () => {
  const cameras = [recordedBy('x', 'a'), recordedBy('y', 'b')];
  const failover = plan(with_(snapshotOf(NODES, cameras), 'a', { liveness: UNAVAILABLE }));
  assert.deepEqual(
    failover.writes.map(({ camera, lostNode }) => [camera, lostNode]),
    [['x', 'a']],
  );
  const drain = plan(with_(snapshotOf(NODES, cameras), 'a', { drain: true }));
  assert.deepEqual(
    drain.writes.map(({ camera, lostNode }) => [camera, lostNode]),
    [['x', undefined]],
  );
});

test('the time since which a camera is not recorded is kept until a node records it', () => {
  const lastSeenTime = '2026-11-21T10:00:00.000Z';
  const assignment = {
    node: 'b',
    epoch: 7,
    previousNode: 'a',
    handover: 'Complete',
    reason: 'NodeUnavailable',
  } as const;
  const of = (wasTakenUp: boolean, lost: boolean): Plan => {
    const camera = recordedBy('x', 'b', {
      assignment: { ...assignment, lastSeenTime },
      missingForMs: wasTakenUp ? undefined : 5_000,
      wasTakenUp,
    });
    return plan(with_(snapshotOf(NODES, [camera]), 'b', lost ? { liveness: UNAVAILABLE } : {}));
  };
  const [notTakenUp] = of(false, false).writes;
  assert.equal(notTakenUp?.assignment.lastSeenTime, lastSeenTime);
  const [lostBefore] = of(false, true).writes;
  assert.deepEqual([lostBefore?.assignment.lastSeenTime, lostBefore?.lostNode], [lastSeenTime, undefined]);
  const [lostAfter] = of(true, true).writes;
  assert.deepEqual([lostAfter?.assignment.lastSeenTime, lostAfter?.lostNode], [undefined, 'b']);
});

test('a live node that no longer names a camera has 15 s to do so: it may be starting', () => {
  const after = (missingForMs: number): Plan => plan(snapshotOf(NODES, [recordedBy('x', 'b', { missingForMs })]));
  assert.deepEqual([after(14_000).writes.length, after(14_000).recheckMs], [0, 1_000]);
  assert.deepEqual(targets(after(15_000)), { x: 'a' });
});

test('a camera that its node had lost before the node fell silent stays until the node is lost', () => {
  const nodes = [nodeOf('a'), nodeOf('b', { liveness: QUIET }), nodeOf('c')];
  assert.deepEqual(plan(snapshotOf(nodes, [recordedBy('x', 'b', { missingForMs: 60_000 })])).writes, []);
});

test('after an outage everybody has time again to take cameras up', () => {
  const camera = recordedBy('x', 'b', { missingForMs: 60_000 });
  assert.deepEqual(plan(snapshotOf(NODES, [camera], { majorityForMs: 1_000 })).writes, []);
});

test('without a majority nothing gets a node, no leader is reported, and the conditions say so', () => {
  const cameras = [...many(2, 'a'), cameraOf('new')];
  const nodes = [
    nodeOf('a', { liveness: UNAVAILABLE }),
    nodeOf('b', { liveness: UNKNOWN }),
    nodeOf('c'),
    nodeOf('d', { role: 'Learner' }),
  ];
  const planned = plan(snapshotOf(nodes, cameras, { pool: { leader: 'c' } }));
  assert.deepEqual(planned.writes, []);
  assert.equal(planned.leader, undefined);
  assert.deepEqual(planned.quorum, { needed: 2, live: 1 });
  assert.equal(poolCondition(planned, 'QuorumAvailable'), 'False NoMajority: 1 of 3 voters are live, 2 are needed');
  assert.match(poolCondition(planned, 'FailoverSuspended') ?? '', /^True NoMajority/);
  assert.equal(reasons(planned)['new'], 'False NoMajority');
});

test('while voters are quiet nothing moves, although they still count as live', () => {
  const nodes = [nodeOf('a', { liveness: UNAVAILABLE }), nodeOf('b', { liveness: QUIET }), nodeOf('c')];
  const planned = plan(snapshotOf(nodes, many(1, 'a')));
  assert.deepEqual(planned.writes, []);
  assert.match(poolCondition(planned, 'FailoverSuspended') ?? '', /^False/);
});

test('a leader stays as long as it is a live voter', () => {
  const leaderOf = (leader: string, liveness = LIVE): string | undefined =>
    plan(snapshotOf([nodeOf('a'), nodeOf('b', { liveness }), nodeOf('c')], [], { pool: { leader } })).leader;
  assert.deepEqual(
    [leaderOf('b'), leaderOf('b', QUIET), leaderOf('b', UNKNOWN), leaderOf('nobody')],
    ['b', 'b', 'a', 'a'],
  );
});

test('failover Never: the camera waits for its node', () => {
  const planned = plan(with_(snapshotOf(NODES, many(1, 'a', { failover: 'Never' })), 'a', { liveness: UNAVAILABLE }));
  assert.deepEqual(planned.writes, []);
  assert.equal(reasons(planned)['c0'], 'False NodeUnavailable');
});

test('a drained node is emptied by handovers: the old node records until the new one does', () => {
  const start = with_(snapshotOf(NODES, many(3, 'a')), 'a', { drain: true });
  const moving = plan(start);
  assert.deepEqual(moving.writes[0]?.assignment, {
    node: 'b',
    epoch: 2,
    previousNode: 'a',
    handover: 'Pending',
    reason: 'Drain',
    home: 'a',
  });
  const pending = carriedOut(start, moving);
  assert.deepEqual(plan(pending).loads.get('a'), { assigned: 0, leaving: 3 });
  const done = plan(pending);
  assert.deepEqual(
    done.writes.map(({ assignment }) => [assignment.epoch, assignment.handover]),
    [
      [2, 'Complete'],
      [2, 'Complete'],
      [2, 'Complete'],
    ],
  );
  assert.deepEqual(plan(carriedOut(pending, done)).loads.get('a'), { assigned: 0, leaving: 0 });
});

const handover = (over: Partial<PlannedCamera>, reason = 'Drain'): PlannedCamera =>
  cameraOf('x', {
    assignment: { node: 'b', epoch: 4, previousNode: 'a', handover: 'Pending', reason },
    ...over,
  });

const report = (epoch: number, state: string): Pick<PlannedNode, 'cameras'> => ({
  cameras: new Map([['x', { epoch, state }]]),
});

test('a handover ends when the new node has written, not when it has taken the camera up', () => {
  const world = (state: string): Snapshot =>
    snapshotOf(
      [nodeOf('a', report(3, 'Recording')), nodeOf('b', report(4, state)), nodeOf('c')],
      [handover({ assignedForMs: 2_000 })],
    );
  assert.deepEqual(plan(world('Connecting')).writes, []);
  assert.equal(plan(world('Recording')).writes[0]?.assignment.handover, 'Complete');
});

test('a handover of a camera that the old node does not record either ends after five seconds', () => {
  const world = (assignedForMs: number): Snapshot =>
    snapshotOf(
      [nodeOf('a', report(3, 'Failed')), nodeOf('b', report(4, 'Connecting')), nodeOf('c')],
      [handover({ assignedForMs })],
    );
  assert.deepEqual([plan(world(4_000)).writes.length, plan(world(4_000)).recheckMs], [0, 1_000]);
  assert.equal(plan(world(5_000)).writes[0]?.assignment.handover, 'Complete');
});

test('a handover that does not end in 30 s is taken back, or forced when the old node must be emptied', () => {
  const world = (drain: boolean): Snapshot =>
    snapshotOf(
      [nodeOf('a', { ...report(3, 'Recording'), drain }), nodeOf('b', report(4, 'Connecting')), nodeOf('c')],
      [handover({ assignedForMs: 30_000 }, drain ? 'Drain' : 'Preferred')],
    );
  const [back] = plan(world(false)).writes;
  assert.deepEqual(back?.assignment, {
    node: 'a',
    epoch: 5,
    previousNode: 'b',
    handover: 'Complete',
    reason: 'NotTakenUp',
  });
  const [forced] = plan(world(true)).writes;
  assert.deepEqual(forced?.assignment, {
    node: 'b',
    epoch: 4,
    previousNode: 'a',
    handover: 'Complete',
    reason: 'Drain',
  });
});

test('a handover is not forced to a node without the login: the old one continues, and others do not wait for it', () => {
  const world = (old: string, drain = true, loginForMs = 0): Snapshot =>
    snapshotOf(
      [
        nodeOf('a', { ...report(3, old), drain }),
        nodeOf('b', { cameras: new Map([['x', { epoch: 4, state: 'Connecting' }]]) }),
        nodeOf('c'),
      ],
      [handover({ assignedForMs: 60_000, loginForMs }), recordedBy('y', 'a')],
      { pool: { maxConcurrentMoves: 1 } },
    );
  const written = (snapshot: Snapshot) =>
    plan(snapshot).writes.map(({ camera, assignment: { node, handover } }) => [camera, node, handover]);
  assert.deepEqual(written(world('Recording')), [['y', 'c', 'Pending']]);
  assert.deepEqual(written(world('Failed'))[0], ['x', 'b', 'Complete'], 'the old node does not record it either');
  assert.deepEqual(written(world('Recording', false)), [['x', 'a', 'Complete']], 'the drain was called off');
  const hasJustReadIt = world('Recording', true, 29_000);
  assert.deepEqual([written(hasJustReadIt), plan(hasJustReadIt).recheckMs], [[['y', 'c', 'Pending']], 1_000]);
  assert.deepEqual(written(world('Recording', true, 30_000))[0], ['x', 'b', 'Complete']);
});

test('when the new node of a handover dies, the old one keeps the camera, or continues until a third has it', () => {
  const world = (drain: boolean): Snapshot =>
    snapshotOf(
      [nodeOf('a', { ...report(3, 'Recording'), drain }), nodeOf('b', { liveness: UNAVAILABLE }), nodeOf('c')],
      [handover({})],
      {
        pool: { maxConcurrentMoves: 1 },
      },
    );
  const [back] = plan(world(false)).writes;
  assert.deepEqual(back?.assignment, {
    node: 'a',
    epoch: 5,
    previousNode: 'b',
    handover: 'Complete',
    reason: 'NodeUnavailable',
    lostNodes: ['b'],
  });
  const [on] = plan(world(true)).writes;
  assert.deepEqual(on?.assignment, {
    node: 'c',
    epoch: 5,
    previousNode: 'a',
    handover: 'Pending',
    reason: 'NodeUnavailable',
    lostNodes: ['b'],
  });
});

test('when the old node of a handover dies there is nothing to wait for', () => {
  const nodes = [nodeOf('a', { liveness: UNAVAILABLE }), nodeOf('b', report(4, 'Connecting')), nodeOf('c')];
  assert.equal(plan(snapshotOf(nodes, [handover({})])).writes[0]?.assignment.handover, 'Complete');
});

test('a handover waits for a new node that is not heard', () => {
  const nodes = [
    nodeOf('a', report(3, 'Recording')),
    nodeOf('b', { ...report(4, 'Recording'), liveness: QUIET }),
    nodeOf('c'),
  ];
  assert.deepEqual(plan(snapshotOf(nodes, [handover({ assignedForMs: 60_000 })])).writes, []);
});

test('handovers that hang do not keep cameras of a dead node waiting', () => {
  const hanging = Array.from({ length: 8 }, (_, i) => ({ ...handover({ assignedForMs: 1_000 }), name: `h${i}` }));
  const planned = plan(with_(snapshotOf(NODES, [...hanging, ...many(2, 'c')]), 'c', { liveness: UNAVAILABLE }));
  assert.equal(planned.writes.filter(({ urgent }) => urgent).length, 2);
});

test('a camera goes back to the node it prefers after failbackAfterSeconds, and a returned node gets nothing else', () => {
  const world = (assignedForMs: number, liveForMs: number): Plan =>
    plan(
      snapshotOf(
        [nodeOf('a', { liveness: { ...LIVE, liveForMs } }), nodeOf('b'), nodeOf('c')],
        [
          cameraOf('fond', {
            preferredNode: 'a',
            assignedForMs,
            assignment: { node: 'b', epoch: 2, previousNode: 'a', handover: 'Complete', reason: 'NodeUnavailable' },
          }),
          recordedBy('other', 'b', { assignedForMs }),
        ],
      ),
    );
  assert.deepEqual([world(900_000, 500_000).writes.length, world(900_000, 500_000).recheckMs], [0, 100_000]);
  assert.deepEqual(world(10_000, 900_000).writes, []);
  assert.deepEqual(
    world(600_000, 600_000).writes.map(({ camera, assignment }) => ({ camera, ...assignment })),
    [{ camera: 'fond', node: 'a', epoch: 3, previousNode: 'b', handover: 'Pending', reason: 'Failback' }],
  );
});

const visiting = (reason: string, over: Partial<PlannedCamera> = {}): PlannedCamera =>
  cameraOf('x', {
    assignment: { node: 'b', epoch: 4, previousNode: 'c', handover: 'Complete', reason, home: 'a' },
    ...over,
  });

test('after a drain a camera goes home at once, after anything else when its home has worked for failbackAfterSeconds', () => {
  const world = (reason: string, liveForMs: number): Plan =>
    plan(snapshotOf([nodeOf('a', { liveness: { ...LIVE, liveForMs } }), nodeOf('b')], [visiting(reason)]));
  const home = { node: 'a', epoch: 5, previousNode: 'b', handover: 'Pending', reason: 'Failback', home: 'a' };
  assert.deepEqual(world('Drain', 1_000).writes[0]?.assignment, home);
  for (const reason of ['NodeUnavailable', 'Ineligible', 'NotTakenUp']) {
    assert.deepEqual([world(reason, 500_000).writes, world(reason, 500_000).recheckMs], [[], 100_000]);
    assert.deepEqual(world(reason, 600_000).writes[0]?.assignment, home);
  }
});

test('a camera that has to leave the node that it visits goes home if that is open, and remembers its home otherwise', () => {
  const moved = (a: Partial<PlannedNode>): Plan['writes'][number]['assignment'] | undefined =>
    plan(snapshotOf([nodeOf('a', a), nodeOf('b', { drain: true }), nodeOf('c')], [visiting('NodeUnavailable')]))
      .writes[0]?.assignment;
  assert.deepEqual([moved({})?.node, moved({})?.home], ['a', 'a']);
  for (const a of [{ drain: true }, { canRecord: false }, { reluctant: true }, { liveness: QUIET }])
    assert.deepEqual([moved(a)?.node, moved(a)?.home], ['c', 'a']);
});

test('a camera that is suspended on a visit goes home when it is recorded again', () => {
  const [write] = plan(snapshotOf(NODES, [visiting('Drain', { suspend: true })])).writes;
  assert.equal(write?.assignment.home, 'a');
  const [again] = plan(
    snapshotOf(NODES, [cameraOf('x', { assignment: write?.assignment }), recordedBy('y', 'a')]),
  ).writes;
  assert.deepEqual([again?.assignment.node, again?.assignment.home], ['a', 'a']);
});

test('a camera does not go home to a node that it may have made silent', () => {
  const camera = visiting('NodeUnavailable', { assignedForMs: 1_800_000 });
  const world = (lostNodes: string[]): Plan =>
    plan(snapshotOf(NODES, [{ ...camera, assignment: { ...camera.assignment!, lostNodes } }]));
  assert.deepEqual(world(['a']).writes, []);
  assert.deepEqual(targets(world(['c'])), { x: 'a' });
});

test('a camera that moves because a person wants it has its home there', () => {
  const nodes = [nodeOf('a', { labels: { disk: 'hdd' } }), nodeOf('b'), nodeOf('c', { labels: { disk: 'ssd' } })];
  for (const over of [{ preferredNode: 'c' }, { nodeSelector: { disk: 'ssd' } }]) {
    const [write] = plan(snapshotOf(nodes, [visiting('Drain', over)])).writes;
    assert.deepEqual([write?.assignment.node, write?.assignment.home], ['c', undefined]);
  }
});

test('a drained node gets a camera only if no other can record it, and gives it away as soon as one can', () => {
  const nodes = [nodeOf('a', { liveness: UNAVAILABLE }), nodeOf('b', { drain: true }), nodeOf('c', { drain: true })];
  const world = snapshotOf(nodes, [recordedBy('x', 'a'), recordedBy('y', 'b'), cameraOf('new')]);
  const { writes } = plan(world);
  assert.deepEqual(
    writes.map(({ camera, assignment }) => [camera, assignment.node, assignment.handover]),
    [
      ['x', 'b', 'Complete'],
      ['new', 'c', 'Complete'],
    ],
    'and y stays',
  );
  const opened = with_(carriedOut(world, { ...plan(world), writes }), 'c', { drain: false });
  assert.deepEqual(
    plan(opened).writes.map(({ camera, assignment }) => [camera, assignment.node, assignment.handover]),
    [
      ['x', 'c', 'Pending'],
      ['y', 'c', 'Pending'],
    ],
  );
  const removed = { ...world, nodes: world.nodes.map((node) => ({ ...node, isRemoved: node.drain })) };
  assert.deepEqual(plan(removed).writes, [], 'a node that left the pool gets none');
});

test('suspending takes the node away with or without a majority; afterwards the camera goes back to its footage', () => {
  const quiet = NODES.map((node) => ({ ...node, liveness: UNKNOWN }));
  const start = snapshotOf(quiet, [recordedBy('x', 'c', { suspend: true }), recordedBy('y', 'b')]);
  const [write] = plan(start).writes;
  assert.deepEqual(write?.assignment, { epoch: 1, previousNode: 'c', handover: 'Complete', reason: 'Suspended' });
  const suspended = cameraOf('x', { assignment: write?.assignment });
  const [again] = plan(snapshotOf(NODES, [suspended, recordedBy('y', 'c')])).writes;
  assert.deepEqual(again?.assignment, { node: 'c', epoch: 2, handover: 'Complete', reason: 'Scheduled' });
});

test('cameras leave a node that is no member any more by a handover, after a look whether it is really gone', () => {
  const [write] = plan(snapshotOf(NODES, [recordedBy('x', 'gone')])).writes;
  assert.deepEqual(write?.assignment, {
    node: 'a',
    epoch: 2,
    previousNode: 'gone',
    handover: 'Pending',
    reason: 'Ineligible',
    home: 'gone',
  });
  assert.deepEqual(write?.confirm, { kind: 'NodeGone', node: 'gone' });
});

test('cameras leave a node that cannot record, or has lost their labels', () => {
  const nodes = [
    nodeOf('a', { canRecord: false }),
    nodeOf('b', { labels: {} }),
    nodeOf('c', { labels: { disk: 'ssd' } }),
  ];
  const cameras = [recordedBy('x', 'a'), recordedBy('y', 'b', { nodeSelector: { disk: 'ssd' } })];
  assert.deepEqual(targets(plan(snapshotOf(nodes, cameras))), { x: 'c', y: 'c' });
});

test('a node whose limit was lowered gives away what has least priority, as far as there is capacity', () => {
  const cameras = [recordedBy('low', 'a', { priority: -1 }), ...many(2, 'a'), recordedBy('z', 'b')];
  const planned = plan(
    snapshotOf([nodeOf('a'), nodeOf('b'), nodeOf('c')], cameras, { pool: { maxCamerasPerNode: 1 } }),
  );
  assert.deepEqual(targets(planned), { low: 'c' });
  assert.match(poolCondition(planned, 'CapacityAvailable') ?? '', /^False NoRoom: no node has capacity for: c1/);
});

test('a node that lately took nothing up is chosen last, and gets no camera back that prefers it', () => {
  const nodes = [nodeOf('a', { reluctant: true }), nodeOf('b')];
  assert.deepEqual(targets(plan(snapshotOf(nodes, [recordedBy('y', 'b'), cameraOf('x')]))), { x: 'b' });
  assert.deepEqual(plan(snapshotOf(nodes, [recordedBy('fond', 'b', { preferredNode: 'a' })])).writes, []);
});

test('what is being written is left alone and counted', () => {
  const writing = recordedBy('x', 'b', { writing: true, wasTakenUp: false, missingForMs: 0 });
  const planned = plan(
    snapshotOf([nodeOf('a'), nodeOf('b')], [writing, cameraOf('y')], { pool: { maxCamerasPerNode: 1 } }),
  );
  assert.deepEqual(targets(planned), { y: 'a' });
});

test('cameras that lost their node go before a thousand new ones, of which 256 are written at once', () => {
  const fresh = Array.from({ length: 1_000 }, (_, i) => cameraOf(`n${i}`, { priority: 50 }));
  const { writes } = plan(
    with_(snapshotOf(NODES, [...fresh, ...many(3, 'a')], { pool: { maxCamerasPerNode: 2_000 } }), 'a', {
      liveness: UNAVAILABLE,
    }),
  );
  assert.deepEqual(
    writes.slice(0, 3).map(({ camera }) => camera),
    ['c0', 'c1', 'c2'],
  );
  assert.equal(writes.length, 3 + 256);
  // Also together with writes that already wait.
  const late = urgentFirst([...writes.slice(3), ...writes.slice(0, 3)]);
  assert.deepEqual(late, writes);
});
