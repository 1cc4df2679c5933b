// Reads the details of many closed segments at once, in a thread of its own (`details-worker.ts`). The caller reads the
// files for which the thread has no answer.

import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { ORIGINS } from '../../mp4/meta.ts';
import { NUMBERS_A_FILE, type DetailsAnswer, type DetailsQuestion } from './details-worker.ts';
import type { SegmentDetails } from './segment.ts';

export interface DetailsReader {
  /** In the order of `paths` (absolute); undefined where the caller has to read the file itself. Never rejects. */
  read(paths: readonly string[]): Promise<readonly (SegmentDetails | undefined)[]>;
  close(): Promise<void>;
}

const SCRIPT = new URL('./details-worker.ts', import.meta.url);

/**
 * The thread is started by the first question, because it takes some megabytes. If a new package has replaced the file of the thread by
 * then, there is none until the next start: a process runs the files of one version only.
 */
export class ThreadedDetailsReader implements DetailsReader {
  readonly #script: URL;
  readonly #version: string;
  readonly #waiting = new Map<number, (numbers: Float64Array | undefined) => void>();
  #worker: Worker | undefined;
  #nextId = 0;

  constructor(script = SCRIPT) {
    this.#script = script;
    this.#version = versionOf(script);
  }

  async read(paths: readonly string[]): Promise<readonly (SegmentDetails | undefined)[]> {
    if (!this.#worker && versionOf(this.#script) !== this.#version) return paths.map(() => undefined);
    const id = this.#nextId++;
    const numbers = await new Promise<Float64Array | undefined>((resolve) => {
      this.#waiting.set(id, resolve);
      this.#worker ??= this.#start();
      // The thread keeps the process alive only while a question waits for its answer.
      this.#worker.ref();
      this.#worker.postMessage({ id, paths } satisfies DetailsQuestion, []);
    });
    return paths.map((_, i) => numbers && detailsAt(numbers, i * NUMBERS_A_FILE));
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#giveUp();
    await worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(this.#script, {
      resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 64 },
    });
    worker.on('message', ({ id, numbers }: DetailsAnswer) => {
      this.#waiting.get(id)?.(numbers);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) worker.unref();
    });
    const ended = (): void => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#giveUp();
    };
    worker.on('error', ended);
    worker.on('exit', ended);
    return worker;
  }

  #giveUp(): void {
    for (const resolve of this.#waiting.values()) resolve(undefined);
    this.#waiting.clear();
  }
}

/** Another one once the file was replaced. */
function versionOf(script: URL): string {
  const { ino, size, mtimeMs } = statSync(script, { throwIfNoEntry: false }) ?? {};
  return [ino, size, mtimeMs].join(' ');
}

function detailsAt(numbers: Float64Array, at: number): SegmentDetails | undefined {
  const told = numbers.subarray(at, at + NUMBERS_A_FILE);
  const [sizeBytes = NaN, mtimeMs = NaN, sequence = NaN, endMs = NaN, place = NaN] = told;
  const origin = ORIGINS[place];
  return Number.isNaN(sizeBytes) ? undefined : { sizeBytes, mtimeMs, sequence, endMs, ...(origin && { origin }) };
}
