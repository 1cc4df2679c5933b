// The jobs of one node: takes requests, does the work, hands out results, and removes them after an hour.

import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { link, mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { unlimitedMemory, type MemoryAccount } from '../../base/memory-budget.ts';
import type { Warning } from '../../base/reason.ts';
import { Turns } from '../../base/turns.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { assemble, type AssembleDeps } from './assemble.ts';
import { caseAssemblies } from './case-assemblies.ts';
import { exportCase } from './case.ts';
import { JobError } from './error.ts';
import { TEMPORARY_SUFFIX, estimateExport, exportWindow, temporaryName } from './export.ts';
import { newJobId } from './job-id.ts';
import type { JobArchive, PlannerDeps } from './export-plan.ts';
import { FfmpegCheck, lapseDurationMs, lapseEstimate, makeTimelapse } from './ffmpeg.ts';
import type { KnownTime } from './gap-causes.ts';
import {
  JOB_KEPT_MS,
  JobsUnavailable,
  TooManyJobs,
  QUEUE_NAMES,
  isAssembled,
  isExpired,
  type Job,
  type JobChange,
  type JobObserver,
  type JobOutcome,
  type JobQueue,
  type JobReport,
  type JobRequest,
  type QueueCount,
  type Work,
} from './job.ts';
import { SIGNATURE_BYTES, signManifest, type SignedManifest } from './manifest.ts';
import { memberAt } from './members.ts';
import { JobMetrics } from './metrics.ts';
import { movieName } from './movie-name.ts';
import { NodeKey, NodeKeyError } from './node-key.ts';
import { PEER_LIMITS, type PeerLimits } from './peer-part.ts';
import type { PeerAccess } from './peer-request.ts';
import type { Asker } from '../peers/peer-requests.ts';
import { SharedWork, type Made } from './shared-work.ts';
import { lapsedFootage, withHashes, type Written } from './written.ts';

export interface JobsOptions {
  /** The directory of results. */
  readonly directory: string;
  /** The directory of the key that signs manifests; created when it is missing. */
  readonly keyDirectory: string;
  /** The name of the node in manifests. */
  readonly nodeName: string;
  readonly recordPath: string;
  readonly archive: JobArchive;
  readonly ffmpegPath: string;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Number of bytes that may be written in `directory`: free space that is not reserved for recording. */
  readonly spareBytes: () => Promise<number>;
  /** Whether there may be jobs of an earlier process. If not, nothing is started until the first request. */
  readonly mayHaveJobs: () => Promise<boolean>;
  /** Rejects with JobsUnavailable, and is called again after a failure. */
  readonly openQueue: (work: Work, ended: (id: string) => void) => Promise<JobQueue>;
  /** Is called for every change of a job. */
  readonly observer?: JobObserver;
  /** Other recorders, for assemblies; without it, there are none. */
  readonly peers?: Omit<PeerAccess, 'silenceMs'>;
  readonly peerLimits?: PeerLimits;
  readonly knownTime?: (cameraId: string, fromMs: number, toMs: number, by: Asker) => Promise<KnownTime>;
  readonly registry?: Registry;
  /** For the buffers of jobs. */
  readonly memory?: MemoryAccount | undefined;
}

/** Maximum number of jobs of one token that wait or run: others have to wait for them. */
const MAX_UNFINISHED_OF_ONE = 100;
/** A request for this id shows whether Redis answers. */
const NO_JOB = 'none';
/** Time-lapses that are encoded at the same time, whatever they are made from. */
const CONCURRENT_ENCODERS = 2;
/** Two blocks that are read and written in turn (write-movie.ts), and the index of a file. */
const COPY_BYTES = 4 * 1024 * 1024;

/** A result that is older than this is made again for the next request: footage may have been added or removed. */
const RESULT_SHARED_MS = 1_800_000;
const SWEEP_MS = 60_000;
/** Between two progress events of one job. */
const TOLD_INTERVAL_MS = 1_000;
const FFMPEG_FOUND_FOR_MS = 15 * MINUTE_MS;
/** How long a scrape waits for Redis. */
const COUNT_TIMEOUT_MS = 500;
/** Used for ZIP files too. */
const RESULT_SUFFIX = '.mp4';
/** The file next to the result: the signature of its manifest, followed by the manifest. */
const MANIFEST_SUFFIX = '.manifest';
/** Directories with the parts of an assembly; they survive a restart as long as their job does. */
const PARTS_SUFFIX = '.parts';

export class Jobs {
  readonly #o: JobsOptions;
  readonly #ffmpeg: FfmpegCheck;
  readonly #shared = new SharedWork();
  /** Number of jobs that are being added, by name of the token. */
  readonly #coming = new Map<string, number>();
  /** Jobs that were accepted, and whose `queued` event was not sent yet. */
  readonly #unannounced = new Set<string>();
  /** Jobs that are being removed: their failure is not reported. */
  readonly #leaving = new Set<string>();
  readonly #encoders = new Turns(CONCURRENT_ENCODERS);
  readonly #memory: MemoryAccount;
  /** `Authorization` of the callers of jobs that have not ended, for requests to other nodes. In memory only. */
  readonly #credentials = new Map<string, string>();
  #queue: Promise<JobQueue> | undefined;
  #key: Promise<NodeKey> | undefined;
  #keyTrouble: string | undefined;
  #timer: Timer | undefined;
  #closed = false;
  #ffmpegMissing = false;
  #ffmpegFoundMs = -Infinity;
  /** Why jobs are not available. */
  #trouble: string | undefined;
  readonly #metrics: JobMetrics;
  #running = 0;
  /** When a job last made progress, or there was no job. */
  #progressMs: number;

  constructor(options: JobsOptions) {
    this.#o = options;
    this.#memory = options.memory ?? unlimitedMemory('jobs');
    const { ffmpegPath, clock, registry = new Registry() } = options;
    this.#ffmpeg = new FfmpegCheck(ffmpegPath, clock);
    this.#progressMs = clock.monotonicMs();
    this.#metrics = new JobMetrics(registry, {
      isAvailable: () => this.#trouble === undefined && !this.#ffmpegMissing,
      counts: () => this.#counts(),
      progressAgeMs: () => clock.monotonicMs() - this.#progressMs,
    });
  }

  /** Removes leftovers of a crash, and continues interrupted jobs. Never throws. */
  async start(): Promise<void> {
    const { directory, log } = this.#o;
    await this.signingKey().catch(() => {}); // the failure is shown as a warning
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      for (const name of await readdir(directory, { recursive: true })) {
        if (name.endsWith(TEMPORARY_SUFFIX)) await rm(join(directory, name), { force: true });
      }
      if (await this.#o.mayHaveJobs()) await this.#asked((queue) => queue.get(NO_JOB));
    } catch (err) {
      if (!(err instanceof JobsUnavailable)) log.error({ err }, 'the directory of job results cannot be used');
    }
    await this.#sweep();
  }

  /**
   * Problems that prevent jobs, at most a minute old. If ffmpeg is removed later, that is noticed within a quarter of an
   * hour.
   */
  warnings(): Warning[] {
    const warnings: Warning[] = [];
    if (this.#ffmpegMissing) {
      const message = `ffmpeg is not installed (${this.#o.ffmpegPath}): exports and time-lapses are refused`;
      warnings.push({ code: 'ffmpeg-missing', message, cameraId: undefined });
    }
    if (this.#trouble !== undefined) {
      const message = `exports and time-lapses are refused: ${this.#trouble}`;
      warnings.push({ code: 'jobs-unavailable', message, cameraId: undefined });
    }
    if (this.#keyTrouble !== undefined) {
      const message = `exports and time-lapses fail: the key that they are signed with cannot be used: ${this.#keyTrouble}`;
      warnings.push({ code: 'signing-key-unusable', message, cameraId: undefined });
    }
    return warnings;
  }

  /** The key that signs manifests. After a failure, the next call tries again. Rejects with NodeKeyError. */
  signingKey(): Promise<NodeKey> {
    this.#key ??= this.#openKey();
    return this.#key;
  }

  async #openKey(): Promise<NodeKey> {
    const { keyDirectory, log } = this.#o;
    try {
      const key = await NodeKey.open(keyDirectory);
      log.info({ fingerprint: key.fingerprint }, 'the key that signs exports is in use');
      this.#keyTrouble = undefined;
      return key;
    } catch (err) {
      this.#key = undefined;
      if (err instanceof NodeKeyError) {
        if (this.#keyTrouble !== err.message) log.error({ reason: err.message }, 'exports cannot be signed');
        this.#keyTrouble = err.message;
      }
      throw err;
    }
  }

  /** Whether ffmpeg is installed, which exports and time-lapses need. */
  ffmpegIsThere(): Promise<boolean> {
    return this.#ffmpeg.seemsThere();
  }

  /** Whether the address belongs to a member of the cluster, from which this node may fetch. */
  isMember(address: string): boolean {
    const { peers } = this.#o;
    return peers !== undefined && memberAt(peers.members(), address, peers.scheme) !== undefined;
  }

  /** The address of a node of the cluster, as parts of assemblies name it. */
  addressOf(nodeId: string): string | undefined {
    const { peers } = this.#o;
    return peers?.members().find((member) => member.nodeId === nodeId)?.address;
  }

  /** `credential`: the `Authorization` that the job sends to other nodes. Rejects with JobsUnavailable. */
  async submit(request: JobRequest, credential?: string): Promise<Job> {
    const { by } = request;
    if (by === undefined) return this.#asked((queue) => this.#submit(queue, request, credential));
    // Jobs that are being added count too: otherwise, many simultaneous requests would all pass the limit.
    const coming = (this.#coming.get(by) ?? 0) + 1;
    this.#coming.set(by, coming);
    try {
      return await this.#asked(async (queue) => {
        if ((await queue.unfinishedOf(by)) + coming > MAX_UNFINISHED_OF_ONE) {
          throw new TooManyJobs(
            `${MAX_UNFINISHED_OF_ONE} jobs of ${by} wait or run: request more when some of them have ended`,
          );
        }
        return this.#submit(queue, request, credential);
      });
    } finally {
      const left = (this.#coming.get(by) ?? 1) - 1;
      if (left > 0) this.#coming.set(by, left);
      else this.#coming.delete(by);
    }
  }

  async #submit(queue: JobQueue, request: JobRequest, credential: string | undefined): Promise<Job> {
    const id = newJobId(request);
    if (credential !== undefined) this.#credentials.set(id, credential);
    if (this.#running === 0) this.#progressed();
    this.#unannounced.add(id);
    try {
      await queue.add(id, request);
    } catch (err) {
      this.#unannounced.delete(id);
      this.#credentials.delete(id);
      throw err;
    }
    const job = await queue.get(id);
    if (!job) throw new JobsUnavailable('redis lost the job');
    this.#tellQueued(id, request);
    return job;
  }

  async get(id: string): Promise<Job | undefined> {
    const job = await this.#asked((queue) => queue.get(id));
    return job && this.#isKnown(job) ? job : undefined;
  }

  /** Newest first. */
  async list(): Promise<Job[]> {
    return (await this.#asked((queue) => queue.list())).filter((job) => this.#isKnown(job));
  }

  /** False for an unknown id. */
  async remove(id: string): Promise<boolean> {
    const job = this.#o.observer && (await this.#asked((queue) => queue.get(id)));
    this.#leaving.add(id);
    const removed = await this.#asked((queue) => queue.remove(id)).finally(() => this.#leaving.delete(id));
    if (removed) {
      if (job) this.#tell('removed', job);
      this.#credentials.delete(id);
      await rm(this.#resultPath(id), { force: true });
      await rm(this.#manifestPath(id), { force: true });
      await rm(this.#partsPath(id), { recursive: true, force: true });
    }
    return removed;
  }

  /** Throws JobError. */
  async estimate(request: JobRequest, credential?: string): Promise<JobOutcome> {
    const outcome = await estimateExport(request, this.#plannerDeps(request, credential));
    const { speed } = request;
    if (speed === undefined) return outcome;
    const { parts: _, ...copied } = outcome;
    return { ...copied, ...lapseEstimate(outcome, speed) };
  }

  /** The file of a job that is done; undefined when it has expired. */
  async result(job: Job): Promise<{ path: string; sizeBytes: number; modifiedMs: number } | undefined> {
    if (this.#isExpired(job)) return undefined;
    const path = this.#resultPath(job.id);
    const stats = await stat(path).catch(() => undefined);
    return stats && { path, sizeBytes: stats.size, modifiedMs: stats.mtimeMs };
  }

  /** The manifest of a job that is done; undefined when it has expired. */
  async manifest(job: Job): Promise<Omit<SignedManifest, 'madeMs'> | undefined> {
    if (this.#isExpired(job)) return undefined;
    const both = await readFile(this.#manifestPath(job.id)).catch(() => undefined);
    return both && { signature: both.subarray(0, SIGNATURE_BYTES), text: both.subarray(SIGNATURE_BYTES) };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await (await this.#queue?.catch(() => undefined))?.close();
  }

  /** Logs once when jobs become unavailable, and when they are available again. Rejects with JobsUnavailable. */
  async #asked<T>(ask: (queue: JobQueue) => Promise<T>): Promise<T> {
    try {
      const answer = await ask(await this.#opened());
      if (this.#trouble !== undefined) this.#o.log.info({}, 'jobs are available again');
      this.#trouble = undefined;
      return answer;
    } catch (err) {
      if (err instanceof JobsUnavailable && !this.#closed) {
        if (this.#trouble !== err.message) this.#o.log.warn({ reason: err.message }, 'jobs are not available');
        this.#trouble = err.message;
      }
      throw err;
    }
  }

  #opened(): Promise<JobQueue> {
    if (this.#closed) return Promise.reject(new JobsUnavailable('the recorder is stopping'));
    this.#queue ??= this.#o.openQueue(
      (id, ...rest) => this.#work(id, ...rest),
      (id) => void this.#tellEnd(id),
    );
    const queue = this.#queue;
    queue.catch(() => {
      if (this.#queue === queue) this.#queue = undefined;
    });
    return queue;
  }

  /** Sends `queued` once, before any other event of the job: a job may start before its caller has the answer. */
  #tellQueued(id: string, request: JobRequest): void {
    if (this.#unannounced.delete(id)) this.#tell('queued', { ...request, id, progress: 0 });
  }

  #tell(change: JobChange, job: Parameters<JobObserver>[1]): void {
    this.#o.observer?.(change, job);
  }

  /** Sends the last event of a job whose end Redis has recorded, so that a client which then reads the job sees its end. */
  async #tellEnd(id: string): Promise<void> {
    if (!this.#o.observer || this.#leaving.has(id)) return;
    const job = await this.#asked((queue) => queue.get(id)).catch(() => undefined);
    if (job?.state === 'done' || job?.state === 'failed') this.#tell(job.state, job);
  }

  /** Redis removes old jobs from time to time only. */
  #isKnown({ completedAtMs = Infinity }: Job): boolean {
    return this.#o.clock.wallMs() - completedAtMs < JOB_KEPT_MS;
  }

  #isExpired(job: Job): boolean {
    return isExpired(job, this.#o.clock.wallMs());
  }

  #progressed(): void {
    this.#progressMs = this.#o.clock.monotonicMs();
  }

  /** For metrics: does not start Redis, and does not wait for long; a late answer is used by the next scrape. */
  async #counts(): Promise<readonly QueueCount[] | undefined> {
    const answered = new AbortController();
    const late = this.#o.clock.sleep(COUNT_TIMEOUT_MS, answered.signal).then(() => undefined);
    const asked = this.#queue && this.#asked((queue) => queue.counts()).catch(() => undefined);
    const counts = asked
      ? await Promise.race([asked, late])
      : QUEUE_NAMES.map((queue) => ({ queue, waiting: 0, running: 0 }));
    answered.abort();
    if (counts?.every(({ waiting, running }) => waiting + running === 0)) this.#progressed();
    return counts;
  }

  async #work(id: string, request: JobRequest, report: JobReport, signal: AbortSignal): Promise<JobOutcome> {
    let toldMs = -Infinity;
    let told = -1;
    const tell = (share: number): void => {
      const nowMs = this.#o.clock.monotonicMs();
      const percent = Math.floor(share * 100);
      if (percent <= told || nowMs - toldMs < TOLD_INTERVAL_MS) return;
      [told, toldMs] = [percent, nowMs];
      this.#tell('progress', { ...request, id, progress: share });
    };
    const progress = (share: number): void => {
      this.#progressed();
      report.progress(share);
      tell(share);
    };
    this.#tellQueued(id, request);
    tell(0);
    this.#running++;
    this.#progressed();
    try {
      const outcome = await this.#makeOnce(id, request, { ...report, progress }, signal);
      this.#metrics.finished(request.kind, 'done');
      return outcome;
    } catch (err) {
      // A job that was cancelled or continues after a restart has not failed.
      if (!signal.aborted) this.#metrics.finished(request.kind, 'failed');
      throw err;
    } finally {
      this.#running--;
      if (!signal.aborted) this.#credentials.delete(id);
      this.#progressed();
    }
  }

  async #makeOnce(id: string, request: JobRequest, report: JobReport, signal: AbortSignal): Promise<JobOutcome> {
    const make = (): Promise<JobOutcome> => this.#make(id, request, report, signal);
    // An existing result lacks the footage of a window that was not over.
    if (isAssembled(request) || request.toMs >= this.#o.clock.wallMs()) return make();
    const keyOf = ({ kind, cameraId, fromMs, toMs, speed, case: of }: JobRequest): string =>
      JSON.stringify([kind, cameraId, fromMs, toMs, speed, of?.cameras, of?.name, of?.assemblies !== undefined]);
    const key = keyOf(request);
    const made = async (): Promise<Made | undefined> => {
      const jobs = (await this.list()).filter(
        (job) => !isAssembled(job) && keyOf(job) === key && job.toMs < job.createdAtMs,
      );
      // A node that did not answer then may answer now.
      const done = jobs.find(({ state, outcome }) => state === 'done' && !outcome?.elsewhere);
      return done?.outcome && { id: done.id, outcome: done.outcome };
    };
    const adopt = (other: Made): Promise<boolean> => this.#adopt(other.id, id);
    return this.#shared.once(key, id, { made, adopt, make }, signal);
  }

  /** Makes the result of one job the result of another job too; false when it is gone or too old. */
  async #adopt(from: string, to: string): Promise<boolean> {
    try {
      const { mtimeMs } = await stat(this.#resultPath(from));
      if (this.#o.clock.wallMs() - mtimeMs >= RESULT_SHARED_MS) return false;
      for (const suffix of [MANIFEST_SUFFIX, RESULT_SUFFIX]) {
        const pathOf = (id: string): string => join(this.#o.directory, `${id}${suffix}`);
        await rm(pathOf(to), { force: true });
        await link(pathOf(from), pathOf(to));
      }
      return true;
    } catch {
      return false; // also if the file system has no hard links
    }
  }

  async #make(id: string, request: JobRequest, report: JobReport, signal: AbortSignal): Promise<JobOutcome> {
    const path = this.#resultPath(id);
    const key = await this.signingKey().catch((err: unknown) => {
      if (!(err instanceof NodeKeyError)) throw err;
      throw new JobError('no-signing-key', `the result could not be signed: ${err.message}`, { cause: err });
    });
    const { version, nodeName: node, clock } = this.#o;
    const sign = (written: Omit<Written, 'outcome'>): SignedManifest => {
      const kind = request.case ? ('case' as const) : request.kind;
      const about = { kind, name: request.case?.name, speed: request.speed, madeMs: clock.wallMs(), version, node };
      return signManifest(about, written, key);
    };
    const { outcome, cameras, manifest } = await this.#makeSigned(id, request, path, sign, report, signal);
    const temporary = temporaryName(this.#manifestPath(id));
    await writeFile(temporary, Buffer.concat([manifest.signature, manifest.text]));
    await rename(temporary, this.#manifestPath(id));
    return withHashes(outcome, cameras);
  }

  async #makeSigned(
    id: string,
    request: JobRequest,
    path: string,
    sign: (written: Omit<Written, 'outcome'>) => SignedManifest,
    report: JobReport,
    signal: AbortSignal,
  ): Promise<Pick<Written, 'outcome' | 'cameras'> & { readonly manifest: SignedManifest }> {
    if (request.case) {
      const { fromMs, toMs } = request;
      const wanted = { cameraIds: request.case.cameras, fromMs, toMs };
      const credential = this.#credentials.get(id);
      const planner = this.#plannerDeps(request, credential);
      return this.#withParts(id, report, signal, (parts, fetching) => {
        const assembled = caseAssemblies(request, credential, parts, fetching, signal);
        return exportCase(wanted, path, { ...planner, spareBytes: this.#o.spareBytes, sign, ...assembled }, signal);
      });
    }
    const written = await (request.kind === 'export'
      ? this.#copy(id, request, path, report, signal)
      : this.#lapse(id, request, path, report, signal));
    return { ...written, manifest: sign(written) };
  }

  async #lapse(
    id: string,
    request: JobRequest,
    path: string,
    report: JobReport,
    signal: AbortSignal,
  ): Promise<Written> {
    const { speed = 2 } = request;
    if (!(await this.#ffmpeg.isThere())) {
      throw new JobError('ffmpeg-missing', `ffmpeg is not installed: ${this.#o.ffmpegPath}`);
    }
    // If this process dies, the next start removes both files. The encoder may continue to run, and reopens its output by
    // name at the end: so every attempt uses another name.
    const attempt = `${path}.${randomBytes(4).toString('hex')}`;
    const source = `${attempt}.source${TEMPORARY_SUFFIX}`;
    const output = temporaryName(attempt);
    const copyShare = request.assembly ? 0.5 : 0.1;
    try {
      const copied = { ...report, progress: (share: number): void => report.progress(share * copyShare) };
      const { outcome, window, cameras } = await this.#copy(id, request, source, copied, signal);
      const { durationMs, gaps, parts: movies, untilMs, elsewhere } = outcome;
      const progress = (share: number): void => report.progress(copyShare + share * (1 - copyShare));
      const { ffmpegPath: program, spareBytes, clock } = this.#o;
      const run = { program, input: source, movies, output, speed, durationMs, progress, spareBytes, clock };
      await this.#encoders.take(() => makeTimelapse(run, signal), signal);
      const sha256 = await sha256Of(output);
      await rename(output, path);
      const made = { sizeBytes: (await stat(path)).size, durationMs: lapseDurationMs(durationMs, speed) };
      const lapses = cameras.map(({ cameraId, movies }) => {
        const name = movieName(cameraId, window.fromMs, { speed });
        return { cameraId, gaps, movies: [{ ...made, name, sha256, window, footage: lapsedFootage(movies, speed) }] };
      });
      const about = { gaps, ...(untilMs === undefined ? {} : { untilMs }), ...(elsewhere && { elsewhere }) };
      return { outcome: { ...made, ...about }, window, cameras: lapses };
    } finally {
      await Promise.all([source, output].map((left) => rm(left, { force: true })));
    }
  }

  /** Copies the footage of a job, into one movie if it has one codec. */
  async #copy(id: string, request: JobRequest, path: string, report: JobReport, signal: AbortSignal): Promise<Written> {
    const { spareBytes } = this.#o;
    const credential = this.#credentials.get(id);
    if (!request.assembly) {
      const deps = { ...this.#plannerDeps(request, credential), spareBytes, progress: report.progress };
      return this.#memory.during(COPY_BYTES, () =>
        exportWindow({ ...request, lapseSpeed: request.speed }, path, deps, signal),
      );
    }
    return this.#withParts(id, report, signal, (parts, deps) =>
      assemble(request, credential, parts, path, deps, signal),
    );
  }

  /** Calls `work` with the directory of the parts from other recorders, and what it needs to fetch them. */
  async #withParts<T>(
    id: string,
    report: JobReport,
    signal: AbortSignal,
    work: (parts: string, deps: AssembleDeps) => Promise<T>,
  ): Promise<T> {
    const { spareBytes, peers, peerLimits: limits = PEER_LIMITS, clock, version } = this.#o;
    const access = { members: () => [], scheme: 'http' as const, ...peers, silenceMs: limits.silenceMs };
    const parts = this.#partsPath(id);
    const deps = { access, limits, clock, spareBytes, version, report };
    try {
      return await this.#memory.during(COPY_BYTES, () => work(parts, deps));
    } finally {
      // After a restart, the job continues with the parts that were fetched.
      if (!signal.aborted) await rm(parts, { recursive: true, force: true });
    }
  }

  #plannerDeps({ by = '' }: JobRequest, credential: string | undefined): PlannerDeps {
    const { recordPath, archive, clock, version, knownTime } = this.#o;
    return {
      recordPath,
      archive,
      version,
      wallMs: () => clock.wallMs(),
      ...(knownTime && {
        knownTime: (cameraId, fromMs, toMs) => knownTime(cameraId, fromMs, toMs, { name: by, credential }),
      }),
    };
  }

  #resultPath(id: string): string {
    return join(this.#o.directory, `${id}${RESULT_SUFFIX}`);
  }

  #manifestPath(id: string): string {
    return join(this.#o.directory, `${id}${MANIFEST_SUFFIX}`);
  }

  #partsPath(id: string): string {
    return join(this.#o.directory, `${id}${PARTS_SUFFIX}`);
  }

  async #sweepAgain(): Promise<void> {
    // For the warnings: they show whether Redis answers before the next request for a job.
    if (this.#queue || this.#trouble !== undefined) await this.get(NO_JOB).catch(() => {});
    await this.#sweep();
  }

  /** For the warnings. ffmpeg is rarely removed, and starting it costs as much CPU time as recording for a second. */
  async #lookForFfmpeg(): Promise<void> {
    const nowMs = this.#o.clock.monotonicMs();
    if (nowMs < this.#ffmpegFoundMs + FFMPEG_FOUND_FOR_MS) return;
    this.#ffmpegMissing = !(await this.#ffmpeg.isThere());
    if (!this.#ffmpegMissing) this.#ffmpegFoundMs = nowMs;
  }

  /** Removes results an hour after their jobs ended, and results without a job. */
  async #sweep(): Promise<void> {
    if (this.#closed) return;
    await this.#lookForFfmpeg();
    try {
      const names = (await readdir(this.#o.directory)).filter((name) => /\.(?:mp4|manifest|parts)$/.test(name));
      for (const name of names) {
        const job = await this.get(name.slice(0, name.lastIndexOf('.')));
        // A job that runs again replaces the result of a run whose end was not recorded.
        const wanted = name.endsWith(PARTS_SUFFIX)
          ? job && job.completedAtMs === undefined
          : job && !this.#isExpired(job);
        if (!wanted) await rm(join(this.#o.directory, name), { recursive: true, force: true });
      }
    } catch (err) {
      if (!(err instanceof JobsUnavailable)) this.#o.log.error({ err }, 'expired results cannot be removed');
    }
    if (!this.#closed) this.#timer = this.#o.clock.after(SWEEP_MS, () => void this.#sweepAgain());
  }
}

/** Hex. */
async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const block of createReadStream(path)) hash.update(block as Buffer);
  return hash.digest('hex');
}
