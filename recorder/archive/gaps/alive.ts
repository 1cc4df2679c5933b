// The sign of life of the process: when it was last alive, and in which boot of the machine. It is a small file with two
// slots that are written alternately, so that a torn write damages only one of them. It never grows, so that it can be
// written on a full disk.

import { readFile } from 'node:fs/promises';
import { errorCode } from '../../../base/error.ts';
import { parseJson } from '../../../base/parse-json.ts';
import type { FileSystem, OpenFile } from '../disk/file-system.ts';

interface SignOfLife {
  /** Milliseconds since 1970. */
  readonly aliveMs: number;
  /** Identifies the boot of the machine; empty where it is not available. */
  readonly bootId: string;
}

/** Whole sectors, so that a write of one slot cannot damage the other. */
const PLACE_BYTES = 512;
const BOOT_ID = '/proc/sys/kernel/random/boot_id';

export class AliveFile {
  readonly #fs: FileSystem;
  readonly #path: string;
  #count = 0;

  /** `path` is absolute; its directory is created when it is missing. */
  constructor(fs: FileSystem, path: string) {
    this.#fs = fs;
    this.#path = path;
  }

  /** How many signs of life the file has had, as of the last call. */
  get count(): number {
    return this.#count;
  }

  /** The last sign of life of the previous process; undefined when there is none. Rejects with the error of the system. */
  async read(): Promise<SignOfLife | undefined> {
    let file: OpenFile;
    try {
      file = await this.#fs.open(this.#path, 'read');
    } catch (err) {
      if (errorCode(err) === 'ENOENT') return undefined;
      throw err;
    }
    try {
      let last: SignOfLife | undefined;
      for (const place of [0, 1]) {
        const sign = parseSign(await file.read(place * PLACE_BYTES, PLACE_BYTES));
        if (!sign || sign.count < this.#count) continue;
        this.#count = sign.count + 1;
        last = { aliveMs: sign.aliveMs, bootId: sign.bootId };
      }
      return last;
    } finally {
      await file.close();
    }
  }

  /** Resolves when the sign is on the disk. Only one call at a time. */
  async write(sign: SignOfLife): Promise<void> {
    const text = JSON.stringify({ alive: sign.aliveMs, boot: sign.bootId, count: this.#count });
    const place = Buffer.alloc(PLACE_BYTES, ' ');
    place.write(`${text}\n`, 0, 'latin1');
    const file = await this.#open();
    try {
      await file.write([place], (this.#count % 2) * PLACE_BYTES);
      await file.syncData();
    } finally {
      await file.close();
    }
    this.#count++;
  }

  async #open(): Promise<OpenFile> {
    try {
      return await this.#fs.open(this.#path, 'read-write');
    } catch (err) {
      if (errorCode(err) !== 'ENOENT') throw err;
    }
    const directory = this.#path.slice(0, this.#path.lastIndexOf('/'));
    await this.#fs.makeDirectory(directory).catch((err: unknown) => {
      if (errorCode(err) !== 'EEXIST') throw err;
    });
    const file = await this.#fs.create(this.#path);
    await this.#fs.syncDirectory(directory);
    return file;
  }
}

function parseSign(place: Buffer): (SignOfLife & { readonly count: number }) | undefined {
  const fields = parseJson(place.toString('latin1'));
  if (typeof fields !== 'object' || fields === null) return undefined;
  const { alive, boot, count } = fields as Record<string, unknown>;
  const whole = Number.isSafeInteger(alive) && Number.isSafeInteger(count) && typeof boot === 'string';
  return whole ? { aliveMs: alive as number, bootId: boot, count: count as number } : undefined;
}

/** Identifies the current boot of the machine; empty where it is not available. */
export async function readBootId(): Promise<string> {
  return readFile(BOOT_ID, 'latin1').then(
    (text) => text.trim(),
    () => '',
  );
}
