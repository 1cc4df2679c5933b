// `/cluster/metrics` and `/cluster/cameras`: the nodes and cameras of the cluster, as any node answers.

import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import { Reason } from '../../probe/report/reason.ts';
import { problemResponse } from '../../http/problem.ts';
import { callerOf } from '../../http/access.ts';
import { asFormed } from '../../http/answers.ts';
import type { ClusterCameras } from '../cluster-access.ts';
import { NodeID } from '../node-id.ts';
import { Next, PageQuery, pageOf, placeOf } from '../pages.ts';
import { timeOrNull } from '../times.ts';
import { toReason } from '../todo.ts';

const Node = z
  .object({
    node_id: NodeID,
    node_name: z.string(),
    address: z.string().nullable(),
    role: z
      .enum(['voter', 'silent', 'learner', 'removed'])
      .describe(
        'Where recorders run etcd themselves, what etcd says. voter: it has a vote, which answers. silent: its vote counts, but does not answer. learner: it records, but has no vote.',
      ),
    online: z.boolean(),
    last_seen_seconds: z.number().nullable().describe('Seconds since its last renewal; null when none was seen.'),
    cameras: z.number().int(),
    version: z.string().nullable(),
  })
  .meta({ id: 'Node', description: 'A node of the cluster.' });

const Metrics = z
  .object({
    leader: NodeID.nullable().describe('The node that accepts changes of the membership; null without a majority.'),
    etcd_leader: NodeID.nullable().describe(
      'The node whose member of etcd leads, in a cluster of servers whose recorders run etcd themselves; else null.',
    ),
    has_majority: z.boolean(),
    voters: z.array(NodeID).describe('The nodes whose votes answer.'),
    nodes: z.array(Node),
  })
  .meta({ id: 'Cluster', description: 'The nodes of the cluster.' });

const Time = z.iso.datetime({ offset: true }).nullable();

const CameraNode = z
  .object({
    node_id: NodeID,
    url: z.string().nullable().describe('Base URL of its API; null until the operator has published it.'),
    playback: z.string().nullable().describe('Where it serves playback.'),
    online: z.boolean(),
    last_seen_seconds: z.number().nullable().describe('Seconds since its last renewal; null when none was seen.'),
  })
  .meta({ id: 'RecordingNode', description: 'A node that records cameras, and where it is reached.' });

const HeldFootage = z
  .object({ node_id: NodeID, oldest: Time, newest: Time })
  .meta({ id: 'HeldFootage', description: 'A node that holds footage of a camera.' });

const ClusterCamera = z
  .object({
    id: z.string(),
    name: z.string(),
    group: z.string().nullable().describe('The group in which the console lists it (its label kube-nvr.dev/group).'),
    node_id: NodeID.nullable().describe(
      'The node that records the camera, also during a handover to another node. For a stopped camera: the last node that recorded it.',
    ),
    epoch: z.number().int().describe('Grows with each move to another node.'),
    state: z
      .enum(['connecting', 'recording', 'silent', 'failed', 'stopped', 'unassigned', 'unknown'])
      .describe(
        'As its node reports it. recording: a picture is on the disk. silent: no video was written for 15 seconds. unassigned: no node records it. unknown: its node has stopped renewing.',
      ),
    reason: Reason.nullable(),
    last_written: Time.describe('Approximate; the node itself has the exact time.'),
    archives: z
      .array(HeldFootage)
      .describe('All nodes that hold footage of the camera; approximate. Footage stays on the node that recorded it.'),
  })
  .meta({ id: 'ClusterCamera', description: 'A camera of the cluster, on any node.' });

const CameraPlace = z.tuple([z.literal('cameras'), z.string()]);

const Cameras = z
  .object({
    node_id: NodeID.describe('The node that answers.'),
    current: z
      .boolean()
      .describe('false: the API server, or etcd, cannot be reached, and this is the last known state.'),
    nodes: z.array(CameraNode),
    cameras: z.array(ClusterCamera),
    next: Next,
  })
  .meta({ id: 'ClusterCameraList', description: 'The cameras of the cluster.' });

const secondsOrNull = (ms: number | undefined): number | null => (ms === undefined ? null : Math.round(ms / 100) / 10);

const toNode = (node: ClusterCameras['nodes'][number]): z.output<typeof Cameras>['nodes'][number] => ({
  node_id: node.nodeId,
  url: node.url ?? null,
  playback: node.playbackUrl ?? null,
  online: node.isOnline,
  last_seen_seconds: secondsOrNull(node.lastSeenMs),
});

const toCamera = (camera: ClusterCameras['cameras'][number]): z.output<typeof Cameras>['cameras'][number] => ({
  id: camera.id,
  name: camera.name,
  group: camera.group ?? null,
  node_id: camera.nodeId ?? null,
  epoch: camera.epoch,
  state: camera.state,
  reason: toReason(camera.reason),
  last_written: timeOrNull(camera.lastWrittenMs),
  archives: camera.archives.map(({ nodeId, oldestMs, newestMs }) => ({
    node_id: nodeId,
    oldest: timeOrNull(oldestMs),
    newest: timeOrNull(newestMs),
  })),
});

const problems = {
  403: problemResponse('The role does not allow it.'),
  503: problemResponse('There is no leader, or the cluster cannot be reached.'),
};

/** Examples for the OpenAPI document. */
const NODES = {
  leader: 'rack-1',
  etcd_leader: 'rack-2',
  has_majority: true,
  voters: ['rack-1', 'rack-2', 'rack-3'],
  nodes: [
    {
      node_id: 'rack-1',
      node_name: 'rack-1',
      address: 'rack-1.example:9997',
      role: 'voter',
      online: true,
      last_seen_seconds: 0.8,
      cameras: 20,
      version: '0.1.0',
    },
  ],
};

const CLUSTER_CAMERAS = {
  node_id: 'rack-1',
  current: true,
  nodes: [
    {
      node_id: 'rack-2',
      url: 'https://rack-2.example:9997',
      playback: 'https://rack-2.example:9996',
      online: true,
      last_seen_seconds: 1.2,
    },
  ],
  cameras: [
    {
      id: 'gate',
      name: 'Front gate',
      group: 'entrance',
      node_id: 'rack-2',
      epoch: 4,
      state: 'recording',
      reason: null,
      last_written: '2026-11-21T12:00:03.000+00:00',
      archives: [
        { node_id: 'rack-2', oldest: '2026-11-14T12:00:00.000+00:00', newest: '2026-11-21T12:00:00.000+00:00' },
      ],
    },
  ],
};

export const clusterRoutes: ApiRoutes = async (app, { deps: { cluster } }) => {
  if (!cluster) return;
  app.get(
    '/cluster/metrics',
    {
      config: { role: 'viewer', examples: { 200: NODES } },
      schema: {
        operationId: 'getCluster',
        summary: 'The nodes of the cluster, and whether each is online',
        tags: ['cluster'],
        response: { 200: Metrics, 403: problems[403], 503: problems[503] },
      },
    },
    async () => {
      const { leader, etcdLeader, hasMajority, voters, nodes } = await cluster.metrics();
      return {
        leader: leader ?? null,
        etcd_leader: etcdLeader ?? null,
        has_majority: hasMajority,
        voters: [...voters],
        nodes: nodes.map((node) => ({
          node_id: node.nodeId,
          node_name: node.nodeName,
          address: node.address ?? null,
          role: node.role,
          online: node.isOnline,
          last_seen_seconds: secondsOrNull(node.lastSeenMs),
          cameras: node.cameras,
          version: node.version ?? null,
        })),
      };
    },
  );

  app.get(
    '/cluster/cameras',
    {
      config: { role: 'viewer', cameras: 'filtered', examples: { 200: CLUSTER_CAMERAS } },
      serializerCompiler: asFormed,
      schema: {
        operationId: 'listClusterCameras',
        summary: 'All cameras of the namespace, and which node records each',
        description:
          'Any node answers, within about a second. While nodes, the API server or etcd cannot be reached, it answers with the last known state. Ask the node that records a camera for its live stream, recordings and details.',
        tags: ['cluster'],
        querystring: PageQuery,
        response: { 200: Cameras },
      },
    },
    async (request) => {
      const { sees } = callerOf(request);
      const after = placeOf(request.query.cursor, CameraPlace);
      const { isCurrent, nodes, cameras } = await cluster.cameras();
      const seen = cameras.filter(({ id }) => sees(id));
      const page = pageOf(seen, request.query, after, ({ id }) => ['cameras', id]);
      return {
        node_id: cluster.nodeId,
        current: isCurrent,
        nodes: nodes.map(toNode),
        cameras: page.entries.map(toCamera),
        ...(page.next === undefined ? {} : { next: page.next }),
      } satisfies z.output<typeof Cameras>;
    },
  );
};
