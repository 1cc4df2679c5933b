// The Camera resource: users write its spec, the operator writes its status.

import { z } from 'zod';
import { addressWithoutUser } from './address.ts';
import { copies } from './archive-target.ts';
import { API_VERSION, CAMERA_HOSTS } from './names.ts';
import { parseResource, type PartlyRead } from './parse.ts';
import {
  atomicList,
  conditions,
  formed,
  integer,
  listMap,
  listSet,
  metadata,
  nodeName,
  nodeNameOrEmpty,
  nodeSelector,
  reference,
  retention,
  statusEnum,
  statusObject,
  subdomain,
  time,
  withRules,
  type Immutable,
} from './schema-parts.ts';

/** If more nodes hold footage of a camera, its status lists those with the newest footage. */
export const MAX_ARCHIVES = 256;

/** Longer names would not fit where the archive and URLs use a camera's id. */
export const MAX_CAMERA_NAME = 63;

export const ASSIGNMENT_REASONS = [
  'Scheduled',
  'NodeUnavailable',
  'Drain',
  'Failback',
  'NotTakenUp',
  'Preferred',
  'Ineligible',
  'Suspended',
] as const;

const streamAddress = (example: string) =>
  addressWithoutUser(example, 'rtsp', 'rtsps', 'rtsp+http', 'rtsp+https', 'rtsp+ws', 'rtsp+wss');

const spec = z.object({
  displayName: formed(z.string().min(1).max(100), /^[^\p{Cc}]*$/u, 'must have no control characters')
    .optional()
    .describe('Name for people. Default: the name of the resource.'),
  source: streamAddress('rtsp://10.0.0.5/stream').describe('Address of the stream, without a login.'),
  credentialsSecretRef: reference()
    .optional()
    .describe(
      `A Secret with the keys username and password: the login for source, preview, snapshot, onvif and edge.replay, used only on hosts that its annotation ${CAMERA_HOSTS} names.`,
    ),
  tls: z
    .object({
      verify: z
        .boolean()
        .optional()
        .describe(
          'true: over TLS, refuse the camera unless its certificate is signed by a trusted authority and names its host.',
        ),
      ca: formed(
        z.string().max(65_536),
        /-----BEGIN CERTIFICATE-----/,
        'must be certificates in PEM, which begin with -----BEGIN CERTIFICATE-----',
      )
        .optional()
        .describe("PEM certificates of the authorities to trust, instead of the system's. With it, verify is true."),
      fingerprint: formed(
        z.string().max(95),
        /^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$/,
        'must be the SHA-256 of a certificate: 64 hexadecimal digits, with colons or without',
      )
        .optional()
        .describe(
          'SHA-256 of the only certificate to accept, whoever signed it: 64 hexadecimal digits, with or without colons.',
        ),
    })
    .optional()
    .describe(
      'How the camera proves its identity over rtsps:// and https://. Without it, any certificate is accepted.',
    ),
  allowPlaintextLogin: z
    .boolean()
    .default(false)
    .describe(
      'true: send the password in readable form (Basic without TLS) even to a camera that accepted Digest or TLS before.',
    ),
  transport: z
    .enum(['Auto', 'Tcp', 'Udp', 'Multicast'])
    .default('Auto')
    .describe(
      'How media is carried: inside the RTSP connection (Tcp), as datagrams (Udp) or to a group (Multicast). Auto: Tcp or Udp, whichever works.',
    ),
  preview: z
    .object({
      source: streamAddress('rtsp://10.0.0.5/small').describe(
        'Address of a second, smaller stream, without a login, for walls of pictures, phones, and browsers that cannot decode source. It is connected only while somebody watches it or it is recorded; transport, tls, allowPlaintextLogin and maxBitrate apply to both streams.',
      ),
      recorded: z
        .boolean()
        .default(false)
        .describe('true: the preview is recorded, too, in the format and with the segment duration of the camera.'),
      retention: retention().optional().describe('Limits of the footage of the preview.'),
    })
    .optional()
    .describe('A second stream.'),
  snapshot: addressWithoutUser('http://10.0.0.5/snapshot.jpg', 'http', 'https')
    .optional()
    .describe('Address of a still image, without a login.'),
  maxBitrate: integer(1, 10_000)
    .default(100)
    .describe(
      'Megabits a second that the camera may send, measured over ten seconds. A camera that sends more is paused until its average is back at this rate, with the reason BitrateExceeded.',
    ),
  ptz: z.boolean().default(false).describe('The camera may be moved.'),
  onvif: addressWithoutUser('http://10.0.0.5/onvif/device_service', 'http', 'https')
    .optional()
    .describe("Address of the camera's ONVIF device service. Without it, port 80 of the source's host."),
  events: z
    .enum(['Auto', 'Always', 'Never'])
    .default('Auto')
    .describe(
      'Whether events are taken from the camera over ONVIF, such as motion. Auto: if onvif is set. Always: also at port 80 of the host of source.',
    ),
  activity: z
    .boolean()
    .default(false)
    .describe(
      'Whether the key frames of the footage are looked at in the background for what changes in the picture: about 0.1 % of a core with a recorded preview, 0.2 % without; needs ffmpeg.',
    ),
  edge: withRules(
    z.object({
      onvif: z
        .boolean()
        .optional()
        .describe('true: fetch it with the ONVIF services for search and replay (Profile G), at the address of onvif.'),
      recordingId: z
        .string()
        .min(1)
        .max(64)
        .optional()
        .describe(
          'With onvif: the token of the recording that belongs to this camera, for a device with recordings of several.',
        ),
      replay: withRules(
        addressWithoutUser('rtsp://10.0.0.5/tracks/101?starttime={start}&endtime={end}', 'rtsp', 'rtsps'),
        {
          rule: "self.matches(r'\\{start[:}]') && self.matches(r'\\{end[:}]')",
          message: 'must contain {start} and {end}',
        },
      )
        .optional()
        .describe(
          'Instead of onvif: an rtsp:// address without a login, in which {start} and {end} are replaced by times such as 20260101T000000Z; for another format, write {start:yyyy_MM_dd_HH_mm_ss}.',
        ),
      timeZone: z
        .string()
        .min(1)
        .max(64)
        .optional()
        .describe('With replay: the time zone of the times in the address, such as Europe/Berlin; default: UTC.'),
      maxBitrate: integer(1, 10_000)
        .optional()
        .describe(
          'The most megabits per second at which footage is fetched; default: twice the bit rate of the live stream.',
        ),
    }),
    {
      rule: '(has(self.onvif) && self.onvif) != has(self.replay)',
      message: 'must have either onvif: true or replay',
    },
    { rule: '!has(self.recordingId) || !has(self.replay)', message: 'must have recordingId only with onvif' },
    { rule: '!has(self.timeZone) || has(self.replay)', message: 'must have timeZone only with replay' },
  )
    .optional()
    .describe("The camera's own memory, such as its SD card: what is missing in the archive is filled in from there."),
  suspend: z.boolean().default(false).describe('true: the camera is listed, but not recorded.'),
  record: z
    .object({
      // Lower case, unlike our own enum values: these are names of file formats, as in the recorder's API.
      format: z
        .enum(['fmp4', 'mp4'])
        .default('fmp4')
        .describe(
          'fmp4: the file can be played while it is written. mp4: the file is rewritten with its index at the front when the segment is closed, and can be played from then on. Both survive a crash.',
        ),
      segmentSeconds: integer(1, 86_400)
        .default(300)
        .describe('A segment is closed at the first key frame after this time.'),
      retention: retention().optional().describe('Limits of this camera, in addition to those of its node.'),
    })
    .prefault({})
    .describe('How the camera is recorded.'),
  copies: copies()
    .optional()
    .describe(
      'What of it is copied to object storage. Default: archive.copies of the pool. Not used on servers without Kubernetes.',
    ),
  poolRef: reference().prefault({ name: 'default' }).describe('The RecorderPool that records this camera.'),
  placement: z
    .object({
      nodeSelector: nodeSelector().optional(),
      preferredNode: nodeNameOrEmpty()
        .optional()
        .describe('The node that should record the camera whenever it is available.'),
      failover: z
        .enum(['Automatic', 'Never'])
        .default('Automatic')
        .describe('Never: the camera waits until its node is back.'),
      standby: z
        .boolean()
        .optional()
        .describe(
          'true: a second node holds the last 30 s of the camera in memory, and continues from there if the node that records it is lost. Default: failover.standby of the pool.',
        ),
      priority: integer(-1000, 1000).default(0).describe('Cameras of higher priority are assigned and moved first.'),
    })
    .prefault({})
    .describe('Which node records the camera.'),
});

const assignment = withRules(
  statusObject({
    node: nodeName().optional().describe('The node that records the camera. Absent: none.'),
    epoch: integer(1, Number.MAX_SAFE_INTEGER).describe(
      'Number of the assignment. It grows with each assignment, and the highest one is valid.',
    ),
    previousNode: nodeName().optional().describe('The node that recorded the camera before.'),
    handover: statusEnum(['Pending', 'Complete'])
      .optional()
      .describe('Pending: previousNode continues to record until node has written its first key frame.'),
    reason: statusEnum(ASSIGNMENT_REASONS),
    time: time(),
    lastSeenTime: time()
      .optional()
      .describe(
        'When the lost node last renewed its Lease: as far as is known, no node has recorded the camera since.',
      ),
    lostNodes: atomicList(nodeName(), 8)
      .optional()
      .describe(
        'Nodes whose recorders stopped renewing their Leases while they had the camera, although the machines ran. With two such nodes, the camera is not assigned to another one.',
      ),
    home: nodeName()
      .optional()
      .describe(
        'The node where the camera belongs. The camera leaves this node during an update, a drain or a failure, and returns afterwards. Absent: the camera has not left its node yet.',
      ),
  }),
  {
    rule: '!has(self.node) || (has(oldSelf.node) && self.node == oldSelf.node) || self.epoch > oldSelf.epoch',
    message: 'must grow when the camera is given to another node',
    fieldPath: '.epoch',
  },
);

const standby = statusObject({
  node: nodeName().optional().describe('The node that holds the last seconds of the camera in memory. Absent: none.'),
  epoch: integer(1, Number.MAX_SAFE_INTEGER).describe('Grows with each node that is chosen.'),
  process: z
    .string()
    .max(256)
    .optional()
    .describe(
      'The process of the recorder that records the camera. When another process on that node replaces it, the standby writes what it holds.',
    ),
});

const override = statusObject({
  suspend: z.boolean().describe('true: stopped. false: recorded, although spec.suspend is true.'),
  time: time(),
  node: nodeName().describe('The node that received the request.'),
  by: z.string().max(256).optional().describe('Name of the token or user.'),
});

const status = statusObject({
  observedGeneration: integer(0, Number.MAX_SAFE_INTEGER).optional(),
  override: override
    .optional()
    .describe(
      'Set when the camera was stopped or started through the API: takes precedence over spec.suspend until both agree.',
    ),
  assignment: assignment.optional().describe('Which node records the camera.'),
  standby: standby
    .optional()
    .describe(
      'The node that takes over the camera at once, without missing footage, if the node in assignment is lost.',
    ),
  login: statusObject({
    secretName: subdomain().describe('The Secret.'),
    hosts: listSet(z.string().max(253), 5).describe('Hosts to which its login is sent.'),
  })
    .optional()
    .describe('The hosts of a Secret that names none and was in use before this was required.'),
  archives: listMap(
    statusObject({ node: nodeName(), oldestTime: time().optional(), newestTime: time().optional() }),
    MAX_ARCHIVES,
    'node',
  )
    .optional()
    .describe('Nodes that hold footage of the camera. Footage stays on the node that recorded it.'),
  conditions: conditions().optional(),
});

export const cameraSchema = withRules(
  statusObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal('Camera'),
    metadata,
    spec,
    status: status.optional(),
  }),
  {
    // At the root, so that nobody can remove the status or the assignment and start the epoch over.
    rule:
      '!has(oldSelf.status) || !has(oldSelf.status.assignment) || (has(self.status) && has(self.status.assignment) ' +
      '&& self.status.assignment.epoch >= oldSelf.status.assignment.epoch)',
    message: 'must not become less',
    fieldPath: '.status.assignment.epoch',
  },
  {
    rule: "self.metadata.name != 'jobs'",
    message: 'metadata.name: jobs is part of an address of the API, and no camera can have it',
  },
);

export type AssignmentReason = (typeof ASSIGNMENT_REASONS)[number];
export type Camera = Immutable<z.output<typeof cameraSchema>> & PartlyRead;
export type CameraStatus = NonNullable<Camera['status']>;
/** Whether the camera is not to be recorded: by the last request through the API, or else by the manifest. */
export const isSuspended = ({ spec, status }: Pick<Camera, 'spec' | 'status'>): boolean =>
  status?.override?.suspend ?? spec.suspend;

/** The addresses to which the login of a camera may be sent. */
export const addressesOf = ({
  spec: { source, preview, snapshot, onvif, edge },
}: Pick<Camera, 'spec'>): readonly string[] =>
  [source, preview?.source, snapshot, onvif, edge?.replay].filter((address) => address !== undefined);

/** Which node records the camera. If two nodes claim it, the one with the higher epoch is right. */
export type CameraAssignment = NonNullable<CameraStatus['assignment']>;

/** Throws ResourceError. */
export const parseCamera = (value: unknown): Camera =>
  parseResource('Camera', cameraSchema, value, {
    // No name ends like this (RFC 2606). What proves the identity of a camera in a way that is not understood is not proven.
    instead: {
      [SOURCE]: 'rtsp://unread.invalid/',
      'spec.tls': { verify: true },
      'status.assignment.reason': 'Unknown',
      'status.assignment.time': '1970-01-01T00:00:00Z',
    },
    // Nobody may take a camera whose node is not known, nor under an epoch that is lower than that of its node.
    essential: ['spec', 'status.assignment', 'status.assignment.node', 'status.assignment.epoch', 'status'],
  });

const SOURCE = 'spec.source';

/** The address of the camera is of a kind that this version does not know. */
export const lacksSource = ({ unread }: Camera): boolean => unread?.includes(SOURCE) === true;
