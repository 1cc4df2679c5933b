// What a job is, for those who ask for one.

import type { FootageGap } from '../mp4/join.ts';
import type { AssemblyPart } from './peer-part.ts';

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
}

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

export interface JobOutcome {
  readonly sizeBytes: number;
  readonly durationMs: number;
  readonly gaps: readonly JobGap[];
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
}

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

/** Keeps jobs, also while the process is down, and runs so many of each kind at once. */
export interface JobQueue {
  /** Throws JobsUnavailable, as all others do. */
  add(id: string, request: JobRequest): Promise<void>;
  get(id: string): Promise<Job | undefined>;
  /** Newest first. */
  list(): Promise<Job[]>;
  counts(): Promise<QueueCount[]>;
  /** Cancels one that waits or runs; resolves when it has ended and is forgotten. False for one that is unknown. */
  remove(id: string): Promise<boolean>;
  /** Stops work; jobs under way run again after the next start. */
  close(): Promise<void>;
}

/** Jobs cannot be had now; the message says what is missing. */
export class JobsUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'JobsUnavailable';
  }
}
