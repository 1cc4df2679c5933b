// scrypt (RFC 7914) in one thread of its own. In the thread pool each call may run in another thread, and the C library keeps the
// 16 MiB of a call for most of them: some dozen guesses of strangers took a quarter of a gigabyte on two cores, and never gave it back.

import type { ScryptOptions } from 'node:crypto';
import { Worker } from 'node:worker_threads';

type Arguments = [password: string, salt: Uint8Array, keyLength: number, options: ScryptOptions];

const SCRIPT = `
  const { scryptSync } = require('node:crypto');
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', (given) => parentPort.postMessage(scryptSync(...given)));
`;

interface PendingKey {
  readonly resolve: (key: Buffer) => void;
  readonly reject: (error: Error) => void;
}

class ScryptThread {
  #worker: Worker | undefined;
  /** In the order of their calls, in which the thread answers. */
  #waiting: PendingKey[] = [];

  call(given: Arguments): Promise<Buffer> {
    const worker = (this.#worker ??= this.#start());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      // The thread keeps the process alive only while a call waits for its key.
      worker.ref();
      worker.postMessage(given, []);
    });
  }

  #start(): Worker {
    const worker = new Worker(SCRIPT, {
      eval: true,
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 16 },
    });
    worker.on('message', (key: Uint8Array) => {
      this.#waiting.shift()?.resolve(Buffer.from(key));
      if (this.#waiting.length === 0) worker.unref();
    });
    worker.once('error', (error: Error) => {
      this.#worker = undefined;
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const { reject } of waiting) reject(error);
    });
    return worker;
  }
}

/** One of this process: it is the process that would keep the memory. */
const thread = new ScryptThread();

export const scrypt = (...given: Arguments): Promise<Buffer> => thread.call(given);
