// The RecordingObjective resource: how much of the time cameras of a pool must be recorded, and how it stands.

import { z } from 'zod';
import { MAX_CAMERA_NAME } from './camera.ts';
import { API_VERSION } from './names.ts';
import { parseResource, type PartlyRead } from './parse.ts';
import {
  conditions,
  formed,
  integer,
  LABEL_RULE,
  listMap,
  listSet,
  metadata,
  reference,
  statusObject,
  stringMap,
  subdomain,
  time,
  withRules,
  type Immutable,
} from './schema-parts.ts';

/** How many objectives the recorders of a pool measure. */
export const MAX_OBJECTIVES = 20;
const MAX_WORST = 5;

/** The causes of gaps (docs/gaps.md), as words of this API. */
const CAUSES = [
  'CameraUnreachable',
  'RefusedLogin',
  'StreamSilent',
  'ConnectionLost',
  'CameraError',
  'NoKeyFrame',
  'NotDecodable',
  'BitrateExceeded',
  'MachineDropped',
  'PacketsLost',
  'CameraStalled',
  'DiskFull',
  'DiskSlow',
  'DiskError',
  'NoDescriptors',
  'ClockStep',
  'MachineFrozen',
  'ProcessDown',
  'NodeDown',
  'Starting',
  'Stopped',
  'Moved',
  'Unlicensed',
  'OnOtherNode',
  'OnDiskAway',
  'OnNodeAway',
  'Unknown',
] as const;

const spec = withRules(
  z.object({
    poolRef: reference().prefault({ name: 'default' }).describe('The RecorderPool that records the cameras.'),
    cameras: listSet(
      formed(
        z.string().max(MAX_CAMERA_NAME),
        /^[a-z0-9*][a-z0-9.*-]*$/,
        'must be the name of a Camera, in which * stands for any characters',
      ),
      256,
    )
      .min(1)
      .optional()
      .describe('Names of Cameras, such as gate or dock-*. Without it and cameraSelector: all cameras of the pool.'),
    cameraSelector: stringMap(16, 63).optional().describe('Labels that a Camera must have, instead of its name.'),
    targetPercent: z
      .number()
      .min(1)
      .max(100)
      .describe(
        'Percent of the time in which these cameras should be recorded, such as 99.9. Rounded to three decimals.',
      ),
    windowSeconds: integer(86_400, 31 * 86_400)
      .default(30 * 86_400)
      .describe('The time up to now that status and alerts are about. Reports are about calendar months.'),
    excused: listSet(z.enum(CAUSES), CAUSES.length)
      .default(['Stopped', 'Unlicensed'])
      .describe('Causes of gaps that do not count.'),
  }),
  {
    rule: '!has(self.cameras) || !has(self.cameraSelector)',
    message: 'cannot be used together with cameras',
    fieldPath: '.cameraSelector',
  },
);

/** What was measured, in a status. */
export const measured = {
  measuredTime: time().optional().describe('The end of the window.'),
  cameras: integer(0, 1_000_000).optional().describe('How many cameras it covers.'),
  achievedPercent: z
    .number()
    .optional()
    .describe('How much was recorded. Absent if nothing should have been recorded.'),
  missingSeconds: integer(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('How much is missing, of all cameras together, without excused causes.'),
  budgetSeconds: integer(0, Number.MAX_SAFE_INTEGER).optional().describe('How much may be missing.'),
  budgetLeftSeconds: integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('Below zero: the objective is not met.'),
  worstCameras: listMap(
    statusObject({ camera: subdomain(MAX_CAMERA_NAME), missingSeconds: integer(0, Number.MAX_SAFE_INTEGER) }),
    MAX_WORST,
    'camera',
  )
    .optional()
    .describe('The cameras that miss most.'),
};

export const recordingObjectiveSchema = withRules(
  statusObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal('RecordingObjective'),
    metadata,
    spec,
    status: statusObject({
      observedGeneration: integer(0, Number.MAX_SAFE_INTEGER).optional(),
      ...measured,
      conditions: conditions().optional(),
    }).optional(),
  }),
  LABEL_RULE,
);

export type RecordingObjective = Immutable<z.output<typeof recordingObjectiveSchema>> & PartlyRead;

/** Throws ResourceError. */
export const parseRecordingObjective = (value: unknown): RecordingObjective =>
  // An objective of which a part is not understood would be another objective.
  parseResource('RecordingObjective', recordingObjectiveSchema, value);
