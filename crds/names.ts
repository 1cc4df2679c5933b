// Names that the operator and the recorders share (docs/design/cluster.md), and functions that make them.

export const GROUP = 'kube-nvr.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;
/** The audience of Kubernetes tokens for recorders, unless the pool sets another. */
export const TOKEN_AUDIENCE = GROUP;
/** `kubectl get kubenvr` lists all kinds of the group. */
export const CATEGORY = 'kubenvr';

/** Plural names, as in the paths of the API server. */
export const CAMERAS = 'cameras';
export const RECORDER_POOLS = 'recorderpools';
export const RECORDER_NODES = 'recordernodes';
export const ARCHIVE_TARGETS = 'archivetargets';
export const RECORDING_OBJECTIVES = 'recordingobjectives';

/** Annotation of a RecorderPool: the id of the proposal in its condition `Balanced` that a person approves. */
export const REBALANCE = 'kube-nvr.dev/rebalance';

export const POOL_LABEL = 'kube-nvr.dev/pool';
/** Label of a Camera: the group in which the console lists it. */
export const CAMERA_GROUP_LABEL = 'kube-nvr.dev/group';
export const NAME_LABEL = 'app.kubernetes.io/name';
export const COMPONENT_LABEL = 'app.kubernetes.io/component';
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';

/**
 * Annotation of a Secret: the hosts of the cameras that its login is for (`hostsNamedBy`). Without it no recorder may read the
 * Secret.
 */
export const CAMERA_HOSTS = 'kube-nvr.dev/camera-hosts';

/**
 * Annotation of the Role of a pool's recorders: the Role contains only Secrets that name hosts, or that were in use before this
 * was required.
 */
export const GRANTS_NAMED_LOGINS = 'kube-nvr.dev/grants-named-logins';

/** Label of the Camera of a row of the table `cameras`, and of the Secret with what the row says. */
export const ROW_LABEL = 'kube-nvr.dev/row';
/** The key of such a Secret with the settings of the camera, in the words of the configuration, as JSON. */
export const SEALED_ROW = 'settings';
/** Annotation of such a Camera and of its Secret: another value says that the Secret has changed. */
export const ROW_VERSION = 'kube-nvr.dev/row-version';
/** Annotation of the RecorderPool: how the table `cameras` is recognised as the one that was read last. */
export const ROWS_MARK = 'kube-nvr.dev/rows';

export const APP_NAME = 'kube-nvr';
type Component = 'recorder' | 'operator' | 'guard';

/** Field manager of the objects that the operator owns. */
export const OPERATOR_MANAGER = 'kube-nvr-operator';
/** Field manager of the operator for the status of Cameras and RecorderPools. */
export const OPERATOR_STATUS_MANAGER = 'kube-nvr-operator-status';
/** Field manager of the recorder for the status of its RecorderNode. */
export const RECORDER_MANAGER = 'kube-nvr-recorder';
/** What the leading server of a cluster without Kubernetes saw in etcd. */
export const ETCD_MANAGER = 'kube-nvr-etcd';
/** What the operator that leads read in the table `cameras`. */
export const ROWS_MANAGER = 'kube-nvr-rows';

/** The Lease of the operator's leader election; in the operator's own namespace. */
export const OPERATOR_LEASE = 'kube-nvr-operator';

/** The Secret with the CA keys of all pools; in the operator's own namespace, where nothing else may read it. */
export const AUTHORITIES_SECRET = 'kube-nvr-authorities';

/** The Secret with the users, tokens and key of sessions of a cluster of servers. Without it, users who were made on the page are none. */
export const LOGINS_SECRET = 'kube-nvr-logins';

/** The identity of a recorder towards its peers: a URI in its certificate, independent of its address. */
export const nodeIdentity = (namespace: string, pool: string, node: string): string =>
  `kube-nvr://${namespace}/${pool}/${node}`;

/** Fields of Cameras that can be used in the field selector of a list or watch. */
export const ASSIGNED_NODE_FIELD = 'status.assignment.node';
export const PREVIOUS_NODE_FIELD = 'status.assignment.previousNode';
export const STANDBY_NODE_FIELD = 'status.standby.node';

/** The extra claim with the node of a token that is bound to a pod (always set since Kubernetes 1.32). */
export const NODE_NAME_CLAIM = 'authentication.kubernetes.io/node-name';

const NODE_LEASE_PREFIX = 'kube-nvr-node-';

/** The Lease that the recorder of a node renews while it is alive; in the pool's namespace. */
export const nodeLeaseName = (node: string): string => `${NODE_LEASE_PREFIX}${node}`;

/** The node to which a Lease belongs; undefined for other Leases. */
export const nodeOfLease = (lease: string): string | undefined =>
  lease.startsWith(NODE_LEASE_PREFIX) ? lease.slice(NODE_LEASE_PREFIX.length) : undefined;

/** Labels of objects that belong to no single pool. */
export const labels = (component: Component): Record<string, string> => ({
  [NAME_LABEL]: APP_NAME,
  [COMPONENT_LABEL]: component,
  [MANAGED_BY_LABEL]: OPERATOR_MANAGER,
});

/** Labels of all objects of a pool: its DaemonSet and pods, Leases, RecorderNodes. */
export const poolLabels = (pool: string): Record<string, string> => ({
  ...labels('recorder'),
  [POOL_LABEL]: pool,
});

/** Label of guard pods: the pool. It is not `POOL_LABEL`, so that selectors of recorder pods do not match guards. */
const GUARDED_POOL_LABEL = 'kube-nvr.dev/guarded-pool';

/** Labels of the pods that keep `kubectl drain` waiting while their nodes record cameras of the pool. */
export const guardLabels = (pool: string): Record<string, string> => ({
  ...labels('guard'),
  [GUARDED_POOL_LABEL]: pool,
});

/** The pool that a guard pod belongs to; undefined for other pods. */
export const poolOfGuard = (podLabels: Readonly<Record<string, string>> | undefined): string | undefined =>
  podLabels?.[GUARDED_POOL_LABEL];

/** The guard pod of a node, whose name has at most 239 characters. */
export const guardName = (node: string): string => `nvr-guard-${node}`;

/** Name of the DaemonSet, ServiceAccount, Role, RoleBinding, Service and PodDisruptionBudget of a pool. */
export const recorderName = (pool: string): string => `${pool}-recorder`;

/** The Secret with the token for reading the metrics of a pool's recorders. */
export const metricsTokenName = (pool: string): string => `${pool}-metrics-token`;

/** The Secret with the key that encrypts the sessions of all recorders of a pool. */
export const sessionKeyName = (pool: string): string => `${pool}-session-key`;

/** The key in the data of that Secret, and so the name of the file in recorders. */
export const SESSION_KEY_FILE = 'session.key';

/** The Secret with the hashes of the tokens of a pool that names no Secret for them. */
export const tokensName = (pool: string): string => `${pool}-tokens`;

/** The Secret with the admin token of such a pool. */
export const adminTokenName = (pool: string): string => `${pool}-admin-token`;

/**
 * The directory of a pool in a volume of its nodes. It is a single level, and its name can be neither that of a namespace, a pool
 * nor of anything in an archive.
 */
export const directoryOfPool = ({ namespace, pool }: { readonly namespace: string; readonly pool: string }): string =>
  `${namespace}_${pool}`;
