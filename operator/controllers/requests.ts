// Carries out the requests in the status of RecorderNodes and writes the responses into their spec. A recorder may only request
// changes of its own cameras, and only the leading node those of the membership, which limits what a stolen token of a node can
// do. Where no node can lead, any live member may request what gives the pool a leader again: removing nodes that are gone, and the
// first vote.

import { isSuspended } from '../../crds/camera.ts';
import { memberOf, type RecorderNode, type RecorderRequest, type RecorderResponse } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { isConflict, isNotFound, type KubeApi } from '../kube/api.ts';
import { CAMERA, RECORDER_NODE } from '../kube/resources.ts';
import type { Caches } from '../observe/caches.ts';
import { votersOf } from '../plan/voters.ts';

interface RequestsOptions {
  readonly api: KubeApi;
  readonly caches: Caches;
  /** Whether a node is Live. */
  readonly isLive: (pool: RecorderPool, node: string) => boolean;
}

interface RequestOutcome {
  readonly code: number;
  readonly message: string;
}

const ok = (message: string): RequestOutcome => ({ code: 200, message });
const refused = (code: number, message: string): RequestOutcome => ({ code, message });

/** Carries out the requests of one node and writes the responses. Throws ApiError; call it again then. */
export async function answerRequests(node: RecorderNode, options: RequestsOptions): Promise<void> {
  const { api, caches } = options;
  const requests = node.status?.requests ?? [];
  const answered = (node.spec.responses ?? []).filter(({ id }) => requests.some((request) => request.id === id));
  const open = requests.filter(({ id }) => !answered.some((response) => response.id === id));
  const isTidy = answered.length === (node.spec.responses ?? []).length;
  if (open.length === 0 && isTidy) return;
  const { namespace, name } = node.metadata;
  const pool = caches.pools.get(`${namespace}/${node.spec.poolRef.name}`);
  const responses: RecorderResponse[] = [...answered];
  for (const request of open) {
    const { code, message } = pool
      ? await carryOut(request, node, pool, options)
      : refused(503, `there is no RecorderPool ${node.spec.poolRef.name}`);
    responses.push({ id: request.id, code, message: message.slice(0, 1024) });
  }
  await api.mergePatch(RECORDER_NODE, { namespace, name }, { spec: { responses } });
}

function carryOut(
  request: RecorderRequest,
  node: RecorderNode,
  pool: RecorderPool,
  options: RequestsOptions,
): Promise<RequestOutcome> {
  const me = node.metadata.name;
  switch (request.kind) {
    case 'Suspend':
      return suspend(request, node, options);
    case 'Leave':
      return remove(me, pool, { ...options, force: request.force ?? false, asked: 'Leave' });
    case 'AddLearner':
    case 'ChangeMembership':
    case 'RemoveNode':
      if (pool.status?.leader !== me) {
        const refusal = refusalWithoutLeader(request, node, pool, options);
        if (refusal) return Promise.resolve(refusal);
      }
      if (request.kind === 'AddLearner') return addLearner(request.nodeID ?? '', pool, options);
      if (request.kind === 'ChangeMembership') return changeMembership(request.voters ?? [], pool, options);
      return remove(request.nodeID ?? '', pool, { ...options, force: request.force ?? false, asked: 'RemoveNode' });
    default:
      return Promise.resolve(refused(400, `the request ${String(request.kind)} is unknown`));
  }
}

/** Why a node that does not lead may not request a change of the membership; undefined: it may. */
function refusalWithoutLeader(
  { kind, nodeID, force }: RecorderRequest,
  { metadata: { name: me }, spec }: RecorderNode,
  pool: RecorderPool,
  { caches, isLive }: RequestsOptions,
): RequestOutcome | undefined {
  if (pool.status?.leader !== undefined) return refused(503, `the leader is not ${me}`);
  if (spec.role === 'Removed' || !isLive(pool, me)) return refused(503, `${me} is no live member of the cluster`);
  if (kind === 'RemoveNode' && force === true) {
    if (!isLive(pool, nodeID ?? '')) return undefined;
    return refused(409, `${nodeID} is live: without a majority only nodes that are gone can be removed`);
  }
  const hasVoters = caches.nodesOf(pool).some((one) => one.spec.role === 'Voter');
  if (hasVoters) return refused(503, 'the cluster has no majority: remove nodes that will not come back, with force');
  return kind === 'ChangeMembership'
    ? undefined
    : refused(503, 'no node has a vote: change-membership gives the first');
}

/** Notes the choice in the status: `spec` belongs to the manifest of the camera, which may be applied again at any time. */
async function suspend(
  { camera: name = '', suspend = false, time, by }: RecorderRequest,
  node: RecorderNode,
  { api, caches }: RequestsOptions,
): Promise<RequestOutcome> {
  const { namespace } = node.metadata;
  const camera = caches.cameras.get(`${namespace}/${name}`);
  const { assignment } = camera?.status ?? {};
  const holder = assignment?.node ?? assignment?.previousNode;
  if (!camera || holder !== node.metadata.name) return refused(404, `${name} is not a camera of ${node.metadata.name}`);
  if (isSuspended(camera) === suspend) return ok('nothing to do');
  const chosen = { suspend, time, node: node.metadata.name, by: by ?? null };
  const override = suspend === camera.spec.suspend ? null : chosen;
  try {
    await api.mergePatch(
      CAMERA,
      { namespace, name },
      { metadata: { uid: camera.metadata.uid }, status: { override } },
      { subresource: 'status' },
    );
  } catch (err) {
    if (isNotFound(err) || isConflict(err)) return refused(404, `${name} is gone`);
    throw err;
  }
  return ok(suspend ? 'suspended' : 'no longer suspended');
}

async function addLearner(
  nodeId: string,
  pool: RecorderPool,
  { api, caches }: RequestsOptions,
): Promise<RequestOutcome> {
  const node = caches.nodesOf(pool).find(({ metadata }) => metadata.name === nodeId);
  if (!node) return refused(404, `${nodeId} is no node of the pool ${pool.metadata.name}`);
  if (node.spec.role !== 'Removed') return ok(`${nodeId} is already a member`);
  await setRole(api, node, 'Learner');
  return ok(`${nodeId} is a learner`);
}

/**
 * Changes one vote at a time, and only if the new voters have a live majority. In Automatic pools, only what the operator would do, too: a
 * person who follows a procedure may be a moment earlier.
 */
async function changeMembership(
  voters: readonly string[],
  pool: RecorderPool,
  { api, caches, isLive }: RequestsOptions,
): Promise<RequestOutcome> {
  const nodes = caches.nodesOf(pool);
  const members = nodes.filter(({ spec }) => spec.role !== 'Removed');
  const strangers = voters.filter((voter) => !members.some(({ metadata }) => metadata.name === voter));
  if (strangers.length > 0) return refused(404, `not members of the cluster: ${strangers.join(', ')}`);
  const promoted = members.filter(({ metadata, spec }) => spec.role !== 'Voter' && voters.includes(metadata.name));
  const demoted = members.filter(({ metadata, spec }) => spec.role === 'Voter' && !voters.includes(metadata.name));
  if (promoted.length + demoted.length === 0) return ok('nothing to do');
  const isWanted = demoted.length === 0 && voters.length <= votersOf(members.length);
  if (pool.spec.membership.mode === 'Automatic' && !isWanted) {
    return refused(409, 'spec.membership.mode of the RecorderPool is Automatic: the operator chooses the voters');
  }
  if (promoted.length + demoted.length > 1) return refused(409, 'only one node at a time may get or lose its vote');
  const live = voters.filter((voter) => isLive(pool, voter)).length;
  if (live * 2 <= voters.length) {
    return refused(409, `only ${live} of these ${voters.length} voters are live: that is no majority`);
  }
  for (const node of promoted) await setRole(api, node, 'Voter');
  for (const node of demoted) await setRole(api, node, 'Learner');
  return ok(`voters: ${voters.join(', ')}`);
}

async function remove(
  nodeId: string,
  pool: RecorderPool,
  { api, caches, isLive, force, asked }: RequestsOptions & { force: boolean; asked: 'Leave' | 'RemoveNode' },
): Promise<RequestOutcome> {
  const nodes = caches.nodesOf(pool);
  const node = nodes.find(({ metadata }) => metadata.name === nodeId);
  if (!node) return refused(404, `${nodeId} is no node of the pool ${pool.metadata.name}`);
  if (node.spec.role === 'Removed') return ok(`${nodeId} is not a member`);
  if (asked === 'RemoveNode' && !force && isLive(pool, nodeId)) {
    return refused(409, `${nodeId} is live: let it leave, or set force`);
  }
  const rest = nodes.filter(({ metadata, spec }) => metadata.name !== nodeId && spec.role === 'Voter');
  const live = rest.filter((one) => isLive(pool, one.metadata.name) && memberOf(one) !== 'NotAnswering').length;
  if (!force && node.spec.role === 'Voter' && live * 2 <= rest.length) {
    return refused(409, `without ${nodeId} only ${live} of ${rest.length} voters are live: that is no majority`);
  }
  await setRole(api, node, 'Removed');
  return ok(`${nodeId} was removed`);
}

/** Throws on conflicts, because the decision was made from the node as it was read. */
async function setRole(api: KubeApi, { metadata }: RecorderNode, role: 'Learner' | 'Voter' | 'Removed'): Promise<void> {
  const { namespace, name, resourceVersion } = metadata;
  await api.mergePatch(RECORDER_NODE, { namespace, name }, { metadata: { resourceVersion }, spec: { role } });
}
