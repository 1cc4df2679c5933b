// The RecorderPool resource: which nodes record, how they record, and the rules of failover.

import { z } from 'zod';
import { copies } from './archive-target.ts';
import { API_VERSION, TOKEN_AUDIENCE } from './names.ts';
import { parseResource, type PartlyRead } from './parse.ts';
import { MAX_RENEW_SECONDS, RENEWALS_UNTIL_LOST } from './renewal.ts';
import { podTemplate, volumeClaimTemplate } from './pod-template.ts';
import {
  atomicList,
  conditions,
  countOrShare,
  formed,
  integer,
  LABEL_RULE,
  listMap,
  listSet,
  metadata,
  nodeName,
  nodeNameOrEmpty,
  nodeSelector,
  reference,
  resources,
  retention,
  statusObject,
  toleration,
  withRules,
  type Immutable,
} from './schema-parts.ts';

/** The pool's name becomes part of a label and of names of Services, which have at most 63 characters. */
export const MAX_POOL_NAME = 40;
/** The report of all cameras of a node must fit into its RecorderNode. */
export const MAX_CAMERAS_PER_NODE = 500;

/** A directory of the host. `/` and `..` are forbidden, because they would let a pod write anywhere. */
const hostPath = (instead = 'make a new pool instead') =>
  withRules(
    formed(
      z.string().max(512),
      /^\/[^\p{Cc}]*[^/\p{Cc}]$/u,
      'must be an absolute path such as /mnt/archive, without / at its end',
    ),
    { rule: "!self.split('/').exists(part, part == '..')", message: 'must not contain ..' },
    {
      rule: 'self == oldSelf',
      message: `is immutable: footage would be left behind; ${instead}`,
      reason: 'FieldValueForbidden',
    },
  );

/** A further disk of each node. Its name is part of the names of a volume and of claims. */
const disk = () =>
  z.object({
    name: formed(
      z.string().max(20),
      /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
      'must have only lower-case letters, digits and "-", with a letter or digit at both ends',
    ).describe('Names the disk in the pods.'),
    hostPath: hostPath('drain and remove the disk, and add the new one under another name')
      .optional()
      .describe('Directory on each node, as archive.hostPath. It must exist on every node of the pool.'),
    volumeClaimTemplate: volumeClaimTemplate
      .optional()
      .describe('With archive.volumeClaimTemplate: each node gets another claim for this disk.'),
    weight: integer(1, 10)
      .default(1)
      .describe('With 2, the disk gets twice as many cameras as its free space suggests.'),
  });

/**
 * An origin as browsers send it. `*` is not accepted: without authentication, it would show every camera to every web
 * page.
 */
const origin = () =>
  formed(
    z.string().max(270),
    /^https?:\/\/[a-z0-9.-]+(:[0-9]{1,5})?$|^https?:\/\/\[[0-9a-f:]+\](:[0-9]{1,5})?$/,
    'must be an origin in lower case and without a path, such as https://nvr.example:8443',
  );

const hostName = () =>
  formed(
    z.string().max(253),
    /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/,
    'must be a host name in lower case and without a port, such as nvr.example.com',
  );

/** The format of the recorder's configuration file. */
const network = () =>
  withRules(z.string().max(64), {
    rule: 'isIP(self) || isCIDR(self)',
    message: 'must be an address or a network such as 10.0.0.1 or 10.0.0.0/8',
  });
/** The format of a NetworkPolicy. */
const cidr = () =>
  withRules(
    z
      .string()
      .max(49)
      .regex(/^[0-9A-Fa-f:.]+\/[0-9]{1,3}$/, 'must be a network such as 10.20.0.0/16 or fd00:20::/64'),
    { rule: 'isCIDR(self)', message: 'must be a network such as 10.20.0.0/16 or fd00:20::/64' },
  );

const advertise = withRules(
  z.object({
    type: z
      .enum(['PodAddress', 'HostPort', 'Template'])
      .default('PodAddress')
      .describe(
        'PodAddress: the IP address of the pod. HostPort: the IP address of the node. Template: an address made from template.',
      ),
    template: formed(
      z.string().max(512),
      /^https?:\/\/[^\s/?#]+$/,
      'must be an address without a path, such as https://{node}.example.com',
    )
      .optional()
      .describe('With type Template: https://{node}.nvr.example.com.'),
  }),
  {
    rule: "(self.type == 'Template') == has(self.template)",
    message: 'is required when type is Template, and forbidden otherwise',
    fieldPath: '.template',
  },
  {
    rule: "!has(self.template) || self.template.contains('{node}')",
    message: 'must contain {node}',
    fieldPath: '.template',
  },
);

/** How a collector of the audit is verified, and what it verifies. */
const collectorTls = {
  caSecretRef: reference()
    .optional()
    .describe("A Secret with the key ca.crt: the authorities to trust for the collector, instead of the system's."),
  certificateSecretRef: reference()
    .optional()
    .describe('A Secret of type kubernetes.io/tls: the certificate of the recorders, if the collector asks for one.'),
};

const audit = z.object({
  syslog: z
    .object({
      address: formed(
        z.string().max(270),
        /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$/,
        'must be a host and port such as logs.example:6514',
      ).describe('Host and port of the server, such as logs.example:6514.'),
      ...collectorTls,
    })
    .optional()
    .describe('A syslog server to which each line is sent: RFC 5424 over TLS (RFC 5425).'),
  otlp: z
    .object({
      url: formed(
        z.string().max(512),
        /^https:\/\/([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(\/[^\s?#]*)?$/,
        'must be an address such as https://otel.example:4318/v1/logs',
      ).describe('Where logs are sent, such as https://otel.example:4318/v1/logs.'),
      headersSecretRef: reference()
        .optional()
        .describe('A Secret with the key headers: a header a line, such as Authorization: Bearer ….'),
      ...collectorTls,
    })
    .optional()
    .describe('A collector of OpenTelemetry to which each line is sent: OTLP over HTTP.'),
});

const auth = withRules(
  z.object({
    mode: z
      .enum(['Kubernetes', 'Token', 'None'])
      .default('Kubernetes')
      .describe(
        'How callers are authenticated and authorized: by the API server (Kubernetes), by the tokens of a Secret (Token), or not at all (None): then anyone may do everything.',
      ),
    tokensSecretRef: reference()
      .optional()
      .describe(
        "A Secret whose key tokens.yaml is the list auth.tokens of the recorder's file. Without it, mode Token uses the Secret <pool>-tokens, which the operator makes once, with an admin token in <pool>-admin-token. With mode Kubernetes these tokens count as well, also while the API server is away. Its keys users.yaml and issuers.yaml, which may be missing, are the lists auth.users and auth.issuers.",
      ),
    audiences: listSet(z.string().min(1).max(256), 8)
      .default([TOKEN_AUDIENCE])
      .describe(
        'With mode Kubernetes: a token must have one of these audiences, as kubectl create token --audience sets it. []: the audience of the API server itself; there, such a token can do everything that its owner can.',
      ),
    allowPlaintext: z
      .boolean()
      .default(false)
      .describe(
        'With mode Kubernetes: accept tokens from other machines without TLS, too. Anyone who can read that traffic can use them.',
      ),
    allowedHosts: listSet(hostName(), 32)
      .optional()
      .describe(
        'With mode None: host names that requests may use, such as that of an Ingress, in addition to those of the Services, of advertise and of origins. Other names are refused, because any web page can point a name of its own at a recorder (DNS rebinding).',
      ),
  }),
  {
    rule: "!has(self.tokensSecretRef) || self.mode != 'None'",
    message: 'is forbidden when mode is None',
    fieldPath: '.tokensSecretRef',
  },
);

const failover = withRules(
  z.object({
    unavailableAfterSeconds: integer(3, 3600)
      .default(15)
      .describe('A node whose Lease has not changed for this long is unavailable, and its cameras move.'),
    renewSeconds: integer(1, MAX_RENEW_SECONDS)
      .default(2)
      .describe(
        'How often a recorder renews its Lease. Recorders of large pools do so less often: all together 100 times a second, but each at least three times within unavailableAfterSeconds. Recorders follow a change without a restart.',
      ),
    failbackAfterSeconds: integer(0, 7 * 86_400)
      .default(600)
      .describe('How long a node must be back before the cameras that belong to it, or prefer it, return to it.'),
    maxConcurrentMoves: integer(1, 500)
      .default(8)
      .describe(
        'How many cameras move at the same time. After the loss of a node, the number applies to each of the other nodes.',
      ),
    standby: z
      .boolean()
      .default(false)
      .describe(
        'true: cameras have a second node that holds their last seconds in memory, unless placement.standby of the Camera is false.',
      ),
  }),
  {
    rule: `self.unavailableAfterSeconds >= ${RENEWALS_UNTIL_LOST} * self.renewSeconds`,
    message: `must be at least ${RENEWALS_UNTIL_LOST} times renewSeconds, so that one lost renewal moves nothing`,
    fieldPath: '.unavailableAfterSeconds',
  },
);

const updateWindow = z.object({
  days: listSet(z.enum(['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']), 7)
    .optional()
    .describe('The days on which the window opens. Default: every day.'),
  start: formed(z.string().max(5), /^([01][0-9]|2[0-3]):[0-5][0-9]$/, 'must be a time such as 02:00').describe(
    'When the window opens, in hours and minutes.',
  ),
  openSeconds: integer(600, 86_400).describe('How long the window is open.'),
  timeZone: z
    .string()
    .min(1)
    .max(64)
    .default('Etc/UTC')
    .describe('The time zone of start, such as Europe/Berlin. A window in an unknown time zone never opens.'),
});

const spec = withRules(
  z.object({
    nodeSelector: nodeSelector().optional(),
    tolerations: atomicList(toleration(), 32).optional().describe('Taints that the recorder pods tolerate.'),
    image: formed(z.string().min(1).max(512), /^\S+$/, 'must have no spaces')
      .optional()
      .describe("The recorder's image. Without it, the operator's."),
    imagePullSecretRefs: listMap(reference(), 16, 'name')
      .optional()
      .describe('Secrets with which the image is pulled.'),
    resources: resources()
      .optional()
      .describe(
        'Resources of the recorder. Without it, requests of 100m CPU and 256Mi memory, plus 3m and 2Mi for each of limits.maxCamerasPerNode cameras, and a limit of twice that memory.',
      ),
    priorityClassName: nodeNameOrEmpty()
      .optional()
      .describe('PriorityClass of the pods. Without it, the one that the operator is configured with; empty: none.'),
    imagePullPolicy: z
      .enum(['Always', 'IfNotPresent', 'Never'])
      .optional()
      .describe('When nodes pull the image. Default: IfNotPresent; Always for the tag latest.'),
    podTemplate: podTemplate
      .optional()
      .describe('What is added to the pods of recorders: networks, affinity, security context, environment.'),
    runAsUser: integer(0, 2 ** 31 - 1)
      .default(65_532)
      .describe('User id that recorders run as. When a pod starts, its directories are given to this user.'),
    archive: withRules(
      z.object({
        hostPath: hostPath()
          .optional()
          .describe(
            'Directory on each node; the archive is in its subdirectory {namespace}_{pool}. It must exist and should be the mount point of a disk.',
          ),
        volumeClaimTemplate: volumeClaimTemplate
          .optional()
          .describe(
            'Instead of hostPath: each node gets a PersistentVolumeClaim for archive and state. Claims stay when a node or the pool is deleted.',
          ),
        disks: listMap(disk(), 15, 'name')
          .optional()
          .describe(
            'Further disks of each node. A camera records to one disk for a UTC day. When a disk fails, its cameras record to the others.',
          ),
        retention: retention().optional().describe('Limits of all cameras of a node together.'),
        copies: copies()
          .optional()
          .describe('What is copied to object storage, of cameras without copies of their own.'),
        protectForSeconds: integer(3600, 36_525 * 86_400)
          .optional()
          .describe('A protection ends after this time unless an admin sets another end. Default: 90 days.'),
      }),
      {
        rule: 'has(self.hostPath) != has(self.volumeClaimTemplate)',
        message: 'needs either hostPath or volumeClaimTemplate',
      },
      {
        rule: '!has(self.disks) || self.disks.all(one, has(one.hostPath) == has(self.hostPath) && has(one.volumeClaimTemplate) == has(self.volumeClaimTemplate))',
        message: 'must have hostPath or volumeClaimTemplate, as the archive has',
        fieldPath: '.disks',
      },
      {
        rule: 'has(self.hostPath) == has(oldSelf.hostPath)',
        message:
          'must not change between hostPath and volumeClaimTemplate: footage would be left behind; make a new pool instead',
        reason: 'FieldValueForbidden',
      },
    ),
    stateHostPath: hostPath()
      .prefault('/var/lib/kube-nvr')
      .describe(
        'Directory on each node; the state of the recorder is in its subdirectory {namespace}_{pool}. It is made when it is missing. Not used with archive.volumeClaimTemplate: the claim has the state, too.',
      ),
    databaseSecretRef: reference().optional().describe('A Secret with the key url: a Postgres database.'),
    site: formed(z.string().min(1).max(100), /^[^\p{Cc}]*$/u, 'must have no control characters')
      .optional()
      .describe(
        'Name of the site: in the console, in exports, cases, reports and mails, and in the metric kube_nvr_info. A change replaces the pods.',
      ),
    camerasFromDatabase: z
      .boolean()
      .default(false)
      .describe(
        'true: each row of the table cameras that names a node of the pool is a Camera, which the operator keeps. It needs rights for that, which the chart gives with watch.databaseRows.',
      ),
    redisSecretRef: reference()
      .optional()
      .describe('A Secret with the key url: a Redis for jobs. Without it, each recorder runs its own.'),
    auth: auth.prefault({}),
    tls: withRules(
      z.object({
        mode: z
          .enum(['Secret', 'Auto'])
          .default('Secret')
          .describe(
            "Auto: certificates of the pool's CA, made and renewed by the operator; clients trust ca.crt of the ConfigMap <pool>-recorder-ca.",
          ),
        secretRef: reference()
          .optional()
          .describe('A Secret of type kubernetes.io/tls. If it has a ca.crt, recorders trust each other by it.'),
        names: listSet(z.string().min(1).max(253), 32)
          .optional()
          .describe(
            'With mode Auto: names and addresses for the certificate, in addition to those of nodes, pods and Services; for example, of an Ingress or load balancer that passes TLS through.',
          ),
      }),
      {
        rule: "(self.mode == 'Secret') == has(self.secretRef)",
        message: 'is required when mode is Secret, and forbidden otherwise',
        fieldPath: '.secretRef',
      },
      {
        rule: "self.mode == 'Auto' || !has(self.names)",
        message: 'is only for mode Auto: the certificate of a Secret has its own names',
        fieldPath: '.names',
      },
    )
      .optional()
      .describe('With it, recorders use HTTPS.'),
    metrics: z
      .object({
        mode: z
          .enum(['Token', 'None'])
          .default('Token')
          .describe(
            'Whether the metrics of recorders require a token: the one in the Secret <pool>-metrics-token, which the operator makes, or one that covers all cameras.',
          ),
      })
      .prefault({}),
    cameraNetworks: listSet(cidr(), 64)
      .optional()
      .describe(
        'Networks of the cameras: recorders connect to cameras nowhere else, and a NetworkPolicy lets them reach only these networks and what they need besides. Without it, cameras may be anywhere except on the node itself, at link-local addresses and in networks of the cluster. To allow one of those, name it here as a network at least as narrow.',
      ),
    webhooksSecretRef: reference()
      .optional()
      .describe(
        "A Secret with the key webhooks.yaml: the list webhooks of the recorder's file. Recorders read it again when it changes; it may be made later. With cameraNetworks, webhooks are reached at port 443 only.",
      ),
    audit: audit
      .optional()
      .describe(
        'Where recorders send each line of their audit. Changed Secrets are read at the next delivery, and may be made later; the lines wait until then.',
      ),
    licenseSecretRef: reference()
      .optional()
      .describe('A Secret with the key recorder.lic: the licence of each node. It is read only with licensePublicKey.'),
    licensePublicKey: formed(
      z.string().max(44),
      /^[A-Za-z0-9+/]{43}=$/,
      'must be the 32 bytes of an Ed25519 key in base64: 44 characters, of which the last is =',
    )
      .optional()
      .describe('The Ed25519 public key that verifies licences, in base64. With it, each node needs a licence.'),
    origins: listSet(origin(), 32)
      .optional()
      .describe(
        'Origins whose pages may use the recorders with their own token, in addition to the pages of the nodes: the Service or Ingress through which people open the page, and your own pages.',
      ),
    trustedProxies: listSet(network(), 32)
      .optional()
      .describe(
        'Addresses or networks of proxies in front of the recorders, such as an Ingress, whose X-Forwarded-For, -Host and -Proto are trusted. Without it, all clients of a proxy count as one.',
      ),
    advertise: advertise
      .prefault({})
      .describe('The address at which clients and other recorders reach the recorder of a node.'),
    limits: z
      .object({
        maxCamerasPerNode: integer(1, MAX_CAMERAS_PER_NODE)
          .default(100)
          .describe('A node with this many cameras is assigned no more.'),
      })
      .prefault({}),
    membership: z
      .object({
        mode: z
          .enum(['Automatic', 'Manual'])
          .default('Automatic')
          .describe('Manual: only a person or the cluster endpoints change which nodes are voters.'),
      })
      .prefault({}),
    failover: failover.prefault({}),
    cordon: z
      .object({
        mode: z
          .enum(['Drain', 'Ignore'])
          .default('Drain')
          .describe(
            'What happens when a Kubernetes node is cordoned, or tainted because it is out of service or an autoscaler removes it. Drain: its cameras move to other nodes, as with drain: true of the RecorderNode, and kubectl drain waits for that. Ignore: nothing.',
          ),
        progressDeadlineSeconds: integer(10, 86_400)
          .default(600)
          .describe('If no camera could leave the node for this long, kubectl drain does not wait for it any longer.'),
      })
      .prefault({}),
    update: z
      .object({
        type: z
          .enum(['Rolling', 'OnDelete'])
          .default('Rolling')
          .describe(
            'Rolling: maxUnavailable nodes at a time, the next one when a previous one is ready and online; nodes that do not work come last. A node that dies holds the update for ten minutes. OnDelete: when somebody deletes the pod.',
          ),
        maxUnavailable: countOrShare()
          .default('2%')
          .describe(
            'How many working nodes may be updated at the same time: a number, or a percentage of all nodes, rounded down, but at least one. With a percentage, the first node is updated alone. Nodes that do not work are not counted, and the update does not wait for them.',
          ),
        drain: z
          .boolean()
          .default(true)
          .describe('Cameras move to other nodes before the pod of their node is replaced.'),
        progressDeadlineSeconds: integer(10, 86_400)
          .default(600)
          .describe('A node that is not ready and online after this time stops the roll-out.'),
        windows: atomicList(updateWindow, 16)
          .optional()
          .describe(
            'When an update of a node may begin. Without it: at any time. A node whose update has begun is completed, and pods that do not work are replaced at any time.',
          ),
      })
      .prefault({}),
  }),
  {
    rule: "!has(self.stateHostPath) || !has(self.archive.hostPath) || !((self.stateHostPath + '/').startsWith(self.archive.hostPath + '/'))",
    message: 'must not lie in archive.hostPath: the state of the recorder is not footage',
    fieldPath: '.stateHostPath',
  },
  {
    rule: '!self.camerasFromDatabase || has(self.databaseSecretRef)',
    message: 'is required with camerasFromDatabase',
    fieldPath: '.databaseSecretRef',
  },
);

const count = () => integer(0, 1_000_000);

const status = statusObject({
  observedGeneration: integer(0, Number.MAX_SAFE_INTEGER).optional(),
  nodes: count().optional().describe('Nodes of the pool.'),
  nodesReady: count().optional().describe('Nodes that record or are ready to.'),
  nodesUpdated: count().optional().describe('Nodes that run the version of the spec.'),
  cameras: count().optional().describe('Cameras of the pool.'),
  camerasAssigned: count().optional().describe('Cameras that have a node.'),
  camerasRecording: count().optional().describe('Cameras that are written to a disk.'),
  leader: nodeName().optional().describe('The live voter that accepts changes of the membership. Absent: no majority.'),
  voters: listSet(nodeName(), 256).optional(),
  quorum: statusObject({
    needed: count().describe('How many live voters a majority needs.'),
    live: count().describe('Voters that are live.'),
  }).optional(),
  conditions: conditions().optional(),
});

export const recorderPoolSchema = withRules(
  statusObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal('RecorderPool'),
    metadata,
    spec,
    status: status.optional(),
  }),
  LABEL_RULE,
);

export type RecorderPool = Immutable<z.output<typeof recorderPoolSchema>> & PartlyRead;
export type RecorderPoolStatus = NonNullable<RecorderPool['status']>;

/** Throws ResourceError. */
export const parseRecorderPool = (value: unknown): RecorderPool =>
  parseResource('RecorderPool', recorderPoolSchema, value, {
    // Nothing is made from a pool that is read in part.
    instead: { 'spec.archive': { hostPath: '/unread' } },
    essential: ['spec'],
  });
