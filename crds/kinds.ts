// What a CRD says about each kind besides its schema: names, columns of `kubectl get` and selectable fields.

import type { z } from 'zod';
import { cameraSchema, MAX_CAMERA_NAME } from './camera.ts';
import { archiveTargetSchema } from './archive-target.ts';
import {
  ARCHIVE_TARGETS,
  ASSIGNED_NODE_FIELD,
  CAMERAS,
  PREVIOUS_NODE_FIELD,
  RECORDER_NODES,
  RECORDER_POOLS,
  RECORDING_OBJECTIVES,
  STANDBY_NODE_FIELD,
} from './names.ts';
import { recorderNodeSchema } from './recorder-node.ts';
import { MAX_POOL_NAME, recorderPoolSchema } from './recorder-pool.ts';
import { recordingObjectiveSchema } from './recording-objective.ts';

/** A column of `kubectl get`; `wide` columns appear only with `-o wide`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly wide?: true;
  readonly format?: 'int64';
  readonly description?: string;
}

export interface KindDefinition {
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortName: string;
  readonly schema: z.ZodType;
  /** Restrictions of `metadata.name` beyond those of Kubernetes. */
  readonly name: { readonly maxLength: number };
  readonly columns: readonly PrinterColumn[];
  /** Fields for field selectors, such as `status.assignment.node`. */
  readonly selectableFields: readonly string[];
}

const AGE: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

const condition = (type: string, name = type): PrinterColumn => ({
  name,
  type: 'string',
  jsonPath: `.status.conditions[?(@.type=="${type}")].status`,
});

const whyNotReady: PrinterColumn = {
  name: 'Reason',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
};

const CAMERA_KIND: KindDefinition = {
  kind: 'Camera',
  plural: CAMERAS,
  singular: 'camera',
  shortName: 'cam',
  schema: cameraSchema,
  name: { maxLength: MAX_CAMERA_NAME },
  columns: [
    { name: 'Node', type: 'string', jsonPath: `.${ASSIGNED_NODE_FIELD}` },
    condition('Recording'),
    condition('Ready'),
    whyNotReady,
    AGE,
    { name: 'Pool', type: 'string', jsonPath: '.spec.poolRef.name', wide: true },
    { name: 'Epoch', type: 'integer', format: 'int64', jsonPath: '.status.assignment.epoch', wide: true },
    { name: 'Previous', type: 'string', jsonPath: `.${PREVIOUS_NODE_FIELD}`, wide: true },
    { name: 'Standby', type: 'string', jsonPath: `.${STANDBY_NODE_FIELD}`, wide: true },
    { name: 'Assigned', type: 'date', jsonPath: '.status.assignment.time', wide: true },
    { name: 'Because', type: 'string', jsonPath: '.status.assignment.reason', wide: true },
    { name: 'Source', type: 'string', jsonPath: '.spec.source', wide: true },
  ],
  selectableFields: [ASSIGNED_NODE_FIELD, PREVIOUS_NODE_FIELD, STANDBY_NODE_FIELD],
};

const RECORDER_POOL_KIND: KindDefinition = {
  kind: 'RecorderPool',
  plural: RECORDER_POOLS,
  singular: 'recorderpool',
  shortName: 'rpool',
  schema: recorderPoolSchema,
  name: { maxLength: MAX_POOL_NAME },
  columns: [
    {
      name: 'Nodes',
      type: 'integer',
      jsonPath: '.status.nodesReady',
      description: 'Nodes that record or are ready to.',
    },
    { name: 'Cameras', type: 'integer', jsonPath: '.status.cameras' },
    { name: 'Recording', type: 'integer', jsonPath: '.status.camerasRecording' },
    condition('QuorumAvailable', 'Quorum'),
    condition('Ready'),
    whyNotReady,
    AGE,
    { name: 'Updated', type: 'integer', jsonPath: '.status.nodesUpdated', wide: true },
    { name: 'Assigned', type: 'integer', jsonPath: '.status.camerasAssigned', wide: true },
    { name: 'Leader', type: 'string', jsonPath: '.status.leader', wide: true },
    { name: 'Archive', type: 'string', jsonPath: '.spec.archive.hostPath', wide: true },
  ],
  selectableFields: [],
};

const RECORDER_NODE_KIND: KindDefinition = {
  kind: 'RecorderNode',
  plural: RECORDER_NODES,
  singular: 'recordernode',
  shortName: 'rnode',
  schema: recorderNodeSchema,
  name: { maxLength: 239 },
  columns: [
    { name: 'Role', type: 'string', jsonPath: '.spec.role' },
    { name: 'Drain', type: 'boolean', jsonPath: '.status.drain' },
    condition('Online'),
    condition('Ready'),
    whyNotReady,
    { name: 'Version', type: 'string', jsonPath: '.status.version' },
    AGE,
    { name: 'Pool', type: 'string', jsonPath: '.spec.poolRef.name', wide: true },
    { name: 'Address', type: 'string', jsonPath: '.spec.address', wide: true },
    { name: 'Archive', type: 'string', jsonPath: '.status.archiveID', wide: true },
    { name: 'Free', type: 'integer', format: 'int64', jsonPath: '.status.freeBytes', wide: true },
  ],
  selectableFields: [],
};

const ARCHIVE_TARGET_KIND: KindDefinition = {
  kind: 'ArchiveTarget',
  plural: ARCHIVE_TARGETS,
  singular: 'archivetarget',
  shortName: 'atarget',
  schema: archiveTargetSchema,
  name: { maxLength: 32 },
  columns: [
    { name: 'Bucket', type: 'string', jsonPath: '.spec.bucket' },
    condition('Ready'),
    whyNotReady,
    AGE,
    { name: 'Endpoint', type: 'string', jsonPath: '.spec.endpoint', wide: true },
    { name: 'Prefix', type: 'string', jsonPath: '.spec.prefix', wide: true },
  ],
  selectableFields: [],
};

const RECORDING_OBJECTIVE_KIND: KindDefinition = {
  kind: 'RecordingObjective',
  plural: RECORDING_OBJECTIVES,
  singular: 'recordingobjective',
  shortName: 'robj',
  schema: recordingObjectiveSchema,
  name: { maxLength: 63 },
  columns: [
    { name: 'Target', type: 'number', jsonPath: '.spec.targetPercent' },
    { name: 'Achieved', type: 'number', jsonPath: '.status.achievedPercent' },
    {
      name: 'Left',
      type: 'integer',
      format: 'int64',
      jsonPath: '.status.budgetLeftSeconds',
      description: 'Seconds that may still be missing.',
    },
    condition('Met'),
    condition('Ready'),
    whyNotReady,
    AGE,
    { name: 'Pool', type: 'string', jsonPath: '.spec.poolRef.name', wide: true },
    { name: 'Cameras', type: 'integer', jsonPath: '.status.cameras', wide: true },
    { name: 'Measured', type: 'date', jsonPath: '.status.measuredTime', wide: true },
  ],
  selectableFields: [],
};

export const KINDS: readonly KindDefinition[] = [
  CAMERA_KIND,
  RECORDER_POOL_KIND,
  RECORDER_NODE_KIND,
  ARCHIVE_TARGET_KIND,
  RECORDING_OBJECTIVE_KIND,
];
