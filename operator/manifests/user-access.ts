// Rules of ClusterRoles for people who use our kinds; a cluster's owner binds or aggregates them.

import {
  ARCHIVE_TARGETS,
  CAMERAS,
  GROUP,
  RECORDER_NODES,
  RECORDER_POOLS,
  RECORDING_OBJECTIVES,
} from '../../crds/names.ts';
import type { PolicyRule } from './recorder-access.ts';

const ALL = [CAMERAS, RECORDER_POOLS, RECORDER_NODES, ARCHIVE_TARGETS, RECORDING_OBJECTIVES];
const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/** Reads everything of the group. */
export const viewRules = (): readonly PolicyRule[] => [{ apiGroups: [GROUP], resources: ALL, verbs: READ }];

/**
 * Also writes Cameras. Not pools, whose author chooses the image that runs on the nodes and the directories that it gets, not
 * ArchiveTargets, whose author chooses where footage goes, and not RecordingObjectives, which others have been promised.
 */
export const editRules = (): readonly PolicyRule[] => [
  ...viewRules(),
  { apiGroups: [GROUP], resources: [CAMERAS], verbs: WRITE },
];

/** Writes everything, which amounts to root on the nodes that record. */
export const adminRules = (): readonly PolicyRule[] => [
  ...viewRules(),
  { apiGroups: [GROUP], resources: ALL, verbs: WRITE },
];
