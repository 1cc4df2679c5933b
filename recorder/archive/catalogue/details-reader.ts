// Many closed segments' details at once, read by a thread of its own (`details-worker.ts`). Paths in, details out;
// what the thread cannot tell is left to the caller.

import { Worker } from 'node:worker_threads';
import { NUMBERS_A_FILE, type DetailsAnswer, type DetailsQuestion } from './details-worker.ts';
import type { SegmentDetails } from './segment.ts';

export interface DetailsReader {
  /** In the order of `paths` (absolute); undefined: look for yourself. Never rejects. */
  read(paths: readonly string[]): Promise<readonly (SegmentDetails | undefined)[]>;
  close(): Promise<void>;
}

/** A thread costs some megabytes: it is started by the first question. */
export class ThreadedDetailsReader implements DetailsReader {
  readonly #waiting = new Map<number, (numbers: Float64Array | undefined) => void>();
  #worker: Worker | undefined;
  #nextId = 0;

  async read(paths: readonly string[]): Promise<readonly (SegmentDetails | undefined)[]> {
    const id = this.#nextId++;
    const numbers = await new Promise<Float64Array | undefined>((resolve) => {
      this.#waiting.set(id, resolve);
      this.#worker ??= this.#start();
      // It keeps the process alive only while somebody waits for it.
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
    const worker = new Worker(new URL('./details-worker.ts', import.meta.url), {
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

function detailsAt(numbers: Float64Array, at: number): SegmentDetails | undefined {
  const [sizeBytes = NaN, mtimeMs = NaN, sequence = NaN, endMs = NaN] = numbers.subarray(at, at + NUMBERS_A_FILE);
  return Number.isNaN(sizeBytes) ? undefined : { sizeBytes, mtimeMs, sequence, endMs };
}
