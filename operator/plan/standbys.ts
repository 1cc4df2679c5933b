// Chooses the standbys: for each camera that wants one, another node that holds its last seconds in memory and takes it over when
// its node is lost (docs/design/standby.md). A standby occupies the place of a camera, but gives it up to one that is recorded. Pure.

import { condition, urgentFirst } from './parts.ts';
import type { Context } from './needs.ts';
import { matches } from './node-loads.ts';
import type {
  Assignment,
  AssignmentWrite,
  PlannedCamera,
  PlannedCondition,
  PlannedNode,
  Snapshot,
  Standby,
} from './snapshot.ts';

/** The most writes of one plan that change only a standby: cameras without a recorder must not wait for many such writes. */
const MAX_WRITES = 16;

interface Standbys {
  readonly writes: readonly AssignmentWrite[];
  /** The condition `Standby` of each camera that wants one. */
  readonly conditions: ReadonlyMap<string, PlannedCondition>;
}

const wantsStandby = ({ wantsStandby: own, suspend }: PlannedCamera, { pool }: Snapshot): boolean =>
  (own ?? pool.standby) && !suspend;

/** The standby that gets the camera if it has to move: it has the pictures from before the loss. */
export function successorOf(camera: PlannedCamera, { snapshot, nodes, nodeLoads }: Context): string | undefined {
  const node = nodes.get(camera.standby?.node ?? '');
  if (!node || node.reluctant || node.name === camera.assignment?.node) return undefined;
  return wantsStandby(camera, snapshot) && nodeLoads.isOpen(node.name, camera) ? node.name : undefined;
}

/** Adds the standbys to `writes`, which assign the cameras; `cameras` by priority. */
export function planStandbys(
  cameras: readonly PlannedCamera[],
  writes: readonly AssignmentWrite[],
  context: Context,
  mayChoose: boolean,
): Standbys {
  const planned = new Map(writes.map((write) => [write.camera, write]));
  const { nodeLoads, nodes, snapshot } = context;
  const conditions = new Map<string, PlannedCondition>();
  // Each write changes the resourceVersion, and cameras that no node records must not wait for that.
  let left = writes.some(({ urgent }) => urgent) ? 0 : MAX_WRITES;
  const set = (camera: PlannedCamera, standby: Standby): boolean => {
    const { name, uid, resourceVersion, assignment, writing } = camera;
    const write = planned.get(name);
    if (write) planned.set(name, { ...write, standby });
    else if (!assignment || writing || left-- <= 0) return false;
    else {
      const { epoch: fromEpoch } = assignment;
      const note = { camera: name, uid, resourceVersion, fromEpoch, assignment, isNote: true, urgent: false };
      planned.set(name, { ...note, standby });
    }
    return true;
  };
  const assignmentOf = ({ name, assignment }: PlannedCamera): Assignment | undefined =>
    planned.get(name)?.assignment ?? assignment;

  nodeLoads.forgetHeld();
  const without: PlannedCamera[] = [];
  // Existing standbys come first, so that new ones do not displace them.
  for (const camera of cameras) {
    const { standby, writing } = camera;
    const { node } = standby ?? {};
    const isKept =
      node !== undefined && (writing || (mayKeep(camera, assignmentOf(camera), context) && nodeLoads.canHold(node)));
    if (node !== undefined && (isKept || !set(camera, { epoch: standby?.epoch ?? 1 }))) {
      nodeLoads.hold(node);
      const process = processOf(camera, assignmentOf(camera), context);
      if (standby && process !== undefined && process !== standby.process) set(camera, { ...standby, process });
      if (wantsStandby(camera, snapshot)) conditions.set(camera.name, chosen(node));
    } else if (wantsStandby(camera, snapshot)) without.push(camera);
  }
  for (const camera of without) {
    const assignment = assignmentOf(camera);
    const owner = assignment?.node ?? '';
    const refusal = snapshot.dropsStandbys ? DROPPED : refusalOf(camera, assignment, mayChoose);
    const node = refusal ? undefined : nodeLoads.bestStandby(camera, owner);
    if (node === undefined) conditions.set(camera.name, refusal ?? lackOf(camera, assignment, nodes));
    else if (set(camera, { node, epoch: (camera.standby?.epoch ?? 0) + 1, process: nodes.get(owner)?.process })) {
      nodeLoads.hold(node);
      conditions.set(camera.name, chosen(node));
    } else conditions.set(camera.name, WAITING);
  }
  return { writes: urgentFirst([...planned.values()]), conditions };
}

/** The process that records the camera; undefined while that is not certain. A standby writes what is missing when it changes. */
function processOf(camera: PlannedCamera, assignment: Assignment | undefined, context: Context): string | undefined {
  const owner = context.nodes.get(assignment?.node ?? '');
  const isCertain = owner?.liveness.heard === true && assignment?.handover !== 'Pending' && !camera.writing;
  return isCertain ? owner.process : undefined;
}

const chosen = (node: string): PlannedCondition => condition('Standby', 'True', 'Chosen', `node ${node} is to hold it`);

const WAITING = condition('Standby', 'False', 'Waiting', 'gets a standby once its node records it');

const DROPPED = condition(
  'Standby',
  'False',
  'KindOutdated',
  'the kind Camera of this cluster has no status.standby: apply the kinds of the version of the operator',
);

function mayKeep(camera: PlannedCamera, assignment: Assignment | undefined, context: Context): boolean {
  const node = context.nodes.get(camera.standby?.node ?? '');
  if (!node || !wantsStandby(camera, context.snapshot) || camera.failover === 'Never') return false;
  return node.name !== assignment?.node && mayHold(camera, node) && node.liveness.state !== 'Unavailable';
}

const mayHold = (camera: PlannedCamera, node: PlannedNode): boolean =>
  !node.drain && node.canRecord && matches(camera, node);

/** Why no standby is chosen now, whatever the nodes. */
function refusalOf(
  camera: PlannedCamera,
  assignment: Assignment | undefined,
  mayChoose: boolean,
): PlannedCondition | undefined {
  const no = (reason: string, message: string): PlannedCondition => condition('Standby', 'False', reason, message);
  if (camera.failover === 'Never')
    return no('FailoverNever', 'placement.failover is Never: it is recorded by no other node');
  if (assignment?.node === undefined || assignment.handover === 'Pending' || camera.writing) return WAITING;
  // If the camera made its recorder fail, a standby would fail, too.
  const { lostNodes = [] } = assignment;
  if (lostNodes.length > 0) {
    const lost = lostNodes.join(' and ');
    return no(
      'NodeLost',
      `gets a standby when it has been recorded for an hour since the recorder of ${lost} became silent`,
    );
  }
  return mayChoose ? undefined : no('NoMajority', 'waits until more than half of the voters are heard');
}

function lackOf(
  camera: PlannedCamera,
  assignment: Assignment | undefined,
  nodes: ReadonlyMap<string, PlannedNode>,
): PlannedCondition {
  const candidates = [...nodes.values()].filter(
    (node) => node.name !== assignment?.node && node.liveness.heard && mayHold(camera, node),
  );
  return candidates.length > 0
    ? condition('Standby', 'False', 'NoRoom', 'every other node that could record it has reached its limit of cameras')
    : condition('Standby', 'False', 'NoEligibleNode', 'no other live node of the pool may record it');
}
