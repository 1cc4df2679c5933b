// `/cluster/…`: changes of the cluster's membership. They are redirected to the leader; without a majority they are answered with
// 503, except those that give the cluster a leader again.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import type { ErrorCode } from '../../http/error-codes.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import type { ClusterAnswer, ClusterQuestion } from '../cluster-access.ts';
import { Done } from '../done.ts';
import { NodeID } from '../node-id.ts';

const problems = {
  400: problemResponse('The body is missing or does not have the required form.'),
  403: problemResponse('The role does not allow it.'),
  404: problemResponse('There is no such node.'),
  409: problemResponse('The change would lose the majority, or another change is in progress.'),
  503: problemResponse('There is no leader, or the cluster cannot be reached.'),
};
const ACCEPTED = { 202: Done.describe('Accepted; the node gets its vote as soon as it has the data of the leader.') };
const MOVED = { 307: z.null().describe('Redirect to the leader, which accepts this request.') };

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid-request',
  403: 'forbidden',
  404: 'unknown-node',
  409: 'membership-conflict',
};

/** An example for the OpenAPI document. */
const CHANGED = { status: 'ok', message: 'rack-4 is a learner' };

export const clusterMembershipRoutes: ApiRoutes = async (app, { deps: { cluster } }) => {
  if (!cluster) return;
  /**
   * On the leader: sends the request to the operator. On other nodes: redirects the client to the leader. Without a leader: sends
   * requests that the operator may accept from any node.
   */
  const onLeader = async (request: FastifyRequest, reply: FastifyReply, question: ClusterQuestion) => {
    const leader = cluster.leader();
    if (!leader) {
      if (await givesLeader(question)) return done(await cluster.ask(question), reply);
      throw new ApiError(503, 'no-leader', 'the cluster has no leader: fewer than half of its voters are live');
    }
    if (leader.nodeId === cluster.nodeId) return done(await cluster.ask(question), reply);
    if (leader.url === undefined) {
      throw new ApiError(503, 'no-leader', `the address of the leader, ${leader.nodeId}, is not known yet`);
    }
    return reply.code(307).header('location', `${leader.url}${request.url}`).send(null);
  };

  /** Whether the request can give a leader to a cluster that has none. */
  const givesLeader = async (question: ClusterQuestion): Promise<boolean> => {
    if (question.kind === 'RemoveNode') return question.force;
    return question.kind === 'ChangeMembership' && (await cluster.metrics()).voters.length === 0;
  };

  app.post(
    '/cluster/add-learner',
    {
      config: { role: 'admin', audit: 'add-node', examples: { body: { node_id: 'rack-4' }, 200: CHANGED } },
      schema: {
        operationId: 'addLearner',
        summary: 'Add a node to the cluster: it records, but has no vote',
        tags: ['cluster'],
        body: z.strictObject({ node_id: NodeID }),
        response: { 200: Done, ...MOVED, ...problems },
      },
    },
    (request, reply) => onLeader(request, reply, { kind: 'AddLearner', nodeID: request.body.node_id }),
  );

  app.post(
    '/cluster/change-membership',
    {
      config: {
        role: 'admin',
        audit: 'change-voters',
        examples: { body: { voters: ['rack-1', 'rack-2', 'rack-4'] }, 200: CHANGED },
      },
      schema: {
        operationId: 'changeMembership',
        summary: 'Set which nodes have a vote, one change at a time',
        description:
          'While no node has a vote, any live node gives the first one. Where recorders run etcd themselves, 200 means that the votes are given and answer.',
        tags: ['cluster'],
        body: z.strictObject({
          voters: z
            .array(NodeID)
            .min(1)
            .max(256)
            .refine((voters) => new Set(voters).size === voters.length, 'a node is named twice'),
        }),
        response: { 200: Done, ...ACCEPTED, ...MOVED, ...problems },
      },
    },
    (request, reply) => onLeader(request, reply, { kind: 'ChangeMembership', voters: request.body.voters }),
  );

  app.post(
    '/cluster/remove-node',
    {
      config: { role: 'admin', audit: 'remove-node', examples: { body: { node_id: 'rack-3' }, 200: CHANGED } },
      schema: {
        operationId: 'removeNode',
        summary: 'Remove a node from the cluster; a live one only with force',
        description:
          'Without a majority, and with force, any live node removes nodes that are gone. They lose their votes, so the others form a majority again.',
        tags: ['cluster'],
        body: z.strictObject({ node_id: NodeID, force: z.boolean().optional() }),
        response: { 200: Done, ...MOVED, ...problems },
      },
    },
    (request, reply) =>
      onLeader(request, reply, {
        kind: 'RemoveNode',
        nodeID: request.body.node_id,
        force: request.body.force ?? false,
      }),
  );

  app.post(
    '/cluster/leave',
    {
      config: { role: 'admin', audit: 'leave-cluster', examples: { body: {}, 200: CHANGED } },
      schema: {
        operationId: 'leaveCluster',
        summary: 'This node leaves the cluster: it stops its cameras and discards its assignments',
        description:
          'With force also when the cluster cannot record it; call remove-node on the leader afterwards. Key and certificate stay, and no restart is needed. The last vote that answers leaves only with even_last_vote: if the others are down, the cluster is lost without its data.',
        tags: ['cluster'],
        body: z.strictObject({ force: z.boolean().optional(), even_last_vote: z.boolean().optional() }),
        response: { 200: Done, ...problems },
      },
    },
    async ({ body: { force = false, even_last_vote: evenLastVote = false } }, reply) =>
      done(await cluster.leave({ force, evenLastVote }), reply),
  );
};

function done({ code, message }: ClusterAnswer, reply: FastifyReply): z.output<typeof Done> {
  if (code < 300) {
    reply.code(code);
    return { status: 'ok', message };
  }
  const status = code in CODES ? code : 503;
  throw new ApiError(status, CODES[status] ?? 'cluster-unavailable', message);
}
