// What people may do with our kinds, as rules of ClusterRoles that a cluster's owner binds or aggregates.

import { CAMERAS, GROUP, RECORDER_NODES, RECORDER_POOLS } from '../../crds/names.ts';
import type { PolicyRule } from './recorder-access.ts';

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/** Reading everything of the group. */
export const viewRules = (): readonly PolicyRule[] => [
  { apiGroups: [GROUP], resources: [CAMERAS, RECORDER_POOLS, RECORDER_NODES], verbs: READ },
];

/** Also writing Cameras. Not pools: their author chooses the image that runs on the nodes, and a directory of theirs. */
export const editRules = (): readonly PolicyRule[] => [
  ...viewRules(),
  { apiGroups: [GROUP], resources: [CAMERAS], verbs: WRITE },
];

/** Everything: as good as root on the nodes that record. */
export const adminRules = (): readonly PolicyRule[] => [
  ...viewRules(),
  { apiGroups: [GROUP], resources: [CAMERAS, RECORDER_POOLS, RECORDER_NODES], verbs: WRITE },
];
