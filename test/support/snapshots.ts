// Snapshots for tests of the planner, and an ideal world in which plans are carried out.

import type {
  Assignment,
  AssignmentWrite,
  CameraReport,
  Liveness,
  Plan,
  PlannedCamera,
  PlannedNode,
  PoolView,
  Snapshot,
} from '../../operator/plan/snapshot.ts';

const LONG_AGO_MS = 3_600_000;

export const LIVE: Liveness = { state: 'Live', heard: true, silentMs: 500, liveForMs: LONG_AGO_MS, renewMs: 2_000 };
/** Live, but three renewals are missing. */
export const QUIET: Liveness = { state: 'Live', heard: false, silentMs: 9_000, liveForMs: LONG_AGO_MS, renewMs: 2_000 };
export const UNKNOWN: Liveness = { state: 'Unknown', heard: false, silentMs: undefined, liveForMs: 0, renewMs: 2_000 };
export const UNAVAILABLE: Liveness = {
  state: 'Unavailable',
  heard: false,
  silentMs: 16_000,
  liveForMs: 0,
  renewMs: 2_000,
};

export const poolOf = (over: Partial<PoolView> = {}): PoolView => ({
  name: 'default',
  maxCamerasPerNode: 100,
  maxConcurrentMoves: 8,
  unavailableAfterMs: 15_000,
  renewMs: 2_000,
  failbackAfterMs: 600_000,
  membership: 'Manual',
  standby: false,
  ...over,
});

export const nodeOf = (name: string, over: Partial<PlannedNode> = {}): PlannedNode => ({
  name,
  resourceVersion: '1',
  labels: {},
  role: 'Voter',
  drain: false,
  isRemoved: false,
  canRecord: true,
  hasRecorder: true,
  hasReported: true,
  cameras: new Map(),
  liveness: LIVE,
  reluctant: false,
  ...over,
});

export const cameraOf = (name: string, over: Partial<PlannedCamera> = {}): PlannedCamera => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  suspend: false,
  priority: 0,
  nodeSelector: {},
  failover: 'Automatic',
  writing: false,
  assignedForMs: LONG_AGO_MS,
  missingForMs: undefined,
  wasTakenUp: true,
  loginForMs: LONG_AGO_MS,
  ...over,
});

/** A camera that is recorded by its node. */
export const recordedBy = (name: string, node: string, over: Partial<PlannedCamera> = {}): PlannedCamera =>
  cameraOf(name, { assignment: { node, epoch: 1, handover: 'Complete', reason: 'Scheduled' }, ...over });

/** A world in which live nodes report the cameras they were given; `over` changes it. */
export const snapshotOf = (
  nodes: readonly PlannedNode[],
  cameras: readonly PlannedCamera[],
  over: Partial<Omit<Snapshot, 'pool'>> & { readonly pool?: Partial<PoolView> } = {},
): Snapshot => ({
  nodes: nodes.map((node) => ({ ...node, cameras: new Map([...reportsOf(node, cameras), ...node.cameras]) })),
  cameras,
  majorityForMs: LONG_AGO_MS,
  changingRoles: false,
  dropsStandbys: false,
  ...over,
  pool: poolOf(over.pool),
});

/** The world after everything planned has been done, taken up and recorded, and much time has passed. */
export function carriedOut(snapshot: Snapshot, { writes, role }: Plan): Snapshot {
  const byCamera = new Map(writes.map((write) => [write.camera, write]));
  const alive = new Set(snapshot.nodes.filter(isAlive).map(({ name }) => name));
  const cameras = snapshot.cameras.map((camera) => {
    const write = byCamera.get(camera.name);
    const assignment = written(camera, write);
    // What a node reported before it died is still there.
    const reported = snapshot.nodes.find(({ name }) => name === assignment?.node)?.cameras.get(camera.name);
    const isTakenUp =
      alive.has(assignment?.node ?? '') || (reported !== undefined && reported.epoch === assignment?.epoch);
    return {
      ...camera,
      assignment,
      standby: write?.standby ?? camera.standby,
      writing: false,
      assignedForMs: LONG_AGO_MS,
      wasTakenUp: isTakenUp,
      missingForMs: assignment?.node === undefined || isTakenUp ? undefined : LONG_AGO_MS,
    };
  });
  return {
    ...snapshot,
    cameras,
    majorityForMs: LONG_AGO_MS,
    changingRoles: false,
    dropsStandbys: false,
    nodes: snapshot.nodes.map((node) => ({
      ...node,
      role: role?.node === node.name ? role.role : node.role,
      cameras: new Map(isAlive(node) ? reportsOf(node, cameras) : node.cameras),
    })),
  };
}

const isAlive = ({ liveness }: PlannedNode): boolean => liveness.state === 'Live';

function written(camera: PlannedCamera, write: AssignmentWrite | undefined): Assignment | undefined {
  return write ? write.assignment : camera.assignment;
}

function reportsOf(node: PlannedNode, cameras: readonly PlannedCamera[]): [string, CameraReport][] {
  return cameras.flatMap(({ name, assignment, missingForMs }) =>
    assignment?.node === node.name && missingForMs === undefined
      ? [[name, { epoch: assignment.epoch, state: 'Recording' }]]
      : [],
  );
}
