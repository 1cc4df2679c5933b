// Names that operator and recorders agree on (docs/design/cluster.md), and the functions that make them.

export const GROUP = 'kube-nvr.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;
/** Whom tokens of Kubernetes for recorders are meant for, unless a pool says otherwise. */
export const TOKEN_AUDIENCE = GROUP;
/** `kubectl get kubenvr` lists all kinds of the group. */
export const CATEGORY = 'kubenvr';

/** Plural names, as in the paths of the API server. */
export const CAMERAS = 'cameras';
export const RECORDER_POOLS = 'recorderpools';
export const RECORDER_NODES = 'recordernodes';

export const POOL_LABEL = 'kube-nvr.dev/pool';
export const NAME_LABEL = 'app.kubernetes.io/name';
export const COMPONENT_LABEL = 'app.kubernetes.io/component';
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';

/** On a Secret: the hosts of the cameras that its login is for (`hostsNamedBy`). Without it no recorder may read the Secret. */
export const CAMERA_HOSTS = 'kube-nvr.dev/camera-hosts';

/** On the Role of a pool's recorders: only Secrets that name hosts are in it, or what was in use before they had to. */
export const GRANTS_NAMED_LOGINS = 'kube-nvr.dev/grants-named-logins';

export const APP_NAME = 'kube-nvr';
export type Component = 'recorder' | 'operator';

/** Writes objects that the operator owns. */
export const OPERATOR_MANAGER = 'kube-nvr-operator';
/** Writes the status of Cameras and RecorderPools. */
export const OPERATOR_STATUS_MANAGER = 'kube-nvr-operator-status';
/** Writes the status of a RecorderNode. */
export const RECORDER_MANAGER = 'kube-nvr-recorder';

/** The Lease that says which replica of the operator leads; in the operator's own namespace. */
export const OPERATOR_LEASE = 'kube-nvr-operator';

/** The keys of the CAs of all pools; in the operator's own namespace, and nobody else's to read. */
export const AUTHORITIES_SECRET = 'kube-nvr-authorities';

/** Who a recorder is for its peers: a URI in its certificate, which holds wherever it is reached. */
export const nodeIdentity = (namespace: string, pool: string, node: string): string =>
  `kube-nvr://${namespace}/${pool}/${node}`;

/** Fields by which Cameras can be selected in a list or watch. */
export const ASSIGNED_NODE_FIELD = 'status.assignment.node';
export const PREVIOUS_NODE_FIELD = 'status.assignment.previousNode';

/** A token bound to a pod carries its node in this extra claim (since Kubernetes 1.32 always). */
export const NODE_NAME_CLAIM = 'authentication.kubernetes.io/node-name';

const NODE_LEASE_PREFIX = 'kube-nvr-node-';

/** The Lease by which the recorder on this node shows that it lives; in the pool's namespace. */
export const nodeLeaseName = (node: string): string => `${NODE_LEASE_PREFIX}${node}`;

/** The node whose Lease this is; undefined for other Leases. */
export const nodeOfLease = (lease: string): string | undefined =>
  lease.startsWith(NODE_LEASE_PREFIX) ? lease.slice(NODE_LEASE_PREFIX.length) : undefined;

/** Labels of what belongs to no single pool. */
export const labels = (component: Component): Record<string, string> => ({
  [NAME_LABEL]: APP_NAME,
  [COMPONENT_LABEL]: component,
  [MANAGED_BY_LABEL]: OPERATOR_MANAGER,
});

/** Labels of everything that belongs to a pool: its DaemonSet and pods, Leases, RecorderNodes. */
export const poolLabels = (pool: string): Record<string, string> => ({
  ...labels('recorder'),
  [POOL_LABEL]: pool,
});

/** DaemonSet, ServiceAccount, Role, RoleBinding, Service and PodDisruptionBudget of a pool. */
export const recorderName = (pool: string): string => `${pool}-recorder`;

/** The Secret with the token by which metrics of a pool's recorders are read. */
export const metricsTokenName = (pool: string): string => `${pool}-metrics-token`;

/**
 * The directory of a pool in a volume of its nodes. One level, and a name that neither a namespace nor a pool can have, nor
 * anything that an archive holds.
 */
export const directoryOfPool = ({ namespace, pool }: { readonly namespace: string; readonly pool: string }): string =>
  `${namespace}_${pool}`;
