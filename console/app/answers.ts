// Answers of the recorder as its API declares them: where console and API part, the compiler says so.

import type { z } from 'zod';
import type { UnlistedNodes as Unlisted } from '../../recorder/footage/elsewhere-item.ts';
import type { AlarmList } from '../../recorder/api/alarm-item.ts';
import type { JobItem } from '../../recorder/api/job-item.ts';
import type { Camera } from '../../recorder/api/camera-item.ts';
import type { NodeMetrics } from '../../recorder/api/node-metrics-item.ts';
import type { Protection as ProtectionItem } from '../../recorder/api/protection-item.ts';
import type { Session } from '../../recorder/api/session-item.ts';
import type { SignInProblem, SignInWays } from '../../recorder/api/sign-in-item.ts';
import type { Timeline } from '../../recorder/footage/timeline-item.ts';

type TimelineItem = z.output<typeof Timeline>['cameras'][number];
type FilledItem = TimelineItem['filled'][number];

export type CameraEvent = NonNullable<TimelineItem['events']>[number];
type Preview = NonNullable<TimelineItem['preview']>;

/** What the console reads of it; nodes of older versions leave `filled` out. */
export interface TimelineCamera extends Pick<TimelineItem, 'camera_id' | 'kept_from_ms'> {
  readonly spans: readonly Omit<TimelineItem['spans'][number], 'kind'>[];
  readonly gaps: readonly TimelineItem['gaps'][number][];
  readonly filled?: readonly Omit<FilledItem, 'from'>[];
  readonly preview?: readonly Preview[number][];
  readonly protections: readonly TimelineItem['protections'][number][];
  readonly events?: readonly Pick<
    CameraEvent,
    'id' | 'source' | 'type' | 'start_ms' | 'end_ms' | 'reported_by' | 'data'
  >[];
  readonly bands?: TimelineItem['bands'];
  readonly elsewhere: readonly TimelineItem['elsewhere'][number][];
}

export type Job = z.output<typeof JobItem>;
export type JobGap = NonNullable<Job['gaps']>[number];
export type UnlistedNodes = z.output<typeof Unlisted>;
export type AlarmAnswer = z.output<typeof AlarmList>;
export type AlarmItem = AlarmAnswer['alarms'][number];
export type NodeLoad = z.output<typeof NodeMetrics>;
export type CameraItem = z.output<typeof Camera>;
export type Protection = Omit<z.output<typeof ProtectionItem>, 'from' | 'to' | 'segments'>;
export type SessionItem = z.output<typeof Session>;
export type Issuer = z.output<typeof SignInWays>['issuers'][number];
export type { SignInProblem };
