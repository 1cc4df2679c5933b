// The types of jobs, for the API and for the queue.

import type { Interval } from '../../base/interval.ts';
import type { Elsewhere } from '../footage/holders.ts';
import type { JobErrorCode, JobRetry } from './error.ts';
import type { AssemblyPart } from './peer-part.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';

export const JOB_KINDS = ['export', 'timelapse'] as const;
export type JobKind = (typeof JOB_KINDS)[number];
export type JobState = 'pending' | 'running' | 'done' | 'failed';

/** A requested job. */
export interface JobRequest {
  readonly kind: JobKind;
  readonly cameraId: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** How many times faster a time-lapse runs. */
  readonly speed?: number;
  /** The footage is fetched from other recorders, in this order. The window is 0 to 0 until they have reported theirs. */
  readonly assembly?: Assembly;
  /** The footage of all nodes of the cluster; otherwise that of this node. */
  readonly isOfAllNodes?: boolean;
  /** For a case: several cameras, of which `cameraId` is the first. The kind is then `export`. */
  readonly case?: JobCase;
  /** Name of the token of the caller. */
  readonly by?: string;
  /** Requested by a node of version 0.1.0 for an export of several nodes: not listed. */
  readonly isPart?: boolean;
}

export interface JobCase {
  readonly cameras: readonly string[];
  /** Its name for people. */
  readonly name?: string | undefined;
  /** As others file it, such as the police. */
  readonly number?: string | undefined;
  /** Why it was made. */
  readonly reason?: string | undefined;
  readonly notes?: string | undefined;
  /** Its result is kept until somebody removes the job. */
  readonly isKept?: boolean | undefined;
}

/** All cameras of a job. */
export const camerasOf = (request: Pick<JobRequest, 'cameraId' | 'case'>): readonly string[] =>
  request.case?.cameras ?? [request.cameraId];

interface Assembly {
  readonly parts: readonly AssemblyPart[];
  /** The caller sent a credential. It is sent to the peers, and kept in memory only. */
  readonly withCredential: boolean;
}

/** Wall time without footage. */
export interface JobGap extends Interval {
  /** The cause as in the list of gaps; undefined when it is unknown. */
  readonly cause?: string;
}

/**
 * One of several movies in a result: where the codec changes, another movie begins; in a case, each camera has its own
 * movies.
 */
export interface JobPart {
  /** Only in a case. */
  readonly cameraId?: string;
  /** File name in the ZIP file. */
  readonly name: string;
  /** Position of its bytes in the result. */
  readonly offset: number;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** The part of the window that it covers. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Hex; absent in results of earlier versions. */
  readonly sha256?: string;
  /** Four-letter code of its sample entry. */
  readonly codec: string;
  readonly width: number;
  readonly height: number;
}

/** The result of one camera of a case. */
export interface CameraOutcome {
  readonly cameraId: string;
  readonly durationMs: number;
  readonly gaps: readonly JobGap[];
  readonly elsewhere?: readonly Elsewhere[];
  /** Why there is no movie of this camera. */
  readonly reason?: string;
  readonly reasonCode?: JobErrorCode;
}

export interface JobOutcome {
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** Empty for a case: see `cameras`. */
  readonly gaps: readonly JobGap[];
  /** Footage of the window on other nodes, which is not in the result. */
  readonly elsewhere?: readonly Elsewhere[];
  /** Of a result that is one movie, hex; absent in results of earlier versions. */
  readonly sha256?: string;
  /** Set if the window was not over: the end of its known part. */
  readonly untilMs?: number;
  /** Set for a result that is a ZIP file of movies. */
  readonly parts?: readonly JobPart[];
  /** Of a case. */
  readonly cameras?: readonly CameraOutcome[];
}

export interface Job extends JobRequest {
  readonly id: string;
  readonly state: JobState;
  /** From 0 to 1. */
  readonly progress: number;
  readonly createdAtMs: number;
  /** Of a job that is done or failed. */
  readonly completedAtMs: number | undefined;
  /** Of a job that is done. */
  readonly outcome: JobOutcome | undefined;
  /** Of a job that failed. */
  readonly reason: string | undefined;
  readonly reasonCode?: JobErrorCode | undefined;
  readonly retry?: JobRetry | undefined;
}

/** How long a result can be downloaded after the job is done. */
export const RESULT_KEPT_MS = HOUR_MS;
/** Whether the result of a job can no longer be downloaded. */
export const isExpired = ({ completedAtMs = Infinity, case: of }: Job, nowMs: number): boolean =>
  !of?.isKept && nowMs - completedAtMs >= RESULT_KEPT_MS;

/** How long a job is kept after it has ended; at most the last five thousand jobs are kept. Not for a case that is kept. */
export const JOB_KEPT_MS = 7 * DAY_MS;

/** The number of jobs in one queue. */
export interface QueueCount {
  readonly queue: JobKind;
  readonly waiting: number;
  readonly running: number;
}

/** The reports of a running job. */
export interface JobReport {
  /** From 0 to 1. */
  readonly progress: (share: number) => void;
  /** Reports the window of an assembly when it is known. */
  readonly window: (fromMs: number, toMs: number) => Promise<void>;
}

/** Carries out one job. The message of an error is the reason of the job. */
export type Work = (id: string, request: JobRequest, report: JobReport, signal: AbortSignal) => Promise<JobOutcome>;

/** A change of a job, for its observer. */
type JobChange = 'queued' | 'progress' | 'done' | 'failed' | 'removed';
export type JobObserver = (
  change: JobChange,
  job: Pick<Job, 'id' | 'kind' | 'cameraId' | 'progress'> & Partial<Job>,
) => void;

/** Stores jobs across restarts, and runs a limited number of each kind at once. */
export interface JobQueue {
  /** Rejects with JobsUnavailable, like all other methods. */
  add(id: string, request: JobRequest): Promise<void>;
  get(id: string): Promise<Job | undefined>;
  /** Newest first. */
  list(): Promise<Job[]>;
  counts(): Promise<QueueCount[]>;
  /** The number of jobs of a token that have not ended. */
  unfinishedOf(by: string): Promise<number>;
  /** Cancels the job if it waits or runs; resolves when it has ended and is removed. False for an unknown id. */
  remove(id: string): Promise<boolean>;
  /** Stops the work; running jobs run again after the next start. */
  close(): Promise<void>;
}

/** A caller has the maximum number of jobs; the message names it. */
export class TooManyJobs extends Error {
  override readonly name = 'TooManyJobs';
}

/** Jobs are not available; the message says what is missing. */
export class JobsUnavailable extends Error {
  override readonly name = 'JobsUnavailable';
}
