// Properties of every plan, for arbitrary snapshots.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { plan } from './plan.ts';
import type { PlannedCamera, PlannedNode, Snapshot } from './snapshot.ts';
import { isSuspect } from './suspects.ts';
import {
  cameraOf,
  carriedOut,
  LIVE,
  nodeOf,
  QUIET,
  snapshotOf,
  UNAVAILABLE,
  UNKNOWN,
} from '../../test/support/snapshots.ts';

const NODES = ['n1', 'n2', 'n3', 'n4', 'n5'];
const LABELS = [{}, { disk: 'ssd' }, { disk: 'hdd' }];

const nodes = fc.subarray(NODES, { minLength: 1 }).chain((names) =>
  fc.tuple(
    ...names.map((name) =>
      fc
        .record({
          labels: fc.constantFrom(...LABELS),
          role: fc.constantFrom('Voter' as const, 'Voter' as const, 'Learner' as const),
          drain: fc.boolean().map((drain) => drain && name > 'n3'),
          canRecord: fc.integer({ min: 0, max: 9 }).map((chance) => chance > 0),
          hasRecorder: fc.boolean(),
          freeBytes: fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }),
          liveness: fc.constantFrom(LIVE, LIVE, LIVE, QUIET, UNKNOWN, UNAVAILABLE),
          reluctant: fc.boolean(),
        })
        .map((over) => nodeOf(name, over)),
    ),
  ),
);

/**
 * Anything that a Camera may contain, including unknown nodes, gaps between epochs, and handovers from nodes that do not exist.
 */
const camera = (name: string): fc.Arbitrary<PlannedCamera> =>
  fc
    .record({
      priority: fc.integer({ min: -1, max: 1 }),
      suspend: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
      failover: fc.constantFrom('Automatic' as const, 'Automatic' as const, 'Never' as const),
      nodeSelector: fc.constantFrom(...LABELS.slice(0, 2), {}, {}),
      preferredNode: fc.option(fc.constantFrom(...NODES, 'nobody'), { nil: undefined, freq: 2 }),
      wantsStandby: fc.constantFrom(true, true, false, undefined),
      standby: fc.option(
        fc.record({
          node: fc.option(fc.constantFrom(...NODES, 'nobody'), { nil: undefined }),
          epoch: fc.integer({ min: 1, max: 1_000 }),
        }),
        { nil: undefined },
      ),
      assignment: fc.option(
        fc.record({
          node: fc.option(fc.constantFrom(...NODES, 'nobody'), { nil: undefined }),
          previousNode: fc.option(fc.constantFrom(...NODES, 'nobody'), { nil: undefined }),
          epoch: fc.integer({ min: 1, max: 1_000 }),
          handover: fc.constantFrom(undefined, 'Pending' as const, 'Complete' as const),
          reason: fc.constantFrom('Scheduled', 'Drain', 'NodeUnavailable', 'SomethingNew'),
          lostNodes: fc.option(fc.subarray([...NODES, 'nobody'], { maxLength: 2 }), { nil: undefined, freq: 2 }),
        }),
        { nil: undefined },
      ),
      writing: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
      assignedForMs: fc.constantFrom(0, 4_000, 20_000, 700_000),
      missingForMs: fc.constantFrom(undefined, undefined, 0, 4_000, 20_000),
      wasTakenUp: fc.boolean(),
    })
    .map((over) => cameraOf(name, over));

const snapshots = fc
  .record({
    nodes,
    cameras: fc.integer({ min: 0, max: 14 }).chain((count) => fc.tuple(...names(count).map(camera))),
    maxCamerasPerNode: fc.integer({ min: 1, max: 6 }),
    maxConcurrentMoves: fc.integer({ min: 1, max: 4 }),
    membership: fc.constantFrom('Automatic' as const, 'Manual' as const),
    standby: fc.boolean(),
    majorityForMs: fc.constantFrom(1_000, 10_000, 1_000_000),
  })
  .map(({ nodes, cameras, majorityForMs, ...pool }) => snapshotOf(nodes, cameras, { pool, majorityForMs }));

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `c${String(i).padStart(2, '0')}`);

const hasMajority = ({ nodes, pool }: Snapshot): boolean => {
  const isAutomatic = pool.membership === 'Automatic';
  const isOfMost = (group: readonly PlannedNode[]): boolean => {
    // The API server is the third of two voters that the operator chose.
    const witnesses = group.length === 2 && isAutomatic ? 1 : 0;
    return 2 * group.filter(({ liveness }) => liveness.heard).length + witnesses > group.length;
  };
  const voters = nodes.filter(({ role }) => role === 'Voter');
  // Beside the first vote that the operator gave, the nodes that were ever heard decide.
  const heard = nodes.filter(({ role, liveness }) => role === 'Voter' || liveness.silentMs !== undefined);
  return isOfMost(voters) || (voters.length === 1 && isAutomatic && isOfMost(heard));
};

const camerasOf = ({ cameras }: Snapshot, node: string): readonly string[] =>
  cameras.filter(({ assignment }) => assignment?.node === node).map(({ name }) => name);

const loadOf = (snapshot: Snapshot, node: string): number => camerasOf(snapshot, node).length;

const isOpen = ({ liveness, drain, canRecord }: PlannedNode): boolean => liveness.heard && !drain && canRecord;

const suits = (camera: PlannedCamera, { labels }: PlannedNode): boolean =>
  Object.entries(camera.nodeSelector).every(([key, value]) => labels[key] === value);

const placementOf = ({ cameras }: Snapshot): readonly (readonly [string, string | undefined])[] =>
  cameras.map(({ name, assignment }) => [name, assignment?.node]);

/** Nothing is wrong with a node. */
const WELL = { drain: false, canRecord: true, hasRecorder: true, liveness: LIVE };

const changed = (snapshot: Snapshot, name: string, over: Partial<PlannedNode>): Snapshot => ({
  ...snapshot,
  nodes: snapshot.nodes.map((node) => (node.name === name ? { ...node, ...over } : node)),
});

/** Plans and applies the plans until nothing is left to do. */
function settle(snapshot: Snapshot, seen: (before: Snapshot, after: Snapshot) => void = () => {}): Snapshot {
  for (let round = 0; round < 200; round++) {
    const planned = plan(snapshot);
    // The first round also completes what was in progress.
    if (round > 0 && planned.writes.length === 0 && !planned.role) return snapshot;
    const after = carriedOut(snapshot, planned);
    seen(snapshot, after);
    snapshot = after;
  }
  throw new Error('there is always something to do');
}

test('a write names one camera, raises its epoch when the node changes, and goes to an open node that suits', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      const { writes } = plan(snapshot);
      const cameras = new Map(snapshot.cameras.map((camera) => [camera.name, camera]));
      assert.equal(new Set(writes.map(({ camera }) => camera)).size, writes.length);
      for (const { camera: name, assignment, fromEpoch, resourceVersion, urgent } of writes) {
        const camera = cameras.get(name)!;
        assert.equal(camera.writing, false);
        assert.equal(resourceVersion, camera.resourceVersion);
        assert.equal(fromEpoch, camera.assignment?.epoch ?? 0);
        if (assignment.node === undefined || assignment.node === camera.assignment?.node) {
          assert.equal(assignment.epoch, fromEpoch);
          continue;
        }
        assert.equal(assignment.epoch, fromEpoch + 1);
        assert.notEqual(assignment.previousNode, assignment.node);
        const target = snapshot.nodes.find(({ name }) => name === assignment.node)!;
        assert.ok(suits(camera, target));
        if (isOpen(target)) continue;
        // A drained node records what no other can.
        assert.ok(
          isOpen({ ...target, drain: false }) && !target.isRemoved && (urgent || assignment.reason === 'Scheduled'),
        );
        const open = snapshot.nodes.filter((node) => isOpen(node) && suits(camera, node));

        const after = carriedOut(snapshot, plan(snapshot));
        for (const { name } of open) {
          if (name === camera.assignment?.node) continue;
          const taken = new Set([...camerasOf(snapshot, name), ...camerasOf(after, name)]);
          assert.ok(taken.size >= snapshot.pool.maxCamerasPerNode, name);
        }
      }
    }),
    { numRuns: 3_000 },
  );
});

test('without a majority no camera gets a node', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      fc.pre(!hasMajority(snapshot));
      for (const { camera, assignment } of plan(snapshot).writes) {
        if (assignment.node === undefined) continue;
        const now = snapshot.cameras.find(({ name }) => name === camera)?.assignment;
        assert.deepEqual([assignment.node, assignment.epoch], [now?.node, now?.epoch]);
      }
    }),
    { numRuns: 3_000 },
  );
});

test('no plan fills a node beyond its limit', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      const after = carriedOut(snapshot, plan(snapshot));
      for (const { name } of after.nodes) {
        const before = loadOf(snapshot, name);
        assert.ok(loadOf(after, name) <= Math.max(before, snapshot.pool.maxCamerasPerNode), name);
      }
    }),
    { numRuns: 3_000 },
  );
});

const heldBy = ({ cameras }: Snapshot, node: string): number =>
  cameras.filter(({ standby }) => standby?.node === node).length;

const wants = ({ wantsStandby, suspend, failover }: PlannedCamera, { pool }: Snapshot): boolean =>
  (wantsStandby ?? pool.standby) && !suspend && failover === 'Automatic';

test('a standby is another node than the owner, open, suits, has capacity, and its epoch grows with each choice', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      const planned = plan(snapshot);
      const after = carriedOut(snapshot, planned);
      for (const { camera: name, standby, assignment } of planned.writes) {
        const camera = snapshot.cameras.find((one) => one.name === name)!;
        if (!standby) continue;
        if (standby.node === undefined) {
          assert.equal(standby.epoch, camera.standby?.epoch);
          continue;
        }
        assert.ok(standby.epoch > (camera.standby?.epoch ?? 0));
        assert.ok(hasMajority(snapshot) && wants(camera, snapshot));
        assert.notEqual(standby.node, assignment.node);
        const node = snapshot.nodes.find((one) => one.name === standby.node)!;
        assert.ok(isOpen(node) && suits(camera, node));
        assert.ok(loadOf(after, node.name) + heldBy(after, node.name) <= snapshot.pool.maxCamerasPerNode);
      }
    }),
    { numRuns: 3_000 },
  );
});

test('a camera whose standby can record it goes to no other node when its own is lost', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      for (const { camera: name, assignment, urgent } of plan(snapshot).writes) {
        const camera = snapshot.cameras.find((one) => one.name === name)!;
        const node = snapshot.nodes.find((one) => one.name === camera.standby?.node);
        if (!urgent || !node || !isOpen(node) || node.reluctant || !suits(camera, node)) continue;
        if (!wants(camera, snapshot) || node.name === camera.assignment?.node) continue;
        if (assignment.node === node.name) continue;
        // While nodes are chosen, a camera that the node gives up in the same plan still counts, beside those that it gets.
        const states = [snapshot, carriedOut(snapshot, plan(snapshot))];
        const counted = new Set(states.flatMap((state) => camerasOf(state, node.name)));
        assert.ok(counted.size >= snapshot.pool.maxCamerasPerNode);
      }
    }),
    { numRuns: 3_000 },
  );
});

test('at rest every camera that wants a standby has one where there is capacity, and no other camera has', () => {
  fc.assert(
    fc.property(snapshots, (start) => {
      const rest = settle(start);
      const { nodes, cameras, pool } = rest;
      for (const camera of cameras) {
        const { assignment, standby } = camera;
        const node = nodes.find(({ name }) => name === standby?.node);
        if (standby?.node !== undefined && assignment) {
          assert.ok(wants(camera, rest) && node && suits(camera, node), camera.name);
          assert.notEqual(standby.node, assignment.node);
          assert.ok(!node.drain && node.canRecord && node.liveness !== UNAVAILABLE, camera.name);
        } else if (wants(camera, rest) && hasMajority(rest) && assignment?.node !== undefined) {
          if (assignment.handover === 'Pending' || (assignment.lostNodes ?? []).length > 0) continue;
          const able = nodes.filter((node) => isOpen(node) && suits(camera, node) && node.name !== assignment.node);
          for (const { name } of able)
            assert.ok(loadOf(rest, name) + heldBy(rest, name) >= pool.maxCamerasPerNode, camera.name);
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

test('no plan starts more moves than there are slots', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      const { writes } = plan(snapshot);
      const moves = writes.filter(({ assignment }) => assignment.node && assignment.reason !== 'Scheduled');
      const now = new Map(snapshot.cameras.map(({ name, assignment }) => [name, assignment]));
      const heard = new Set(snapshot.nodes.flatMap(({ name, liveness }) => (liveness.heard ? [name] : [])));
      // A camera that is sent to another node than planned already has its slot.
      const hasSlot = (camera: string): boolean => {
        const { handover, node } = now.get(camera) ?? {};
        return handover === 'Pending' && node !== undefined && heard.has(node);
      };
      const started = moves.filter(
        ({ camera, assignment, urgent }) => now.get(camera)?.node !== assignment.node && (urgent || !hasSlot(camera)),
      );
      const { maxConcurrentMoves } = snapshot.pool;
      const takers = snapshot.nodes.filter(({ liveness }) => liveness.state === 'Live').length;
      assert.ok(started.filter(({ urgent }) => urgent).length <= maxConcurrentMoves * takers);
      assert.ok(started.filter(({ urgent }) => !urgent).length <= maxConcurrentMoves);
    }),
    { numRuns: 3_000 },
  );
});

test('from any state the plan comes to rest, with one owner an epoch, and every camera recorded where there is capacity', () => {
  fc.assert(
    fc.property(snapshots, (start) => {
      const owners = new Map<string, string | undefined>();
      const rest = settle(start, (_, { cameras }) => {
        for (const { name, assignment } of cameras) {
          if (assignment?.node === undefined) continue;
          const key = `${name}@${assignment.epoch}`;
          assert.equal(owners.get(key) ?? assignment.node, assignment.node, key);
          owners.set(key, assignment.node);
        }
      });
      const { nodes, cameras, pool } = rest;
      for (const camera of cameras) {
        const owner = nodes.find(({ name }) => name === camera.assignment?.node);
        if (camera.suspend) assert.equal(camera.assignment?.node, undefined);
        else if (owner && camera.assignment && isSuspect(camera.assignment)) continue;
        else if (hasMajority(rest) && (!owner || (owner.liveness === UNAVAILABLE && camera.failover !== 'Never'))) {
          const able = nodes.filter((node) => isOpen(node) && suits(camera, node));
          assert.ok(
            able.every(({ name }) => loadOf(rest, name) >= pool.maxCamerasPerNode),
            camera.name,
          );
        }
      }
      assert.deepEqual(plan(rest).writes, []);
    }),
    { numRuns: 2_000 },
  );
});

test('the plan does not depend on the order of what it is shown', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      const reversed = { ...snapshot, nodes: snapshot.nodes.toReversed(), cameras: snapshot.cameras.toReversed() };
      assert.deepEqual(new Set(plan(reversed).writes), new Set(plan(snapshot).writes));
    }),
    { numRuns: 1_000 },
  );
});

test('the loss of one node moves its own cameras and no others', () => {
  const world = fc.record({
    cameras: fc.integer({ min: 1, max: 40 }),
    nodes: fc.integer({ min: 3, max: 7 }),
    lost: fc.nat(),
    wantsStandby: fc.boolean(),
  });
  fc.assert(
    fc.property(world, ({ cameras, nodes, lost, wantsStandby }) => {
      const all = Array.from({ length: nodes }, (_, i) => nodeOf(`n${i}`));
      const settled = settle(
        snapshotOf(
          all,
          names(cameras).map((name) => cameraOf(name, { wantsStandby })),
        ),
      );
      const dead = `n${lost % nodes}`;
      const hit: Snapshot = {
        ...settled,
        nodes: settled.nodes.map((node) => (node.name === dead ? { ...node, liveness: UNAVAILABLE } : node)),
      };
      const after = settle(hit);
      for (const [index, camera] of after.cameras.entries()) {
        const { assignment: before, standby } = settled.cameras[index] ?? {};
        if (before?.node !== dead) assert.deepEqual(camera.assignment, before);
        else if (wantsStandby) assert.equal(camera.assignment?.node, standby?.node ?? 'none');
        else assert.notEqual(camera.assignment?.node, dead);
        if (standby?.node === dead) assert.notEqual(camera.standby?.node, dead);
      }
      const returned = settle({ ...after, nodes: after.nodes.map((node) => ({ ...node, liveness: LIVE })) });
      assert.deepEqual(
        placementOf(returned),
        placementOf(settled),
        'a returned node gets its own cameras, and no others',
      );
    }),
    { numRuns: 300 },
  );
});

test('any history of drains, losses and full disks ends in the placement of its beginning', () => {
  const trouble = fc.record({
    node: fc.nat(),
    over: fc.constantFrom(
      { drain: true },
      { liveness: UNAVAILABLE },
      { canRecord: false },
      { hasRecorder: false, liveness: UNAVAILABLE },
    ),
    /** How many plans are carried out before the next one begins. */
    rounds: fc.integer({ min: 0, max: 6 }),
    ends: fc.boolean(),
  });
  const world = fc.record({
    cameras: fc.integer({ min: 1, max: 12 }),
    nodes: fc.integer({ min: 2, max: 5 }),
    standby: fc.boolean(),
    prefers: fc.boolean(),
    history: fc.array(trouble, { minLength: 1, maxLength: 8 }),
  });
  fc.assert(
    fc.property(world, ({ cameras, nodes, standby, prefers, history }) => {
      const all = Array.from({ length: nodes }, (_, i) => nodeOf(`n${i}`));
      const fond = (i: number): Partial<PlannedCamera> =>
        prefers && i % 3 === 0 ? { preferredNode: `n${i % nodes}` } : {};
      const start = settle(
        snapshotOf(
          all,
          names(cameras).map((name, i) => cameraOf(name, fond(i))),
          { pool: { standby, membership: 'Automatic' } },
        ),
      );
      let world = start;
      for (const { node, over, rounds, ends } of history) {
        const name = `n${node % nodes}`;
        world = changed(world, name, over);
        for (let round = 0; round < rounds; round++) world = carriedOut(world, plan(world));
        if (ends) world = changed(world, name, WELL);
      }
      for (const { name } of all) world = changed(world, name, WELL);
      assert.deepEqual(placementOf(settle(world)), placementOf(start));
    }),
    { numRuns: 1_000 },
  );
});

test('roles change one at a time and never lose the majority', () => {
  fc.assert(
    fc.property(snapshots, (snapshot) => {
      const { role } = plan(snapshot);
      if (!role) return;
      assert.equal(snapshot.pool.membership, 'Automatic');
      assert.ok(hasMajority(carriedOut(snapshot, plan(snapshot))));
    }),
    { numRuns: 3_000 },
  );
});
