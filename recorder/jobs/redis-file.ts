// Repairs the append-only file of the recorder's own redis-server with the program that belongs to Redis. A file that was cut off
// by a power failure needs no repair: the server does that itself.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { startChild } from '../../base/child.ts';
import { errorCode } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';

const FILES = 'appendonlydir';
const MANIFEST = 'appendonly.aof.manifest';
/** A copy of what was damaged, until the next time. */
const DAMAGED = `${FILES}.damaged`;
const PROGRAM = 'redis-check-aof';
const LIMITS = { memoryBytes: 1024 ** 3, cpuSeconds: 300, fileBytes: 1024 ** 3, openFiles: 64 };

export class AppendOnlyFile {
  readonly #directory: string;
  readonly #program: string;

  /** `directory`: that of the server; `server`: the program redis-server. The program that repairs is beside it. */
  constructor(directory: string, server: string) {
    this.#directory = directory;
    this.#program = server.includes('/') ? join(dirname(server), PROGRAM) : PROGRAM;
  }

  /** False if there is none, and without the program that checks it: then a person has to look. */
  async isDamaged(log: Log): Promise<boolean> {
    if (!existsSync(this.#manifest)) return false;
    try {
      return !(await succeeds(this.#program, [this.#manifest]));
    } catch (err) {
      if (errorCode(err) !== 'ENOENT') throw err;
      log.error({ program: this.#program }, 'the program that repairs the file of jobs is not installed');
      return false;
    }
  }

  /** Keeps what is before the damage, if that can be done. Resolves to the path of a copy of the damaged files. */
  async cutOff(): Promise<string> {
    const copy = join(this.#directory, DAMAGED);
    await rm(copy, { recursive: true, force: true });
    await cp(join(this.#directory, FILES), copy, { recursive: true });
    await succeeds(this.#program, ['--fix', this.#manifest], 'y\n');
    return copy;
  }

  remove(): Promise<void> {
    return rm(join(this.#directory, FILES), { recursive: true, force: true });
  }

  get #manifest(): string {
    return join(this.#directory, FILES, MANIFEST);
  }
}

async function succeeds(program: string, args: readonly string[], input = ''): Promise<boolean> {
  const child = startChild(program, args, { stdio: ['pipe', 'ignore', 'ignore'], limits: LIMITS });
  child.stdin.on('error', () => {}); // it has ended before it has read the answer
  child.stdin.end(input);
  const [code] = (await once(child, 'exit')) as [number | null];
  return code === 0;
}
