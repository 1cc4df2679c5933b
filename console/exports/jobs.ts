// Exports and time-lapses: those of all nodes as a list, and those that were begun on this page, whose results the browser
// downloads by itself.

import { signal } from '@preact/signals';
import type { Job, JobGap, UnlistedNodes } from '../app/answers.ts';
import { api, mediaAddress, request, wordsOf } from '../app/api.ts';
import { onEvent } from '../app/events.ts';
import type { Span } from '../playback/spans.ts';
import { splitExport } from './split.ts';
import { unlistedWords } from './unlisted.ts';

export interface Estimate {
  readonly duration_seconds: number;
  readonly size_bytes: number;
  readonly gaps: readonly JobGap[];
  readonly reason?: string;
}

interface ExportWish extends Span {
  readonly cameraId: string;
  /** A time-lapse is this many times faster; undefined: an export. */
  readonly speed: number | undefined;
}

/** Newest first; undefined until the recorder has answered. */
export const jobs = signal<readonly Job[] | undefined>(undefined);
export const jobsProblem = signal<string | undefined>(undefined);
/** Why the jobs of some nodes are not known now. */
export const jobsUnlisted = signal<readonly string[]>([]);
/** Ids of the jobs that were begun on this page, newest first. */
export const ownJobs = signal<readonly string[]>([]);

/** Ids of results that the browser has begun to download. */
const downloaded = new Set<string>();
/** Events report the progress of jobs on this node. The interval is for jobs of other nodes, and for events that were missed. */
const EVERY_MS = 5_000;

const query = ({ startMs, endMs, speed }: ExportWish): string =>
  `scope=cluster&from=${startMs / 1000}&to=${endMs / 1000}${speed === undefined ? '' : `&speed=${speed}`}`;

const pathOf = ({ cameraId, speed }: ExportWish): string =>
  `/api/archive/${encodeURIComponent(cameraId)}/${speed === undefined ? 'export' : 'timelapse'}`;

const partsOf = (wish: ExportWish): readonly ExportWish[] => splitExport(wish).map((part) => ({ ...wish, ...part }));

const estimateOf = (part: ExportWish, signal?: AbortSignal): Promise<Estimate> =>
  api<Estimate>(`${pathOf(part)}?${query(part)}&dry_run=1`, { method: 'POST', ...(signal && { signal }) });

/** The estimate for all parts together. Rejects with Problem. */
export async function estimate(wish: ExportWish, abort: AbortSignal): Promise<Estimate> {
  const answers = await Promise.all(partsOf(wish).map((part) => estimateOf(part, abort)));
  const reason = answers.every((one) => one.reason !== undefined) ? answers[0]?.reason : undefined;
  return {
    duration_seconds: answers.reduce((sum, one) => sum + one.duration_seconds, 0),
    size_bytes: answers.reduce((sum, one) => sum + one.size_bytes, 0),
    gaps: answers.flatMap(({ gaps }) => gaps),
    ...(reason === undefined ? {} : { reason }),
  };
}

/** Begins an export as one job, or as several if it is longer than a job may be. Rejects with Problem. */
export async function beginExport(wish: ExportWish): Promise<void> {
  const parts = partsOf(wish);
  for (const part of parts) {
    // A part without footage would be a job that fails.
    if (parts.length > 1 && (await estimateOf(part)).duration_seconds === 0) continue;
    const { job_id } = await api<{ job_id: string }>(`${pathOf(part)}?${query(part)}`, { method: 'POST' });
    ownJobs.value = [job_id, ...ownJobs.peek()];
  }
  await refreshJobs();
}

/** What people say of a case, and whether it is kept until somebody ends it. */
interface CaseAbout {
  readonly name?: string | undefined;
  readonly number?: string | undefined;
  readonly reason?: string | undefined;
  readonly notes?: string | undefined;
  readonly keep?: boolean | undefined;
}

interface CaseWish extends Span {
  readonly cameras: readonly string[];
  readonly about: CaseAbout;
}

/** Begins a case of several cameras: one ZIP file, or several if it is longer than a job may be. Rejects with Problem. */
export async function beginCase({ cameras, about, ...span }: CaseWish): Promise<void> {
  for (const { startMs, endMs } of splitExport(span)) {
    const body = { ...about, cameras, from: startMs / 1000, to: endMs / 1000 };
    const { job_id } = await api<{ job_id: string }>('/api/cases?scope=cluster', { method: 'POST', body });
    ownJobs.value = [job_id, ...ownJobs.peek()];
  }
  await refreshJobs();
}

/** Cancels it, or removes it with its result. */
export async function removeJob(jobId: string): Promise<void> {
  await api(`/api/archive/jobs/${encodeURIComponent(jobId)}`, { method: 'DELETE' });
  ownJobs.value = ownJobs.peek().filter((id) => id !== jobId);
  await refreshJobs();
}

export const downloadPath = (jobId: string): string =>
  `/api/archive/jobs/${encodeURIComponent(jobId)}/download?download=1`;

export const downloadAddress = (jobId: string): string => mediaAddress(downloadPath(jobId));

/** Starts a download, like a click on a link. */
export function download(address: string, name = ''): void {
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}

let reading: Promise<void> | undefined;

function refreshJobs(): Promise<void> {
  reading ??= readJobs().finally(() => (reading = undefined));
  return reading;
}

async function readJobs(): Promise<void> {
  try {
    const answer = await api<UnlistedNodes & { readonly jobs: readonly Job[] }>('/api/archive/jobs?scope=cluster');
    jobs.value = answer.jobs;
    jobsUnlisted.value = unlistedWords(answer);
    jobsProblem.value = undefined;
    for (const { job_id, state } of answer.jobs) {
      if (state !== 'done' || !ownJobs.peek().includes(job_id) || downloaded.has(job_id)) continue;
      downloaded.add(job_id);
      download(downloadAddress(job_id));
    }
  } catch (error) {
    jobsProblem.value = wordsOf(error);
  }
}

/** Keeps the list up to date until the returned function is called. */
export function followJobs(): () => void {
  void refreshJobs();
  const timer = setInterval(() => {
    if (!document.hidden) void refreshJobs();
  }, EVERY_MS);
  const end = onEvent(({ type, data }) => {
    if (type === 'job.progress') takeProgress(String(data['job_id']), Number(data['progress']));
    else if (type.startsWith('job.')) void refreshJobs();
  });
  return () => {
    clearInterval(timer);
    end();
  };
}

function takeProgress(jobId: string, progress: number): void {
  jobs.value = jobs
    .peek()
    ?.map((job) => (job.job_id === jobId && job.state !== 'done' ? { ...job, state: 'running', progress } : job));
}

/** SHA-256 of the result, from its manifest where the job does not say it. */
export async function digestOf(job: Job): Promise<string | undefined> {
  if (job.sha256 !== undefined) return job.sha256;
  if (job.manifest_url === undefined) return undefined;
  const manifest = (await (await request(job.manifest_url)).json()) as {
    readonly cameras?: readonly { readonly files?: readonly { readonly sha256?: string }[] }[];
  };
  const digests = manifest.cameras?.flatMap(({ files = [] }) => files.map(({ sha256 }) => sha256)) ?? [];
  return digests.length === 1 ? digests[0] : undefined;
}
