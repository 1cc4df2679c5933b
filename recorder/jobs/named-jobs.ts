// The jobs of this node under the ids that clients get: in a cluster with the name of the node. An id without it is accepted,
// too, because earlier versions gave such ids.

import type { Job, JobOutcome, JobRequest } from './job.ts';
import { jobName, parseJobName } from './job-id.ts';
import type { Jobs } from './jobs.ts';
import type { NodeKey } from './node-key.ts';

export class NamedJobs {
  readonly #jobs: Jobs;
  readonly #nodeId: string | undefined;

  /** `nodeId`: undefined outside of a cluster. */
  constructor(jobs: Jobs, nodeId: string | undefined) {
    this.#jobs = jobs;
    this.#nodeId = nodeId;
  }

  ffmpegIsThere(): Promise<boolean> {
    return this.#jobs.ffmpegIsThere();
  }

  isMember(address: string): boolean {
    return this.#jobs.isMember(address);
  }

  async submit(request: JobRequest, credential?: string): Promise<Job> {
    return this.#named(await this.#jobs.submit(request, credential));
  }

  async get(name: string): Promise<Job | undefined> {
    const id = this.#idOf(name);
    const job = id === undefined ? undefined : await this.#jobs.get(id);
    return job && this.#named(job);
  }

  async list(): Promise<readonly Job[]> {
    return (await this.#jobs.list()).map((job) => this.#named(job));
  }

  async remove(name: string): Promise<boolean> {
    const id = this.#idOf(name);
    return id !== undefined && this.#jobs.remove(id);
  }

  estimate(request: JobRequest): Promise<JobOutcome> {
    return this.#jobs.estimate(request);
  }

  fileName(job: Job): string {
    return this.#jobs.fileName(job);
  }

  result(job: Job): ReturnType<Jobs['result']> {
    return this.#jobs.result(this.#plain(job));
  }

  manifest(job: Job): ReturnType<Jobs['manifest']> {
    return this.#jobs.manifest(this.#plain(job));
  }

  signingKey(): Promise<Pick<NodeKey, 'publicKey' | 'fingerprint' | 'sign'>> {
    return this.#jobs.signingKey();
  }

  #named(job: Job): Job {
    return { ...job, id: jobName(this.#nodeId, job.id) };
  }

  #plain(job: Job): Job {
    return { ...job, id: parseJobName(job.id).id };
  }

  /** Undefined for a job of another node. */
  #idOf(name: string): string | undefined {
    const { nodeId, id } = parseJobName(name);
    return nodeId === undefined || nodeId === this.#nodeId ? id : undefined;
  }
}
