// Computes the status of a Camera that the operator applies: conditions and the nodes that hold its footage. Pure.

import { MAX_ARCHIVES, type Camera } from '../../crds/camera.ts';
import { CAMERA_HOSTS } from '../../crds/names.ts';
import type { ReportedCamera } from '../../crds/recorder-node.ts';
import { mergeConditions, unknownConditions, type StatedCondition, type Transition } from '../kube/conditions.ts';
import type { Reports } from '../observe/views.ts';
import type { PlannedCondition } from '../plan/snapshot.ts';
import { isPinned, type LoginSecret } from './camera-logins.ts';
import { placementOf, type NodeLabels } from './placement-status.ts';
import { standbyOf } from './standby-status.ts';
import { HOUR_MS } from '../../base/units.ts';

interface CameraFacts {
  readonly camera: Camera;
  /** From the plan; undefined before the first one. */
  readonly assigned: PlannedCondition | undefined;
  /** The same; undefined if it wants no standby. */
  readonly standby?: PlannedCondition | undefined;
  /** The nodes that the plan was made for; undefined before the first one. */
  readonly labels: NodeLabels | undefined;
  /** What the nodes of the camera's pool report, by node name. */
  readonly nodes: ReadonlyMap<string, Reports>;
  /** Whether the node records for any pool of the namespace. */
  readonly hasNode: (node: string) => boolean;
  /** Whether a node is Live. */
  readonly isLive: (node: string) => boolean;
  readonly hasPool: boolean;
  /** What is known of its Secret. */
  readonly secret: LoginSecret | undefined;
  readonly nowMs: number;
}

export interface ShownStatus {
  /** The fields that the operator applies; the assignment is written separately. */
  readonly status: Readonly<Record<string, unknown>>;
  readonly isChanged: boolean;
  readonly transitions: readonly Transition[];
}

type Archive = NonNullable<NonNullable<Camera['status']>['archives']>[number];

const TYPES = ['Assigned', 'CredentialsResolved', 'PlacementMet', 'Ready', 'Recording'];
/** Types of conditions that cannot be determined for a camera without a pool. */
const UNKNOWN_WITHOUT_POOL: ReadonlySet<string> = new Set(['CredentialsResolved', 'PlacementMet']);
const NO_CREDENTIALS = 'NoCredentials';
/** The recorder has not read the Secret yet. */
const LOGIN_UNREAD = 'LoginUnread';

export function statusOfCamera(facts: CameraFacts): ShownStatus {
  const { camera, nowMs } = facts;
  const { generation } = camera.metadata;
  const before = camera.status?.conditions ?? [];
  const { conditions, transitions } = mergeConditions(before, conditionsOf(facts), generation, new Date(nowMs));
  const archives = archivesOf(facts);
  const isChanged =
    conditions !== before ||
    camera.status?.observedGeneration !== generation ||
    JSON.stringify(camera.status?.archives ?? []) !== JSON.stringify(archives);
  return { status: { observedGeneration: generation, conditions, archives }, isChanged, transitions };
}

function conditionsOf({
  camera,
  assigned,
  standby,
  labels,
  nodes,
  isLive,
  hasPool,
  secret,
}: CameraFacts): readonly StatedCondition[] {
  if (!hasPool) {
    const missing = state(false, 'NoPool', `there is no RecorderPool ${camera.spec.poolRef.name}`);
    const known = TYPES.map((type) => ({
      type,
      ...missing,
      ...(UNKNOWN_WITHOUT_POOL.has(type) && { status: 'Unknown' as const }),
    }));
    return [...known, ...progressOf(missing)];
  }
  if (!assigned || !labels) return unknownConditions(TYPES);
  const { assignment } = camera.status ?? {};
  const reportOf = (node: string | undefined): ReportedCamera | undefined =>
    nodes.get(node ?? '')?.cameras.get(camera.metadata.name);
  const { node, previousNode, handover } = assignment ?? {};
  const report = reportOf(node);
  // Until the new node has a key frame, the old one continues to record.
  const giver = handover === 'Pending' && report?.state !== 'Recording' ? previousNode : undefined;
  const given = giver !== undefined && isLive(giver) ? reportOf(giver) : undefined;
  const isGiven = given?.state === 'Recording';
  const recording = isGiven
    ? state(true, 'Recording', `written to a disk of ${giver} until ${node} has written a picture`)
    : recordingOf(camera, report, node !== undefined && isLive(node));
  const credentials = credentialsOf(camera, secret, isGiven ? given : report);
  const ready = [assigned, credentials, recording].find(({ status }) => status !== 'True');
  return [
    { type: 'Assigned', status: assigned.status, reason: assigned.reason, message: assigned.message },
    { type: 'CredentialsResolved', ...credentials },
    placementOf(camera, labels),
    { type: 'Recording', ...recording },
    ...standbyOf({ camera, planned: standby, nodes, isLive, isRecorded: recording.status === 'True' }),
    {
      type: 'Ready',
      status: ready?.status ?? 'True',
      reason: ready?.reason ?? 'Recording',
      message: ready?.message ?? '',
    },
    ...progressOf(ready),
  ];
}

/**
 * Reasons for which a camera is not recorded until a person changes the Camera, its Secret, its pool or the camera
 * itself.
 */
const STALLED: ReadonlySet<string> = new Set([
  'AddressRefused',
  'BitrateExceeded',
  'Encrypted',
  'InvalidCamera',
  'LicenseExceeded',
  'LoginDowngraded',
  'NoCredentials',
  'NoEligibleNode',
  'NoHosts',
  'NoPool',
  'NoRoom',
  'NoVideo',
  'NotFound',
  'RefusedLogin',
  'SecretGone',
  'TransportRefused',
  'TwoNodesLost',
  'UnsupportedParameters',
]);
/** Reasons of a camera on its way to be recorded. */
const RECONCILING: ReadonlySet<string> = new Set(['Connecting', 'LoginUnread', 'NotReported', 'NotTakenUp', 'Waiting']);

/**
 * The conditions that tools evaluate to wait for resources (kstatus, in Flux, Argo CD and kpt). Absent for a camera
 * that is recorded, and for one that cannot be reached or is suspended: nothing is in progress, and the Camera need not
 * be changed.
 */
function progressOf(problem: State | undefined): readonly StatedCondition[] {
  if (!problem) return [];
  const { reason, message } = problem;
  if (STALLED.has(reason)) return [{ type: 'Stalled', status: 'True', reason, message }];
  return RECONCILING.has(reason) ? [{ type: 'Reconciling', status: 'True', reason, message }] : [];
}

type State = Omit<StatedCondition, 'type'>;

const state = (status: boolean | undefined, reason: string, message: string): State => ({
  status: status === undefined ? 'Unknown' : status ? 'True' : 'False',
  reason,
  message,
});

/** Why the camera should not be recorded; undefined if it should. */
function suspensionOf({ spec, status }: Camera): string | undefined {
  const { override } = status ?? {};
  if (override?.suspend !== true) return spec.suspend && !override ? 'spec.suspend is true' : undefined;
  const who = override.by === undefined ? '' : ` by ${override.by}`;
  return `stopped through the API${who} at ${override.time}, asked at ${override.node}`;
}

function recordingOf(camera: Camera, report: ReportedCamera | undefined, isLive: boolean): State {
  const { assignment } = camera.status ?? {};
  const suspension = suspensionOf(camera);
  if (suspension !== undefined) return state(false, 'Suspended', suspension);
  if (assignment?.node === undefined) return state(false, 'NotAssigned', 'no node records the camera');
  if (!isLive) return state(undefined, 'NodeUnavailable', `${assignment.node} has not renewed its Lease lately`);
  if (report?.epoch !== assignment.epoch) {
    return state(false, 'NotTakenUp', `${assignment.node} has not reported the camera yet`);
  }
  if (report.state === 'Recording') return state(true, 'Recording', `written to a disk of ${assignment.node}`);
  return state(false, report.reason ?? String(report.state), report.message ?? `${assignment.node} does not record it`);
}

function credentialsOf(camera: Camera, known: LoginSecret | undefined, report: ReportedCamera | undefined): State {
  const { spec, status } = camera;
  if (!spec.credentialsSecretRef) return state(true, 'NotNeeded', 'the camera has no login');
  const secret = `Secret ${spec.credentialsSecretRef.name}`;
  const missing = `it has no annotation ${CAMERA_HOSTS} that says for which hosts`;
  if (known === 'NamesNone' && !isPinned(camera)) {
    return state(false, 'NoHosts', `${secret} is not read as the login of a camera: ${missing}`);
  }
  if (known === 'Missing') {
    const gone = `${secret} does not exist, or the operator may not read it`;
    const isKept = report !== undefined && ![NO_CREDENTIALS, LOGIN_UNREAD].includes(report.reason ?? '');
    return isKept
      ? state(
          false,
          'SecretGone',
          `${gone}: the camera is recorded with the login that was read before, on no other node`,
        )
      : state(false, NO_CREDENTIALS, gone);
  }
  if (!report || report.reason === LOGIN_UNREAD) {
    return state(undefined, 'NotReported', report?.message ?? 'no node has reported the login yet');
  }
  if (report.reason === NO_CREDENTIALS) return state(false, NO_CREDENTIALS, report.message ?? '');
  if (known !== 'NamesNone') return state(true, 'Found', secret);
  return state(
    true,
    'FoundWithoutHosts',
    `${secret} is used for ${status?.login?.hosts.join(', ')} as before: ${missing}`,
  );
}

/** A time in the status is not updated for a smaller difference: thousands of cameras would cause writes all day. */
const COARSE_MS = 6 * HOUR_MS;

/**
 * Footage stays where it was recorded, so what is known of an unreachable node is kept until its RecorderNode is gone,
 * because then the footage cannot be requested any more. If the node comes back, it reports its footage again.
 */
function archivesOf({ camera, nodes, hasNode, hasPool }: CameraFacts): readonly Archive[] {
  const shown = camera.status?.archives ?? [];
  // Without a pool, the nodes are about to be deleted with it, and may come back with it.
  const kept = hasPool ? shown.filter(({ node }) => hasNode(node)) : shown;
  const known = new Map(kept.map((archive) => [archive.node, archive]));
  const owner = camera.status?.assignment?.node;
  for (const [node, { isTold, archives }] of nodes) {
    // If a node has reported and lists no archives, it holds no footage: server-side apply drops a list that became empty.
    if (!isTold) continue;
    const archive = archives.get(camera.metadata.name);
    const before = known.get(node);
    if (!archive) {
      known.delete(node);
      continue;
    }
    const oldestTime = coarse(before?.oldestTime, archive.oldestTime);
    // On the node that records the camera, the newest footage is always current.
    const newestTime = node === owner ? undefined : coarse(before?.newestTime, archive.newestTime);
    known.set(node, {
      node,
      ...(oldestTime !== undefined && { oldestTime }),
      ...(newestTime !== undefined && { newestTime }),
    });
  }
  const held = [...known.values()];
  const listed = held.length > MAX_ARCHIVES ? newest(held, owner).slice(0, MAX_ARCHIVES) : held;
  return listed.sort((a, b) => (a.node < b.node ? -1 : 1));
}

/** The node that records the camera comes first. */
function newest(archives: readonly Archive[], owner: string | undefined): Archive[] {
  const timeOf = ({ node, newestTime = '' }: Archive): string => (node === owner ? 'now' : newestTime);
  return archives.toSorted((a, b) => (timeOf(a) === timeOf(b) ? 0 : timeOf(a) > timeOf(b) ? -1 : 1));
}

const coarse = (before: string | undefined, now: string | undefined): string | undefined =>
  before !== undefined && now !== undefined && Math.abs(Date.parse(now) - Date.parse(before)) < COARSE_MS
    ? before
    : now;
