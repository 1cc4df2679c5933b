// What a job is, for those who ask for one.

import type { FootageGap } from '../mp4/join.ts';
import type { JobErrorCode } from './error.ts';
import type { AssemblyPart } from './peer-part.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';

export type JobKind = 'export' | 'timelapse';
export type JobState = 'pending' | 'running' | 'done' | 'failed';

/** What was asked for. */
export interface JobRequest {
  readonly kind: JobKind;
  readonly cameraId: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** How many times faster a time-lapse runs. */
  readonly speed?: number;
  /** The footage is fetched from other recorders, in this order. The window is 0 to 0 until they have said theirs. */
  readonly assembly?: Assembly;
  /** Several cameras, of which `cameraId` is the first. Of an export only. */
  readonly case?: JobCase;
  /** Name of the token that asks. */
  readonly by?: string;
}

export interface JobCase {
  readonly cameras: readonly string[];
  /** What people call it. */
  readonly name?: string | undefined;
}

/** All cameras that a job is of. */
export const camerasOf = (request: Pick<JobRequest, 'cameraId' | 'case'>): readonly string[] =>
  request.case?.cameras ?? [request.cameraId];

export interface Assembly {
  readonly parts: readonly AssemblyPart[];
  /** The caller sent a credential, which goes along to the peers and is kept in memory only. */
  readonly withCredential: boolean;
}

/** Wall time without footage. */
export interface JobGap extends FootageGap {
  /** As the list of gaps names it; undefined when that does not know. */
  readonly cause?: string;
}

/** One of several movies in a result: where the codec changes, another begins; in a case, each camera has its own. */
export interface JobPart {
  /** In a case. */
  readonly cameraId?: string;
  /** In the archive that the result is. */
  readonly name: string;
  /** Where its bytes lie in the result. */
  readonly offset: number;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** The part of the window that it is of. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Four-letter code of its sample entry. */
  readonly codec: string;
  readonly width: number;
  readonly height: number;
}

/** What a case has of one of its cameras. */
export interface CameraOutcome {
  readonly cameraId: string;
  readonly durationMs: number;
  readonly gaps: readonly JobGap[];
  /** Why there is no movie of it. */
  readonly reason?: string;
  readonly reasonCode?: JobErrorCode;
}

export interface JobOutcome {
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** Of a case: see `cameras`. */
  readonly gaps: readonly JobGap[];
  /** Where the window was not over: up to when it is known what there is of it. */
  readonly untilMs?: number;
  /** Of a result that is an archive of movies. */
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
}

/** How long a result can be fetched after the job is done. */
export const RESULT_KEPT_MS = HOUR_MS;
/** Whether the result of a job cannot be fetched any more. */
export const isExpired = ({ completedAtMs = Infinity }: Job, nowMs: number): boolean =>
  nowMs - completedAtMs >= RESULT_KEPT_MS;

/** How long a job is known after it has ended, of the last five thousand. */
export const JOB_KEPT_MS = 7 * DAY_MS;

/**
 * Assemblies have a queue of their own: they wait for exports of other nodes, which must not wait for assemblies of
 * theirs.
 */
export const QUEUE_NAMES = ['export', 'timelapse', 'assemble'] as const;
export type QueueName = (typeof QUEUE_NAMES)[number];

/** How much is to do in one of them. */
export interface QueueCount {
  readonly queue: QueueName;
  readonly waiting: number;
  readonly running: number;
}

/** What work says while it lasts. */
export interface JobReport {
  /** From 0 to 1. */
  readonly progress: (share: number) => void;
  /** Which window it turned out to be. */
  readonly window: (fromMs: number, toMs: number) => Promise<void>;
}

/** Does one job. What it throws is the job's reason. */
export type Work = (id: string, request: JobRequest, report: JobReport, signal: AbortSignal) => Promise<JobOutcome>;

/** What happens to a job, for those who want to know. */
export type JobChange = 'queued' | 'progress' | 'done' | 'failed' | 'removed';
export type JobObserver = (
  change: JobChange,
  job: Pick<Job, 'id' | 'kind' | 'cameraId' | 'progress'> & Partial<Job>,
) => void;

/** Keeps jobs, also while the process is down, and runs so many of each kind at once. */
export interface JobQueue {
  /** Throws JobsUnavailable, as all others do. */
  add(id: string, request: JobRequest): Promise<void>;
  get(id: string): Promise<Job | undefined>;
  /** Newest first. */
  list(): Promise<Job[]>;
  counts(): Promise<QueueCount[]>;
  /** How many that a token asked for have not ended. */
  unfinishedOf(by: string): Promise<number>;
  /** Cancels one that waits or runs; resolves when it has ended and is forgotten. False for one that is unknown. */
  remove(id: string): Promise<boolean>;
  /** Stops work; jobs under way run again after the next start. */
  close(): Promise<void>;
}

/** One caller has as many jobs as he may; the message says how many. */
export class TooManyJobs extends Error {
  override readonly name = 'TooManyJobs';
}

/** Jobs cannot be had now; the message says what is missing. */
export class JobsUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'JobsUnavailable';
  }
}
