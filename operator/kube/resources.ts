// The kinds that the operator reads and writes.

import {
  ARCHIVE_TARGETS,
  CAMERAS,
  GROUP,
  RECORDER_NODES,
  RECORDER_POOLS,
  RECORDING_OBJECTIVES,
  VERSION,
} from '../../crds/names.ts';
import type { Resource } from './api.ts';

const core = (kind: string, plural: string): Resource => ({ group: '', version: 'v1', plural, kind });
const ours = (kind: string, plural: string): Resource => ({ group: GROUP, version: VERSION, plural, kind });
const named = (group: string, kind: string, plural: string): Resource => ({ group, version: 'v1', plural, kind });

export const CAMERA = ours('Camera', CAMERAS);
export const RECORDER_POOL = ours('RecorderPool', RECORDER_POOLS);
export const RECORDER_NODE = ours('RecorderNode', RECORDER_NODES);
export const ARCHIVE_TARGET = ours('ArchiveTarget', ARCHIVE_TARGETS);
export const RECORDING_OBJECTIVE = ours('RecordingObjective', RECORDING_OBJECTIVES);

export const NODE: Resource = { ...core('Node', 'nodes'), clusterScoped: true };
export const POD = core('Pod', 'pods');
export const SECRET = core('Secret', 'secrets');
export const SERVICE = core('Service', 'services');
export const SERVICE_ACCOUNT = core('ServiceAccount', 'serviceaccounts');
export const CONFIG_MAP = core('ConfigMap', 'configmaps');
export const PERSISTENT_VOLUME_CLAIM = core('PersistentVolumeClaim', 'persistentvolumeclaims');
export const DAEMON_SET = named('apps', 'DaemonSet', 'daemonsets');
export const POD_DISRUPTION_BUDGET = named('policy', 'PodDisruptionBudget', 'poddisruptionbudgets');
export const NETWORK_POLICY = named('networking.k8s.io', 'NetworkPolicy', 'networkpolicies');
export const SERVICE_CIDR: Resource = {
  ...named('networking.k8s.io', 'ServiceCIDR', 'servicecidrs'),
  clusterScoped: true,
};
export const ENDPOINT_SLICE = named('discovery.k8s.io', 'EndpointSlice', 'endpointslices');
export const ROLE = named('rbac.authorization.k8s.io', 'Role', 'roles');
export const ROLE_BINDING = named('rbac.authorization.k8s.io', 'RoleBinding', 'rolebindings');
export const LEASE = named('coordination.k8s.io', 'Lease', 'leases');
export const EVENT = named('events.k8s.io', 'Event', 'events');

/** `v1`, `apps/v1`. */
export const apiVersionOf = ({ group, version }: Resource): string => (group === '' ? version : `${group}/${version}`);
