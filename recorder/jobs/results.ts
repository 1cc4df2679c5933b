// The directory of results: for each job that is done a movie or ZIP file, and its manifest; for an assembly that runs a
// directory with its parts, which survives a restart as long as its job does.

import { link, mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ignoreMissing } from '../../base/file-calls.ts';
import { TEMPORARY_SUFFIX, temporaryName } from './export.ts';
import { isExpired, type Job } from './job.ts';
import { SIGNATURE_BYTES, type SignedManifest } from './manifest.ts';

/** Used for ZIP files too. */
const RESULT_SUFFIX = '.mp4';
/** The file next to the result: the signature of its manifest, followed by the manifest. */
const MANIFEST_SUFFIX = '.manifest';
const PARTS_SUFFIX = '.parts';
const SUFFIXES = [RESULT_SUFFIX, MANIFEST_SUFFIX, PARTS_SUFFIX];

/** A result that is older than this is made again for the next request: footage may have been added or removed. */
const RESULT_SHARED_MS = 1_800_000;

export class Results {
  readonly #directory: string;
  readonly #wallMs: () => number;

  constructor(directory: string, wallMs: () => number) {
    this.#directory = directory;
    this.#wallMs = wallMs;
  }

  /** Creates the directory, and removes what an interrupted attempt left. */
  async open(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#directory, { recursive: true })) {
      if (name.endsWith(TEMPORARY_SUFFIX)) await rm(join(this.#directory, name), { force: true });
    }
  }

  /** Where the result of a job is written. */
  path(id: string): string {
    return join(this.#directory, `${id}${RESULT_SUFFIX}`);
  }

  /** Where the parts of an assembly are kept until it is done. */
  partsPath(id: string): string {
    return join(this.#directory, `${id}${PARTS_SUFFIX}`);
  }

  /** Undefined when it has expired. */
  async result(job: Job): Promise<{ path: string; sizeBytes: number; modifiedMs: number } | undefined> {
    if (isExpired(job, this.#wallMs())) return undefined;
    const path = this.path(job.id);
    const stats = await stat(path).catch(ignoreMissing);
    return stats && { path, sizeBytes: stats.size, modifiedMs: stats.mtimeMs };
  }

  /** Undefined when it has expired. */
  async manifest(job: Job): Promise<Omit<SignedManifest, 'madeMs'> | undefined> {
    if (isExpired(job, this.#wallMs())) return undefined;
    const both = await readFile(this.#manifestPath(job.id)).catch(ignoreMissing);
    return both && { signature: both.subarray(0, SIGNATURE_BYTES), text: both.subarray(SIGNATURE_BYTES) };
  }

  async writeManifest(id: string, { signature, text }: SignedManifest): Promise<void> {
    const path = this.#manifestPath(id);
    const temporary = temporaryName(path);
    await writeFile(temporary, Buffer.concat([signature, text]));
    await rename(temporary, path);
  }

  /** Makes the result of one job the result of another job too; false when it is gone or too old. */
  async share(from: string, to: string): Promise<boolean> {
    try {
      const { mtimeMs } = await stat(this.path(from));
      if (this.#wallMs() - mtimeMs >= RESULT_SHARED_MS) return false;
      for (const pathOf of [(id: string) => this.#manifestPath(id), (id: string) => this.path(id)]) {
        await rm(pathOf(to), { force: true });
        await link(pathOf(from), pathOf(to));
      }
      return true;
    } catch {
      return false; // also if the file system has no hard links
    }
  }

  async remove(id: string): Promise<void> {
    for (const suffix of SUFFIXES) await rm(join(this.#directory, `${id}${suffix}`), { recursive: true, force: true });
  }

  /** Removes expired results, and results without a job. `find` rejects when nobody knows. */
  async sweep(find: (id: string) => Promise<Job | undefined>): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      const suffix = SUFFIXES.find((suffix) => name.endsWith(suffix));
      if (suffix === undefined) continue;
      const job = await find(name.slice(0, -suffix.length));
      // A job that runs again replaces the result of a run whose end was not recorded.
      const isWanted =
        job && (suffix === PARTS_SUFFIX ? job.completedAtMs === undefined : !isExpired(job, this.#wallMs()));
      if (!isWanted) await rm(join(this.#directory, name), { recursive: true, force: true });
    }
  }

  #manifestPath(id: string): string {
    return join(this.#directory, `${id}${MANIFEST_SUFFIX}`);
  }
}
