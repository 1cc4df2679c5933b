// Makes the result of one job and its signed manifest.

import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';
import { unlimitedMemory, type MemoryAccount } from '../../base/memory-budget.ts';
import type { Asker } from '../peers/peer-requests.ts';
import { assemble } from './assemble.ts';
import { exportCase, type CaseDeps } from './case.ts';
import { caseReport } from './case-report.ts';
import { JobError } from './error.ts';
import { TEMPORARY_SUFFIX, estimateExport, exportWindow, temporaryName } from './export.ts';
import type { PlannerDeps } from './export-plan.ts';
import { lapseDurationMs, lapseEstimate, makeTimelapse, type FfmpegCheck } from './ffmpeg.ts';
import type { KnownTime } from './gap-causes.ts';
import type { JobOutcome, JobReport, JobRequest } from './job.ts';
import { signManifest } from './manifest.ts';
import { movieName, type LocalNames } from './movie-name.ts';
import { NodeKeyError, type SigningKey } from './node-key.ts';
import { PEER_LIMITS } from './peer-part.ts';
import type { PeerAccess } from './peer-request.ts';
import type { Results } from './results.ts';
import type { ClusterFootage, JobArchive } from './source.ts';
import { COPY_BYTES } from './write-movie.ts';
import { lapsedFootage, withHashes, type WrittenResult } from './written.ts';

export interface MakerOptions {
  /** The name of the node in manifests. */
  readonly nodeName: string;
  readonly recordPath: string;
  readonly archive: JobArchive;
  readonly ffmpegPath: string;
  readonly version: string;
  /** For names and times in results; without it, ids and UTC. */
  readonly local?: LocalNames;
  readonly clock: Clock;
  /** Number of bytes that results may use now: free space that is not reserved for recording. */
  readonly spareBytes: () => Promise<number>;
  /** Other recorders, for assemblies; without it, there are none. */
  readonly peers?: Omit<PeerAccess, 'silenceMs'>;
  /** In a cluster: the footage of all nodes. */
  readonly collector?: ClusterFootage['collector'];
  readonly knownTime?: (
    cameraId: string,
    fromMs: number,
    toMs: number,
    isOfAllNodes: boolean,
    by: Asker,
  ) => Promise<KnownTime>;
  /** For the buffers of jobs. */
  readonly memory?: MemoryAccount | undefined;
}

interface MakerDeps {
  readonly results: Results;
  readonly key: SigningKey;
  readonly ffmpeg: FfmpegCheck;
}

/** A job that is made. */
interface Making {
  readonly id: string;
  readonly request: JobRequest;
  /** `Authorization` of the caller of an assembly, for requests to other nodes. */
  readonly credential: string | undefined;
  readonly report: JobReport;
  readonly signal: AbortSignal;
}

export class JobMaker {
  readonly #options: MakerOptions;
  readonly #deps: MakerDeps;
  readonly #memory: MemoryAccount;

  constructor(options: MakerOptions, deps: MakerDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#memory = options.memory ?? unlimitedMemory('jobs');
  }

  /** Throws JobError, and the signal's reason. */
  async make(making: Making): Promise<JobOutcome> {
    const { id, request } = making;
    const { results } = this.#deps;
    const documents = await this.#signer(request);
    if (request.case) {
      const { outcome, cameras, manifest } = await this.#case(making, documents);
      await results.writeManifest(id, manifest);
      return withHashes(outcome, cameras);
    }
    const written = await (request.kind === 'export' ? this.#copy(making, results.path(id)) : this.#lapse(making));
    await results.writeManifest(id, documents.sign(written));
    return withHashes(written.outcome, written.cameras);
  }

  /** Throws JobError. */
  async estimate(request: JobRequest): Promise<JobOutcome> {
    const outcome = await estimateExport(request, this.#plannerDeps(request));
    const { speed } = request;
    if (speed === undefined) return outcome;
    const { parts: _, ...copied } = outcome;
    return { ...copied, ...lapseEstimate(outcome, speed) };
  }

  async #signer({ kind, speed, by, case: of }: JobRequest): Promise<Pick<CaseDeps, 'sign' | 'report'>> {
    const { version, nodeName: node, clock, local } = this.#options;
    const key = await this.#deps.key.get().catch((err: unknown) => {
      if (!(err instanceof NodeKeyError)) throw err;
      throw new JobError('no-signing-key', `the result could not be signed: ${err.message}`, { cause: err });
    });
    const about = { of, by, local, version, node };
    return {
      sign: (written) =>
        signManifest({ ...about, kind: of ? 'case' : kind, speed, madeMs: clock.wallMs() }, written, key),
      ...(of &&
        local && {
          report: (written) =>
            caseReport(written, { ...about, of, local, madeMs: clock.wallMs(), fingerprint: key.fingerprint }),
        }),
    };
  }

  #case(
    { id, request, report, signal }: Making,
    documents: Pick<CaseDeps, 'sign' | 'report'>,
  ): ReturnType<typeof exportCase> {
    const { fromMs, toMs, isOfAllNodes } = request;
    const wanted = { cameraIds: request.case?.cameras ?? [], fromMs, toMs, isOfAllNodes };
    const { spareBytes } = this.#options;
    const deps = { ...this.#plannerDeps(request), spareBytes, ...documents, progress: report.progress };
    return this.#memory.during(COPY_BYTES, () => exportCase(wanted, this.#deps.results.path(id), deps, signal));
  }

  async #lapse(making: Making): Promise<WrittenResult> {
    const { id, request, report, signal } = making;
    const { ffmpegPath: program, spareBytes, clock } = this.#options;
    const { speed = 2 } = request;
    if (!(await this.#deps.ffmpeg.isThere())) {
      throw new JobError('ffmpeg-missing', `ffmpeg is not installed: ${program}`);
    }
    // If this process dies, the next start removes both files. The encoder may continue to run, and reopens its output by
    // name at the end: so every attempt uses another name.
    const path = this.#deps.results.path(id);
    const attempt = `${path}.${randomBytes(4).toString('hex')}`;
    const source = `${attempt}.source${TEMPORARY_SUFFIX}`;
    const output = temporaryName(attempt);
    const copyShare = request.assembly ? 0.5 : 0.1;
    try {
      const copied = { ...report, progress: (share: number): void => report.progress(share * copyShare) };
      const { outcome, window, cameras } = await this.#copy({ ...making, report: copied }, source);
      const { durationMs, gaps, parts: movies, untilMs, elsewhere } = outcome;
      const progress = (share: number): void => report.progress(copyShare + share * (1 - copyShare));
      const run = { program, input: source, movies, output, speed, durationMs, progress, spareBytes, clock };
      await makeTimelapse(run, signal);
      const sha256 = await sha256Of(output);
      await rename(output, path);
      const made = { sizeBytes: (await stat(path)).size, durationMs: lapseDurationMs(durationMs, speed) };
      const lapses = cameras.map(({ cameraId, movies }) => {
        const name = movieName(cameraId, window.fromMs, { speed, local: this.#options.local });
        return { cameraId, gaps, movies: [{ ...made, name, sha256, window, footage: lapsedFootage(movies, speed) }] };
      });
      const about = { gaps, ...(untilMs === undefined ? {} : { untilMs }), ...(elsewhere && { elsewhere }) };
      return { outcome: { ...made, ...about }, window, cameras: lapses };
    } finally {
      await Promise.all([source, output].map((left) => rm(left, { force: true })));
    }
  }

  /** Copies the footage of a job, into one movie if it has one codec. */
  async #copy(making: Making, path: string): Promise<WrittenResult> {
    const { request, report, signal } = making;
    const { spareBytes } = this.#options;
    if (!request.assembly) {
      const deps = { ...this.#plannerDeps(request), spareBytes, progress: report.progress };
      return this.#memory.during(COPY_BYTES, () =>
        exportWindow({ ...request, lapseSpeed: request.speed }, path, deps, signal),
      );
    }
    return this.#assembly(making, path);
  }

  async #assembly({ id, request, credential, report, signal }: Making, path: string): Promise<WrittenResult> {
    const { spareBytes, peers, clock, version } = this.#options;
    const access = { members: () => [], scheme: 'http' as const, ...peers, silenceMs: PEER_LIMITS.silenceMs };
    const parts = this.#deps.results.partsPath(id);
    const deps = { access, limits: PEER_LIMITS, clock, spareBytes, version, report };
    try {
      return await this.#memory.during(COPY_BYTES, () => assemble(request, credential, parts, path, deps, signal));
    } finally {
      // After a restart, the job continues with the parts that were fetched.
      if (!signal.aborted) await rm(parts, { recursive: true, force: true });
    }
  }

  #plannerDeps({ by = '' }: JobRequest): PlannerDeps {
    const { recordPath, archive, clock, version, local, nodeName, collector, knownTime } = this.#options;
    const asker = { name: by || nodeName, credential: undefined };
    return {
      recordPath,
      archive,
      version,
      local,
      cluster: collector && { collector, by: asker, clock },
      wallMs: () => clock.wallMs(),
      ...(knownTime && { knownTime: (...of) => knownTime(...of, asker) }),
    };
  }
}

/** Hex. */
async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const block of createReadStream(path)) hash.update(block as Buffer);
  return hash.digest('hex');
}
