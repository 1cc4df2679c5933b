// The RecorderNode resource: the operator (or a person) writes its spec, the recorder of that node writes its status.

import { z } from 'zod';
import { API_VERSION } from './names.ts';
import { parseResource, type PartlyRead } from './parse.ts';
import {
  conditions,
  formed,
  integer,
  listMap,
  listSet,
  metadata,
  nodeName,
  reference,
  statusEnum,
  statusObject,
  subdomain,
  time,
  withRules,
  word,
  type CelRule,
  type Immutable,
} from './schema-parts.ts';
import { MAX_CAMERA_NAME } from './camera.ts';
import { MAX_CAMERAS_PER_NODE } from './recorder-pool.ts';
import { MAX_TARGETS } from './archive-target.ts';
import { MAX_OBJECTIVES, measured } from './recording-objective.ts';

/** How many requests of one recorder may be open. */
export const MAX_REQUESTS = 32;
const MAX_ENDED_SESSIONS = 200;

const CAMERA_STATES = ['Connecting', 'Recording', 'Silent', 'Failed', 'Stopped'] as const;
const STANDBY_STATES = ['Connecting', 'Holding', 'Failed'] as const;
const REQUEST_KINDS = ['Suspend', 'AddLearner', 'ChangeMembership', 'RemoveNode', 'Leave'] as const;

const cameraName = () => subdomain(MAX_CAMERA_NAME);
const epoch = () => integer(1, Number.MAX_SAFE_INTEGER);
/** Chosen by the recorder, to match the response with the request. */
const requestID = () => z.string().min(1).max(64);

const response = z.object({
  id: requestID().describe('The request that is answered.'),
  code: integer(100, 599).describe('HTTP status of the answer.'),
  message: z.string().max(1024).optional().describe('Text of the answer, for people.'),
});

/** Base URL of a listener, such as `https://10.0.0.7:9997`. */
const url = () =>
  formed(z.string().max(512), /^https?:\/\/[^\s/?#@]+$/, 'must be an address such as https://10.0.0.7:9997');

const pem = () => z.string().max(16_384);

const spec = z.object({
  nodeName: withRules(nodeName(), {
    rule: 'self == oldSelf',
    message: 'is immutable',
    reason: 'FieldValueForbidden',
  }).describe('The Kubernetes node; also the name of this resource.'),
  poolRef: reference().describe('The RecorderPool that this node records for.'),
  role: z
    .enum(['Learner', 'Voter', 'Removed'])
    .default('Learner')
    .describe(
      'Voter: its renewals count towards the majority without which no camera moves. Learner: it records, but does not ' +
        'count. Removed: it is no longer a member of the cluster until it is added again as a learner.',
    ),
  drain: z.boolean().default(false).describe('true: its cameras move to other nodes, and it gets no new ones.'),
  address: url()
    .optional()
    .describe(
      'The address at which clients and other recorders reach this recorder. The operator takes it from the pod, and does not use the address that the recorder reports.',
    ),
  playbackAddress: url().optional().describe('Address of its playback listener.'),
  peerAddress: url()
    .optional()
    .describe(
      'The address at which other recorders of the pool reach it, with mutual TLS. Absent: it has no such listener.',
    ),
  certificate: z
    .object({
      certificate: pem().describe('Certificate for the key of status.certificateRequest; PEM.'),
      authorities: pem().describe('Authorities that recorders of the pool trust; PEM.'),
      madeFrom: z.string().max(64).describe('Changes when the certificate has to be signed again.'),
    })
    .optional()
    .describe("Signed by the pool's CA. Nothing in it is secret."),
  refusedReports: listSet(cameraName(), MAX_CAMERAS_PER_NODE)
    .optional()
    .describe(
      'Cameras that status.cameras reports with an epoch that the Camera never had. Recorders ignore these reports.',
    ),
  responses: listMap(response, MAX_REQUESTS, 'id').optional().describe('Answers to status.requests.'),
});

const reportedCamera = statusObject({
  name: cameraName(),
  epoch: epoch().describe('Epoch of the assignment that the recorder carries out.'),
  state: statusEnum(CAMERA_STATES),
  reason: word(128).optional().describe('Why the camera is in this state, as one word.'),
  message: z.string().max(512).optional(),
  lastWrittenTime: time().optional().describe('Approximate: written when something else changes, or every 300 s.'),
});

const reportedStandby = statusObject({
  name: cameraName(),
  epoch: epoch().describe('Epoch of status.standby of the Camera that the recorder carries out.'),
  state: statusEnum(STANDBY_STATES),
  reason: word(128).optional().describe('Why the camera is in this state, as one word.'),
  message: z.string().max(512).optional(),
});

/** Rule: the field is required for requests of these kinds and forbidden for others. */
const onlyWith = (field: string, kinds: readonly string[]): CelRule => ({
  rule: `(self.kind in [${kinds.map((kind) => `'${kind}'`).join(', ')}]) == has(self.${field})`,
  message: `is required when kind is ${kinds.join(' or ')}, and forbidden otherwise`,
  fieldPath: `.${field}`,
});

const request = withRules(
  statusObject({
    id: requestID(),
    kind: statusEnum(REQUEST_KINDS),
    camera: cameraName().optional(),
    suspend: z.boolean().optional(),
    by: z.string().max(256).optional().describe('The caller of the recorder: name of the token or user.'),
    nodeID: nodeName().optional(),
    voters: z.array(nodeName()).max(256).meta({ 'x-kubernetes-list-type': 'set' }).optional(),
    force: z.boolean().optional(),
    time: time(),
  }),
  onlyWith('camera', ['Suspend']),
  onlyWith('suspend', ['Suspend']),
  onlyWith('nodeID', ['AddLearner', 'RemoveNode']),
  onlyWith('voters', ['ChangeMembership']),
);

const status = statusObject({
  observedGeneration: integer(0, Number.MAX_SAFE_INTEGER).optional(),
  drain: z
    .boolean()
    .optional()
    .describe(
      'true: its cameras move to other nodes, because of spec.drain or because the Kubernetes node is cordoned, out of service or about to be removed. Written by the operator.',
    ),
  address: z
    .string()
    .max(512)
    .optional()
    .describe('The address that the recorder assumes for itself. Only older recorders use it: see spec.address.'),
  playbackAddress: z.string().max(512).optional().describe('The same for its playback listener.'),
  certificateRequest: z
    .string()
    .max(4_096)
    .optional()
    .describe('PKCS #10 request in PEM for the key that never leaves the node; answered in spec.certificate.'),
  sessionKey: formed(z.string().max(64), /^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url')
    .optional()
    .describe(
      'Public key (Ed25519) of the sessions that begin at this node: the other nodes accept them as long as the node is a member.',
    ),
  endedSessions: listMap(statusObject({ of: z.string().min(1).max(64), endedTime: time() }), MAX_ENDED_SESSIONS, 'of')
    .optional()
    .describe(
      'Sessions that were ended at this node, for the other nodes: the id of a session, or a digest of a user or a person, whose sessions that began before this time are ended.',
    ),
  version: z.string().max(128).optional(),
  archiveID: z.string().max(128).optional().describe('The id in the marker file of the archive.'),
  freeBytes: integer(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('Free bytes on the file system of the archive; approximate.'),
  cameras: listMap(reportedCamera, MAX_CAMERAS_PER_NODE, 'name')
    .optional()
    .describe('The cameras that the node records.'),
  standbys: listMap(reportedStandby, MAX_CAMERAS_PER_NODE, 'name')
    .optional()
    .describe('The cameras of other nodes of which the node holds the last seconds in memory.'),
  archives: listMap(
    statusObject({ camera: cameraName(), oldestTime: time().optional(), newestTime: time().optional() }),
    1000,
    'camera',
  )
    .optional()
    .describe('Cameras of which the node holds footage; approximate.'),
  targets: listMap(
    statusObject({
      name: subdomain(32),
      reason: word(128).optional().describe('What is wrong with it, as one word. Absent: nothing.'),
      message: z.string().max(512).optional(),
    }),
    MAX_TARGETS,
    'name',
  )
    .optional()
    .describe('The ArchiveTargets to which the node copies footage.'),
  objectives: listMap(statusObject({ name: subdomain(63), ...measured }), MAX_OBJECTIVES, 'name')
    .optional()
    .describe('What the leader of the pool measured of its RecordingObjectives.'),
  peers: listMap(statusObject({ node: nodeName(), reachable: z.boolean() }), 256, 'node')
    .optional()
    .describe('State of the other recorders, as this one sees them.'),
  requests: listMap(request, MAX_REQUESTS, 'id')
    .optional()
    .describe('Requests of the recorder to the operator; answered in spec.responses.'),
  conditions: conditions().optional(),
});

export const recorderNodeSchema = withRules(
  statusObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal('RecorderNode'),
    metadata,
    spec,
    status: status.optional(),
  }),
  {
    rule: 'self.spec.nodeName == self.metadata.name',
    message: 'must be the name of the resource',
    fieldPath: '.spec.nodeName',
  },
);

export type RecorderNode = Immutable<z.output<typeof recorderNodeSchema>> & PartlyRead;
export type RecorderNodeStatus = NonNullable<RecorderNode['status']>;
export type RecorderResponse = Immutable<z.output<typeof response>>;
export type ReportedCamera = NonNullable<RecorderNodeStatus['cameras']>[number];
/** One camera of another node that its node holds. */
export type ReportedStandby = NonNullable<RecorderNodeStatus['standbys']>[number];
/** What the leader of a pool measured of a RecordingObjective. */
export type ReportedObjective = NonNullable<RecorderNodeStatus['objectives']>[number];
export type RecorderRequest = NonNullable<RecorderNodeStatus['requests']>[number];

/** The cameras that a recorder reports, without reports that the operator has refused. */
export const believedReports = ({ spec, status }: Pick<RecorderNode, 'spec' | 'status'>): readonly ReportedCamera[] => {
  const { refusedReports: refused = [] } = spec;
  const reports = status?.cameras ?? [];
  return refused.length === 0 ? reports : reports.filter(({ name }) => !refused.includes(name));
};

/** The condition of a node whose recorder runs a member of etcd itself. */
export const ETCD_MEMBER = 'EtcdMember';

/** The reasons of that condition. */
export type MemberState = 'Voting' | 'NotVoting' | 'NotAnswering' | 'NoMember';

/** What etcd said of the node's member; undefined where recorders run no etcd. */
export const memberOf = ({ status }: Pick<RecorderNode, 'status'>): MemberState | undefined =>
  status?.conditions?.find(({ type }) => type === ETCD_MEMBER)?.reason as MemberState | undefined;

/** Throws ResourceError. */
export const parseRecorderNode = (value: unknown): RecorderNode =>
  parseResource('RecorderNode', recorderNodeSchema, value, {
    // A node is not taken for that of another pool, its vote is not forgotten, and reports that were refused are not believed.
    essential: ['spec', 'spec.nodeName', 'spec.poolRef', 'spec.poolRef.name', 'spec.role', 'spec.refusedReports'],
  });
