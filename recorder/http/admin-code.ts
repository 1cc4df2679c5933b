// The code of the link with which the first admin is made. Its digest is in a file of the state directory, so that the
// command `recorder admin-link` can make another one while the recorder runs. Removing the file uses up the code: the
// system lets only one process do that, however many try at once.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, rm, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { errorCode } from '../../base/error.ts';
import { sha256 } from '../../base/new-token.ts';
import { readPrivate, writePrivate } from '../../base/private-file.ts';
import { DAY_MS } from '../../base/units.ts';

const LASTS_MS = DAY_MS;
const CODE_BYTES = 32;

const Kept = z.strictObject({ sha256: z.string().length(64), untilMs: z.number() });

export class AdminCode {
  readonly #workDir: string;
  readonly #clock: Pick<Clock, 'wallMs'>;

  constructor(workDir: string, clock: Pick<Clock, 'wallMs'>) {
    this.#workDir = workDir;
    this.#clock = clock;
  }

  /** Makes a code; one before it is not valid any more. */
  async make(): Promise<string> {
    const code = randomBytes(CODE_BYTES).toString('base64url');
    const untilMs = this.#clock.wallMs() + LASTS_MS;
    await mkdir(this.#workDir, { recursive: true });
    await writePrivate(this.#file, `${JSON.stringify({ sha256: sha256(code).toString('hex'), untilMs })}\n`);
    return code;
  }

  /** Whether `code` is valid now. */
  async isValid(code: string): Promise<boolean> {
    const text = await readPrivate(this.#file, (problem) => new Error(`${this.#file} ${problem}`));
    if (text === undefined) return false;
    const kept = Kept.parse(JSON.parse(text));
    return timingSafeEqual(Buffer.from(kept.sha256, 'hex'), sha256(code)) && this.#clock.wallMs() < kept.untilMs;
  }

  /** False when the code has been used meanwhile. */
  async use(): Promise<boolean> {
    try {
      await unlink(this.#file);
      return true;
    } catch (err) {
      if (errorCode(err) === 'ENOENT') return false;
      throw err;
    }
  }

  /** No code is valid any more. */
  async withdraw(): Promise<void> {
    await rm(this.#file, { force: true });
  }

  get #file(): string {
    return join(this.#workDir, 'admin-link.json');
  }
}

/** With the name of this machine in place of an address such as 0.0.0.0, which stands for all of them. */
export const reachable = (address: string): string =>
  address.replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=:|$)/, (_, scheme: string) => `${scheme}${hostname()}`);

/** The address that makes an admin. The code is in the fragment, which browsers send to nobody. */
export const adminLink = (address: string, code: string): string => `${address}/#/welcome?code=${code}`;
